"""A configuration in a profile: the dtypes, zero points and parameters that its calls have."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES, Array, Case, Configuration, code_dtype
from halfeven.conformance.inputs.strategies import blocks_of
from halfeven.reference import Grid
from halfeven.reference.blocks import parameter_shape
from halfeven.reference.profile import Profile

__all__ = ["Setting"]


@dataclass(frozen=True)
class Setting:
    """What a configuration means in a profile."""

    profile: Profile
    configuration: Configuration

    @property
    def grid(self) -> Grid:
        """The codes."""
        return self.configuration.grid

    @property
    def dtype(self) -> np.dtype[Any]:
        """The float dtype of the configuration."""
        return DTYPES[self.configuration.dtype]

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """The dtype in which the profile holds codes: the input's own, or the smallest integer type."""
        return self.dtype if self.profile.codes == "input" else code_dtype(self.grid)

    @property
    def zeros(self) -> list[int]:
        """An even and an odd zero point of the grid; 0 alone where the profile has none."""
        if len(self.profile.parameters) == 1:
            return [0]
        found = [z for z in (0, 3) if z in self.grid] or [self.grid.qmin, self.grid.qmax]
        return sorted(set(found))

    @property
    def scale_dtype(self) -> np.dtype[Any]:
        """The dtype in which the profile hands over scales."""
        input_ = self.profile.scale_dtype == "input" or self.configuration.dtype == "float64"
        return self.dtype if input_ else DTYPES["float32"]

    def case(self, x: Array, scale: Any, zero: Any, **changes: Any) -> Case:
        """A case from ``scale`` (real per code) and ``zero`` (x̂ = (q - z) * s), turned into documented parameters."""
        x = np.asarray(x)
        c = replace(self.configuration, shape=x.shape, **changes)
        parameters = self.profile.parameters
        s, z = np.asarray(scale, self.scale_dtype), np.asarray(zero)
        if parameters[0] == "amax":
            s = (s * np.asarray(c.grid.qmax, s.dtype)).astype(s.dtype)
            x = np.abs(x) if c.grid.qmin >= 0 else x
        if parameters[1:] == ("offset",):
            z = (-z).astype(DTYPES["float64" if c.dtype == "float64" else "float32"]) + 0
        else:
            z = z.astype(np.int32) if len(parameters) > 1 else np.zeros_like(z, np.int32)
        return Case(c, x, np.asarray(s), np.asarray(z))

    def plain(self, values: Array) -> Case:
        """Codes for dequantize, or inputs, with scale 1 and zero point 0 in the plainest blocks of the granularity."""
        c = self.configuration
        x = values.astype(self.code_dtype if c.operation == "dequantize" else self.dtype)
        blocks = None if c.granularity == "any" else blocks_of(c.granularity, x.shape)
        shape = () if blocks is None else parameter_shape(x.shape, blocks)
        return self.case(x, np.ones(shape), np.zeros(shape, np.int64), block_size=blocks)
