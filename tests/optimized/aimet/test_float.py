"""The float quantizer: exact against the formulas, on every number of 16 bits, and as a module."""

import copy
import math
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from asking import ask
from torch import Tensor

from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.systems import call_sets
from halfeven.optimized.aimet import DequantizedTensor
from halfeven.optimized.aimet.encoding_analyzer import PercentileEncodingAnalyzer
from halfeven.optimized.aimet.float import FloatEncoding, FloatQuantizeDequantize, QuantizeDequantize, cast, float_cast
from halfeven.optimized.aimet.float.formats import FloatFormat
from halfeven.reference.catalogue import FORMULAS

CALLS = call_sets()


QDQ = "aimet/float_quantize_dequantize"
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TORCH = (
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
)
E2M1 = {"exponent_bits": 2, "mantissa_bits": 1, "finite": True}


def scale_of(maxval: Tensor, dtype: str | None = None, **bits: Any) -> Tensor:
    q = FloatQuantizeDequantize(**bits, dtype=dtype and getattr(torch, dtype), shape=tuple(maxval.shape))
    q.maxval.copy_(maxval)
    return q.get_scale()


def quantized(tensor: Tensor, scale: Tensor, block_size: Any = None, dtype: str | None = None, **bits: Any) -> Tensor:
    own = FloatQuantizeDequantize(**bits, dtype=dtype and getattr(torch, dtype)).get_encodings()
    widths = own.mantissa_bits, own.exponent_bits, own.finite, own.unsigned_zero
    return FloatEncoding(*widths, scale, block_size).quantize_dequantize(tensor)


ASKED = {QDQ: quantized, "aimet/float_scale": scale_of, "aimet/float_cast": float_cast}


@pytest.mark.parametrize(("formula", "name"), [key for key in CALLS if key[0] in ASKED], ids=lambda part: part)
def test_every_documented_call_is_exact(formula: str, name: str) -> None:
    tried = 0
    for call in CALLS[formula, name].build():
        found = differences(answer_of(FORMULAS[formula].function, call), ask(ASKED[formula], call))
        assert not found.differing, found.words
        tried += found.points
    assert tried


def plain(x: Tensor) -> Tensor:
    return x.detach().as_subclass(Tensor)


def same(a: Tensor, b: Tensor) -> bool:
    """Equal to the bit; NaN are all the same."""
    a, b = plain(a), plain(b)
    a, b = (torch.where(t.isnan(), torch.nan, t).contiguous() for t in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def all_of(dtype: torch.dtype) -> Tensor:
    return torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)


@pytest.mark.parametrize("narrow", TORCH, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_every_number_of_16_bits_is_cast_as_torch_does(narrow: torch.dtype, dtype: torch.dtype) -> None:
    x = all_of(dtype)
    most = torch.finfo(narrow).max
    expected = x.float().clamp(-most, most).to(narrow).to(dtype)
    assert same(FloatQuantizeDequantize(dtype=narrow)(x), torch.where(x.isnan(), x, expected))


@pytest.mark.parametrize("bits", [(4, 3), (2, 1), (5, 1), (3, 4), (8, 3), (6, 9)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("scale", [1.0, 0.3, 2.0**-20])
def test_every_number_of_16_bits_is_cast_as_the_formula_does(
    bits: tuple[int, int], dtype: torch.dtype, scale: float
) -> None:
    x = all_of(dtype)
    held = x.view(torch.int16).numpy().view(np.float16 if dtype == torch.float16 else ml_dtypes.bfloat16)
    call = {"tensor": held, "scale": np.array(scale, np.float32), "exponent_bits": bits[0], "mantissa_bits": bits[1]}
    found = differences(answer_of(FORMULAS[QDQ].function, call), ask(quantized, call))
    assert not found.differing, found.words


@pytest.mark.parametrize(("bits", "count"), [((4, 3), 120), ((3, 2), 28), ((2, 1), 6), ((5, 2), 124)])
def test_a_format_has_the_numbers_of_ieee_and_no_other(bits: tuple[int, int], count: int) -> None:
    q = FloatQuantizeDequantize(*bits)
    most, least = q.maxval.item(), FloatFormat(*bits).least_normal * 2.0 ** -bits[1]
    x = torch.cat([torch.linspace(0, most, 50_001), torch.logspace(math.log2(least) - 2, math.log2(most), 20_000, 2)])
    found = torch.unique(plain(q(x)))
    assert len(found) == count
    assert found[1] == least
    assert torch.equal(plain(q(found)), found)


def test_wide_formats_keep_what_they_hold() -> None:
    x = (
        torch.randint(-(2**31), 2**31 - 1, (4096,), generator=torch.Generator().manual_seed(0))
        .int()
        .view(torch.float32)
    )
    x = torch.cat([x, torch.tensor([1e-45, -1e-45, 3.4e38, -0.0, 2.0**-126])])
    x = torch.where(x.isfinite(), x, 1.0)
    for bits in ((8, 23), (8, 30), (11, 52), (9, 23)):
        assert same(FloatQuantizeDequantize(*bits)(x), x)
    assert same(FloatQuantizeDequantize(11, 52)(x.double()), x.double())
    assert plain(FloatQuantizeDequantize(9, 1)(torch.tensor([1.3e-40, 2.0**-149]))).tolist() == [
        2.0**-133 * 1.5,
        2.0**-149,
    ]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (2, 1), (1, 3), (2, 3)])
def test_the_result_has_the_input_s_dtype_for_every_shape_of_the_scale(dtype: torch.dtype, shape: Any) -> None:
    x = torch.randn(2, 3).to(dtype)
    out = FloatQuantizeDequantize(dtype=torch.bfloat16, shape=shape)(x)
    assert out.dtype == dtype
    assert type(out) is DequantizedTensor
    assert out.shape == x.shape
    encoding = FloatQuantizeDequantize(4, 3, shape=shape).get_encodings()
    assert encoding.quantize(x).dtype == encoding.dequantize(x).dtype == dtype


def test_shapes_and_blocks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"scale of shape \(2, 1\)"):
        FloatQuantizeDequantize(4, 3, shape=(2, 1))(torch.ones(3))
    with pytest.raises(RuntimeError, match=r"block_size=\(4, 1\)"):
        FloatQuantizeDequantize(4, 3, shape=(2, 3), block_size=(4, 1))(torch.ones(4, 6))
    with pytest.raises(IndexError, match=r"\(2, 3\)"):
        FloatQuantizeDequantize(4, 3, shape=(2, 3), block_size=(1, 1))(torch.ones(3))
    with pytest.raises(RuntimeError, match="encoding_analyzer of shape"):
        FloatQuantizeDequantize(4, 3, shape=(2,), encoding_analyzer=PercentileEncodingAnalyzer((3,)))
    with pytest.raises(ValueError, match="float8_e5m2"):
        FloatQuantizeDequantize(4, 3)(torch.ones(2).to(torch.float8_e5m2))
    x = torch.arange(3)
    assert FloatQuantizeDequantize(4, 3)(x) is x


def test_ways_to_name_a_format() -> None:
    for given in ({}, {"exponent_bits": 4}, {"exponent_bits": 4, "mantissa_bits": 3, "dtype": torch.float16}):
        with pytest.raises(ValueError, match="is not accepted"):
            FloatQuantizeDequantize(**given)
    for bits in ((1, 2), (12, 2), (4, 0), (4, 53)):
        with pytest.raises(ValueError, match=f"exponent_bits={bits[0]}, mantissa_bits={bits[1]}"):
            FloatQuantizeDequantize(*bits)
    with pytest.raises(ValueError, match=r"torch\.float32"):
        FloatQuantizeDequantize(dtype=torch.float32)
    with pytest.raises(RuntimeError, match="finite=True"):
        FloatQuantizeDequantize(3, 2, True)
    for dtype in TORCH:
        flagged = FloatQuantizeDequantize(dtype=dtype, finite=True, unsigned_zero=True)  # documented: ignored
        assert torch.finfo(dtype).max == flagged.maxval == flagged._finfo.max
        assert FloatQuantizeDequantize(*flagged._finfo)._finfo.torch_dtype == dtype
    assert FloatQuantizeDequantize(dtype=torch.float16).is_float16()
    assert FloatQuantizeDequantize(8, 7).is_bfloat16()
    assert not FloatQuantizeDequantize(8, 7).is_float16()
    assert FloatQuantizeDequantize(4, 3).encoding_analyzer is not None
    assert FloatQuantizeDequantize(5, 10).encoding_analyzer is None
    assert issubclass(QuantizeDequantize, FloatQuantizeDequantize)


@pytest.mark.parametrize("given", [{"dtype": torch.float8_e4m3fn}, {"exponent_bits": 4, "mantissa_bits": 3}, E2M1])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_gradient_goes_straight_through_and_stops_at_the_ends(given: Any, dtype: torch.dtype) -> None:
    q = FloatQuantizeDequantize(**given)
    q.maxval.fill_(3.0)
    most = (plain(q.get_encodings().maxval)).to(dtype)
    values = [0.3, -1e-4, 0.0, 1e-30, most.item(), -most.item(), 3.5, -100.0, math.inf, -math.inf, math.nan]
    x = torch.tensor(values, dtype=dtype).requires_grad_()
    g = torch.arange(1, len(values) + 1).to(dtype) * 0.1
    q(x).backward(g)
    inside = torch.tensor([True] * 6 + [False] * 5)
    assert same(x.grad, torch.where(inside, g, torch.zeros((), dtype=dtype)))


def test_the_gradient_is_the_incoming_one_to_the_bit() -> None:
    q = FloatQuantizeDequantize(4, 3)
    q.maxval.fill_(3.0)
    x, g = torch.linspace(-3, 3, 1000).requires_grad_(), torch.linspace(-1, 2, 1000)
    q(x).backward(g)
    assert same(x.grad, g)


def test_the_gradient_of_a_scale() -> None:
    x = torch.tensor([[1.3, 100.0], [-0.2, 0.7]])
    s = torch.tensor([[0.01], [0.5]], requires_grad=True)
    g = torch.tensor([[1.0, 2.0], [4.0, 8.0]])
    encoding = FloatEncoding(1, 2, True, False, s)  # the numbers 0, .5, 1, 1.5, 2, 3, 4, 6
    encoding.quantize_dequantize(x).backward(g)
    second = 4 * (np.float32(-0.5) + np.float32(0.4)) + 8 * (np.float32(1.5) - np.float32(1.4))
    assert s.grad is not None
    assert s.grad[0, 0] == 6 + 2 * 6
    assert s.grad[1, 0] == np.float32(second)
    s.grad = None
    encoding.quantize(x.requires_grad_()).backward(g)
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0], [8, 16]]
    assert s.grad is not None
    assert s.grad[0, 0] == 0
    q = FloatQuantizeDequantize(4, 3, shape=(2,))
    q.maxval = torch.tensor([-3.0, 0.5], requires_grad=True)
    q.get_scale().sum().backward()
    assert q.maxval.grad.tolist() == [float(np.float32(v / 240)) for v in (-1, 1)]


def test_maxval_follows_the_widths() -> None:
    q = FloatQuantizeDequantize(dtype=torch.float16)
    q.exponent_bits = 4
    q.mantissa_bits = 3
    assert (q.maxval, q.get_scale(), q.bitwidth) == (240, 1, 8)
    q.maxval.fill_(3.0)
    q.exponent_bits = 5
    assert (q.maxval, q.get_scale()) == (3, np.float32(3 / (1.875 * 2**15)))
    q = FloatQuantizeDequantize(4, 3, finite=True)
    q.mantissa_bits = 2  # there is no such finite format
    with pytest.raises(RuntimeError, match="finite=True"):
        q(torch.ones(1))
    q.mantissa_bits = 3
    assert (q.maxval, q.get_scale()) == (448, 1)
    q.set_legacy_encodings([{"bitwidth": 16, "dtype": "float"}])
    assert q.is_float16()
    assert (q.maxval, q.get_scale()) == (65504, 1)
    assert q.get_legacy_encodings() == [{"bitwidth": 16, "dtype": "float"}]
    with pytest.raises(RuntimeError, match="bitwidth=8"):
        q.set_legacy_encodings([{"bitwidth": 8}])


@pytest.mark.parametrize("own", TORCH[:2], ids=str)
@pytest.mark.parametrize("other", TORCH[:2], ids=str)
def test_a_quantizer_cast_to_16_bits_keeps_its_scale_of_one(own: torch.dtype, other: torch.dtype) -> None:
    q = FloatQuantizeDequantize(dtype=own).to(other)
    assert q.get_scale() == 1
    assert q.get_scale().dtype == torch.float32


def test_calibration() -> None:
    x, y = torch.tensor([0.5, -2.0]), torch.tensor([1.0, 1.5])
    q = FloatQuantizeDequantize(dtype=torch.float8_e4m3fn)
    with q.compute_encodings():
        assert q(y).encoding.maxval == 1.5
        assert q(x).encoding.maxval == 2.0
        q(torch.ones(0))
        q(torch.arange(3))
    assert (q.maxval, q.get_scale()) == (2, np.float32(2 / 448))
    with pytest.raises(KeyError), q.compute_encodings():  # noqa: PT012
        q(100 * x)
        raise KeyError
    with q.compute_encodings():
        pass
    q.allow_overwrite(False)
    with q.compute_encodings():
        q(100 * x)
    q.allow_overwrite(maxval=True)
    assert q.maxval == 2
    assert "forward" not in vars(q)
    with pytest.warns(UserWarning, match="Infinite or NaN"), q.compute_encodings():
        q(torch.tensor([math.nan]))
    q = FloatQuantizeDequantize(4, 3, shape=(2, 3), block_size=(-1, 2))
    z = torch.arange(24.0).reshape(4, 6)
    with q.compute_encodings():
        q(z)
    assert q.maxval.tolist() == [[7, 9, 11], [19, 21, 23]]
    q = FloatQuantizeDequantize(5, 10, encoding_analyzer=PercentileEncodingAnalyzer((2, 1), 10))
    assert q.shape == (2, 1)


def test_state_copies_and_pickles() -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    q = FloatQuantizeDequantize(4, 3, shape=(4, 2), block_size=(1, 3))
    with q.compute_encodings():
        q(x)
    state = q.state_dict()
    loaded = FloatQuantizeDequantize(dtype=torch.bfloat16)
    loaded.load_state_dict(state)
    within = torch.nn.Sequential(FloatQuantizeDequantize(**E2M1))
    within.load_state_dict(torch.nn.Sequential(q).state_dict())
    again = FloatQuantizeDequantize(4, 3)
    again.load_state_dict(state)
    for other in (loaded, within, again, copy.deepcopy(q), pickle.loads(pickle.dumps(q))):
        assert same(other(x), q(x))
    assert loaded.block_size == (1, 3)
    assert all(type(b) is int for b in loaded.block_size)
    assert loaded.shape == (4, 2)
    assert loaded.extra_repr() == q.extra_repr()
    del state["maxval"]
    again.load_state_dict(state)
    assert again.get_scale().unique() == 1
    assert FloatQuantizeDequantize(dtype=torch.float16, shape=(2,)).extra_repr() == "dtype=torch.float16, shape=(2,)"


def test_encodings_come_back_to_the_bit() -> None:
    scale = torch.rand(4000, generator=torch.Generator().manual_seed(0))
    encoding = FloatEncoding(3, 4, True, False, scale)
    q = FloatQuantizeDequantize.from_encodings(encoding)
    assert torch.equal(q.get_scale(), scale)
    assert q.maxval.dtype == torch.float64  # no float32 gives all of these scales
    for fresh in (FloatQuantizeDequantize(4, 3), FloatQuantizeDequantize(4, 3, shape=(4000,))):
        fresh.load_state_dict(q.state_dict())
        assert torch.equal(fresh.get_scale(), scale)
    assert FloatQuantizeDequantize.from_encodings(FloatEncoding(3, 4, True, False, scale[:1])).maxval.shape == (1,)
    with pytest.raises(TypeError, match="FloatEncoding"):
        FloatQuantizeDequantize.from_encodings(scale)
    with pytest.raises(ValueError, match="scale=None"):
        FloatEncoding(3, 4, True, False, None)


def test_an_encoding_says_what_it_is_of() -> None:
    encoding = FloatEncoding(3, 4, True, False, torch.tensor([[0.5]]), (1, 4))
    assert (encoding.mapping, encoding.mantissa_bits, encoding.exponent_bits) == ("float", 3, 4)
    assert (encoding.finite, encoding.unsigned_zero, encoding.bitwidth) == (True, False, 8)
    assert (encoding.maxval.item(), encoding.granularity, encoding.block_size) == (224, "blockwise", (1, 4))
    half = encoding.to(torch.float16)
    assert (half.scale.dtype, half.exponent_bits, half.block_size) == (torch.float16, 4, (1, 4))
    assert encoding.to(torch.float32) is encoding


def test_a_tensor_converts_without_a_change() -> None:
    q = FloatQuantizeDequantize(4, 3)
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    with q.compute_encodings():
        q(x)
    for dtype in FLOATS:
        out = q(x.to(dtype))
        codes = out.quantize()
        assert same(codes, q.get_encodings().quantize(x.to(dtype)))
        assert same(codes.dequantize(), out)


def test_export() -> None:
    for version, said in (
        ("0.6.1", [{"bitwidth": 16, "dtype": "float"}]),
        ("1.0.0", {"dtype": "FLOAT", "bw": 16, "enc_type": "PER_TENSOR"}),
        ("2.0.0", {}),
    ):
        plain_half = FloatQuantizeDequantize(dtype=torch.float16)
        assert plain_half.get_encodings().to_qnn_encoding_dict(version) == said
        plain_half.maxval.fill_(2)  # a scale that no version has a place for
        with pytest.raises(RuntimeError, match=version):
            plain_half.get_encodings().to_qnn_encoding_dict(version)
    names = dict(zip(TORCH[2:], ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), strict=True))
    for dtype, name in names.items():
        encoding = FloatQuantizeDequantize(dtype=dtype).get_encodings()
        assert encoding.to_qnn_encoding_dict("2.0.0") == {"output_dtype": name, "y_scale": 1.0}
        with pytest.raises(RuntimeError, match=r"1\.0\.0"):
            encoding.to_qnn_encoding_dict("1.0.0")
    blocks = FloatEncoding(1, 2, True, False, torch.tensor([[0.5, 2.0], [1.0, 4.0]]), (1, 3))._hint_input_shape((2, 6))
    found = blocks.to_qnn_encoding_dict("2.1.0")
    assert found == {"output_dtype": "float4e2m1", "y_scale": [[0.5, 2], [1, 4]], "axis": -1, "block_size": 3}
    channels = FloatEncoding(2, 5, False, False, torch.tensor([[0.5], [2.0]]))._hint_input_shape((2, 6))
    assert channels.to_qnn_encoding_dict("2.1.0") == {"output_dtype": "float8e5m2", "y_scale": [0.5, 2], "axis": -2}
    with pytest.raises(RuntimeError, match="float8_e4m3"):
        FloatQuantizeDequantize(4, 3).get_encodings().to_qnn_encoding_dict("2.0.0")
    with pytest.raises(AssertionError, match=r"'9\.9'"):
        FloatQuantizeDequantize(5, 10).get_encodings().to_qnn_encoding_dict("9.9")


@pytest.mark.parametrize("piece", [1, 5, 12])
def test_pieces_and_layouts_change_nothing(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    x = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(1))
    for shape, blocks in (((), None), ((3, 1, 1), None), ((4, 5), None), ((2, 5), (2, 1)), ((3, 2, 1), (1, 2, -1))):
        q = FloatQuantizeDequantize(4, 3, shape=shape, block_size=blocks)
        with q.compute_encodings():
            q(x)
        whole = plain(q(x)).clone()
        with monkeypatch.context() as patched:
            patched.setattr(cast, "_PIECE", piece)
            for y in (x, x.to(memory_format=torch.channels_last), x.mT.contiguous().mT, x.expand(2, *x.shape)[1]):
                assert same(q(y), whole)
    assert FloatQuantizeDequantize(4, 3)(torch.ones(0, 3)).shape == (0, 3)
    assert FloatQuantizeDequantize(4, 3)(torch.tensor(1.07)).item() == 1.125


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "given",
    [
        {"dtype": torch.float8_e4m3fnuz},
        {"exponent_bits": 4, "mantissa_bits": 3, "shape": (4, 2), "block_size": (1, 8)},
    ],
    ids=["fnuz", "blocks"],
)
def test_compiled_the_bits_are_the_same(given: Any, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    q = FloatQuantizeDequantize(**given)
    x = torch.randn(4, 16, generator=torch.Generator().manual_seed(2)).to(dtype)
    with q.compute_encodings():
        q(x)
    x[0, :5] = torch.tensor([0.0, -0.0, math.nan, math.inf, 1e-30])
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    compiled = torch.compile(q, fullgraph=True, backend="aot_eager")
    out = compiled(a)
    assert type(out) is DequantizedTensor
    assert same(out, q(b))
    out.sum().backward()
    q(b).sum().backward()
    assert same(a.grad, b.grad)


def test_the_operators_are_what_torch_takes_them_for() -> None:
    ops: Any = torch.ops.halfeven
    x, s = torch.randn(4, 5, requires_grad=True), torch.rand(4, 1, requires_grad=True)
    for dequantize in (False, True):
        torch.library.opcheck(ops.float_cast.default, (x, s, 4, 3, False, False, dequantize))
    torch.library.opcheck(ops.float_scale.default, (s, 4, 3, False, False))


def test_vmap_and_autocast() -> None:
    x, s = torch.randn(3, 4, 6), torch.rand(3, 4, 1)
    encodings = [FloatEncoding(3, 4, True, False, each) for each in s]
    expected = torch.stack([e.quantize_dequantize(a) for e, a in zip(encodings, x, strict=True)])

    def each(a: Tensor, b: Tensor) -> Tensor:
        return FloatEncoding(3, 4, True, False, b).quantize_dequantize(a)

    assert same(torch.func.vmap(each)(x, s), expected)
    assert same(torch.func.vmap(each, (1, 1), 1)(x.movedim(0, 1), s.movedim(0, 1)), expected.movedim(0, 1))
    assert same(
        torch.func.vmap(each, (0, None))(x, s[0]), FloatEncoding(3, 4, True, False, s[0]).quantize_dequantize(x)
    )
    q = FloatQuantizeDequantize(4, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert same(q(x), q(x.clone()))
        assert q(x).dtype == torch.float32
    assert same(q(x.to(torch.bfloat16)), q(x.to(torch.bfloat16).float()).to(torch.bfloat16))
