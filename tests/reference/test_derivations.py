"""Three derivations of each documented formula agree bit for bit: transcription, evaluation model, exact oracle.

On 8-bit float formats over every input; in wider formats at every code boundary and its neighbours, where the oracle
sees some: ``test_code_boundaries.py`` has it see all of float32.
"""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import Grid, exact
from halfeven.reference import model as evaluation
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES
from halfeven.reference.systems.aimet import affine

# A version of functions alone computes the operations as its document says.
OF_THEIR_OWN = [
    p for p in PROFILES.values() if p.numpy and ("@" not in p.name or p.model != PROFILES[p.name.split("@")[0]].model)
]
DOCUMENTED = [p for p in PROFILES.values() if p.transcriptions and "@" not in p.name]
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


ORACLE = 31  # one scale of so many, and another few of them for each profile


@pytest.mark.parametrize("profile", DOCUMENTED, ids=lambda p: p.name)
@pytest.mark.parametrize("toy", TOY)
def test_every_input_and_every_scale_of_a_toy_format(profile: Profile, toy: str) -> None:
    dtype = TOY[toy]
    x = every_value(dtype)
    scales = in_domain(profile, every_value(dtype))
    grids = [g for g in GRIDS if profile.parameters[0] != "amax" or g.qmin < 0 < g.qmax]
    # Every scale meets every x; the grids and zero points go round, so that each meets many scales.
    cases = [(g, z) for g in grids for z in zeros_for(profile, g)]
    shift = DOCUMENTED.index(profile)
    compared = 0
    for i, s in enumerate(scales):
        grid, z = cases[(7 * i) % len(cases)]
        own = i % 3 or profile.scale_dtype == "input"
        s_array = np.asarray(s).astype(dtype if own else np.float32)
        compared += compare_with_model(profile, x, s_array, z, grid)
        if (i + shift) % ORACLE == 0:
            compared += compare_with_oracle(profile, x, s_array, z, grid)
    asked = sum((i + shift) % ORACLE == 0 for i in range(len(scales)))
    assert asked >= 4
    assert compared == len(profile.operations) * len(x) * (len(scales) + asked)


def document(
    profile: Profile, operation: str, x: np.ndarray, s: np.ndarray, zero: np.ndarray, grid: Grid
) -> np.ndarray:
    """The transcription's answer; for dequantize ``x`` is taken for codes."""
    if operation == "dequantize":
        return profile.dequantize(x, s, zero, grid, x.dtype)
    return getattr(profile, operation)(x, s, zero, grid)


def compare(profile: Profile, name: str, x: np.ndarray, s: np.ndarray, z: int, grid: Grid, answers: dict) -> int:
    """The transcription against another derivation's answers by operation; the number of points compared."""
    points = 0
    for operation, answer in answers.items():
        own = document(profile, operation, x, s, zero_array(profile, z), grid)
        ok = same(own, answer)
        i = int(np.argmin(ok))
        assert ok.all(), (
            f"{profile.name} {operation} {x.dtype.name} {grid} x={float(x[i])!r} scale={float(s)!r} zero={z}: "
            f"transcription {float(own[i])!r}, {name} {float(np.asarray(answer)[i])!r}"
        )
        points += ok.size
    return points


def narrowed(profile: Profile, x: np.dtype) -> bool:
    """Whether the document rounds codes and scale to a narrow input's dtype before they divide; the model does not."""
    return profile.parameters[0] == "amax" and x != np.float32


def compare_with_model(profile: Profile, x: np.ndarray, s: np.ndarray, z: int, grid: Grid) -> int:
    return compare(
        profile, "model", x, s, z, grid, {o: modelled(profile, o, x, s, z, grid) for o in profile.operations}
    )


def modelled(profile: Profile, operation: str, x: np.ndarray, s: np.ndarray, z: object, grid: Grid) -> np.ndarray:
    zero, scale = zero_array(profile, z), profile.model_scale(s, grid)
    if operation == "dequantize":
        return evaluation.dequantize(profile.model, x, scale, zero, x.dtype)
    if operation == "fake_quantize" and not narrowed(profile, x.dtype):
        return evaluation.fake_quantize(profile.model, x, scale, zero, grid)
    codes = evaluation.quantize(profile.model, x, scale, zero, grid)
    if operation == "fake_quantize":
        return evaluation.dequantize(profile.model, codes, scale, zero, x.dtype)
    with np.errstate(over="ignore"):
        return codes.astype(x.dtype) if profile.codes == "input" else codes


def compare_with_oracle(profile: Profile, x: np.ndarray, s: np.ndarray, z: int, grid: Grid) -> int:
    answers = {o: [oracle(profile, o, float(v), x.dtype, s, z, grid) for v in x] for o in profile.operations}
    return compare(profile, "exact", x, s, z, grid, {o: np.array(a) for o, a in answers.items()})


def oracle(profile: Profile, operation: str, x: float, dtype: np.dtype, s: np.ndarray, z: int, grid: Grid) -> float:
    model, form = profile.model, exact.FORMATS[dtype.name]
    scale_form = exact.FORMATS["float32" if profile.parameters[0] == "amax" else s.dtype.name]
    scale = exact_scale(profile, float(s), grid)
    if operation == "dequantize":
        return exact.dequantize(model, x, scale, z, form, scale_form)
    if operation == "fake_quantize" and not narrowed(profile, dtype):
        return exact.fake_quantize(model, x, scale, z, grid, form, scale_form)
    code = exact.quantize(model, x, scale, z, grid, form, scale_form)
    if operation == "fake_quantize":
        return exact.dequantize(model, code, scale, z, form, scale_form)
    return exact.round_value(code, form) if profile.codes == "input" else code


def boundaries(s: np.ndarray, z: np.ndarray, grid: Grid, dtype: np.dtype, ulps: int = 3) -> np.ndarray:
    """Rows of x, one per parameter set: every half step from two below the grid to two above, and its neighbours."""
    half = np.arange(grid.qmin - 2, grid.qmax + 3)[None] - z[:, None] + 0.5
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
        zero, column = zero_array(profile, z)[:, None], s[:, None]
        codes = np.arange(grid.qmin, grid.qmax + 1).astype(WIDE[dtype])[None] + np.zeros((len(s), 1), WIDE[dtype])
        for operation in profile.operations:
            given = codes if operation == "dequantize" else x
            answer = document(profile, operation, given, column, zero, grid)
            assert answer.shape == given.shape
            assert operation == "quantize" or answer.dtype == WIDE[dtype]
            assert same(answer, modelled(profile, operation, given, column, z[:, None], grid)).all()
        for row in rng.integers(len(s), size=2):  # the oracle is slow: some of some rows of each grid
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


@pytest.mark.parametrize("profile", OF_THEIR_OWN, ids=lambda p: p.name)
def test_numpy_expression_gives_what_the_profile_gives(profile: Profile) -> None:
    """The one-line expressions of the scripts, run as they stand, per tensor in float32."""
    rng = np.random.default_rng(5)
    for grid in (Grid(-8, 7), Grid(-127, 127)):
        for _ in range(40):
            s = np.float32(2.0 ** rng.uniform(-12, 4))
            z = int(rng.integers(grid.qmin, grid.qmax + 1)) if len(profile.parameters) > 1 else 0
            step = 1 / float(profile.model_scale(np.asarray(s), grid)) if profile.parameters[0] == "amax" else float(s)
            centre = -z if profile.parameters[-1] == "offset" else z
            x = boundaries(np.array([step]), np.array([centre]), grid, np.dtype(np.float32))[0]
            if profile.name == "onnx@reference-1.23":
                x = x[np.isfinite(x)]  # its cast to int32 is not in the expression
            if profile.name == "onnx@onnxruntime-1.31":
                x = x[~np.isnan(x)]
            codes = np.arange(grid.qmin, grid.qmax + 1).astype(np.int32)
            zero = zero_array(profile, z)
            scope = {"np": np, "qmin": grid.qmin, "qmax": grid.qmax, "x": x, "q": codes, profile.parameters[0]: s}
            scope |= dict.fromkeys(profile.parameters[1:], zero)
            for operation in profile.operations:
                with np.errstate(all="ignore"):
                    got = eval(profile.numpy[operation], dict(scope))
                if operation == "dequantize":
                    expected = profile.dequantize(codes, np.asarray(s), zero, grid, np.dtype(np.float32))
                else:
                    expected = getattr(profile, operation)(x, np.asarray(s), zero, grid)
                ok = same(got, expected) if operation != "quantize" or profile.codes == "input" else got == expected
                ok |= np.isnan(got) & np.isnan(expected)
                assert ok.all(), (
                    f"{operation}: x={x[~ok][:1]!r} scale={s!r} zero={z}: {got[~ok][:1]}, {expected[~ok][:1]}"
                )
                assert operation == "quantize" or np.asarray(got).dtype == np.float32


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
