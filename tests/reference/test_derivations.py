"""Three derivations of each documented formula agree bit for bit: transcription, evaluation model, exact oracle.

On 8-bit float formats over every input; in wider formats at every code boundary and its neighbours.
"""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import Grid, exact
from halfeven.reference import model as evaluation
from halfeven.reference.profiles import PROFILES, Profile

DOCUMENTED = [p for p in PROFILES.values() if p.transcriptions]
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


def forms(x: np.dtype, scale: np.dtype) -> tuple[exact.Format, exact.Format]:
    return exact.FORMATS[x.name], exact.FORMATS[scale.name]


@pytest.mark.parametrize("profile", DOCUMENTED, ids=lambda p: p.name)
@pytest.mark.parametrize("toy", TOY)
def test_every_input_and_every_scale_of_a_toy_format(profile: Profile, toy: str) -> None:
    dtype = TOY[toy]
    x = every_value(dtype)
    scales = in_domain(profile, every_value(dtype))
    grids = [g for g in GRIDS if profile.parameters[0] != "amax" or g.qmin < 0 < g.qmax]
    # Every scale meets every x; the grids and zero points go round, so that each meets many scales.
    cases = [(g, z) for g in grids for z in zeros_for(profile, g)]
    compared = 0
    for i, s in enumerate(scales):
        grid, z = cases[(7 * i) % len(cases)]
        own = i % 3 or profile.scale_dtype == "input"
        # The oracle is slow: each profile shows it another few of the scales.
        oracle = i % 48 == 3 * DOCUMENTED.index(profile)
        compared += compare_all(profile, x, np.asarray(s).astype(dtype if own else np.float32), z, grid, oracle=oracle)
    assert compared == len(profile.operations) * len(x) * len(scales)


def compare_all(profile: Profile, x: np.ndarray, s: np.ndarray, z: int, grid: Grid, *, oracle: bool = True) -> int:
    """Compare the three on each operation that the profile has; the number of points compared."""
    asked = x if oracle else x[:0]
    zero = zero_array(profile, z)
    model, form, scale_form = profile.model, *forms(x.dtype, s.dtype)
    scale = exact_scale(profile, float(s), grid)
    if profile.parameters[0] == "amax":
        scale_form = exact.FORMATS["float32"]
    points = 0
    for operation in profile.operations:
        if operation == "quantize":
            document = profile.quantize(x, s, zero, grid)
            modelled = evaluation.quantize(model, x, profile.model_scale(s, grid), zero, grid)
            answers = [exact.quantize(model, float(v), scale, z, grid, form, scale_form) for v in asked]
            if profile.codes == "input":
                modelled = modelled.astype(x.dtype)
                answers = [exact.round_value(v, form) for v in answers]
        elif operation == "dequantize":
            document = profile.dequantize(x, s, zero, grid, x.dtype)
            modelled = evaluation.dequantize(model, x, s, zero, x.dtype)
            answers = [exact.dequantize(model, float(v), scale, z, form, scale_form) for v in asked]
        elif profile.parameters[0] == "amax" and x.dtype != np.float32:
            document, modelled = profile.fake_quantize(x, s, zero, grid), None
            answers = [half_of_codes_over_scale(profile, float(v), scale, grid, form) for v in asked]
        else:
            document = profile.fake_quantize(x, s, zero, grid)
            modelled = evaluation.fake_quantize(model, x, profile.model_scale(s, grid), zero, grid)
            answers = [exact.fake_quantize(model, float(v), scale, z, grid, form, scale_form) for v in asked]
        assert modelled is not None or oracle or profile.parameters[0] == "amax"
        for name, other in (("model", modelled), ("exact", np.array(answers) if oracle else None)):
            if other is None:
                continue
            ok = same(document, other)
            i = int(np.argmin(ok))
            assert ok.all(), (
                f"{profile.name} {operation} {x.dtype.name} {grid} x={float(x[i])!r} scale={float(s)!r} zero={z}: "
                f"transcription {float(document[i])!r}, {name} {float(np.asarray(other)[i])!r}"
            )
        points += len(x)
    return points


def half_of_codes_over_scale(profile: Profile, x: float, scale: float, grid: Grid, form: exact.Format) -> float:
    """What the document adds in 16-bit floats: codes and scale are rounded to the input's dtype before they divide."""
    wide = exact.FORMATS["float32"]
    code = exact.round_value(exact.quantize(profile.model, x, scale, 0.0, grid, form, wide), form)
    return exact.divide(code, exact.round_value(scale, form), form)


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


@pytest.mark.parametrize("profile", DOCUMENTED, ids=lambda p: p.name)
@pytest.mark.parametrize("dtype", WIDE)
def test_boundaries(profile: Profile, dtype: str) -> None:
    if dtype not in profile.dtypes:
        assert (profile.name, dtype) in NOT_DOCUMENTED
        return
    for grid, s, z, x in parameter_sets(profile, WIDE[dtype], seed=len(dtype)):
        zero, column = zero_array(profile, z)[:, None], s[:, None]
        document = profile.quantize(x, column, zero, grid) if "quantize" in profile.operations else None
        scale = profile.model_scale(column, grid)
        if document is not None:
            modelled = evaluation.quantize(profile.model, x, scale, zero, grid)
            assert same(document, modelled.astype(x.dtype) if profile.codes == "input" else modelled).all()
        if "fake_quantize" in profile.operations and (profile.parameters[0] != "amax" or dtype == "float32"):
            fake = profile.fake_quantize(x, column, zero, grid)
            assert same(fake, evaluation.fake_quantize(profile.model, x, scale, zero, grid)).all()
        if "dequantize" in profile.operations:
            codes = np.arange(grid.qmin, grid.qmax + 1).astype(np.float64)[None] + np.zeros((len(s), 1))
            reals = profile.dequantize(codes, column, zero, grid, WIDE[dtype])
            assert reals.dtype == WIDE[dtype]
            assert same(reals, evaluation.dequantize(profile.model, codes, column, zero, WIDE[dtype])).all()
        rng = np.random.default_rng(1)
        for _ in range(2):  # the oracle is slow: a few rows of each grid, and of each row some
            row = int(rng.integers(len(s)))
            some = x[row, rng.permutation(x.shape[1])[:40]]
            compare_all(profile, np.concatenate([some, x[row, -len(SPECIALS) :]]), s[row], int(z[row]), grid)


NOT_DOCUMENTED = {
    *((name, "float64") for name in ("torchao", "pytorch-quantization", "onnx")),
    ("pytorch-quantization", "bfloat16"),
    *(("torch.quantized_decomposed", t) for t in ("float16", "float64")),
    *((name, t) for name in ("torch.fake_quantize", "torch.quantize") for t in ("float16", "bfloat16", "float64")),
}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
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
