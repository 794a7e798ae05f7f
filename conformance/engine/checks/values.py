"""Codes and reals at the values where quantizers part: boundaries, odd zero points, edges, huge inputs, all codes."""

from collections.abc import Callable, Iterator

import numpy as np

from halfeven.conformance.configuration import Case
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.inputs import boundaries as inputs
from halfeven.conformance.inputs import parameters
from halfeven.reference.blocks import Array

Values = Callable[[Array, Array], Array]

__all__ = ["all_codes", "boundaries", "cases", "edges", "huge", "odd_zero_point"]


def boundaries(e: Evidence) -> None:
    """Every code boundary ±3 ulp, with even zero points."""
    _try(e, _scales(e), _zeros(e, "even"), _boundaries(e))


def odd_zero_point(e: Evidence) -> None:
    """True ties (power-of-two scales) and every other boundary, with odd zero points."""
    exact = parameters.exact_scales(e.setting.dtype, e.setting.grid)
    every = np.concatenate([exact, _scales(e)[: max(8, e.volume.scales // 2)]])
    _try(e, every, _zeros(e, "odd") or _zeros(e, "even"), _boundaries(e))


def edges(e: Evidence) -> None:
    """At both ends of the grid and up to 600 codes beyond."""
    zeros = sorted({*_zeros(e, "even"), *_zeros(e, "odd")})
    grid = e.setting.grid
    _try(e, _scales(e)[:12], zeros, lambda s, z: inputs.edges(s, z, grid, e.setting.dtype))


def huge(e: Evidence) -> None:
    """Where an integer conversion overflows, the largest floats and the infinities."""
    zeros = sorted({*_zeros(e, "even"), *_zeros(e, "odd")})
    _try(e, _scales(e)[:12], zeros, lambda s, _z: inputs.huge(s, e.setting.dtype))


def all_codes(e: Evidence) -> None:
    """Dequantize: every code (a covering choice above 8 bits), with even and odd zero points."""
    grid = e.setting.grid
    zeros = sorted({*_zeros(e, "even"), *_zeros(e, "odd")})

    def codes(_s: Array, z: Array) -> Array:
        rows = [inputs.boundary_codes(grid, int(v)) for v in z.ravel()]
        return np.stack([np.minimum(row, grid.qmax) for row in rows]).astype(e.setting.code_dtype)

    _try(e, _scales(e), zeros, codes)


def cases(e: Evidence, scales: Array, zeros: list[int], values: Values) -> Iterator[Case]:
    """Calls of the granularity: one per scale and zero point, or one per zero point with a scale per row."""
    s = np.asarray(scales, e.setting.scale_dtype)
    for zero in zeros:
        z = np.full(s.shape, zero, np.int64)
        x = values(s.astype(np.float64), z)
        if e.setting.configuration.granularity == "tensor":
            for row, scale in zip(x, s, strict=True):
                yield e.setting.case(row, scale, zero)
        else:
            yield e.setting.case(x, s[:, None], z[:, None], block_size=(1, x.shape[1]))


def _try(e: Evidence, scales: Array, zeros: list[int], values: Values) -> None:
    e.expect(cases(e, scales, zeros, values))


def _boundaries(e: Evidence) -> Values:
    return lambda s, z: inputs.boundaries(s, z, e.setting.grid, e.setting.dtype)


def _scales(e: Evidence) -> Array:
    c = e.setting.configuration
    found = parameters.scales(e.setting.dtype, e.setting.scale_dtype, c.grid, e.volume.scales, e.item.seed)
    # An amax below 2^-24 is a case of its own: the library gives zeros there, the document has no such rule.
    return np.maximum(found, found.dtype.type(2.0**-20)) if e.setting.profile.parameters[0] == "amax" else found


def _zeros(e: Evidence, parity: str) -> list[int]:
    has_zero = len(e.setting.profile.parameters) > 1
    return parameters.zero_points(e.setting.grid, parity if has_zero else "none")
