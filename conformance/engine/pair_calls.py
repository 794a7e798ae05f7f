"""What two backends can both be asked: the parts, and the calls of each, in either one's convention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from halfeven.conformance.backends.offer import Offer, keywords
from halfeven.conformance.configuration import DTYPES, Case, Configuration, code_dtype
from halfeven.conformance.engine.call import PLAIN, Answer, Call, sent
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.grids import grids
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.engine.memory import Strided, plain
from halfeven.conformance.engine.operation_calls import operation_calls, subject
from halfeven.conformance.engine.practice import company_calls, practice_calls
from halfeven.conformance.engine.setting import speaks
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.systems import call_sets
from halfeven.reference import Grid
from halfeven.reference.profile import OPERATIONS, Operation
from halfeven.reference.systems import PROFILES

__all__ = ["Both", "Part", "calls_of", "case_of", "parts"]

_SIGNED = {("scale", "zero_point"), ("scale", "offset")}  # parameters that can be turned into each other
_DENSE = 8  # bits: so far every code is asked with every zero point


@dataclass(frozen=True)
class Part:
    """An operation in one dtype and on one grid, or (``formula``) a documented function."""

    operation: Operation | None = None
    dtype: str = ""
    grid: Grid | None = None
    formula: str = ""

    def __str__(self) -> str:
        """In words."""
        return self.formula or f"{self.operation}/{self.grid}/{self.dtype}"


@dataclass(frozen=True, eq=False)
class Both:
    """One call as either backend takes it, and what the document of the first one's profile gives, if one does."""

    a: Call
    b: Call
    expected: Answer | None = None


def parts(a: Offer, b: Offer, tier: Tier, formulas: Sequence[str] = ()) -> tuple[list[Part], list[str]]:
    """What both offer, of these formulas or at all; and in words what only one of them does."""
    left: list[str] = []
    found = [] if formulas else _operations(a, b, tier, left)
    wanted = [f for f in dict.fromkeys((*a.functions, *b.functions)) if not formulas or f in formulas]
    for formula in wanted:
        offering = [o.name for o in (a, b) if formula in o.functions]
        if len(offering) > 1:
            found.append(Part(formula=formula))
        else:
            left.append(f"{formula}: {offering[0]} alone offers it")
    left += [f"{f}: neither offers it" for f in formulas if f not in wanted]
    return found, left


def _operations(a: Offer, b: Offer, tier: Tier, left: list[str]) -> list[Part]:
    names: list[Operation] = []
    for operation in OPERATIONS:
        offering = [o.name for o in (a, b) if operation in o.operations]
        if len(offering) > 1:
            names.append(operation)
        elif offering:
            left.append(f"{operation}: {offering[0]} alone offers it")
    one, other = (PROFILES[o.profile].parameters for o in (a, b))
    if names and one != other and not {one, other} <= _SIGNED:
        left.append(f"{', '.join(names)}: {a.name} takes {', '.join(one)}, {b.name} takes {', '.join(other)}")
        return []
    for o, other_ in ((a, b), (b, a)) if names else ():
        alone = [f"dtype {d}" for d in o.dtypes if d not in other_.dtypes]
        alone += [f"granularity {g}" for g in o.granularities if g not in other_.granularities]
        left += [f"{what}: {o.name} alone offers it" for what in alone]
    dtypes = [d for d in a.dtypes if d in b.dtypes and all(d in PROFILES[o.profile].dtypes for o in (a, b))]
    both = [g for g in grids(a, tier) if g in grids(b, tier)]
    return [Part(o, d, g) for o in names for d in dtypes for g in both]


def calls_of(part: Part, a: Offer, b: Offer, tier: Tier, seed: int) -> Iterator[Both]:
    """The calls of a part."""
    if part.operation is None or part.grid is None:
        yield from _of_formula(part.formula, a)
        return
    granularities = [g for g in a.granularities if g in b.granularities]
    if not granularities:
        return
    kind: Any = "torch" if "torch" in {a.array, b.array} else "numpy"  # negative strides are NumPy's alone
    of = subject(a.profile, part.operation, part.dtype, part.grid, seed)
    offer = replace(a, array=kind)
    spoken = speaks(a.profile, part.operation, "nan")
    peculiar = company_calls(offer, of, granularities, with_nan=spoken)
    usual = practice_calls(offer, of, granularities)
    for asked in chain(usual, peculiar, operation_calls(offer, of, granularities, tier)):
        yield Both(asked.call, _turned(asked.call, part, a, b), asked.expected)
    if "tensor" in granularities and part.grid.bits <= _DENSE:
        for call in _every_code(part, a):
            yield Both(call, _turned(call, part, a, b))


def case_of(part: Part, call: Call) -> Case:
    """The case of a call of an operation."""
    x, scale, *zero = (v.view() for v in call.positional)
    return Case(_configuration(part, call), x, scale, zero[0] if zero else np.zeros(scale.shape, np.int32))


def _of_formula(formula: str, a: Offer) -> Iterator[Both]:
    document = formula_of(formula, a.profile)
    for (of, name), calls in call_sets().items():
        if of == formula:
            for arguments in calls.build():
                call = Call(formula, (), {key: sent(value) for key, value in arguments.items()}, PLAIN, name)
                yield Both(call, call, answer_of(document.function, arguments))


def _every_code(part: Part, a: Offer) -> Iterator[Call]:
    """Every code with every zero point: an implementation may be wrong in one of them."""
    if part.operation is None or part.grid is None or len(PROFILES[a.profile].parameters) == 1:
        return
    grid, real = part.grid, DTYPES[part.dtype]
    offset = PROFILES[a.profile].parameters[1] == "offset"
    codes = np.arange(grid.qmin, grid.qmax + 1)
    for zero in codes:
        held = real if PROFILES[a.profile].codes == "input" else code_dtype(grid)
        x = codes.astype(held) if part.operation == "dequantize" else ((codes - zero) * 0.5).astype(real)
        z = np.asarray(-zero + 0.0, np.float32) if offset else np.asarray(zero, np.int32)
        wide = real if PROFILES[a.profile].scale_dtype == "input" or part.dtype == "float64" else DTYPES["float32"]
        arrays = tuple(plain(v) for v in (x, np.asarray(0.5, wide), z))
        c = Configuration(part.operation, part.dtype, grid, x.shape)
        yield Call(f"{a.profile}:{part.operation}", arrays, keywords(a, c), PLAIN, "every code at every zero point")


def _configuration(part: Part, call: Call) -> Configuration:
    if part.operation is None or part.grid is None:
        msg = f"part={part!s} is not accepted: it is of a documented function"
        raise ValueError(msg)
    x = call.positional[0]
    return Configuration(part.operation, part.dtype, part.grid, x.shape, block_size=call.named.get("block_size"))


def _turned(call: Call, part: Part, a: Offer, b: Offer) -> Call:
    """The call in the other backend's convention: its profile's parameters and codes, its function's keywords."""
    one, other = PROFILES[a.profile], PROFILES[b.profile]
    x, scale, *zero = call.positional
    if part.operation == "dequantize" and one.codes != other.codes and part.grid is not None:
        x = plain(x.view().astype(DTYPES[part.dtype] if other.codes == "input" else code_dtype(part.grid)))
    if zero and one.parameters != other.parameters:
        zero = [_negated(zero[0], to_integer=other.parameters[1] == "zero_point")]
    named = keywords(b, _configuration(part, call))
    return replace(call, formula=f"{b.profile}:{part.operation}", positional=(x, scale, *zero), named=named)


def _negated(zero: Strided, *, to_integer: bool) -> Strided:
    values = -zero.view().astype(np.float64) + 0.0
    return plain(values.astype(np.int32 if to_integer else np.float32))
