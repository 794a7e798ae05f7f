"""What a mutant is asked: the calls of every formula, the cases of the operations, the evaluation model."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from halfeven.conformance import view
from halfeven.conformance.backends.offer import offer
from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.configuration import DTYPES, Case
from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.checks import CHECKS
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.points import recording
from halfeven.conformance.engine.setting import Setting, evaluation_of
from halfeven.conformance.requirement import Arguments
from halfeven.conformance.systems import call_sets
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS, Grid
from halfeven.reference import model as evaluation
from halfeven.reference.catalogue import Formula
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES
from mutants.by_hand import backend

__all__ = ["KINDS", "NUMBERS", "Row"]


@dataclass(frozen=True, eq=False)
class Row:
    """One call: what is called, and with what."""

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    def ask(self) -> Answer:
        """What the call comes to now."""
        return answer_of(self.function, self.arguments)


_ENOUGH = 8  # calls of each choice that no version has


def formulas() -> Iterator[Row]:
    """The calls of the requirements, of each formula, each of its versions, and each choice that no version has."""
    by_formula: dict[str, list[Arguments]] = {}
    for (formula, name), found in call_sets().items():
        asked = found.build()
        by_formula.setdefault(formula, []).extend(asked)
        for variant in FORMULAS.versions(formula):
            yield from (Row(f"{variant.id}, {name}", variant.function, arguments) for arguments in asked)
    for formula, asked in by_formula.items():
        yield from _unmeasured(FORMULAS.versions(formula), asked)


def _unmeasured(found: list[Formula], asked: list[Arguments]) -> Iterator[Row]:
    """Each choice that no version has, by itself in place of the document's: calls that tell it, and others."""
    document = found[0].behaviour
    if document is None:
        return
    reading: dict[str, list[tuple[Arguments, Answer]]] = {}
    for arguments in asked:
        read: dict[str, Any] = {}
        said = answer_of(found[0].at(recording(document, read)), arguments)
        for name in read:
            reading.setdefault(name, []).append((arguments, said))
    for name in sorted(reading):
        done = {getattr(f.behaviour, name, None) for f in found}
        for value in (v for v in document.choices()[name] if v not in done):
            function = found[0].at(replace(document, **{name: value}))
            told: dict[bool, list[Arguments]] = {True: [], False: []}
            for arguments, said in _stirred(reading[name]):
                differs = bool(differences(answer_of(function, arguments), said).differing)
                told[differs].append(arguments)
                if len(told[True]) == _ENOUGH:
                    break
            unread = [a for a in asked if not any(a is b for b, _ in reading[name])]
            for arguments in told[True] + told[False][:_ENOUGH] + list(_stirred(unread))[:_ENOUGH]:
                yield Row(f"{found[0].id}, {name}={value}", function, arguments)


def _stirred(calls: list[Any]) -> Iterator[Any]:
    """Neighbours are alike: every seventh call, then those between."""
    yield from (call for start in range(7) for call in calls[start::7])


class _Noted(Evidence):
    """Evidence that asks nobody and keeps the cases."""

    def expect(self, cases: Iterable[Case], *, signs: bool = False) -> list[Any]:
        given = list(cases)
        self.once("cases", list).extend(given)
        return [evaluation_of(self.setting.profile, case) for case in given]


_VALUES = ("boundaries", "odd-zero-point", "edges", "huge", "all-codes", "nan", "subnormals")
_GRIDS = (Grid(-128, 127), Grid(0, 255))
_ENDS = (*_GRIDS, Grid(-127, 127), Grid(-7, 7), Grid(-32768, 32767))


def _cases(profile: Profile) -> list[Case]:
    right = Inside(backend("none", profile.name, profile.dtypes))
    found: list[Case] = []
    for item in plan(right.offer):
        c = item.configuration
        grids = _ENDS if item.check in {"boundaries", "edges"} else _GRIDS
        if c is None or c.grid not in grids or item.check not in _VALUES or c.granularity != "channel":
            continue
        evidence = _Noted(item, right)
        CHECKS[item.check].run(evidence)
        found += evidence.once("cases", list)
    return found


def operations() -> Iterator[Row]:
    """The cases of the checks of values, asked of every profile."""
    for profile in PROFILES.values():
        document = PROFILES[profile.name.split("@")[0]]
        if not profile.operations or (profile is not document and profile.model == document.model):
            continue
        for case in _cases(document if profile.parameters == document.parameters else profile):
            name = f"{profile.name}, {case.configuration}"
            yield Row(name, evaluation_of, {"profile": profile, "case": case})


def smallest() -> Iterator[Row]:
    """Parameters at the end of those with which every x is multiplied by 0."""
    x = np.float32([1, -1, 0.0, -0.0, 3e38, np.inf, np.nan])
    for profile in (p for p in PROFILES.values() if np.isfinite(p.smallest)):
        end = np.float32(profile.smallest)
        for given, o in product((0, end, np.nextafter(end, np.float32(1))), profile.operations):
            arguments = {"x": x, "scale": np.asarray(given, np.float32), "zero": np.zeros(()), "grid": _GRIDS[0]}
            yield Row(f"{profile.name}, smallest", getattr(profile, o), arguments)


def views() -> Iterator[Row]:
    """Every formula that is an operation, asked as one: on grids, with parameters of blocks."""
    for formula in (f for f in FORMULAS.values() if f.affine and not f.version):
        none = {"x": np.zeros(0, np.float32), "scale": np.float32(1), "zero": np.zeros(0, np.int32), "block_size": None}
        yield Row(formula.id, _viewed, {"id": formula.id, **none, "grid": Grid(-128, 127), "dtype": "float32"})
        for grid, dtype, size in product(
            (*_ENDS, Grid(-65536, 65535)), ("float32", "float16"), (None, (1, 3), (2, 1), (2, 3), (1, 2), (1, 1))
        ):
            shape = () if size is None else (2 // size[0], -(-3 // size[1]))
            scale = np.resize(np.float32([0.5, 0.25, 2]), shape).astype(dtype)
            zero = np.resize(np.int32([grid.qmin + 3, 1, 0]), shape)
            x = np.array([[1.3, -7.5, 300], [0, 2.25, -6e4]]).astype(dtype)
            if formula.affine and formula.affine.operation == "dequantize":
                x = np.int32([[grid.qmin, 0, 5], [1, grid.qmax, 2]])
            for turned in (x, x.T, x[:1]) if size is None else (x,):
                given = {"x": turned, "scale": scale, "zero": zero, "grid": grid, "block_size": size}
                yield Row(f"{formula.id} on {grid}", _viewed, {"id": formula.id, **given, "dtype": dtype})
    for formula, grid in product((f for f in FORMULAS.values() if f.affine and not f.version), _HANDED):
        x = np.full(
            (2, 3), grid.qmin, np.int32 if formula.affine and formula.affine.operation == "dequantize" else "f4"
        )
        for size in (None, (1, 3), (2, 1), (2, 3), (1, 2), (1, 1), (2, 2), (1, 4)):
            shape = () if size is None else (2 // size[0], -(-3 // size[1]))
            scale, zero = np.ones(shape, np.float32), np.zeros(shape, np.int32)
            given = {"x": x, "scale": scale, "zero": zero, "grid": grid, "block_size": size}
            yield Row(f"{formula.id}, arguments on {grid}", _handed, {"id": formula.id, **given})
            if size is not None:  # of no rows
                given |= {"x": x[:0], "scale": scale[:0], "zero": zero[:0]}
                yield Row(f"{formula.id}, arguments of nothing", _handed, {"id": formula.id, **given})


#: Grids at the ends of every dtype, narrow ones, and ones that few formulas take.
_HANDED = (*_ENDS, *(Grid(low, high) for low, high in ((0, 254), (0, 65534), (3, 200), (0, 15), (0, 0), (0, 32768))))


def _handed(id: str, x: Any, scale: Any, zero: Any, grid: Grid, block_size: Any) -> Any:  # noqa: A002
    affine = FORMULAS[id].affine
    return affine and dict(affine.arguments(x, scale, zero, grid, block_size, np.dtype(np.float32)))


def _viewed(id: str, x: Any, scale: Any, zero: Any, grid: Grid, block_size: Any, dtype: str) -> Any:  # noqa: A002
    formula = FORMULAS[id]
    called = view.operation(formula.function, formula.affine, "numpy")
    try:
        return called(x, scale, zero, qmin=grid.qmin, qmax=grid.qmax, block_size=block_size, dtype=dtype)
    except Unsupported as error:  # which is no answer of its own
        return str(error)


def plans() -> Iterator[Row]:
    """What is planned for each profile, and in which dtypes."""
    for name, profile in PROFILES.items():
        if profile.operations:
            yield Row(f"plan of {name}", _planned, {"name": name})


def _planned(name: str) -> tuple[str, ...]:
    profile, found = PROFILES[name], []
    for item in plan(offer(backend("none", name, tuple(DTYPES)))):
        c = item.configuration
        if c is not None and c.granularity == "tensor":
            s = Setting(profile, c)
            found.append(f"{item.id} {item.check} {s.code_dtype} {s.scale_dtype} {s.zeros}")
    grids = [Grid(0, 2**b - 1) for b in range(1, 35)]
    grids += [Grid(-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in range(1, 35)]
    grids += [Grid(low + 1, high) for low, high in ((-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in range(2, 35))]
    grids += [Grid(0, 2**b - 2) for b in range(2, 35)]
    accepted = "".join(str(int(profile.accepts(grid))) for grid in grids)
    return (*found, accepted, *profile.parameters, str(profile.partial_blocks), profile.codes)


def _neighbours() -> list[EvaluationModel]:
    """The models of the profiles, and what is one field away from a few of them."""
    own = list(dict.fromkeys(p.model for p in PROFILES.values() if p.operations))
    near = [
        near
        for model in (EvaluationModel(), EvaluationModel(sign="q+o", integer="int32"))
        for near in (model, *model.neighbours())
    ]
    fused = [EvaluationModel(division=d, zero_point="fused", clamp=c) for d in ("reciprocal", "divide") for c in
             ("after", "before-rounding")]  # fmt: skip
    mixed = [EvaluationModel(clamp="before-rounding", zero_point="before-rounding"), EvaluationModel(sign="none")]
    mixed += [EvaluationModel(overflow="wrap", integer=i) for i in ("int32", "int64", "exact")]
    mixed += [EvaluationModel(nan=n, integer="int32") for n in ("propagate", "zero-point", "qmax")]
    mixed += [EvaluationModel(nan="zero-point", integer="exact"), EvaluationModel(sign="q+o", subtract="int32")]
    mixed += [EvaluationModel(product="promoted", compute=c) for c in ("widened", "float64")]
    mixed += [EvaluationModel(sign="none", zero_point="before-rounding"), EvaluationModel(sign="none", integer="exact")]
    mixed += [EvaluationModel(sign="none", zero_point="fused", division="reciprocal")]
    mixed += [EvaluationModel(integer="exact", zero_point="before-rounding")]
    words = EvaluationModel.choices()
    mixed += [EvaluationModel(rounding=r, half=h, zero_point=z, division="reciprocal") for r, h, z in product(
              words["rounding"], words["half"], words["zero_point"])]  # fmt: skip
    mixed += [EvaluationModel(division=d, zero_point=z) for d, z in product(words["division"], words["zero_point"])]
    mixed += [EvaluationModel(division="reciprocal", inverse=i, compute="float64") for i in words["inverse"]]
    mixed += [EvaluationModel(form=f, sign=s, product=p) for f, s, p in product(
              words["form"], words["sign"], ("output", "promoted", "float32"))]  # fmt: skip
    mixed += [EvaluationModel(division="multiply-by-q-per-real", form=f) for f in words["form"]]
    return list(dict.fromkeys([*own, *near, *fused, *mixed]))


NUMBERS = np.array(
    [
        0.0, -0.0, 0.2, 0.5, -0.5, 1.5, 2.5, -2.5, -3.5, 7.25, 63.5, 64.5, 127.4, 127.5, -128.5, -129, 1000, -3e9, 3e9,
        1e19, -1e19, 65504, 3e38, np.inf, -np.inf, np.nan, 1e-7, -1e-40, 0.1, 0.3, -0.7, 1 / 3, 12.35, 2.4999, -77.77,
    ]
)  # fmt: skip


def models() -> Iterator[Row]:
    """The evaluation model, with every value of every field."""
    grids = (Grid(-128, 127), Grid(0, 255), Grid(0, 1), Grid(-7, 7), Grid(3, 9), Grid(-32768, 32767))
    for model in _neighbours():
        for (i, dtype), grid in product(enumerate(("float32", "float16", "bfloat16", "float64")), grids):
            with np.errstate(all="ignore"):
                x = NUMBERS.astype(DTYPES[dtype])
            scale = np.asarray((0.1, 1.0, 0.37, 2.0**-149)[(i + grid.qmax) % 4]).astype(
                "float32" if grid.qmin else DTYPES[dtype]
            )
            zero = np.asarray(
                0 if model.sign == "none" else (3, grid.qmin, -1, grid.qmax)[(i + grid.bits) % 4], "int32"
            )
            name = f"model, {dtype}, {grid}"
            given = {"model": model, "scale": scale, "zero": zero}
            codes = np.concatenate([np.arange(grid.qmin, min(grid.qmin + 9, grid.qmax)), [grid.qmax, 2**31 - 1]])
            yield Row(name, evaluation.quantize, {**given, "x": x, "grid": grid})
            yield Row(name, evaluation.fake_quantize, {**given, "x": x, "grid": grid})
            yield Row(name, evaluation.dequantize, {**given, "q": codes, "dtype": x.dtype, "grid": grid})


def fused() -> Iterator[Row]:
    """The product and the zero point in one rounding, for every number of the 16-bit dtypes that stays small."""
    every = np.arange(2**16, dtype=np.uint16)
    for dtype, scale, zero in product(("float16", "bfloat16"), (0.1, 0.37, 3.0), (3, 101)):
        model = EvaluationModel(division="reciprocal", zero_point="fused")
        x = every.view(DTYPES[dtype])
        with np.errstate(all="ignore"):
            x = x[np.abs(x.astype(np.float64)) < 4000]
        given = {"model": model, "x": x, "scale": np.asarray(scale).astype(DTYPES[dtype]), "grid": Grid(-4096, 4095)}
        yield Row(f"fused, {dtype}", evaluation.quantize, {**given, "zero": np.asarray(zero, np.int32)})


def widths() -> Iterator[Row]:
    """Which dtype holds a grid, and sums beside a tie of float32 by less than a float64 can tell."""
    grids = [
        Grid(low, high) for k in range(33) for low, high in ((0, 2**k - 1), (-(2**k) // 2, 2**k // 2), (3 - 2**k, 5))
    ]
    grids += [Grid(2**k + d, 2**k + 9) for k in (8, 11, 24) for d in (-1, 0, 1)]
    for k, d in product((8, 11, 24), range(4)):  # negative, ending in few numbers, and one number
        grids += [Grid(-(2**k) - d, -(2**k) + 9), Grid(2**k - 9, 2**k + d), Grid(2**k + d, 2**k + d)]
    for model, dtype, grid in product(
        (EvaluationModel(compute=c) for c in ("widened", "input")), DTYPES.values(), grids
    ):
        given = {"model": model, "x": dtype, "scale": np.dtype(np.float32), "grid": grid}
        yield Row(f"width, {dtype}, {grid}", evaluation.compute_dtype, given)
    step = 2.0**-23
    model = EvaluationModel(division="multiply-by-q-per-real", zero_point="fused")
    # The last: less than the last place of a float64 away from one or two of those places beside the tie.
    beside = ((256, -256), (2897, -2896), (2896, -2895), (1, 0), (2852, -2851), (2805, -2804), (724, -724))
    for (a, b), z, sign in product(beside, range(0, 9, 2), (1, -1)):
        given = {"x": np.float32([sign * (1 + a * step)]), "scale": np.float32(1 + b * step)}
        given["zero"] = np.asarray(sign * (2**24 + z), np.int32)
        yield Row("beside a tie", evaluation.quantize, {**given, "model": model, "grid": Grid(-(2**30), 2**30)})
    for odd, factor, z in product((2**24 + 5, 2**24 + 11), (3, -3), (1, -1)):  # the zero point is the smaller one
        given = {"x": np.float32([factor]), "scale": np.float32(odd // 3 * 2.0**30), "zero": np.asarray(z, np.int32)}
        yield Row("small zero point", evaluation.quantize, {**given, "model": model, "grid": Grid(-(2**61), 2**61)})
    for (a, b), rule in product(beside, ("floor", "ceil")):  # beside a tie next to 1
        given = {"x": np.float32([-(1 + a * step) * 2.0**-25]), "scale": np.float32(1 + b * step)}
        given |= {"model": replace(model, rounding=rule), "zero": np.asarray(1, np.int32), "grid": Grid(-9, 9)}
        yield Row("beside 1", evaluation.quantize, given)
    yield from _zeros()
    given = {"x": np.float32([np.inf, -np.inf, np.nan, 0]), "scale": np.float32(1), "zero": np.asarray(0, np.int32)}
    yield Row("no tie", evaluation.quantize, {**given, "model": model, "grid": Grid(-(2**30), 2**30)})


def _zeros() -> Iterator[Row]:
    """Zero points that are not read, and one that no int32 holds."""
    given = {"x": NUMBERS.astype(np.float32), "scale": np.float32(0.37), "grid": Grid(0, 9)}
    unread = EvaluationModel(sign="none", nan="zero-point")
    yield Row("unread", evaluation.quantize, {**given, "model": unread, "zero": np.asarray(5, np.int32)})
    for sign in ("q-z", "q+o"):
        wide = {"model": EvaluationModel(sign=sign, integer="int64"), "zero": np.asarray(2**40 + 3)}
        yield Row("wide zero point", evaluation.quantize, {**given, **wide, "grid": Grid(-(2**42), 2**42)})


KINDS = (models, fused, widths, plans, smallest, views, operations, formulas)
