"""The evaluation model's fields: against the oracle, against values by hand, and each told from its alternatives."""

import itertools
from dataclasses import fields, replace

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import EvaluationModel, Grid
from halfeven.reference.model import compute_dtype, dequantize, fake_quantize, quantize
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES
from oracles import exact

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
BFLOAT16, E4M3 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3)
BYTE, INT8, INT32 = Grid(0, 255), Grid(-128, 127), Grid(-(2**31), 2**31 - 1)
ALTERNATIVES = [(name, value) for name, words in EvaluationModel.choices().items() for value in words]


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


def codes(model: EvaluationModel, x: list[float], s: float, z: float, grid: Grid, dtype: np.dtype = F32) -> list[float]:
    return quantize(model, np.array(x, dtype), np.asarray(s, F32), np.asarray(z), grid).astype(np.float64).tolist()


def hostile() -> np.ndarray:
    """Ties and their neighbours, values beyond every integer type, and specials; float32."""
    near = (np.arange(-12, 13) + 0.5).astype(F32) * np.float32(0.1)
    far = np.array([2.0**24, 2.0**31, 2.0**33, 2.0**63, 2.0**65, 3e38, 300.3, 1000.5], F32)
    x = np.concatenate([near, np.nextafter(near, F32.type(9)), np.nextafter(near, F32.type(-9)), far, -far])
    return np.concatenate([x, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.03, -0.03], F32)])


@pytest.mark.parametrize(("field", "value"), ALTERNATIVES)
def test_every_value_of_every_field_is_what_the_oracle_says(field: str, value: str) -> None:
    """Pairs of fields, so that no value is tried in one company only."""
    x, form = hostile(), exact.FORMATS["float32"]
    compared = 0
    others = [alternative for alternative in ALTERNATIVES if alternative[0] != field]
    for i, (name, other) in enumerate(others):
        model = replace(EvaluationModel(), **{field: value, name: other})
        s, z, grid = ((0.1, -3, Grid(-8, 7)), (0.75, 2, Grid(1, 6)), (0.75, 2**31 - 1, INT32))[i % 3]
        product = model.product if model.product != "output" else compute_dtype(model, F32, F32, grid).name
        if model.form == "fused" and product == "float64":
            continue  # no wider type holds the product
        some, s32 = x[i % 4 :: 4], np.asarray(s, F32)
        got = quantize(model, some, s32, np.asarray(z), grid)
        reals = fake_quantize(model, some, s32, np.asarray(z), grid)
        for j, v in enumerate(some):
            arguments = (float(v), float(s32), z, grid, form, form)
            assert same(got[j], exact.quantize(model, *arguments)), (model, v)
            assert same(reals[j], exact.fake_quantize(model, *arguments)), (model, v)
            compared += 1
    assert compared > 20 * len(others)


def test_fused_rounds_once() -> None:
    rng = np.random.default_rng(2)
    model, form = EvaluationModel(division="reciprocal", zero_point="fused"), exact.FORMATS["float32"]
    s = (2.0 ** rng.uniform(-8, 8, 400)).astype(F32)
    z = rng.integers(0, 256, 400)
    tie = (rng.integers(0, 256, 400) - z + 0.5) * s.astype(F64)
    x = np.nextafter(tie.astype(F32), np.where(rng.integers(0, 2, 400), 9e9, -9e9).astype(F32))
    got = quantize(model, x, s, z, BYTE)
    twice = quantize(replace(model, zero_point="before-rounding"), x, s, z, BYTE)
    for i in range(400):
        assert got[i] == exact.quantize(model, float(x[i]), float(s[i]), int(z[i]), BYTE, form, form)
    assert (got != twice).any()
    with pytest.raises(ValueError, match="zero_point='fused' is not accepted for float64"):
        quantize(model, x.astype(F64), s, z, BYTE)
    # By hand: with s = 1 + 2^-23 the float32 of 1 / s is 1 - 2^-23, and s * (1 / s) = 1 - 2^-46. Next to a large zero
    # point float64 drops the 2^-46, lands on the tie between two float32, and a second rounding goes to the far one.
    near_one, wide, z = np.array([1 + 2.0**-23], F32), Grid(-(2**31), 2**31 - 1), np.asarray(2**24 + 2)
    assert quantize(model, near_one, near_one[0], z, wide).tolist() == [2.0**24 + 2]
    assert quantize(model, -near_one, near_one[0], z, wide).tolist() == [2.0**24 + 2]
    assert quantize(model, near_one, near_one[0], -z, wide).tolist() == [-(2.0**24) - 2]
    assert quantize(model, -near_one, near_one[0], -z, wide).tolist() == [-(2.0**24) - 2]


def test_integer_cast_and_wrap() -> None:
    x = [2.0**31, -(2.0**31), 2.0**31 - 128, np.inf, -np.inf, np.nan, 2.0**63]
    int32, int64 = EvaluationModel(integer="int32"), EvaluationModel(integer="int64")
    assert codes(int32, x, 1.0, 0, INT8) == [-128, -128, 127, -128, -128, -128, -128]
    assert codes(int64, x, 1.0, 0, INT8) == [127, -128, 127, -128, -128, -128, -128]
    # The minimum plus a negative zero point wraps to the top.
    assert codes(int32, [np.inf], 1.0, -1, INT8) == [127]
    assert codes(int64, [-np.inf], 1.0, -1, INT8) == [127]
    assert codes(int32, [2.0**31 - 128], 1.0, 127, INT8) == [127]
    assert codes(int32, [2.0**31 - 128], 1.0, 128, INT8) == [-128]
    assert codes(replace(int32, zero_point="before-rounding"), [2.0**31, 2.0**32], 1.0, 0, INT8) == [-128, -128]


def test_an_exact_zero_point_survives_what_float32_rounds() -> None:
    z, x = 2**24 + 1, [-(2.0**24)]
    assert codes(EvaluationModel(), x, 1.0, z, INT8) == [0]
    assert codes(EvaluationModel(integer="exact"), x, 1.0, z, INT8) == [1]
    half = np.dtype(np.float16)
    assert codes(EvaluationModel(integer="exact"), [1.0], 1.0, 65534, Grid(0, 65535), half) == [65535]
    assert codes(EvaluationModel(integer="exact"), [np.inf, np.nan], 1.0, 1, Grid(0, 9))[0] == 9
    q, one = np.array([2.0**24 + 1]), np.asarray(1.0, F32)
    far = np.asarray(2**24)
    assert dequantize(EvaluationModel(), q, one, far, F32).tolist() == [0.0]
    assert dequantize(EvaluationModel(subtract="exact"), q, one, far, F32).tolist() == [1.0]


def test_an_end_that_the_arithmetic_rounds_outward() -> None:
    """By hand: float32 has 2^31 and 2^30 for the ends 2^31 - 1 and 2^30 - 1, and 2^24 for 2^24 + 1."""
    far, kept, rounded = [np.inf, 2.0**31, 3e9, -np.inf], EvaluationModel(), EvaluationModel(ends="rounded")
    assert codes(kept, far, 1.0, 0, INT32) == [2**31 - 1] * 3 + [-(2**31)]
    assert codes(rounded, far, 1.0, 0, INT32) == [-(2**31)] * 4
    assert (
        codes(kept, [2.0**31 - 128], 1.0, 0, INT32) == codes(rounded, [2.0**31 - 128], 1.0, 0, INT32) == [2**31 - 128]
    )
    assert codes(kept, far, 1.0, 0, Grid.from_bitwidth(31, signed=True)) == [2**30 - 1] * 3 + [-(2**30)]
    assert codes(rounded, far, 1.0, 0, Grid.from_bitwidth(31, signed=True)) == [2**30] * 3 + [-(2**30)]
    assert codes(rounded, far, 1.0, 0, Grid(0, 2**32 - 1)) == [2.0**32, 2.0**31, 3e9, 0]
    assert codes(kept, far, 1.0, 0, Grid(0, 2**32 - 1)) == [2**32 - 1, 2**31, 3e9, 0]
    for model in (kept, rounded):
        assert codes(model, far, 1.0, 0, Grid(-(2**24) - 1, 2**24 + 1)) == [2**24] * 3 + [-(2**24)]
        reals = fake_quantize(model, np.array(far, F32), np.asarray(1, F32), np.asarray(0), INT32)
        assert reals.tolist() == [2.0**31] * 3 + [-(2.0**31)]
    assert np.isnan(codes(rounded, [np.nan], 1.0, 0, INT32)).all()


def test_int32_subtraction_wraps() -> None:
    model, one = EvaluationModel(subtract="int32"), np.asarray(1.0, F32)
    low = np.asarray(-(2**31))
    assert dequantize(model, np.array([5.0]), one, low, F32).tolist() == [float(np.float32(-(2**31) + 5))]
    assert dequantize(model, np.array([np.nan]), one, np.asarray(0), F32).tolist() == [-(2.0**31)]
    assert dequantize(replace(model, sign="q+o"), np.array([5.0]), one, np.asarray(3), F32).tolist() == [8.0]


@pytest.mark.parametrize(
    ("nan", "code"), [("propagate", np.nan), ("zero", 0), ("zero-point", 3), ("qmin", -8), ("qmax", 7)]
)
def test_code_of_nan(nan: str, code: float) -> None:
    for clamp in ("after", "before-rounding", "before-zero-point"):
        model = EvaluationModel(nan=nan, clamp=clamp)
        assert same(codes(model, [np.nan], 1.0, 3, Grid(-8, 7)), [code]).all()
        assert same(codes(model, [0.0], 0.0, 3, Grid(-8, 7)), [code]).all()  # 0 / 0 is the same NaN
    assert codes(EvaluationModel(nan="zero-point"), [np.nan], 1.0, 30, Grid(-8, 7)) == [7]


@pytest.mark.parametrize("grid", [Grid(0, 255), Grid(-128, 127), Grid(2, 9), Grid(-5, 5)])
def test_overflow_wraps_modulo_the_number_of_codes(grid: Grid) -> None:
    x = [0, 1, 255, 256, -1, -129, 1000, 2.0**24 + 2, -(2.0**40), 3e38]
    got = codes(EvaluationModel(overflow="wrap"), x, 1.0, 0, grid)
    assert got == [(int(np.float32(v)) - grid.qmin) % (grid.num_steps + 1) + grid.qmin for v in x]
    assert codes(EvaluationModel(overflow="wrap"), [np.inf, -np.inf], 1.0, 0, grid) == [grid.qmin] * 2


def test_clamp_before_rounding_shifts_its_bounds_only_where_the_zero_point_comes_later() -> None:
    x = [100.0, -100.0, 0.5, 2.5]
    for zero_point in ("after-rounding", "before-rounding"):
        model = EvaluationModel(clamp="before-rounding", zero_point=zero_point)
        assert codes(model, x, 1.0, 3, Grid(-8, 7))[:2] == [7, -8]
    assert codes(EvaluationModel(clamp="before-zero-point"), x, 1.0, 3, Grid(-8, 7))[:2] == [10, -5]


def test_the_zero_point_enters_by_its_sign() -> None:
    assert codes(EvaluationModel(), [2.0], 1.0, 3, INT8) == [5]
    assert codes(EvaluationModel(sign="q+o"), [2.0], 1.0, 3, INT8) == [-1]
    assert codes(EvaluationModel(sign="none"), [2.0], 1.0, 3, INT8) == [2]
    zero = codes(EvaluationModel(sign="none"), [-0.0], 1.0, 0, INT8) + codes(EvaluationModel(), [-0.0], 1.0, 0, INT8)
    assert np.signbit(zero).tolist() == [True, False]


@pytest.mark.parametrize(
    ("compute", "x", "scale", "grid", "expected"),
    [
        ("input", np.float16, np.float32, INT8, np.float16),
        ("promoted", BFLOAT16, np.float32, INT8, np.float32),
        ("promoted", BFLOAT16, BFLOAT16, INT8, BFLOAT16),
        ("float32", np.float64, np.float64, INT8, np.float32),
        ("float64", np.float32, np.float32, INT8, np.float64),
        ("bfloat16", np.float32, np.float32, INT8, BFLOAT16),
        ("widened", BFLOAT16, np.float32, Grid(0, 31), BFLOAT16),
        ("widened", BFLOAT16, np.float32, Grid(0, 63), np.float32),
        ("widened", np.float16, np.float32, BYTE, np.float16),
        ("widened", np.float16, np.float32, Grid(0, 511), np.float32),
        ("widened", np.float32, np.float32, Grid(0, 2**21 - 1), np.float32),
        ("widened", np.float32, np.float32, Grid(0, 2**22 - 1), np.float64),
    ],
)
def test_compute_dtype(compute: str, x: object, scale: object, grid: Grid, expected: object) -> None:
    assert compute_dtype(EvaluationModel(compute=compute), np.dtype(x), np.dtype(scale), grid) == np.dtype(expected)


@pytest.mark.parametrize("field", [f.name for f in fields(EvaluationModel)])
def test_an_unknown_value_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field}='sideways' is not accepted: give one of "):
        EvaluationModel(**{field: "sideways"})


def test_changes() -> None:
    found = EvaluationModel(division="reciprocal", nan="qmin")
    assert EvaluationModel().changes(found) == {"division": ("divide", "reciprocal"), "nan": ("propagate", "qmin")}
    assert found.changes(found) == {}


def test_the_dtype_of_the_reciprocal() -> None:
    """The scale in float64, x in float32: five reciprocals, and five results."""
    rng = np.random.default_rng(5)
    s = 2.0 ** rng.uniform(-6, 3, 2000)
    x, z = (s * (rng.integers(-100, 100, 2000) + 0.5)).astype(F32), np.zeros(2000)
    own = EvaluationModel(division="reciprocal", compute="float64")
    given = [
        quantize(replace(own, inverse=name), x, s, z, INT8).tobytes()
        for name in EvaluationModel.choices()["inverse"]
        if name != "compute"  # that is the scale's, here
    ]
    assert len({*given}) == 4
    bf16 = EvaluationModel(division="reciprocal", compute="float32")
    s16, x16 = s.astype(BFLOAT16), x.astype(BFLOAT16)
    assert (quantize(bf16, x16, s16, z, INT8) != quantize(replace(bf16, inverse="compute"), x16, s16, z, INT8)).any()


# Which alternatives no input within the document can tell from the profile, and why. Everything else must show.
_COMMUTES = {("clamp", "before-rounding")}  # a clamp between integer bounds commutes with the rounding
# Nothing is added after the rounding.
_ADDS_NOTHING = {("integer", "exact"), ("clamp", "before-zero-point"), ("clamp", "twice")}
# Input, scale and output are of one dtype.
_SAME_DTYPE = {("compute", "promoted"), ("product", "promoted"), ("product", "narrowed"), ("product", "scale")}
_NO_DOUBLE = {("held", "float32"), ("quotient", "float32")}  # scale and quotient are no float64
_WHOLE_SUM = {("quotient", "float64")}  # the zero point, if there is one, is added after rounding, without bound
# And that is float32.
_FLOAT32 = {*_SAME_DTYPE, *_NO_DOUBLE, ("compute", "widened"), ("compute", "float32"), ("product", "float32")}
INDISTINGUISHABLE: dict[str, set[tuple[str, str]]] = {
    "aimet": {("held", "float32")},  # offsets may be large and dtypes narrow, the scale is float32
    "torchao": _COMMUTES | _NO_DOUBLE | {("compute", "float32")},
    "pytorch-quantization": {
        *_COMMUTES,
        *_ADDS_NOTHING,
        *_NO_DOUBLE,
        *_WHOLE_SUM,
        ("zero_point", "before-rounding"),
        ("zero_point", "fused"),
        ("subtract", "exact"),
        ("compute", "promoted"),
    },
    # Its product is exact in float64, and so are the difference before it and the product of each of the two.
    "onnx": _NO_DOUBLE
    | _WHOLE_SUM
    | {("compute", "promoted"), ("form", "distributed"), ("form", "fused"), ("subtract", "float")},
    "torch.fake_quantize": _COMMUTES | _FLOAT32,
    # A quotient is no product, so nothing is fused.
    "torch.quantize": _COMMUTES | _ADDS_NOTHING | _FLOAT32 | {("zero_point", "fused")},
    "torch.quantized_decomposed": _COMMUTES | _NO_DOUBLE | {("compute", "promoted")},
    "compressed-tensors": _ADDS_NOTHING | _SAME_DTYPE | {("clamp", "after"), ("zero_point", "fused")},
    "brevitas": _COMMUTES | _ADDS_NOTHING | _SAME_DTYPE | {("zero_point", "fused")},
}


def corpus(profile: Profile) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, Grid]]:
    """Inputs of every dtype that the document allows, zero points beyond the grid, and large ones."""
    rows = []
    grids = [g for g in (Grid(-8, 7), Grid(-7, 7), Grid(-3000, 3000), INT32) if g != INT32 or profile.accepts(g)]
    for dtype, z in itertools.product(profile.dtypes, (0, 5, -3, 4097, 2**24 + 1, -(2**24) - 3)):
        t = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
        for scale in (0.1, 0.75, 3.0):
            s = np.asarray(scale, t if profile.scale_dtype == "input" else F32)
            zero = -z if profile.model.sign == "q+o" else z
            with np.errstate(all="ignore"):
                around = (hostile().astype(F64) - (z if abs(z) > 100 else 0) * float(s)).astype(t)
                x = np.concatenate([hostile().astype(t), around])
            rows += [(x, s, np.asarray(zero), grid) for grid in grids]
    if profile.parameters[0] == "amax":  # ties of x * (qmax / amax), exact ones with amax = qmax
        ties = np.arange(-9, 9) + 0.5
        for amax, grid in itertools.product((0.1, 7.0, 5.3), (Grid(-8, 7), Grid(-7, 7))):
            centre = (ties * float(F32.type(amax)) / grid.qmax).astype(F32)
            x = np.concatenate([centre, np.nextafter(centre, F32.type(9)), np.nextafter(centre, F32.type(-9))])
            rows.append((x, np.asarray(amax, F32), np.asarray(0), grid))
    return rows


@pytest.mark.parametrize(
    "profile", [p for p in PROFILES.values() if p.operations and "@" not in p.name], ids=lambda p: p.name
)
def test_one_field_changed_shows_in_a_result(profile: Profile) -> None:
    """A documented profile against models one field away: this is what the suite's mutants rest on."""
    rows = corpus(profile)
    undetected = set()
    for field, value in ALTERNATIVES:
        model = replace(profile.model, **{field: value})
        if field == "inverse":  # documents have no 1/s
            continue
        if model != profile.model and not any(differs(profile, model, row) for row in rows):
            undetected.add((field, value))
    # Ends that are rounded show where codes are stored, and in a grid that has such ends.
    stored = profile.accepts(INT32) and profile.codes == "integer"
    kept = set() if stored else {("ends", "rounded")}
    kept |= set() if "fake_quantize" in profile.operations else {("returned", "difference")}
    assert undetected == INDISTINGUISHABLE[profile.name] | kept


def differs(profile: Profile, model: EvaluationModel, row: tuple[np.ndarray, np.ndarray, np.ndarray, Grid]) -> bool:
    x, s, z, grid = row
    wide = compute_dtype(model, x.dtype, s.dtype, grid) == F64
    if model.form == "fused" and (model.product == "float64" or wide):
        return False
    if model.zero_point == "fused" and wide:
        return False
    other, c = replace(profile, model=model), np.array([-3000, -8, -1, 0, 1, 7, 3000, np.nan, -0.0])
    for operation in profile.operations:
        given = (c, s, z, grid, x.dtype) if operation == "dequantize" else (x, s, z, grid)
        if not same(getattr(profile, operation)(*given), getattr(other, operation)(*given)).all():
            return True
    return False
