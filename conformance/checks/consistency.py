"""A backend against itself, through different operations: composition and idempotence."""

from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.checks.values import cases
from halfeven.conformance.configuration import Case
from halfeven.conformance.inputs import boundaries as inputs
from halfeven.conformance.inputs import parameters
from halfeven.conformance.trial import Trial
from halfeven.reference.blocks import Array

__all__ = ["composition", "idempotence"]


def composition(trial: Trial) -> None:
    """fake_quantize equals dequantize after quantize, at every boundary; the sign of a zero is not compared."""
    for case in _boundary_cases(trial):
        with trial.offered():
            codes = _through(trial, case, "quantize", case.x)
            reals = _through(trial, case, "dequantize", codes.astype(trial.code_dtype))
            # Integer codes cannot carry the sign of zero that a fake quantizer may keep.
            zero = np.zeros((), reals.dtype)
            trial.compare(case, reals + zero, trial.ask(case) + zero, own=True)


def idempotence(trial: Trial) -> None:
    """quantize(dequantize(q)) equals q, for every code that the boundaries reach."""
    for case in _boundary_cases(trial):
        with trial.offered():
            codes = np.array(trial.ask(case))
            reals = _through(trial, case, "dequantize", codes.astype(trial.code_dtype))
            again = replace(case, x=reals)
            trial.compare(again, codes, trial.ask(again), own=True)


def _boundary_cases(trial: Trial) -> list[Case]:
    c = trial.configuration
    scales = parameters.scales(trial.dtype, trial.scale_dtype, c.grid, min(trial.volume.scales, 32), trial.seed)
    return list(cases(trial, scales, trial.zeros, lambda s, z: inputs.boundaries(s, z, c.grid, trial.dtype)))


def _through(trial: Trial, case: Case, operation: Any, x: Array) -> Array:
    return np.array(trial.ask(replace(case, configuration=replace(case.configuration, operation=operation), x=x)))
