"""A configuration in a profile: the dtypes, zero points and parameters of its calls, and what the profile answers."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES, Array, Case, Configuration, Granularity, code_dtype
from halfeven.conformance.requirements import requirements
from halfeven.reference import Grid, blocks
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape
from halfeven.reference.profile import Operation, Profile

__all__ = ["Setting", "evaluation_of", "speaks"]


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

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Whether codes may have a dtype: float ones that of the input, integer ones any that holds the grid."""
        if self.code_dtype.kind not in "iu":
            return bool(dtype == self.code_dtype)
        if dtype.kind not in "iu":
            return False
        info = np.iinfo(dtype)
        return info.min <= self.grid.qmin and self.grid.qmax <= info.max

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
        size = None if c.granularity == "any" else _blocks_of(c.granularity, x.shape)
        shape = () if size is None else parameter_shape(x.shape, size)
        return self.case(x, np.ones(shape), np.zeros(shape, np.int64), block_size=size)


@cache
def speaks(profile: str, operation: Operation, aspect: str) -> bool:
    """Whether a profile says what is expected of an aspect of an operation, such as ``nan``."""
    wanted = f"{profile}/{operation}/{aspect}"
    return any(r.id == wanted and r.basis != "silent" for r in requirements(profile))


def evaluation_of(profile: Profile, case: Case) -> Array:
    """The profile's own answer to a case."""
    c = case.configuration
    match c.operation:
        case "quantize":
            return profile.quantize(case.x, case.scale, case.zero, c.grid, c.block_size)
        case "dequantize":
            return profile.dequantize(case.x, case.scale, case.zero, c.grid, DTYPES[c.dtype], c.block_size)
        case "fake_quantize":
            return profile.fake_quantize(case.x, case.scale, case.zero, c.grid, c.block_size)


def _blocks_of(granularity: Granularity, shape: Shape) -> BlockSize | None:
    """The plainest blocks of a granularity: the first axis, the last vector, one group, one block; None per tensor."""
    match granularity:
        case "tensor":
            return None
        case "channel":
            return blocks.per_channel(shape, 0)
        case "token":
            return blocks.per_token(shape)
        case "group":
            return blocks.per_group(shape, max(shape[-1], 1))
        case "block":
            return blocks.per_tensor(shape)
