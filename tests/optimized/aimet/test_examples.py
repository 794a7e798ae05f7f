"""The worked examples of the documents and of the classes' own texts, as printed, by both libraries' names.

The same code runs on the library itself, which shows that the expected values are its own. Where an example draws its
input at random, the values printed are put in, or an input is made that has what is printed of it.
"""

import importlib
from typing import Any

import pytest
import torch
from torch import Tensor, tensor

from halfeven.conformance.backends.common import installed
from halfeven.conformance.backends.shim import shimmed_import

UPSTREAM, OURS = "aimet_torch.quantization", "halfeven.optimized.aimet"
CODES = [0.0] * 6 + [-0.0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 12, 13, 13, 14] + [15] * 6
REALS = "0 0 0 0 0 0 0 .0667 .1333 .1333 .2 .2667 .2667 .3333 .4 .4667 .4667 .5333 .6 .6667 .6667 .7333 .8 .8667 .8667"
REALS += " .9333 1 1 1 1 1 1"


@pytest.fixture(params=[OURS, pytest.param(UPSTREAM, marks=pytest.mark.library)])
def library(request: pytest.FixtureRequest) -> str:
    if request.param == UPSTREAM:
        if installed("aimet-torch") is None:
            pytest.skip("aimet-torch is not installed")
        shimmed_import(UPSTREAM)
    return str(request.param)


@pytest.fixture
def q(library: str) -> Any:
    return importlib.import_module(library)


def printed(value: Tensor) -> list[Any]:
    """As four decimals show it, zeros with their sign."""
    shown = value.detach().as_subclass(Tensor)
    return [[f"{v:.4f}" for v in row] for row in shown.reshape(-1, shown.shape[-1]).tolist()]


def rows(*values: list[Any]) -> list[list[str]]:
    return [[f"{float(v):.4f}" for v in row] for row in values]


def grids(library: str) -> list[dict[str, Any]]:
    """The library asks for ``signed`` beside ``num_steps``, which its document does not."""
    signed = {"signed": False} if library == UPSTREAM else {}
    return [{"bitwidth": 4}, {"num_steps": 15, **signed}, {"qmin": 0, "qmax": 15}]


def test_quantize(q: Any, library: str) -> None:
    x = torch.arange(start=-0.3, end=1.3, step=0.05)
    assert float(x[6]) < 0
    for grid in grids(library):
        assert printed(q.affine.quantize(x, tensor(1 / 15), tensor(0.0), **grid)) == rows(CODES)


def test_quantize_dequantize(q: Any, library: str) -> None:
    x = torch.arange(start=-0.3, end=1.3, step=0.05)
    for grid in grids(library):
        for trained in [True] if library == UPSTREAM else [True, False]:  # without, the library gives 0.0667 for 0.1
            scale = tensor(1 / 15, requires_grad=trained)
            assert printed(q.affine.quantize_dequantize(x, scale, tensor(0.0), **grid)) == rows(REALS.split())


def test_quantizer_of_blocks_calibrated(q: Any) -> None:
    quantizer = q.affine.QuantizeDequantize(shape=(5, 2), bitwidth=8, symmetric=False, block_size=(1, 5))
    assert quantizer.is_initialized() is False
    x = torch.linspace(-2, 2, 50).reshape(5, 10).sin()
    with quantizer.compute_encodings():
        quantizer(x)
    assert quantizer.is_initialized() is True
    assert isinstance(quantizer(x), q.DequantizedTensor)
    assert quantizer(x).shape == (5, 10)
    assert quantizer.get_scale().shape == (5, 2)


def test_quantizer_of_blocks_assigned(q: Any) -> None:
    quantizer = q.affine.QuantizeDequantize(shape=(5, 2), bitwidth=8, symmetric=False, block_size=(1, 5))
    quantizer.min = torch.nn.Parameter(-torch.ones_like(quantizer.min))
    assert quantizer.is_initialized() is False
    quantizer.max = torch.nn.Parameter(torch.ones_like(quantizer.max))
    assert quantizer.is_initialized() is True
    shown = [
        [-0.6196, -0.9961, 0.0549, -0.6431, 1.0039, -0.8706, 1.0039, 0.4706, -0.2353, 0.8078],
        [0.3451, -0.1176, -0.9961, -0.4549, -0.0549, -0.0471, -0.5255, -0.2353, 1.0039, -0.9961],
        [-0.4157, 0.0784, 0.5333, 0.1647, -0.9961, -0.9961, -0.2118, -0.2196, 0.9176, 0.9490],
        [1.0039, -0.7765, 0.4784, -0.8706, 1.0039, 0.6039, -0.4157, -0.2118, -0.9961, 0.3137],
        [1.0039, 0.3216, -0.2353, -0.7765, -0.9961, 0.8000, 1.0039, 0.4157, 0.4392, 0.4863],
    ]
    assert printed(quantizer(tensor(shown))) == rows(*shown)
    assert printed(quantizer(tensor(shown) * 1.001 + 1e-4)) == rows(*shown)
    assert quantizer(tensor(shown)).requires_grad


def test_quantized_tensor(q: Any) -> None:
    quantizer = q.affine.Quantize(shape=(2, 1), bitwidth=8, symmetric=True)
    with quantizer.compute_encodings():
        found = quantizer(tensor([[-1.20, 4.1, -0.21, 2.3], [0.2, 5.6, -1.0, -0.1]]))
    codes = [[-37, 127, -7, 71], [5, 127, -23, -2]]
    assert torch.equal(found.encoding.scale, quantizer.get_scale())
    assert repr(found) == "QuantizedTensor([[-37., 127.,  -7.,  71.],\n                 [  5., 127., -23.,  -2.]])"
    integers = found.quantized_repr()
    assert (type(integers), integers.dtype, integers.tolist()) == (Tensor, torch.int8, codes)
    reals = found.dequantize()
    assert isinstance(reals, q.DequantizedTensor)
    assert printed(reals) == rows([-1.1945, 4.1000, -0.2260, 2.2921], [0.2205, 5.6000, -1.0142, -0.0882])


def test_quantized_repr_has_no_sign_of_zero(q: Any) -> None:
    quantizer = q.affine.Quantize(shape=(2, 1), bitwidth=8, symmetric=True)
    codes = [[11.0, -57, -128, 38], [28, -0.0, -128, -40]]
    quantizer.set_range(tensor([[-128.0], [-128.0]]), tensor([[127.0], [127.0]]))
    found = quantizer(tensor(codes))
    assert printed(found) == rows(*codes)
    assert found.requires_grad
    assert found.quantized_repr().tolist() == [[11, -57, -128, 38], [28, 0, -128, -40]]


def test_dequantize_of_a_quantized_tensor(q: Any) -> None:
    quantizer = q.affine.Quantize(shape=(), bitwidth=8, symmetric=True)
    quantizer.set_range(-128 * 0.1, 127 * 0.1)
    codes = quantizer(tensor([[2.57, -2.312], [0.153, 0.205]]))
    assert printed(codes) == rows([26, -23], [2, 2])
    reals = codes.dequantize()
    assert printed(reals) == rows([2.6, -2.3], [0.2, 0.2])
    assert repr(reals).endswith(" grad_fn=<AliasBackward0>)")
    assert torch.equal(reals.encoding.scale, codes.encoding.scale)


def test_quantize_of_a_dequantized_tensor(q: Any) -> None:
    quantizer = q.affine.QuantizeDequantize(shape=(), bitwidth=8, symmetric=False)
    quantizer.set_range(-10, 41)
    reals = quantizer(tensor([[0.39, 51.0], [3.521, 9.41]]))
    assert printed(reals) == rows([0.4, 41], [3.6, 9.4])
    assert printed(reals.quantize()) == rows([52, 255], [68, 97])
    integers = reals.quantized_repr()
    assert (integers.dtype, integers.tolist()) == (torch.uint8, [[52, 255], [68, 97]])


def test_float_quantizer(q: Any) -> None:
    x = tensor([[1.8998, -0.0947, -1.0891, -0.1727]])
    quantizer = q.float.FloatQuantizeDequantize(dtype=torch.float8_e4m3fnuz)
    with quantizer.compute_encodings():
        quantizer(x)
    assert printed(quantizer(x)) == rows([1.8998, -0.0950, -1.1399, -0.1741])


def test_minmax_analyzer(q: Any) -> None:
    analyzer = q.encoding_analyzer.MinMaxEncodingAnalyzer(shape=(1,))
    for low, high in ((-2.0991, 2.3696), (-2.1721, 2.2592)):
        analyzer.update_stats(torch.linspace(low, high, 100))
        found = analyzer.compute_encodings(num_steps=2.0**8, is_symmetric=False)
        assert [printed(end) for end in found] == [rows([low]), rows([high])]
        analyzer.reset_stats()


def test_percentile_analyzer(q: Any) -> None:
    counts = [1, 1, 8, 13, 19, 27, 16, 10, 3, 2]
    edges = [-2.5710, -2.0989, -1.6269, -1.1548, -0.6827, -0.2106, 0.2614, 0.7335, 1.2056, 1.6776, 2.1497]
    values = [
        low + (high - low) * (i + 0.5) / n
        for n, low, high in zip(counts, edges, edges[1:], strict=False)
        for i in range(n)
    ]
    values[0], values[-1] = edges[0], edges[-1]
    analyzer = q.encoding_analyzer.PercentileEncodingAnalyzer(shape=(1,), num_bins=10, percentile=80)
    analyzer.update_stats(tensor(values))
    found = analyzer.compute_encodings(num_steps=2.0**8, is_symmetric=False)
    assert [printed(end) for end in found] == [rows([-1.1548]), rows([0.2614])]
