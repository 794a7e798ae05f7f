"""A backend against itself, through different operations: composition and idempotence."""

from dataclasses import replace

import numpy as np

from halfeven.conformance.configuration import Array, Case
from halfeven.conformance.engine.checks.values import cases
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.inputs import boundaries as inputs
from halfeven.conformance.inputs import parameters
from halfeven.reference.profile import Operation

__all__ = ["composition", "idempotence"]


def composition(e: Evidence) -> None:
    """fake_quantize equals dequantize after quantize, at every boundary; the sign of a zero is not compared."""
    asked = _boundary_cases(e)
    codes = e.ask([_as("quantize", case, case.x) for case in asked])
    coded = [(case, q) for case, q in zip(asked, codes, strict=True) if q is not None]
    reals = e.ask([_as("dequantize", case, q.astype(e.setting.code_dtype)) for case, q in coded])
    for (case, _), real, fake in zip(coded, reals, e.ask([case for case, _ in coded]), strict=True):
        if real is not None and fake is not None:
            # Integer codes cannot carry the sign of zero that a fake quantizer may keep.
            zero = np.zeros((), real.dtype)
            e.compare(case, real + zero, fake + zero, own=True)


def idempotence(e: Evidence) -> None:
    """quantize(dequantize(q)) equals q, for every code that the boundaries reach."""
    asked = _boundary_cases(e)
    coded = [(case, q) for case, q in zip(asked, e.ask(asked), strict=True) if q is not None]
    reals = e.ask([_as("dequantize", case, q.astype(e.setting.code_dtype)) for case, q in coded])
    again = [(replace(case, x=r), q) for (case, q), r in zip(coded, reals, strict=True) if r is not None]
    for (case, q), second in zip(again, e.ask([case for case, _ in again]), strict=True):
        if second is not None:
            e.compare(case, q, second, own=True)


def _boundary_cases(e: Evidence) -> list[Case]:
    s = e.setting
    scales = parameters.scales(s.dtype, s.scale_dtype, s.grid, min(e.volume.scales, 32), e.item.seed)
    return list(cases(e, scales, s.zeros, lambda scale, z: inputs.boundaries(scale, z, s.grid, s.dtype)))


def _as(operation: Operation, case: Case, x: Array) -> Case:
    return replace(case, configuration=replace(case.configuration, operation=operation), x=x)
