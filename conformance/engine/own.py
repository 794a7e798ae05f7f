"""Witnesses of a backend that differs from itself: the calls that lead to two answers, of one element."""

from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.configuration import Case
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault
from halfeven.conformance.engine.fitting.elements import flat
from halfeven.conformance.engine.literal import commented, source
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.quote import NoScript
from halfeven.conformance.report.model import Witness
from halfeven.reference.blocks import Array
from halfeven.reference.profile import Operation

__all__ = ["own_witness"]

_MOST = 32


def own_witness(e: Evidence) -> Witness | None:
    """Of composition and idempotence: one element that quantized and dequantized comes to another answer."""
    for f in sorted((f for f in e.findings if f.own), key=lambda f: f.compared.actual.value.size)[:_MOST]:
        case, comparison = f.compared.case, f.difference.comparison
        if case is None or comparison is None:
            continue
        elements, i = flat(case), int(comparison.where[0])
        wanted = np.ravel(f.compared.expected.value)
        idempotence = e.item.check == "idempotence"
        first = wanted[i].astype(e.setting.code_dtype) if idempotence else elements.x[i]
        alone = _alone(e, elements, i, first)
        try:
            expected, actual = _two(e, alone, idempotence=idempotence)
        except (Crash, Fault, Ended, LookupError):
            continue
        if float(expected) == float(actual):
            continue
        found = Witness(
            x=str(elements.x[i]),
            scale=str(elements.scale[i]),
            zero=str(elements.zero[i]) if len(e.setting.profile.parameters) > 1 else "none",
            expected=f"{float(expected)!r} ({float(expected).hex()})",
            actual=f"{float(actual)!r} ({float(actual).hex()})",
            where=f"one element, {e.setting.configuration}",
        )
        try:
            return replace(found, script=_script(e, alone, idempotence=idempotence))
        except NoScript as reason:
            return replace(found, unshown=str(reason))
    return None


def _alone(e: Evidence, elements: Case, i: int, first: Any) -> Case:
    row = "tensor" not in e.item.offer.granularities
    shape = (1, 1) if row else (1,)
    held = (1, 1) if row else ()
    c = replace(elements.configuration, shape=shape, block_size=(1, 1) if row else None)
    arrays = [np.full(held, a[i], a.dtype) for a in (elements.scale, elements.zero)]
    return Case(c, np.full(shape, first, np.asarray(first).dtype), *arrays)


def _as(operation: Operation, case: Case, x: Array) -> Case:
    return replace(case, configuration=replace(case.configuration, operation=operation), x=x)


def _two(e: Evidence, case: Case, *, idempotence: bool) -> tuple[Any, Any]:
    def one(operation: Operation, x: Array) -> Array:
        [answer] = e.ask([_as(operation, case, x)])
        if answer is None:
            raise LookupError(operation)
        return answer

    if idempotence:
        return case.x.ravel()[0], one("quantize", one("dequantize", case.x)).ravel()[0]
    codes = one("quantize", case.x).astype(e.setting.code_dtype)
    return one("dequantize", codes).ravel()[0], one("fake_quantize", case.x).ravel()[0]


def _script(e: Evidence, case: Case, *, idempotence: bool) -> str:
    tensors = e.item.offer.array == "torch"
    parameters = e.setting.profile.parameters
    header: list[str] = []

    def called(operation: Operation, x: Array, result: str) -> list[str]:
        of = _as(operation, case, x)
        call = e.call(of)
        first = "q" if operation == "dequantize" else "x"
        passed = {str(i): name for i, name in enumerate((first, *parameters))}
        passed |= {k: source(v, tensors=tensors) for k, v in call.named.items()}
        spelt = e.worker.script(call.formula, passed, of.configuration)
        header.extend(line for line in spelt.header.splitlines() if line not in header or line.startswith(" "))
        return [*spelt.steps.splitlines(), f"{result} = {spelt.called}"]

    names = ["q" if idempotence else "x", *parameters]
    arrays = (case.x, case.scale, case.zero)
    body = [
        commented(f"{n} = {source(plain(a), tensors=tensors)}", plain(a)) for n, a in zip(names, arrays, strict=False)
    ]
    if idempotence:
        body += [*called("dequantize", case.x, "x"), *called("quantize", case.x, "actual")]
        body.append('print("expected", float(q.ravel()[0]))')
        body.append('print("actual  ", float(actual.ravel()[0]))')
    else:
        body += [*called("quantize", case.x, "q"), *called("dequantize", case.x, "expected")]
        body += called("fake_quantize", case.x, "actual")
        body.append('print("expected", (float(expected.ravel()[0]) + 0).hex())')
        body.append('print("actual  ", (float(actual.ravel()[0]) + 0).hex())')
    text = "\n".join([*header, *body])
    own = ["import ml_dtypes"] * ("ml_dtypes." in text) + ["import numpy as np"] + ["import torch"] * tensors
    future = [line for line in header if line.startswith("from __future__")]
    prelude = e.item.offer.prelude.splitlines()
    rest = [line for line in header if line not in {*own, *future}]
    return "\n".join([*future, *own, *prelude, *rest, "", *body])
