"""Quantized tensors: what they represent, and that copies, pickles and graphs carry it along."""

import copy
import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet.affine import AffineEncoding, quantize, quantize_dequantize
from halfeven.optimized.aimet.tensor import DequantizedTensor, EncodingError, QuantizedTensor, QuantizedTensorBase

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
GRIDS = ((-8, 7), (0, 255), (-128, 127), (1, 4))


def encoding(scale: Any = 0.1, offset: Any = 0.0, qmin: int = -8, qmax: int = 7, **rest: Any) -> AffineEncoding:
    return AffineEncoding(torch.as_tensor(scale), torch.as_tensor(offset), qmin, qmax, **rest)


def quantized(x: Tensor, e: AffineEncoding) -> QuantizedTensor:
    return QuantizedTensor(e.quantize(x), encoding=e)


def sample(dtype: torch.dtype = torch.float32) -> Tensor:
    """Codes and ties of a scale of 0.1, beyond both ends of small grids."""
    return (torch.arange(-40, 40).reshape(8, 10) * 0.05).to(dtype)


def plain(x: Tensor) -> Tensor:
    return x.as_subclass(Tensor)


def same_bits(a: Tensor, b: Tensor) -> bool:
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return a.dtype == b.dtype and torch.equal(plain(a).view(integers), plain(b).view(integers))


def same_encoding(a: Any, b: Any) -> bool:
    parts = (vars(a), vars(b))
    assert parts[0].keys() == parts[1].keys()
    return all(torch.equal(v, parts[1][k]) if isinstance(v, Tensor) else v == parts[1][k] for k, v in parts[0].items())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_round_trips_change_nothing(dtype: torch.dtype, grid: tuple[int, int]) -> None:
    e = encoding(0.013845434, -3.0, *grid)
    x = (torch.arange(grid[0] - 4, grid[1] + 1) * 0.0138).to(dtype)
    codes = quantized(x, e)
    values = codes.dequantize()
    assert type(values) is DequantizedTensor
    assert values.dequantize() is values
    assert codes.quantize() is codes
    assert same_bits(codes, quantize(x, e.scale, e.offset, *grid))
    assert same_bits(values, quantize_dequantize(x, e.scale, e.offset, *grid))
    assert same_bits(values.quantize(), codes)
    assert same_bits(values.quantize().dequantize(), values)
    assert torch.equal(values.quantized_repr(), codes.quantized_repr())
    assert values.encoding is not None
    assert same_encoding(values.encoding, e)
    assert values.encoding is not e


@pytest.mark.parametrize(
    ("grid", "dtype"),
    [
        ((0, 255), torch.uint8),
        ((-128, 127), torch.int8),
        ((-1, 255), torch.int16),
        ((0, 65535), torch.int32),
        ((-(2**31), 2**31 - 1), torch.int32),
    ],
)
def test_integers_are_of_the_encoding(grid: tuple[int, int], dtype: torch.dtype) -> None:
    codes = QuantizedTensor(
        torch.tensor([float(grid[0]), -0.0, grid[1]], dtype=torch.float64), encoding=encoding(1.0, 0.0, *grid)
    )
    found = codes.quantized_repr()
    assert type(found) is Tensor
    assert found.dtype == dtype
    assert found.tolist() == [grid[0], 0, grid[1]]


def test_a_grid_beyond_integers_is_refused() -> None:
    codes = QuantizedTensor(torch.zeros(2), encoding=encoding(1.0, 0.0, 0, 2**32 - 1))
    with pytest.raises(ValueError, match="qmax=4294967295"):
        codes.quantized_repr()


def test_without_an_encoding() -> None:
    codes, values = QuantizedTensor(torch.zeros(2)), torch.zeros(2).as_subclass(DequantizedTensor)
    assert codes.encoding is None
    assert values.encoding is None
    assert issubclass(EncodingError, RuntimeError)
    for fail in (codes.dequantize, values.quantize, codes.quantized_repr, values.quantized_repr):
        with pytest.raises(EncodingError, match="encoding=None"):
            fail()
    assert codes.quantize() is codes
    with pytest.raises(RuntimeError, match=r"torch\.int32"):
        QuantizedTensor(torch.zeros(2, dtype=torch.int32))


def test_new_empty() -> None:
    codes = quantized(sample(), encoding())
    made = codes.new_empty((2, 3), dtype=torch.float16, requires_grad=True)
    assert type(made) is QuantizedTensor
    assert (made.shape, made.dtype, made.encoding) == ((2, 3), torch.float16, None)
    assert made.requires_grad
    assert codes.new_empty(2, 3).shape == (2, 3)
    assert codes.new_empty((), encoding=codes.encoding).encoding is codes.encoding
    assert type(codes.new_empty((2,), dtype=torch.int8)) is Tensor


def test_clone_and_detach() -> None:
    scale = torch.tensor(0.1, requires_grad=True)
    x = sample().requires_grad_()
    for codes in (quantized(x, encoding(scale)), quantized(x, encoding(scale)).dequantize()):
        clone, detached = codes.clone(), codes.detach()
        assert clone.requires_grad
        assert clone.encoding.scale.data_ptr() != scale.data_ptr()
        assert clone.encoding.scale.grad_fn is not None
        assert not detached.requires_grad
        assert not detached.encoding.scale.requires_grad
        assert detached.data_ptr() == codes.data_ptr()
        for copied in (clone, detached):
            assert type(copied) is type(codes)
            assert same_bits(copied.quantize(), codes.quantize())


def saved(x: Tensor, **how: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, **how)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "save": lambda x: saved(x, weights_only=False),
    "save, weights only": lambda x: saved(x, weights_only=True),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "in-a-graph"])
@pytest.mark.parametrize("kind", ["codes", "reals"])
def test_copies(name: str, leaf: bool, kind: str) -> None:
    per_channel = encoding(torch.full((8, 1), 0.1, requires_grad=True), torch.zeros(8, 1), block_size=None)
    x = quantized(sample().requires_grad_(), per_channel)
    x = x if kind == "codes" else x.dequantize()
    if leaf:
        x = x.detach().requires_grad_()
    x.remark = "kept"
    copied = COPIES[name](x)
    assert type(copied) is type(x)
    assert same_bits(copied, x)
    assert copied.is_leaf
    assert copied.remark == "kept"
    assert same_encoding(copied.encoding, x.encoding)
    assert same_bits(copied.quantize().dequantize(), x.quantize().dequantize())
    assert (copied.data_ptr() == x.data_ptr()) == (name == "copy")
    assert (copied.encoding is x.encoding) == (name == "copy")
    if leaf:
        assert copied.requires_grad


def test_deep_copies_keep_what_is_shared_apart_and_together() -> None:
    x = quantized(sample(), encoding()).requires_grad_()
    x.grad = torch.ones_like(plain(x))
    first, view, second = copy.deepcopy([x, x.detach()[0], x])
    assert first is second
    assert first.requires_grad
    assert torch.equal(first.grad, x.grad)
    assert view.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
    assert view.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_a_parameter_is_copied_as_one() -> None:
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(quantized(sample(), encoding()))
    copied = copy.deepcopy(module)
    assert isinstance(copied.weight, torch.nn.Parameter)
    assert isinstance(copied.weight, QuantizedTensor)
    assert same_encoding(copied.weight.encoding, module.weight.encoding)
    half = copied.half()
    assert half.weight.dtype == torch.float16
    assert same_bits(half.weight.dequantize(), quantized(sample(), encoding()).half().dequantize())


def test_a_pickled_encoding_has_no_producer() -> None:
    e = encoding(producer=threading.Lock())  # which no pickle takes
    x = quantized(sample(), e)
    assert saved(x, weights_only=False).encoding.producer is None
    assert x.encoding is e
    assert e.producer is not None


def test_printing() -> None:
    codes = quantized(torch.tensor([[0.11, -0.32]]), encoding())
    assert repr(codes) == "QuantizedTensor([[ 1., -3.]])"
    assert repr(codes.dequantize()) == "DequantizedTensor([[ 0.1000, -0.3000]])"
    x = torch.tensor([[0.11, -0.32]], requires_grad=True)
    assert repr(encoding().quantize(x).as_subclass(QuantizedTensor)).endswith("grad_fn=<AliasBackward0>)")


def test_gradients_flow_through_both() -> None:
    found = []
    for through in (True, False):
        x = sample().requires_grad_()
        scale, offset = torch.tensor(0.1, requires_grad=True), torch.tensor(-1.0, requires_grad=True)
        e = AffineEncoding(scale, offset, -8, 7)
        values = quantized(x, e).dequantize() if through else e.dequantize(e.quantize(x))
        (values * torch.arange(80).reshape(8, 10)).sum().backward()
        found.append((x.grad, scale.grad, offset.grad))
    for a, b in zip(*found, strict=True):
        assert a is not None
        assert same_bits(a, b)


def test_a_leaf_receives_its_gradient() -> None:
    values = quantized(sample(), encoding()).dequantize().detach().requires_grad_()
    (values.quantize().dequantize() * 3).sum().backward()
    assert type(values.grad) is Tensor
    assert values.grad.unique().tolist() == [3.0]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference"])
def test_modes(mode: Any) -> None:
    expected = quantized(sample(), encoding()).dequantize()
    with mode():
        values = quantized(sample(), encoding()).dequantize()
        assert same_bits(values, expected)
        assert values.view(-1).quantize().encoding is not None
        values[0, 0] = 1
        assert values.encoding is None


def test_threads() -> None:
    expected = quantized(sample(), encoding()).dequantize()
    failed = []

    def work() -> None:
        for _ in range(200):
            x = quantized(sample(), encoding())
            y = torch.transpose(torch.clone(x), 0, 1).t().dequantize() * 2
            if y.encoding is None or not same_bits(y / 2, expected):
                failed.append(y)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_the_base_class_is_of_no_kind() -> None:
    x = QuantizedTensorBase(torch.zeros(2))
    with pytest.raises(NotImplementedError):
        x.quantize()
    with pytest.raises(NotImplementedError):
        x.dequantize()
