"""One arithmetic: the same bits however a quantizer is run."""

import copy
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet import DequantizedTensor, QuantizedTensor
from halfeven.optimized.aimet.affine import Dequantize, Quantize, QuantizeDequantize
from halfeven.reference import FORMULAS

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
LOW, HIGH = torch.tensor([[-1.1], [-0.3], [0.0], [-2.0]]), torch.tensor([[0.7], [3.1], [1.0], [0.0]])
LAYOUTS = {
    "channel": ((4, 1), None),
    "block": ((4, 3), (1, 8)),
    "tensor": ((), None),
}
GRIDS = ((0, 255, False), (-128, 127, True), (-8, 7, False), (0, 3, False), (-7, 7, True))


def bits(t: Tensor) -> Tensor:
    """Of every element, any NaN for any NaN."""
    plain = t.detach().as_subclass(Tensor).contiguous()
    carrier = {2: torch.int16, 4: torch.int32, 8: torch.int64}[plain.element_size()]
    return torch.where(plain.isnan(), -1, plain.view(carrier))


def inputs(q: Any, dtype: torch.dtype) -> Tensor:
    """Of shape (4, 24): ties of the grid, their neighbours, and extremes."""
    s, o = (t.detach().expand(4, -1) if t.dim() == 2 else t.detach() for t in (q.get_scale(), q.get_offset()))
    s, o = (t.repeat_interleave(24 // t.shape[1], 1) if t.dim() == 2 and t.shape[1] > 1 else t for t in (s, o))
    codes = torch.linspace(q.qmin - 2, q.qmax + 2, 6).round() + 0.5
    x = ((torch.cat([codes, codes, codes, codes - 0.5]) + o) * s).expand(4, 24).to(dtype).clone()
    x[:, 6:12] = torch.nextafter(x[:, 6:12], torch.tensor(torch.inf, dtype=dtype))
    x[:, 12:18] = torch.nextafter(x[:, 12:18], torch.tensor(-torch.inf, dtype=dtype))
    x[:, 20:] = torch.tensor([torch.nan, torch.inf, -0.0, -torch.inf], dtype=dtype)
    return x


def made(kind: Any, layout: str, grid: tuple[int, int, bool], **options: Any) -> Any:
    shape, blocks = LAYOUTS[layout]
    q = kind(shape, *grid, block_size=blocks, **options)
    low, high = (LOW, HIGH) if shape else (LOW[0, 0], HIGH[0, 0])
    factors = torch.tensor([[1.0, 0.7, 1.3]]) if layout == "block" else torch.tensor(1.0)
    q.set_range(low * factors, high * factors)
    return q


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_mode(layout: str, grid: tuple[int, int, bool], dtype: torch.dtype) -> None:
    for kind in (Quantize, QuantizeDequantize, Dequantize):
        q = made(kind, layout, grid)
        x = inputs(q, dtype)
        trained = q(x)
        assert (type(trained), trained.dtype) == (QuantizedTensor if kind is Quantize else DequantizedTensor, dtype)
        wanted = bits(trained)
        frozen = copy.deepcopy(q).requires_grad_(False)
        assert torch.equal(bits(frozen(x)), wanted)
        assert torch.equal(bits(q(x.clone().requires_grad_())), wanted)
        with torch.no_grad():
            assert torch.equal(bits(q(x)), wanted)
        with torch.inference_mode():
            assert torch.equal(bits(q(x)), wanted)
        assert torch.equal(bits(q(x.t().contiguous().t())), wanted)
        assert torch.equal(bits(torch.vmap(q)(torch.stack([x, -x]))[0]), wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_codes_give_the_reals(layout: str, grid: tuple[int, int, bool], dtype: torch.dtype) -> None:
    q, qdq, dq = (made(kind, layout, grid) for kind in (Quantize, QuantizeDequantize, Dequantize))
    x = inputs(q, dtype)
    codes, reals = q(x), qdq(x)
    assert torch.equal(bits(codes.dequantize()), bits(reals))
    assert torch.equal(bits(dq(codes)), bits(reals))
    again = reals.quantize().dequantize()
    assert torch.equal(bits(again), bits(reals))


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_the_documented_values(grid: tuple[int, int, bool], shift: float, name: str) -> None:
    q = made(QuantizeDequantize, "channel", grid, zero_point_shift=shift)
    x = inputs(q, getattr(torch, name))
    s, o = FORMULAS["aimet/scale_and_offset"].function(LOW.numpy(), HIGH.numpy(), *grid)
    array = x.double().numpy().astype(ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name))
    with np.errstate(all="ignore"):
        wanted = FORMULAS["aimet/affine.quantize_dequantize"].function(
            array, s, o, qmin=grid[0], qmax=grid[1], zero_point_shift=shift
        )
    assert torch.equal(bits(q(x).double()), bits(torch.from_numpy(wanted.astype(np.float64))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [Quantize, QuantizeDequantize, Dequantize])
def test_compiled(dtype: torch.dtype, kind: Any) -> None:
    """Fully, with the backend that only traces; offsets of -0.0 are among them."""
    torch.compiler.reset()
    for layout, grid in (("channel", (0, 255, False)), ("block", (-8, 7, True)), ("tensor", (0, 15, False))):
        q = made(kind, layout, grid)
        if not q.symmetric:
            with torch.no_grad():
                q.min.flatten()[:1].fill_(-1e-9)
        x = inputs(q, dtype)
        compiled = torch.compile(q, backend="aot_eager", fullgraph=True)
        wanted, found = q(x), compiled(x)
        assert torch.equal(bits(found), bits(wanted))
        finite = torch.where(x.isfinite(), 1.0, 0.0).to(dtype)
        pairs = ((torch.autograd.grad(y.as_subclass(Tensor), [q.min, q.max], finite)) for y in (wanted, found))
        for a, b in zip(*pairs, strict=True):
            assert torch.equal(bits(a), bits(b))


def test_compiled_without_a_value() -> None:
    """One that has a value, compiled before, does not stand in for it."""
    torch.compiler.reset()
    x = torch.ones(4, 6)
    for value in (True, False):
        q = QuantizeDequantize((4, 1), 8, False)
        if value:
            q.set_range(-1.0, 2.0)
        compiled = torch.compile(q, backend="eager", fullgraph=True)
        if value:
            compiled(x)
        else:
            with pytest.raises(RuntimeError, match="min and max have no value"):
                compiled(x)
    q.min = torch.nn.Parameter(-torch.ones(4, 1))
    q.max = torch.nn.Parameter(torch.ones(4, 1))
    assert torch.equal(bits(compiled(x)), bits(q(x)))


def test_a_quantized_input_is_quantized_again() -> None:
    q = made(QuantizeDequantize, "tensor", (0, 255, False))
    wide = made(QuantizeDequantize, "tensor", (0, 3, False))
    x = torch.linspace(-1, 1, 9)
    once, twice = wide(q(x)), wide(q(x).as_subclass(Tensor))
    assert torch.equal(bits(once), bits(twice))
    assert once.encoding.qmax == 3
    assert once.encoding.producer is wide


def test_refused_inputs() -> None:
    q, codes = made(QuantizeDequantize, "channel", (0, 255, False)), made(Quantize, "channel", (-(2**15), 2**15, False))
    with pytest.raises(ValueError, match=r"torch\.int64"):
        q(torch.ones(4, 2, dtype=torch.int64))
    with pytest.raises(RuntimeError):
        q(torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="qm"):
        codes(torch.ones(4, 2, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match="input"):
        q([1.0])
    with pytest.raises(TypeError):
        made(Dequantize, "channel", (0, 255, False))(torch.ones(4, 2, dtype=torch.int8))


def test_gradients_by_the_codes_and_directly() -> None:
    """Quantize, then dequantize: the gradients of the input and of the range are those of both at once."""
    x = torch.linspace(-1.5, 1.5, 24).repeat(4, 1)
    found = []
    for kind in (Quantize, QuantizeDequantize):
        q, leaf = made(kind, "channel", (0, 15, False)), x.clone().requires_grad_()
        y = q(leaf).dequantize().as_subclass(Tensor)
        found.append(torch.autograd.grad(y.sum(), [leaf, q.min, q.max]))
    inside = found[1][0] == 1
    assert torch.equal(found[0][0] != 0, inside)
