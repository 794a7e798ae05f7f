"""What a mutant is asked: the calls of every formula, the cases of the operations, and the tools that they share."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import product
from typing import Any, get_args

import ml_dtypes
import numpy as np

from halfeven.conformance import view
from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.checks import CHECKS
from halfeven.conformance.configuration import DTYPES, Case, Configuration
from halfeven.conformance.explain import evaluation_of
from halfeven.conformance.formulas import Answer, answer, differences
from halfeven.conformance.plan import plan
from halfeven.conformance.points import recording
from halfeven.conformance.requirement import Arguments
from halfeven.conformance.systems import call_sets
from halfeven.conformance.trial import Trial
from halfeven.reference import FORMULAS, Grid, blocks, exact, minifloat, rounding
from halfeven.reference import model as evaluation
from halfeven.reference.catalogue import Formula
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES
from mutants.by_hand import backend

__all__ = ["KINDS", "Row"]


@dataclass(frozen=True, eq=False)
class Row:
    """One call: what is called, and with what."""

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    def ask(self) -> Answer:
        """What the call comes to now."""
        return answer(self.function, self.arguments)


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
        said = answer(found[0].at(recording(document, read)), arguments)
        for name in read:
            reading.setdefault(name, []).append((arguments, said))
    for name in sorted(reading):
        done = {getattr(f.behaviour, name, None) for f in found}
        for value in (v for v in document.choices()[name] if v not in done):
            function = found[0].at(replace(document, **{name: value}))
            told: dict[bool, list[Arguments]] = {True: [], False: []}
            for arguments, said in _stirred(reading[name]):
                differs = bool(differences(answer(function, arguments), said).differing)
                told[differs].append(arguments)
                if len(told[True]) == _ENOUGH:
                    break
            for arguments in told[True] + told[False][:_ENOUGH]:
                yield Row(f"{found[0].id}, {name}={value}", function, arguments)


def _stirred(calls: list[Any]) -> Iterator[Any]:
    """Neighbours are alike: every seventh call, then those between."""
    yield from (call for start in range(7) for call in calls[start::7])


class _Noted(Trial):
    """A trial that asks nobody and keeps the cases."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cases: list[Case] = []

    def expect(self, case: Case, *, signs: bool = False) -> np.ndarray:
        self.cases.append(case)
        self.points += 1
        return evaluation_of(self.profile, case)

    def explore(self, strategy: Any, body: Callable[[Any], None]) -> None:
        """Shapes and blocks are asked of ``tools``; Hypothesis would take most of the time."""


_VALUES = ("boundaries", "odd-zero-point", "edges", "huge", "all-codes", "nan", "subnormals")
_GRIDS = (Grid(-128, 127), Grid(0, 255))
_ENDS = (*_GRIDS, Grid(-127, 127), Grid(-7, 7), Grid(-32768, 32767))


def _cases(profile: Profile) -> list[Case]:
    right = backend("none", profile.name, profile.dtypes)
    found = []
    for item in plan(right):
        c = item.configuration
        grids = _ENDS if item.check in {"boundaries", "edges"} else _GRIDS
        if c is None or c.grid not in grids or item.check not in _VALUES or c.granularity != "channel":
            continue
        trial = _Noted(right, item.requirement, item.check, c, item.tier, item.seed)
        CHECKS[item.check].run(trial)
        found += trial.cases
    return found


def operations() -> Iterator[Row]:
    """The cases of the checks of values, asked of the profile's formulas and of its evaluation model."""
    for profile in PROFILES.values():
        document = PROFILES[profile.name.split("@")[0]]
        if not profile.numpy or (profile is not document and profile.model == document.model):
            continue
        for case in _cases(document if profile.parameters == document.parameters else profile):
            name = f"{profile.name}, {case.configuration}"
            yield Row(name, evaluation_of, {"profile": profile, "case": case})
            if profile.transcriptions:
                modelled = replace(profile, transcriptions={})
                yield Row(f"{name}, the model", evaluation_of, {"profile": modelled, "case": case})


def views() -> Iterator[Row]:
    """Every formula that is an operation, asked as one: on grids, with parameters of blocks."""
    for formula in (f for f in FORMULAS.values() if f.affine and not f.version):
        for grid, dtype, size in product(_ENDS, ("float32", "float16"), (None, (1, 3), (2, 1), (2, 3), (1, 2))):
            shape = () if size is None else (2 // size[0], -(-3 // size[1]))
            scale = np.resize(np.float32([0.5, 0.25, 2]), shape).astype(dtype)
            zero = np.resize(np.int32([grid.qmin + 3, 1, 0]), shape)
            x = np.array([[1.3, -7.5, 300], [0, 2.25, -6e4]]).astype(dtype)
            if formula.affine and formula.affine.operation == "dequantize":
                x = np.int32([[grid.qmin, 0, 5], [1, grid.qmax, 2]])
            for turned in (x, x.T, x[:1]) if size is None else (x,):
                given = {"x": turned, "scale": scale, "zero": zero, "grid": grid, "block_size": size}
                yield Row(f"{formula.id} on {grid}", _viewed, {"id": formula.id, **given, "dtype": dtype})


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
        if profile.numpy:
            yield Row(f"plan of {name}", _planned, {"name": name})


def _planned(name: str) -> tuple[str, ...]:
    profile, found = PROFILES[name], []
    for item in plan(backend("none", name, tuple(DTYPES))):
        c = item.configuration
        if c is not None and c.granularity == "tensor":
            trial = Trial(item.backend, item.requirement, item.check, c, item.tier, item.seed)
            found.append(f"{item.id} {item.check} {trial.code_dtype} {trial.scale_dtype} {trial.zeros}")
    kinds = ((False, False), (True, False), (True, True))
    grids = [Grid.from_bitwidth(b, signed=s, narrow=n) for b in range(2, 33) for s, n in kinds]
    accepted = "".join(str(int(profile.accepts(grid))) for grid in grids)
    return (*found, accepted, *profile.parameters, str(profile.partial_blocks), profile.codes)


def _neighbours() -> list[EvaluationModel]:
    """The models of the profiles, and what is one field away from a few of them."""
    own = list(dict.fromkeys(p.model for p in PROFILES.values() if p.numpy))
    near = [
        replace(model, **{field.name: value})
        for model in (EvaluationModel(), replace(EvaluationModel(), sign="q+o", integer="int32"))
        for field in fields(EvaluationModel)
        for value in get_args(field.type)
    ]
    fused = [EvaluationModel(division=d, zero_point="fused", clamp=c) for d in ("reciprocal", "divide") for c in
             ("after", "before-rounding")]  # fmt: skip
    mixed = [EvaluationModel(clamp="before-rounding", zero_point="before-rounding"), EvaluationModel(sign="none")]
    mixed += [EvaluationModel(overflow="wrap", integer=i) for i in ("int32", "int64", "exact")]
    mixed += [EvaluationModel(nan=n, integer="int32") for n in ("propagate", "zero-point", "qmax")]
    mixed += [EvaluationModel(nan="zero-point", integer="exact"), EvaluationModel(sign="q+o", subtract="int32")]
    mixed += [EvaluationModel(product="promoted", compute=c) for c in ("widened", "float64")]
    return list(dict.fromkeys([*own, *near, *fused, *mixed]))


_NUMBERS = np.array(
    [
        0.0, -0.0, 0.2, 0.5, -0.5, 1.5, 2.5, -2.5, -3.5, 7.25, 63.5, 64.5, 127.4, 127.5, -128.5, -129, 1000, -3e9, 3e9,
        1e19, -1e19, 65504, 3e38, np.inf, -np.inf, np.nan, 1e-7, -1e-40, 0.1, 0.3, -0.7, 1 / 3, 12.35, 2.4999, -77.77,
    ]
)  # fmt: skip


def models() -> Iterator[Row]:
    """The evaluation model, in arrays and in fractions, with every value of every field."""
    grids = (Grid(-128, 127), Grid(0, 255), Grid(0, 1), Grid(-7, 7), Grid(3, 9), Grid(-32768, 32767))
    for turn, model in enumerate(_neighbours()):
        for (i, dtype), grid in product(enumerate(("float32", "float16", "bfloat16", "float64")), grids):
            with np.errstate(all="ignore"):
                x = _NUMBERS.astype(DTYPES[dtype])
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
            yield Row(name, evaluation.dequantize, {**given, "q": codes, "dtype": x.dtype})
            if i == (turn + grid.bits) % 3 and grid.bits <= 8:
                asked = {"model": model, "x": x[:: 1 + i], "scale": scale, "zero": int(zero), "grid": grid}
                yield Row(f"exact {name}", _exactly, {**asked, "operation": "quantize"})
                yield Row(f"exact {name}", _exactly, {**asked, "operation": "fake_quantize"})
                yield Row(f"exact {name}", _exactly, {**asked, "x": codes, "operation": "dequantize", "dtype": dtype})


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
    for model, dtype, grid in product(
        (EvaluationModel(compute=c) for c in ("widened", "input")), DTYPES.values(), grids
    ):
        given = {"model": model, "x": dtype, "scale": np.dtype(np.float32), "grid": grid}
        yield Row(f"width, {dtype}, {grid}", evaluation.compute_dtype, given)
    step = 2.0**-23
    model = EvaluationModel(division="multiply-by-q-per-real", zero_point="fused")
    for (a, b), z, sign in product(((256, -256), (2897, -2896), (2896, -2895), (1, 0)), range(0, 9, 2), (1, -1)):
        given = {"x": np.float32([sign * (1 + a * step)]), "scale": np.float32(1 + b * step)}
        given["zero"] = np.asarray(sign * (2**24 + z), np.int32)
        yield Row("beside a tie", evaluation.quantize, {**given, "model": model, "grid": Grid(-(2**30), 2**30)})
    given = {"x": np.float32([np.inf, -np.inf, np.nan, 0]), "scale": np.float32(1), "zero": np.asarray(0, np.int32)}
    yield Row("no tie", evaluation.quantize, {**given, "model": model, "grid": Grid(-(2**30), 2**30)})


def fractions() -> Iterator[Row]:
    """The evaluation model in fractions, at scales that no format divides by without rounding."""
    for turn, (model, dtype) in enumerate(product(_neighbours(), ("float32", "float16", "bfloat16"))):
        grid, zero = ((Grid(-128, 127), -5), (Grid(0, 255), 7))[turn % 2]
        for scale_dtype in dict.fromkeys((dtype, "float32")):
            scale = np.asarray((0.1, 0.37)[turn % 2]).astype(DTYPES[scale_dtype])
            given = {"model": model, "scale": scale, "zero": zero if model.sign != "none" else 0, "grid": grid}
            with np.errstate(all="ignore"):
                x = _NUMBERS[turn % 3 :: 3].astype(DTYPES[dtype])
            codes = np.arange(grid.qmin, grid.qmax, 37)
            yield Row(f"fractions, {dtype}", _exactly, {**given, "x": x, "operation": "quantize"})
            yield Row(f"fractions, {dtype}", _exactly, {**given, "x": x, "operation": "fake_quantize"})
            yield Row(f"fractions, {dtype}", _exactly, {**given, "x": codes, "operation": "dequantize", "dtype": dtype})


def _exactly(
    operation: str, model: EvaluationModel, x: Any, scale: Any, zero: int, grid: Grid, dtype: str = ""
) -> list[float]:
    form, s_form = exact.FORMATS[dtype or x.dtype.name], exact.FORMATS[scale.dtype.name]
    if operation == "dequantize":
        return [exact.dequantize(model, float(v), float(scale), zero, form, s_form) for v in x]
    return [getattr(exact, operation)(model, float(v), float(scale), zero, grid, form, s_form) for v in x]


def tools() -> Iterator[Row]:
    """What formulas share: roundings, grids, blocks, small floats, exact numbers."""
    # Beside ties of bfloat16 and float8 by less than a float32 can tell, on either side of an even number.
    beside = [
        sign * (1 + k * 2.0**-e + d * 2.0**-40) for sign in (1, -1) for k in (1, 3) for e in (4, 8) for d in (1, -1)
    ]
    ends = np.array([*_NUMBERS, *beside, 2.0**52 + 0.5, -(2.0**23) - 0.5, 1 + 2.0**-24 + 2.0**-50, 2.0**-15])
    for dtype in DTYPES.values():
        with np.errstate(all="ignore"):
            x = ends.astype(dtype)
        for rule in rounding.ROUNDINGS:
            yield Row(f"rounding {rule}", lambda x, rule: rounding.ROUNDINGS[rule](x), {"x": x, "rule": rule})
        for to in (*DTYPES.values(), np.dtype(ml_dtypes.float8_e4m3fn)):
            yield Row("cast_once", rounding.cast_once, {"x": x, "dtype": to})
    yield from _of_grids()
    yield from _of_blocks()
    yield from _of_formats()
    yield from _of_fractions()


def _of_grids() -> Iterator[Row]:
    for bits, signed, narrow in product((-1, 0, 1, 2, 8, 31, 32, 33, True, 2.0), (False, True), (False, True)):
        yield Row("bitwidth", _grid, {"of": "from_bitwidth", "bitwidth": bits, "signed": signed, "narrow": narrow})
    for steps, signed in product((-1, 0, 1, 2, 3, 254, 255, 1.0, True), (False, True)):
        yield Row("num_steps", _grid, {"of": "from_num_steps", "num_steps": steps, "signed": signed})
    for dtype in ("int8", "uint4", "uint32", "float32", "int2"):
        yield Row("dtype", _grid, {"of": "from_dtype", "dtype": dtype})
    for low, high in ((0, 0), (-1, 0), (0, 1), (1, 0), (-128, 127), (-3, 200), (0, 256), (True, 1), (0, 1.0), (5, 9)):
        yield Row("grid", _grid, {"of": "ends", "qmin": low, "qmax": high})


def _grid(of: str, **arguments: Any) -> tuple[Any, ...]:
    grid = Grid(**arguments) if of == "ends" else getattr(Grid, of)(**arguments)
    inside = [code in grid for code in (grid.qmin - 1, grid.qmin, grid.qmax, grid.qmax + 1, 0.0)]
    accepted = tuple(name for name, p in PROFILES.items() if p.numpy and p.accepts(grid))
    return grid.qmin, grid.qmax, grid.num_steps, grid.bits, str(grid), *inside, ",".join(accepted)


def _of_blocks() -> Iterator[Row]:
    for shape in ((), (0,), (1,), (5,), (4, 6), (0, 3), (2, 3, 4)):
        yield Row("per_tensor", blocks.per_tensor, {"shape": shape})
        yield Row("per_token", blocks.per_token, {"shape": shape})
        for axis in range(-4, 4):
            yield Row("per_channel", blocks.per_channel, {"shape": shape, "axis": axis})
            for size in (0, 1, 2, 3):
                yield Row("per_group", blocks.per_group, {"shape": shape, "group_size": size, "axis": axis})
    for shape, size in product(((4, 6), (5,), ()), (None, (), (2,), (2, 3), (3, 4), (4, 6), (0, 1), (5,), (1, 1))):
        for entries in ((), (1,), (2,), (3,), (2, 2), (1, 1), (4, 6), (4, 1), (6,), (3, 1, 1), (1, 4, 6)):
            parameter = np.arange(int(np.prod(entries)), dtype=np.float32).reshape(entries)
            yield Row("per_element", blocks.per_element, {"parameter": parameter, "shape": shape, "block_size": size})


def _of_formats() -> Iterator[Row]:
    for e, m, bias, specials in product(
        (0, 1, 4, 8, 5.0), (0, 1, 3, 7, -1), (0, 7, 127, 1023, True), get_args(minifloat.Specials)
    ):
        given = {"name": "f", "exponent_bits": e, "mantissa_bits": m, "bias": bias, "specials": specials}
        yield Row("format", _described, given)
    for e, m, bias, specials in (
        (4, 3, 1074, "fn"),
        (4, 3, 1080, "fn"),
        (8, 7, -900, "ieee"),
        (4, 3, 7, "none"),
        (8, 8, 1, "fn"),
    ):
        yield Row(
            "format",
            _described,
            {"name": "f", "exponent_bits": e, "mantissa_bits": m, "bias": bias, "specials": specials},
        )
    for form, dtype, overflow in product(
        minifloat.FLOAT_FORMATS.values(), ("float32", "float64", "bfloat16"), get_args(minifloat.Overflow)
    ):
        codes = np.arange(min(2**form.bits, 512))
        near = minifloat.decode(codes, form)
        with np.errstate(all="ignore"):
            x = np.concatenate([near, (near[1:] + near[:-1]) / 2, near * 1.01, ends_of(form)]).astype(DTYPES[dtype])
        yield Row("cast", minifloat.cast, {"x": x, "format": form, "overflow": overflow})


def ends_of(form: minifloat.FloatFormat) -> np.ndarray:
    """What is larger and smaller than every number of a format."""
    return np.array([1e300, -1e300, np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0**-1074, -(2.0**-140)])


def _described(**arguments: Any) -> tuple[Any, ...]:
    form = minifloat.FloatFormat(**arguments)
    return form.bits, form.max_code, form.lowest_exponent


def _of_fractions() -> Iterator[Row]:
    numbers = [float(v) for v in _NUMBERS if not abs(v) >= 1e20] + [
        np.inf,
        -np.inf,
        2.0**-14,
        2.0**-25,
        65520.0,
        65519.0,
    ]
    for name in ("float32", "float16", "float8_e4m3"):
        form = exact.FORMATS[name]
        for f in ("add", "multiply", "divide"):
            yield Row(f, functools.partial(_pairs, getattr(exact, f)), {"numbers": numbers, "form": form})
        yield Row("fma", _triples, {"numbers": numbers[::3], "form": form})
        yield Row(
            "round",
            lambda numbers, form: [exact.round_value(v, form) for v in numbers],
            {"numbers": numbers, "form": form},
        )
        reals = [
            Fraction(n, d) for n in (-9, -1, 0, 1, 3, 5, 7, 9, 17, 31, 33, 2**24 + 1) for d in (1, 2, 3, 16, 2**30)
        ]
        yield Row(
            "round_to", lambda reals, form: [exact.round_to(v, form) for v in reals], {"reals": reals, "form": form}
        )
    halves = [Fraction(n, 4) for n in range(-13, 14)]
    for rule in rounding.ROUNDINGS:
        yield Row(
            "round_integer", lambda v, rule: [exact.round_integer(n, rule) for n in v], {"v": halves, "rule": rule}
        )
        for grid, z in product((Grid(-8, 7), Grid(0, 15)), (0, 3, -2)):
            asked = {"v": halves, "rule": rule, "grid": grid, "z": z}
            yield Row("real", lambda v, z, grid, rule: [exact.quantize_real(n, 0.75, z, grid, rule) for n in v], asked)
    yield Row("tie", lambda v: [str(exact.distance_to_tie(n, 0.75)) for n in v], {"v": halves})
    yield Row(
        "dequantize_real",
        lambda form: [exact.dequantize_real(q, 0.3, 5, form) for q in range(20)],
        {"form": exact.FORMATS["float16"]},
    )
    for grid in (Grid(-128, 127), Grid(0, 255), Grid(-7, 7)):
        yield Row("configuration", str, {"object": Configuration("quantize", "float32", grid, ())})


def _pairs(function: Callable[..., float], numbers: list[float], form: exact.Format) -> list[float]:
    return [function(a, b, form) for a in numbers for b in numbers]


def _triples(numbers: list[float], form: exact.Format) -> list[float]:
    return [exact.fused_multiply_add(a, b, c, form) for a in numbers for b in numbers for c in numbers]


KINDS = (tools, models, fractions, fused, widths, plans, views, operations, formulas)
