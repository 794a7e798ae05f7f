"""Codes and reals at the values where quantizers part: boundaries, odd zero points, edges, huge inputs, all codes."""

from collections.abc import Callable, Iterator

import numpy as np

from halfeven.conformance.configuration import Case
from halfeven.conformance.inputs import boundaries as inputs
from halfeven.conformance.inputs import parameters
from halfeven.conformance.trial import Trial
from halfeven.reference.blocks import Array

Values = Callable[[Array, Array], Array]

__all__ = ["all_codes", "boundaries", "cases", "edges", "huge", "odd_zero_point"]


def boundaries(trial: Trial) -> None:
    """Every code boundary ±3 ulp, with even zero points."""
    _try(trial, _scales(trial), _zeros(trial, "even"), _boundaries(trial))


def odd_zero_point(trial: Trial) -> None:
    """True ties (power-of-two scales) and every other boundary, with odd zero points."""
    exact = parameters.exact_scales(trial.dtype, trial.configuration.grid)
    every = np.concatenate([exact, _scales(trial)[: max(8, trial.volume.scales // 2)]])
    _try(trial, every, _zeros(trial, "odd") or _zeros(trial, "even"), _boundaries(trial))


def edges(trial: Trial) -> None:
    """At both ends of the grid and up to 600 codes beyond."""
    zeros = sorted({*_zeros(trial, "even"), *_zeros(trial, "odd")})
    grid = trial.configuration.grid
    _try(trial, _scales(trial)[:12], zeros, lambda s, z: inputs.edges(s, z, grid, trial.dtype))


def huge(trial: Trial) -> None:
    """Where an integer conversion overflows, the largest floats and the infinities."""
    zeros = sorted({*_zeros(trial, "even"), *_zeros(trial, "odd")})
    _try(trial, _scales(trial)[:12], zeros, lambda s, _z: inputs.huge(s, trial.dtype))


def all_codes(trial: Trial) -> None:
    """Dequantize: every code (a covering choice above 8 bits), with even and odd zero points."""
    grid = trial.configuration.grid
    zeros = sorted({*_zeros(trial, "even"), *_zeros(trial, "odd")})

    def codes(_s: Array, z: Array) -> Array:
        rows = [inputs.boundary_codes(grid, int(v)) for v in z.ravel()]
        return np.stack([np.minimum(row, grid.qmax) for row in rows]).astype(trial.code_dtype)

    _try(trial, _scales(trial), zeros, codes)


def cases(trial: Trial, scales: Array, zeros: list[int], values: Values) -> Iterator[Case]:
    """Calls of the trial's granularity: one per scale and zero point, or one per zero point with a scale per row."""
    s = np.asarray(scales, trial.scale_dtype)
    for zero in zeros:
        z = np.full(s.shape, zero, np.int64)
        x = values(s.astype(np.float64), z)
        if trial.configuration.granularity == "tensor":
            for row, scale in zip(x, s, strict=True):
                yield trial.case(row, scale, zero)
        else:
            yield trial.case(x, s[:, None], z[:, None], block_size=(1, x.shape[1]))


def _try(trial: Trial, scales: Array, zeros: list[int], values: Values) -> None:
    for case in cases(trial, scales, zeros, values):
        with trial.offered():
            trial.expect(case)


def _boundaries(trial: Trial) -> Values:
    return lambda s, z: inputs.boundaries(s, z, trial.configuration.grid, trial.dtype)


def _scales(trial: Trial) -> Array:
    c = trial.configuration
    found = parameters.scales(trial.dtype, trial.scale_dtype, c.grid, trial.volume.scales, trial.seed)
    # An amax below 2^-24 is a case of its own: the library gives zeros there, the document has no such rule.
    return np.maximum(found, found.dtype.type(2.0**-20)) if trial.profile.parameters[0] == "amax" else found


def _zeros(trial: Trial, parity: str) -> list[int]:
    has_zero = len(trial.profile.parameters) > 1
    return parameters.zero_points(trial.configuration.grid, parity if has_zero else "none")
