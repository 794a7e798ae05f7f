"""A profile agrees bit for bit with the exact oracle, and with the documented formulas of its operations.

On 8-bit float formats over every input; in wider formats at every code boundary and its neighbours, where the oracle
sees some: ``test_code_boundaries.py`` has it see all of float32.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.engine.expression import expression
from halfeven.conformance.view import granularities, operation
from halfeven.reference import FORMULAS, EvaluationModel, Grid
from halfeven.reference import model as evaluation
from halfeven.reference.blocks import parameter_shape, per_element
from halfeven.reference.catalogue import Formula
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES, profile_of
from halfeven.reference.systems.aimet import affine
from oracles import exact

# A version of functions alone computes the operations as its document says.
OF_THEIR_OWN = [
    p
    for p in PROFILES.values()
    if p.operations and ("@" not in p.name or p.model != PROFILES[p.name.split("@")[0]].model)
]
DOCUMENTED = [p for p in PROFILES.values() if p.operations and "@" not in p.name]
TOY = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e3m4", "float8_e4m3", "float8_e5m2")}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0)
GRIDS = [Grid.from_bitwidth(b, signed=signed) for b in range(1, 7) for signed in (False, True)] + [
    Grid(-7, 7),
    Grid(2, 9),
]


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays hold the same float: the sign of zero counts, the payload of NaN does not."""
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


def every_value(dtype: np.dtype) -> np.ndarray:
    return np.arange(256, dtype=np.uint8).view(dtype)


def zeros_for(profile: Profile, grid: Grid) -> list[int]:
    """Zero points: 0, odd, even, negative, the ends of the grid and beyond. None for a profile without."""
    if len(profile.parameters) == 1:
        return [0]
    sign = -1 if profile.model.sign == "q+o" else 1
    return [sign * z for z in (0, 1, 2, -3, grid.qmin, grid.qmax, grid.qmax + 5)]


def zero_array(profile: Profile, z: object) -> np.ndarray:
    return np.asarray(z, np.float32 if profile.parameters[-1] == "offset" else np.int32)


def exact_scale(profile: Profile, scale: float, grid: Grid) -> float:
    """The scale as the model takes it: for amax, codes per real."""
    return exact.divide(float(grid.qmax), scale, exact.FORMATS["float32"]) if profile.parameters[0] == "amax" else scale


def in_domain(profile: Profile, scale: np.ndarray) -> np.ndarray:
    """The parameters on which model and document must agree; the rule for a tiny amax has a test of its own."""
    return scale[~(scale.astype(np.float64) <= 2.0**-24)] if profile.parameters[0] == "amax" else scale


ORACLE = 13  # one scale of so many, and others for each profile: the oracle is slow


@pytest.mark.parametrize("profile", DOCUMENTED, ids=lambda p: p.name)
@pytest.mark.parametrize("toy", TOY)
def test_every_input_of_a_toy_format(profile: Profile, toy: str) -> None:
    dtype = TOY[toy]
    x = every_value(dtype)
    scales = in_domain(profile, every_value(dtype))
    grids = [g for g in GRIDS if profile.parameters[0] != "amax" or g.qmin < 0 < g.qmax]
    # The grids and zero points go round, so that each meets many scales.
    cases = [(g, z) for g in grids for z in zeros_for(profile, g)]
    shift = DOCUMENTED.index(profile)
    compared = 0
    for i, s in enumerate(scales):
        grid, z = cases[(7 * i) % len(cases)]
        own = i % 3 or profile.scale_dtype == "input"
        s_array = np.asarray(s).astype(dtype if own else np.float32)
        if (i + shift) % ORACLE == 0:
            compared += compare_with_oracle(profile, x, s_array, z, grid)
    asked = sum((i + shift) % ORACLE == 0 for i in range(len(scales)))
    assert asked >= 10
    assert compared == len(profile.operations) * len(x) * asked


def compare_with_oracle(profile: Profile, x: np.ndarray, s: np.ndarray, z: int, grid: Grid) -> int:
    """The number of points compared; for dequantize ``x`` is taken for codes."""
    points = 0
    for name in profile.operations:
        more = (x.dtype,) if name == "dequantize" else ()
        own = getattr(profile, name)(x, s, zero_array(profile, z), grid, *more)
        answer = np.array([oracle(profile, name, float(v), x.dtype, s, z, grid) for v in x])
        ok = same(own, answer)
        i = int(np.argmin(ok))
        assert ok.all(), (
            f"{profile.name} {name} {x.dtype.name} {grid} x={float(x[i])!r} scale={float(s)!r} zero={z}: "
            f"{float(own[i])!r}, exactly {float(answer[i])!r}"
        )
        points += ok.size
    return points


def oracle(profile: Profile, operation: str, x: float, dtype: np.dtype, s: np.ndarray, z: int, grid: Grid) -> float:
    model, form = profile.model, exact.FORMATS[dtype.name]
    scale_form = exact.FORMATS["float32" if profile.parameters[0] == "amax" else s.dtype.name]
    scale = exact_scale(profile, float(s), grid)
    if operation == "dequantize":
        return exact.dequantize(model, x, scale, z, form, scale_form)
    if operation == "fake_quantize":
        return exact.fake_quantize(model, x, scale, z, grid, form, scale_form)
    code = exact.quantize(model, x, scale, z, grid, form, scale_form)
    return exact.round_value(code, form) if profile.codes == "input" else code


def _steps(grid: Grid, beyond: int) -> np.ndarray:
    """The codes of a grid and some beyond it; of a wide one those near its ends, near 0, and at powers of two."""
    lo, hi = grid.qmin - beyond, grid.qmax + beyond
    if grid.bits <= 16:
        return np.arange(lo, hi + 1)
    powers = 1 << np.arange(31)
    near = np.concatenate([[lo, hi, 0], powers, -powers])[:, None] + np.arange(-8, 9)
    return np.unique(near[(near >= lo) & (near <= hi)])


def boundaries(s: np.ndarray, z: np.ndarray, grid: Grid, dtype: np.dtype, ulps: int = 3) -> np.ndarray:
    """Rows of x, one per parameter set: every half step from two below the grid to two above, and its neighbours.

    Of a grid of more than 16 bits those near its ends and near 0, and some between.
    """
    half = _steps(grid, 2)[None] - z[:, None] + 0.5
    with np.errstate(over="ignore"):
        centre = (half * s.astype(np.float64)[:, None]).astype(dtype)
    bits = centre.view(f"int{8 * dtype.itemsize}")
    around = bits[:, :, None] + np.arange(-ulps, ulps + 1)
    rows = around.astype(bits.dtype).view(dtype).reshape(len(s), -1)
    return np.concatenate([rows, np.broadcast_to(np.array(SPECIALS, dtype), (len(s), len(SPECIALS)))], axis=1)


WIDE = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": BFLOAT16,
    "float64": np.dtype(np.float64),
}


def parameter_sets(
    profile: Profile, dtype: np.dtype, seed: int
) -> Iterator[tuple[Grid, np.ndarray, np.ndarray, np.ndarray]]:
    """Grids, each with its scales, zero points and rows of x."""
    rng = np.random.default_rng(seed)
    sets = {
        Grid(-1, 0): 1500,
        Grid(0, 3): 1500,
        Grid(-8, 7): 1000,
        Grid(0, 15): 1000,
        Grid(-127, 127): 100,
        Grid(0, 255): 100,
    }
    if dtype != np.float32:
        sets = {grid: n // 10 for grid, n in sets.items()}
    for grid, n in sets.items():
        if profile.parameters[0] == "amax" and grid.qmax == 0:
            continue
        own = profile.scale_dtype == "input" or dtype == np.float64
        s = (2.0 ** rng.uniform(-12, 4, n)).astype(dtype if own else np.float32)
        s[: n // 4] = 2.0 ** rng.integers(-10, 4, n // 4)
        z = rng.integers(grid.qmin, grid.qmax + 1, n) if len(profile.parameters) > 1 else np.zeros(n, int)
        codes_per_real = profile.model_scale(s, grid).astype(np.float64)
        step = 1 / codes_per_real if profile.parameters[0] == "amax" else s.astype(np.float64)
        yield grid, s, -z if profile.model.sign == "q+o" else z, boundaries(step, z, grid, dtype)


@pytest.mark.parametrize(
    ("profile", "dtype"),
    [(p, d) for p in DOCUMENTED for d in p.dtypes],
    ids=lambda v: v if isinstance(v, str) else v.name,
)
def test_boundaries(profile: Profile, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for grid, s, z, x in parameter_sets(profile, WIDE[dtype], seed=len(dtype)):
        for row in rng.integers(len(s), size=2):  # some of some rows of each grid
            some = np.concatenate([x[row, rng.permutation(x.shape[1])[:40]], x[row, -len(SPECIALS) :]])
            asked = compare_with_oracle(profile, some, s[row], int(z[row]), grid)
            assert asked == len(some) * len(profile.operations)


def test_every_documented_dtype_is_a_wide_one() -> None:
    assert {d for p in DOCUMENTED for d in p.dtypes} == set(WIDE)


def test_the_dtype_of_aimet_s_arithmetic_by_three_rules_and_by_hand() -> None:
    """eps(T) <= 0.25 / num_steps by hand: 2^(1-p) * (2^b - 1) <= 1/4, so b <= p - 3, and every end fits."""
    profile = PROFILES["aimet"]
    own_up_to = {"bfloat16": 5, "float16": 8, "float32": 21, "float64": 50}
    assert set(own_up_to) == set(WIDE)
    for name, limit in own_up_to.items():
        for bits in range(1, 33):
            expected = name if bits <= limit else "float32" if bits <= 21 else "float64"
            for grid in (Grid.from_bitwidth(bits, signed=True), Grid.from_bitwidth(bits, signed=False)):
                f32 = exact.FORMATS["float32"]
                assert affine.internal_dtype(WIDE[name], grid).name == expected
                modelled_dtype = evaluation.compute_dtype(profile.model, WIDE[name], np.dtype(np.float32), grid)
                assert modelled_dtype.name == expected
                assert exact._compute(profile.model, exact.FORMATS[name], f32, grid) == exact.FORMATS[expected]
    # Few steps, but ends that a narrow format does not hold; and ends that it does.
    for name, grid, expected in (
        ("float16", Grid(2047, 2049), "float32"),
        ("float16", Grid(-70000, -69999), "float32"),
        ("bfloat16", Grid(255, 257), "float32"),
        ("bfloat16", Grid(254, 256), "bfloat16"),
        ("float32", Grid(2**24, 2**24 + 1), "float64"),
        ("float16", Grid(2049, 2049), "float32"),
        ("float16", Grid(2048, 2048), "float16"),
    ):
        assert affine.internal_dtype(WIDE[name], grid).name == expected
        assert evaluation.compute_dtype(profile.model, WIDE[name], WIDE[name], grid).name == expected
        form = exact.FORMATS[name]
        assert exact._compute(profile.model, form, form, grid) == exact.FORMATS[expected]


@pytest.mark.parametrize(
    ("profile", "dtype"),
    [(p, d) for p in OF_THEIR_OWN for d in p.dtypes],
    ids=lambda v: v if isinstance(v, str) else v.name,
)
def test_numpy_expression_gives_what_the_profile_gives(profile: Profile, dtype: str) -> None:
    """The one-line expressions of the scripts, run as they stand, per tensor."""
    wide = [g for g in (Grid.from_dtype(np.int32), Grid(0, 2**31 - 1)) if profile.accepts(g)]
    for grid in (Grid(-8, 7), Grid(-127, 127), Grid(0, 15), *wide):
        compare_with_expression(profile, np.dtype(WIDE[dtype]), grid, sets=30)


# What a choice of the model meets in the expressions.
COMPANIES = (
    {},
    {"clamp": "before-rounding"},
    {"clamp": "before-zero-point"},
    {"zero_point": "fused", "division": "reciprocal"},
    {"nan": "zero"},
    {"integer": "int32"},
    {"overflow": "wrap"},
    {"ends": "rounded"},
    {"sign": "q+o"},
)


def is_documented(model: EvaluationModel) -> bool:
    try:
        expression(replace(PROFILES["torchao"], model=model), "quantize", Grid(-8, 7), WIDE["float32"], WIDE["float32"])
    except ValueError:
        return False
    return True


NEIGHBOURS = [near for near in EvaluationModel().neighbours() if is_documented(near)]


def test_what_documents_choose_has_an_expression() -> None:
    assert len(NEIGHBOURS) == 36
    left = [n for n in EvaluationModel().neighbours() if n not in NEIGHBOURS]
    assert {"held", "inverse", "quotient", "half", "form"} < {c for n in left for c in EvaluationModel().changes(n)}


@pytest.mark.parametrize("near", NEIGHBOURS, ids=lambda m: EvaluationModel().against(m))
@pytest.mark.parametrize("company", COMPANIES, ids=str)
def test_numpy_expression_of_every_choice(near: EvaluationModel, company: dict[str, str]) -> None:
    changed = {name: found for name, (_, found) in EvaluationModel().changes(near).items()}
    model = replace(EvaluationModel(), **(company | changed))
    if model.zero_point != "fused" or model.compute not in {"float64", "bfloat16", "float16"}:  # this rounds twice
        compare_with_expression(replace(PROFILES["torchao"], model=model), WIDE["float32"], Grid(-8, 7), sets=4)


def compare_with_expression(profile: Profile, dtype: np.dtype, grid: Grid, sets: int) -> None:
    if profile.parameters[0] == "amax" and grid.qmin == 0:
        return
    rng = np.random.default_rng(5)
    s_dtype = dtype if profile.scale_dtype == "input" or dtype == np.float64 else WIDE["float32"]
    for _ in range(sets):
        s = np.asarray(2.0 ** rng.uniform(-12, 4), s_dtype)
        z = int(rng.integers(grid.qmin, grid.qmax + 1)) if len(profile.parameters) > 1 else 0
        step = 1 / float(profile.model_scale(s, grid)) if profile.parameters[0] == "amax" else float(s)
        x = boundaries(np.array([step]), np.array([-z if profile.model.sign == "q+o" else z]), grid, dtype)[0]
        codes = _steps(grid, 0).astype(np.int32)
        zero = zero_array(profile, z)
        scope = {"np": np, "ml_dtypes": ml_dtypes, "qmin": grid.qmin, "qmax": grid.qmax, "x": x, "q": codes}
        scope |= dict(zip(profile.parameters, (s, zero), strict=False))
        for name in profile.operations:
            text = expression(profile, name, grid, dtype, s.dtype)
            with np.errstate(all="ignore"):
                got = np.asarray(eval(text, dict(scope)))
            if name == "dequantize":
                expected = profile.dequantize(codes, s, zero, grid, dtype)
            else:
                expected = getattr(profile, name)(x, s, zero, grid)
            wide, held = got.astype(np.float64), expected.astype(np.float64)
            ok = same(got, expected) if name != "quantize" or profile.codes == "input" else wide == held
            ok |= np.isnan(wide) & np.isnan(held)
            assert ok.all(), f"{text}: x={x[~ok][:1]!r} scale={s!r} zero={z}: {got[~ok][:1]}, {expected[~ok][:1]}"
            assert name == "quantize" or got.dtype == dtype, text


# Of each formula with a view the profile it answers to; of some releases there are calls alone.
VIEWS = [(f, PROFILES[name]) for f in FORMULAS.values() if (name := profile_of(f))]


@pytest.mark.parametrize(("record", "profile"), VIEWS, ids=lambda v: getattr(v, "id", ""))
def test_a_formula_gives_what_its_profile_gives(record: Formula, profile: Profile) -> None:
    for dtype in profile.dtypes:
        points, parted = compare_with_formula(record, profile, WIDE[dtype])
        assert parted == ""
        assert points > 1000


@pytest.mark.parametrize(("record", "profile"), VIEWS, ids=lambda v: getattr(v, "id", ""))
def test_a_formula_is_told_from_another_profile(record: Formula, profile: Profile) -> None:
    if record.affine.operation == "dequantize":
        change = {"sign": "q-z" if profile.model.sign == "q+o" else "q+o"}
    else:
        change = {"rounding": "half-away"}
    _, parted = compare_with_formula(record, replace(profile, model=replace(profile.model, **change)), WIDE["float32"])
    assert parted.startswith(record.id)


# Where no model says what a release does: the least widths on which its formula and its profile agree.
FINER = {
    "onnx/QuantizeLinear@onnxruntime-1.31": 8
}  # its 2-bit codes, and lone ones of 4 bits, wrap what is beyond int32


def compare_with_formula(record: Formula, profile: Profile, dtype: np.dtype) -> tuple[int, str]:
    """The formula through its view against the profile, in all granularities: points compared, and the first parted."""
    view, rng, points = record.affine, np.random.default_rng(3), 0
    called = operation(record.function, view, "numpy")
    grids = [g for g in (*GRIDS, Grid(-128, 127), Grid(0, 255), Grid(-127, 127)) if profile.accepts(g)]
    grids = [g for g in grids if g.bits >= FINER.get(record.id, 1)]
    for grid, granularity in itertools.product(grids, granularities(view)):
        around = 7 * (grid.num_steps + 4)
        shape = (4, around + len(SPECIALS))
        block = {"channel": (1, shape[1]), "token": (1, shape[1]), "group": (1, 16), "block": (3, 16)}.get(granularity)
        entries = () if block is None else parameter_shape(shape, block)
        if block is not None and not profile.partial_blocks:
            shape = tuple(n * b for n, b in zip(entries, block, strict=True))
        own = profile.scale_dtype == "input" or dtype == np.float64
        s = np.asarray(2.0 ** rng.uniform(-6, 4, entries)).astype(dtype if own else np.float32)
        z = np.asarray(rng.integers(grid.qmin, grid.qmax + 1, entries)) * (len(profile.parameters) > 1)
        zero = zero_array(profile, -z if profile.parameters[-1] == "offset" else z)
        given = (s * s.dtype.type(grid.qmax)).astype(s.dtype) if profile.parameters[0] == "amax" else s
        if view.operation == "dequantize":
            x = rng.integers(grid.qmin, grid.qmax + 1, shape).astype(dtype if profile.codes == "input" else np.int32)
            expected = profile.dequantize(x, given, zero, grid, dtype, block)
        else:
            half = grid.qmin - 1.5 + np.arange(shape[1]) // 7 % (grid.num_steps + 4) - per_element(z, shape, block)
            near = np.broadcast_to(half * per_element(s.astype(np.float64), shape, block), shape).astype(dtype)
            bits = near.view(f"int{8 * dtype.itemsize}")
            x = (bits + (np.arange(shape[1]) % 7 - 3).astype(bits.dtype)).view(dtype)
            x[:, around : around + len(SPECIALS)] = SPECIALS
            if profile.codes == "integer" and profile.model.nan == "propagate" and view.operation == "quantize":
                x[np.isnan(x)] = 0  # no integer stands for it
            expected = getattr(profile, view.operation)(x, given, zero, grid, block)
        parameters = (given, zero)[: len(profile.parameters)]
        try:
            got = called(x, *parameters, qmin=grid.qmin, qmax=grid.qmax, block_size=block, dtype=dtype.name)
        except Unsupported:  # blocks that the document has no arguments for
            assert granularity in {"group", "block"}
            continue
        floats = view.operation != "quantize" or profile.codes == "input"
        ok = same(got, expected) if floats else got.astype(np.float64) == expected.astype(np.float64)
        points += ok.size
        if got.shape != expected.shape or (floats and got.dtype != expected.dtype) or not ok.all():
            i = np.unravel_index(int(np.argmin(ok)), ok.shape)
            return points, (
                f"{record.id}, {dtype.name}, {grid}, {granularity}: x={x[i]!r}, {profile.parameters[0]}="
                f"{np.broadcast_to(per_element(given, shape, block), shape)[i]!r}, zero="
                f"{np.broadcast_to(per_element(zero, shape, block), shape)[i]!r}: {got[i]!r}, profile {expected[i]!r}"
            )
    return points, ""


def test_tiny_amax_has_codes_of_zero_and_a_scale_of_one() -> None:
    """At amax <= 2^-24 the rule of the document takes over, which the model does not hold."""
    profile, grid = PROFILES["pytorch-quantization"], Grid(-127, 127)
    x = np.array([1.0, -1.0, 0.0, -0.0, 3e38], np.float32)
    for amax in (0.0, 1e-45, 2.0**-24):
        codes = profile.quantize(x, np.asarray(amax, np.float32), np.zeros(()), grid)
        reals = profile.fake_quantize(x, np.asarray(amax, np.float32), np.zeros(()), grid)
        assert same(codes, np.array([0.0, -0.0, 0.0, -0.0, 0.0])).all()
        assert same(reals, codes).all()
    above = np.nextafter(np.float32(2.0**-24), np.float32(1))
    assert profile.quantize(x, np.asarray(above), np.zeros(()), grid).tolist() == [127, -127, 0, 0, 127]
