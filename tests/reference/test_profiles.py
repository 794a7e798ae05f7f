"""The profiles and the catalogue as data, the documented signatures, and the documents' own examples."""

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import EvaluationModel, Grid
from halfeven.reference.catalogue import FORMULAS, AsComputed, Formula, Real, formula
from halfeven.reference.former import FORMER
from halfeven.reference.profile import OPERATIONS, Profile
from halfeven.reference.systems import PROFILES


def named(system: str, **symbols: str) -> SimpleNamespace:
    """Documented functions by short names."""
    return SimpleNamespace(**{name: FORMULAS[f"{system}/{symbol}"].function for name, symbol in symbols.items()})


aimet = named(
    "aimet",
    quantize="affine.quantize",
    dequantize="affine.dequantize",
    quantize_dequantize="affine.quantize_dequantize",
)
onnx = named("onnx", quantize_linear="QuantizeLinear", dequantize_linear="DequantizeLinear")
pytorch_quantization = named("pytorch-quantization", tensor_quant="tensor_quant", fake_tensor_quant="fake_tensor_quant")
torch = named(
    "torch",
    fake_per_tensor="fake_quantize_per_tensor_affine",
    fake_per_channel="fake_quantize_per_channel_affine",
    per_tensor="quantize_per_tensor",
    per_channel="quantize_per_channel",
)
decomposed = named(
    "torch",
    quantize_per_tensor="quantized_decomposed.quantize_per_tensor",
    dequantize_per_tensor="quantized_decomposed.dequantize_per_tensor",
    quantize_per_channel="quantized_decomposed.quantize_per_channel",
    dequantize_per_channel="quantized_decomposed.dequantize_per_channel",
)
torchao = named(
    "torchao",
    quantize_affine="quantize_affine",
    dequantize_affine="dequantize_affine",
    fake_quantize_affine="fake_quantize_affine",
)

F32 = np.float32


def test_reference_imports_numpy_and_ml_dtypes_alone() -> None:
    code = (
        "import sys, numpy, ml_dtypes; before = set(sys.modules); import halfeven.reference.exact; "
        "import halfeven.reference.systems; print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    out = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {m for m in out.split() if not m.startswith("__editable__")}
    assert "halfeven" in loaded
    assert loaded - {"halfeven", "ml_dtypes", "numpy"} <= sys.stdlib_module_names
    assert "torch" not in loaded


@pytest.mark.parametrize("profile", [p for p in PROFILES.values() if p.operations], ids=lambda p: p.name)
def test_a_profile_is_complete(profile: Profile) -> None:
    assert PROFILES[profile.name] is profile
    assert profile.title
    assert profile.source
    assert profile.operations
    assert set(profile.operations) <= set(OPERATIONS)
    assert profile.parameters in (("scale", "zero_point"), ("scale", "offset"), ("amax",))
    if "@" in profile.name:
        base, _, version = profile.name.partition("@")
        own = profile.model != PROFILES[base].model
        assert own or any(f.endswith(f"@{version}") for f in FORMULAS)


def test_accepts() -> None:
    assert PROFILES["aimet"].accepts(Grid(-(2**31), 2**31 - 1))
    assert not PROFILES["aimet"].accepts(Grid(0, 2**33 - 1))
    assert PROFILES["onnx"].accepts(Grid(0, 3))
    assert not PROFILES["onnx"].accepts(Grid(-127, 127))
    assert PROFILES["pytorch-quantization"].accepts(Grid(-127, 127))
    assert not PROFILES["pytorch-quantization"].accepts(Grid(0, 255))


def unsound(equation: str, *, rounds: bool) -> list[str]:
    """What is amiss with an equation: braces, its sides, and whether it rounds and limits where its function does."""
    depth = lowest = 0
    for mark in re.findall(r"(?<!\\)[{}]", equation):
        depth += 1 if mark == "{" else -1
        lowest = min(lowest, depth)
    found = [] if depth == lowest == 0 else ["braces"]
    if not all(re.search(r"[\w}]", side) for side in equation.split("=", 1)) or "=" not in equation:
        found.append("sides")
    # Some documents name the functions that round and limit.
    named = r"\\mathrm\{(round|float\\_to\\_int|quantize)\}"
    rounding = bool(re.search(rf"\\lceil.*?\\rfloor|nearby\\_int|{named}", equation))
    limit = bool(re.search(r"clamp|saturate|\\mathrm\{quantize\}|\\min\(q_\{max\}, \\max\(q_\{min\}", equation))
    return found + ["rounding"] * (rounding != rounds) + ["clamp"] * (limit != rounds)


VIEWS = [f for f in FORMULAS.values() if f.affine and not f.version]


@pytest.mark.parametrize("record", VIEWS, ids=lambda f: f.id)
def test_a_formula_that_quantizes_on_a_grid_is_an_operation_of_a_profile(record: Formula) -> None:
    assert record.affine is not None
    profile = PROFILES[record.affine.profile]
    assert record.affine.operation in profile.operations
    assert record.system == profile.name.partition(".")[0]
    assert unsound(record.equation, rounds=record.affine.operation != "dequantize") == []
    assert isinstance(record.basis, Real | AsComputed)
    assert record.source
    assert record.function.__doc__


def test_every_operation_is_a_formula_or_composed_of_two() -> None:
    found = {(f.affine.profile, f.affine.operation) for f in VIEWS if f.affine}
    every = {(p.name, o) for p in PROFILES.values() if "@" not in p.name for o in p.operations}
    assert every - found == {("onnx", "fake_quantize")}


def test_an_id_stands_once_and_those_of_the_first_edition_are_found() -> None:
    assert [name for name, record in FORMULAS.items() if record.id != name] == []
    with pytest.raises(ValueError, match="id='onnx/QuantizeLinear' is taken"):
        formula("onnx/QuantizeLinear", equation="", basis=Real(), source="")(lambda: None)
    with pytest.raises(ValueError, match="give system/symbol"):
        formula("onnx.Anything", equation="", basis=Real(), source="")(lambda: None)
    for former, today in (
        ("onnx.quantize_linear", "onnx/QuantizeLinear"),
        ("onnx.QuantizeLinear", "onnx/QuantizeLinear"),
        ("onnx.quantize_linear@onnxruntime-1.31", "onnx/QuantizeLinear@onnxruntime-1.31"),
        ("torch.observers.calculate_qparams", "torch/MinMaxObserver.calculate_qparams"),
        ("compressed_tensors.calculate_qparams", "compressed-tensors/calculate_qparams"),
        ("torchao.quant_primitives.quantize_affine@0.18", "torchao/quantize_affine@0.18"),
        ("number-formats.encode", "number-formats/encode"),
        ("torch.quantize", "torch/quantize_per_tensor"),
    ):
        assert FORMULAS[former] is FORMULAS[today]
        assert former not in set(FORMULAS)
    assert set(FORMER.values()) <= set(FORMULAS)
    assert "onnx.quantise" not in FORMULAS
    assert "torchao/quantize_affine@0.1" not in FORMULAS


def test_the_former_home_of_formulas_says_what_to_write() -> None:
    with pytest.raises(ImportError, match=r"from halfeven\.reference import FORMULAS"):
        importlib.import_module("halfeven.reference.profiles.torchao.qparams")


@pytest.mark.parametrize(
    ("equation", "rounds", "found"),
    [
        (r"q = \mathrm{clamp}(\lceil x / s \rfloor, q_{min}, q_{max})", True, []),
        (r"q = \mathrm{clamp(\lceil x / s \rfloor, q_{min}, q_{max})", True, ["braces"]),
        (r"q = }x{", False, ["braces"]),
        ("(q - z) * s", False, ["sides"]),
        (r"\hat x =", False, ["sides"]),
        (r"q = \mathrm{clamp}(x / s)", True, ["rounding"]),
        (r"q = \lceil x / s \rfloor", True, ["clamp"]),
        (r"\hat x = \mathrm{clamp}(q) * s", False, ["clamp"]),
    ],
)
def test_equation_rule_finds_what_breaks_it(equation: str, rounds: bool, found: list[str]) -> None:
    assert unsound(equation, rounds=rounds) == found


def test_a_profile_evaluates_its_model() -> None:
    bare = replace(PROFILES["torchao"], model=EvaluationModel(rounding="ceil"))
    x, s, z = np.array([0.2], F32), np.asarray(1, F32), np.asarray(1)
    assert bare.quantize(x, s, z, Grid(0, 9)).tolist() == [2]
    assert bare.fake_quantize(x, s, z, Grid(0, 9)).tolist() == [1]
    assert bare.dequantize(np.array([4]), s, z, Grid(0, 9), np.dtype(F32)).tolist() == [3]


AIMET_EXAMPLE = [0, 0, 0, 0, 0, 0, -0.0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 12, 13, 13, 14, *[15] * 6]


def test_the_worked_example_of_the_aimet_document() -> None:
    # The document steps in float64 and holds float32: its seventh value prints as -1.1921e-08.
    x = (-0.3 + 0.05 * np.arange(32)).astype(F32)
    x[6] = F32(-1.1921e-08)
    scale, offset = np.asarray(1 / 15, F32), np.asarray(0, F32)
    for q in (
        aimet.quantize(x, scale, offset, bitwidth=4),
        aimet.quantize(x, scale, offset, num_steps=15),
        aimet.quantize(x, scale, offset, qmin=0, qmax=15),
    ):
        assert q.dtype == F32
        assert q.tolist() == AIMET_EXAMPLE
        assert np.flatnonzero(np.signbit(q)).tolist() == [6]


def test_aimet_overloads_and_block_size() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(0, 4, (3, 4, 6)).astype(F32)
    scale, offset = rng.uniform(0.1, 1, (2, 3)).astype(F32), rng.integers(-3, 4, (2, 3)).astype(F32)
    signed = aimet.quantize(x, scale, offset, 4, True, (2, 2))
    assert (signed == aimet.quantize(x, scale, offset, num_steps=15, signed=True, block_size=(-1, -1))).all()
    assert (signed == aimet.quantize(x, scale, offset, qmin=-8, qmax=7, block_size=(2, -1))).all()
    for a, i, j in np.ndindex(x.shape):
        s, o = scale[i // 2, j // 2], offset[i // 2, j // 2]
        assert signed[a, i, j] == min(max(np.rint(x[a, i, j] / s) - o, -8), 7)
    reals = aimet.quantize_dequantize(x, scale, offset, 4, True, (2, 2))
    assert (reals == aimet.dequantize(signed, scale, offset, (2, 2))).all()
    assert aimet.quantize(x, scale[:1, :1], offset[:1, :1], 8).shape == x.shape


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x, s: aimet.quantize(x, s, s), TypeError, "bitwidth=None, num_steps=None, qmin=None, qmax=None"),
        (lambda x, s: aimet.quantize(x, s, s, 4, num_steps=15), TypeError, "bitwidth=4, num_steps=15"),
        (lambda x, s: aimet.quantize(x, s, s, qmin=0), TypeError, "qmin=0, qmax=None"),
        (lambda x, s: aimet.quantize(x, s, s, 4.5), TypeError, "bitwidth=4.5"),
        (lambda x, s: aimet.quantize(x, s, s, 4, block_size=(4,)), RuntimeError, r"block_size=\(4,\)"),
        (lambda x, s: aimet.quantize(x, s[None], s[None], 4, block_size=(3,)), RuntimeError, r"block_size=\(3,\)"),
        (lambda x, s: aimet.quantize(x, s[None, None], s, 4, block_size=(1, 4)), IndexError, "tensor of shape"),
        (lambda x, s: aimet.dequantize(x.astype(np.int8), s, s), TypeError, "tensor of dtype int8 is not accepted"),
        (lambda x, s: torchao.quantize_affine(x, (4,), s, s, np.float32), ValueError, "dtype='float32'"),
        (lambda x, s: torchao.quantize_affine(x, (4,), s, s, np.int8, -129), AssertionError, "quant_min=-129"),
        (lambda x, s: torchao.quantize_affine(x, (2,), s, s, np.int8), RuntimeError, r"scale of shape \(\)"),
        (lambda x, s: torchao.quantize_affine(x * np.nan, (4,), s, s, np.int8), ValueError, "NaN among the codes"),
        (lambda x, s: pytorch_quantization.tensor_quant(x, -s), ValueError, "amax=-1.0 is not accepted"),
        (lambda x, s: pytorch_quantization.tensor_quant(x, s, unsigned=True), TypeError, "value -1.0 .*unsigned=True"),
        (
            lambda x, s: pytorch_quantization.tensor_quant(x.astype(np.float16), s * F32(1e-3)),
            ValueError,
            "scale is too large for float16",
        ),
        (lambda x, s: onnx.quantize_linear(x, s.repeat(3)), ValueError, r"shape \(3,\) are not accepted"),
        (lambda x, s: onnx.quantize_linear(x, s.repeat(3), axis=0), ValueError, "axis=0, block_size=None"),
        (onnx.dequantize_linear, TypeError, "code dtype 'float32' is not accepted"),
        (lambda x, s: torch.per_tensor(x, s, 0, "qint32"), ValueError, "dtype='qint32'"),
    ],
)
def test_documented_signatures_refuse_by_name(call: object, error: type[Exception], said: str) -> None:
    x, s = np.array([-1, 0, 1, 2], F32), np.asarray(1, F32)
    with np.errstate(invalid="ignore"), pytest.raises(error, match=said):
        call(x, s)


def test_torchao_signatures() -> None:
    x = np.array([[0.5, 1.5, 2.5], [-0.5, 300, -300]], F32)
    s, z = np.array([1, 2], F32), np.array([1, 0])
    q = torchao.quantize_affine(x, (1, 3), s, z, np.uint8, 0, 15)
    assert q.dtype == np.uint8
    assert q.tolist() == [[1, 3, 3], [0, 15, 0]]
    assert torchao.dequantize_affine(q, (1, 3), s, z, np.uint8).tolist() == [[0, 2, 2], [0, 30, 0]]
    half = torchao.dequantize_affine(q, (1, 3), s, z, np.uint8, output_dtype=ml_dtypes.bfloat16)
    assert half.dtype == ml_dtypes.bfloat16
    assert torchao.fake_quantize_affine(x, (1, 3), s, z, np.uint8, 0, 15).tolist() == [[0, 2, 2], [0, 30, 0]]
    assert torchao.quantize_affine(x, (1, 3), s, z, ml_dtypes.int4).tolist() == [[1, 3, 3], [0, 7, -8]]


def test_pytorch_quantization_signatures() -> None:
    x = np.array([0.5, 1.5, 2.5, -127.5, -129, np.inf, np.nan, -0.0], F32)
    q, scale = pytorch_quantization.tensor_quant(x, np.asarray(127, F32))
    assert np.array_equal(q, np.array([0, 2, 2, -127, -127, 127, np.nan, 0]), equal_nan=True)
    assert np.signbit(q[-1])
    assert scale == 1
    full, _ = pytorch_quantization.tensor_quant(x, np.asarray(127, F32), narrow_range=False)
    assert full[4] == -128
    unsigned, _ = pytorch_quantization.tensor_quant(np.array([0.0, 300], F32), np.asarray(255, F32), unsigned=True)
    assert unsigned.tolist() == [0, 255]
    # The float32 quotient q / s, not q * (amax / 127): 13.6 % of amax do not come back.
    amax = np.asarray(float.fromhex("0x1.d82e6p-14"), F32)
    assert float(pytorch_quantization.fake_tensor_quant(amax[None], amax)[0]).hex() == "0x1.d82e620000000p-14"
    half = pytorch_quantization.fake_tensor_quant(np.array([1e-3], np.float16), np.asarray(1e-3, np.float16))
    assert half.dtype == np.float16
    assert half.tolist() == [0]  # 127 / amax is beyond float16, and 127 / inf is 0
    per_channel, scales = pytorch_quantization.tensor_quant(np.ones((2, 2), F32), np.array([[1], [0]], F32))
    assert per_channel.tolist() == [[127, 127], [0, 0]]
    assert scales.tolist() == [[127], [1]]


def test_onnx_operators() -> None:
    x = np.arange(12, dtype=F32).reshape(2, 6) - 4
    s = np.array([[1, 2], [0.5, 1]], F32)
    z = np.array([[0, 1], [2, 3]], np.int8)
    q = onnx.quantize_linear(x, s, z, axis=1, block_size=4)  # the last block is short
    assert q.dtype == np.int8
    assert q.tolist() == [[-4, -3, -2, -1, 1, 1], [6, 8, 10, 12, 9, 10]]
    assert onnx.dequantize_linear(q, s, z, axis=1, block_size=4).tolist() == [
        [-4, -3, -2, -1, 0, 0],
        [2, 3, 4, 5, 6, 7],
    ]
    assert onnx.quantize_linear(x, np.asarray(1, F32)).dtype == np.uint8
    axis = onnx.quantize_linear(x, np.array([1, 2], F32), np.array([0, 5], np.uint8), axis=0)
    assert axis.tolist() == [[0, 0, 0, 0, 0, 1], [6, 7, 7, 7, 8, 9]]
    wide = onnx.quantize_linear(np.array([3], np.float16), np.asarray(1, np.float16), np.asarray(65530, np.uint16))
    assert wide.tolist() == [65533]
    assert onnx.dequantize_linear(wide, np.asarray(1, np.float16), np.asarray(65530, np.uint16)).tolist() == [3]


def test_torch_signatures() -> None:
    x = np.array([[0.5, 1.5], [2.5, -9]], F32)
    fake = torch.fake_per_tensor(x, 1.0, 1, 0, 3)
    assert fake.tolist() == [[0, 2], [2, -1]]
    by_column = torch.fake_per_channel(x, np.array([1, 2], F32), np.array([1, 0]), 1, -2, 3)
    assert by_column.tolist() == [[0, 2], [2, -4]]
    assert torch.per_tensor(x, 1.0, 1, "quint8").tolist() == [[2, 2], [4, 0]]
    by_row = torch.per_channel(x, np.array([1, 2], F32), np.array([1, 0]), 0, "qint8")
    assert by_row.dtype == np.int8
    assert by_row.tolist() == [[2, 2], [1, -4]]
    q = decomposed.quantize_per_tensor(x, 1.0, 1, 0, 255, np.uint8)
    assert q.tolist() == [[1, 3], [3, 0]]
    assert decomposed.dequantize_per_tensor(q, 1.0, 1, 0, 255).tolist() == [[0, 2], [2, -1]]
    s, z = np.array([1, 2], F32), np.array([1, 0])
    columns = decomposed.quantize_per_channel(x, s, z, -1, -8, 7, np.int8)
    assert columns.tolist() == [[1, 1], [3, -4]]
    assert decomposed.dequantize_per_channel(columns, s, z, -1, -8, 7).tolist() == [[0, 2], [2, -8]]
    with pytest.raises(ValueError, match=r"axis 1 of shape \(2, 2\) needs \(2,\)"):
        decomposed.quantize_per_channel(x, np.ones(3, F32), np.ones(3), 1, -8, 7, np.int8)
