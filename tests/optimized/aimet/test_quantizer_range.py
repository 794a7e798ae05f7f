"""Scale and offset of a quantizer's range, their gradients to the bit, and the parameters scale and offset."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet.affine import MinMaxQuantizer, QuantizeDequantize, ScaleOffsetQuantizer
from halfeven.optimized.aimet.affine.range import exact_range
from halfeven.reference import FORMULAS

RANGES = ((-1.0, 2.0), (-0.3, 0.7), (-2.5, 0.0), (0.0, 1.0), (0.5, 2.0), (-3.0, -1.0), (1.0, -1.0), (-1e-9, 1.0))
GRIDS = ((0, 255), (-128, 127), (-8, 7), (0, 1), (-127, 127), (1, 4), (0, 2**18))


def bits(t: Tensor | npt.NDArray[Any]) -> list[int]:
    plain = torch.as_tensor(t).detach().as_subclass(Tensor).contiguous()
    carrier = {2: torch.int16, 4: torch.int32, 8: torch.int64}[plain.element_size()]
    found: list[int] = plain.view(carrier).flatten().tolist()
    return found


def quantizer(low: Tensor, high: Tensor, qmin: int, qmax: int, symmetric: bool, **options: Any) -> QuantizeDequantize:
    q = QuantizeDequantize(tuple(low.shape), qmin, qmax, symmetric, **options)
    q.min, q.max = torch.nn.Parameter(low.clone()), torch.nn.Parameter(high.clone())
    return q


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("mode", ["eager", "operator"])
def test_scale_and_offset(symmetric: bool, grid: tuple[int, int], mode: str) -> None:
    low, high = torch.tensor((*RANGES, (0.0, 1e-3)), dtype=torch.float32).T.contiguous()
    q = quantizer(low, high, *grid, symmetric)
    if mode == "operator":
        scale = torch.ops.halfeven.range_scale(q.min, q.max, grid[1] - grid[0])
        offset = torch.ops.halfeven.range_offset(q.min, scale, *grid)
        offset = q.get_offset() if symmetric else offset
    else:
        scale, offset = q.get_scale(), q.get_offset()
    wanted = FORMULAS["aimet/scale_and_offset"].function(low.numpy(), high.numpy(), *grid, symmetric)
    assert (bits(scale), bits(offset)) == (bits(wanted[0]), bits(wanted[1]))
    encoding = q.get_encodings()
    assert encoding is not None
    assert (bits(encoding.scale), bits(encoding.offset)) == (bits(wanted[0]), bits(wanted[1]))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("mode", ["eager", "operator"])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_gradients(symmetric: bool, grid: tuple[int, int], mode: str, shift: float) -> None:
    """Of min and max, by the documented gradients one after the other, element by element."""
    low, high = (t.reshape(-1, 1) for t in torch.tensor(RANGES, dtype=torch.float32).T.contiguous())
    low = torch.cat([low, torch.tensor([[0.0], [-1e-6], [-3e38]])])  # the least scale, below it, and beyond
    high = torch.cat([high, torch.tensor([[2.0**-23 * (grid[1] - grid[0])], [1e-6], [3e38]])])
    s, o = (
        torch.from_numpy(a)
        for a in FORMULAS["aimet/scale_and_offset"].function(low.numpy(), high.numpy(), *grid, symmetric)
    )
    codes = torch.tensor([grid[0] - 2.5, grid[0] - 0.5, grid[0], 0.25, 0.5, grid[1] + 0.5, grid[1] + 0.75, grid[1] + 9])
    x = ((codes + o) * s).nan_to_num()
    g = torch.tensor([1.0, -0.5, 2.0, 0.25, 1.0, 3.0, -1.0, 0.5]).expand_as(x)
    q = quantizer(low, high, *grid, symmetric, zero_point_shift=shift)
    leaf = x.clone().requires_grad_()
    if mode == "operator":
        scale = torch.ops.halfeven.range_scale(q.min, q.max, grid[1] - grid[0])
        offset = q.get_offset() if symmetric else torch.ops.halfeven.range_offset(q.min, scale, *grid)
        y = q._encoding(scale, offset).quantize_dequantize(leaf)
    else:
        y = q(leaf).as_subclass(Tensor)
    found = torch.autograd.grad(y, [leaf, q.min, q.max], g)
    with np.errstate(all="ignore"):
        dx, ds, do = FORMULAS["aimet/quantize_dequantize_gradient"].function(
            x.numpy(), s.numpy(), o.numpy(), *grid, g.numpy(), zero_point_shift=shift
        )
        ends = FORMULAS["aimet/range_gradient"].function(low.numpy(), high.numpy(), *grid, symmetric, ds, do)
    assert bits(found[0]) == bits(dx)
    finite = np.isfinite(ends[0]) & np.isfinite(ends[1])
    assert finite.sum() >= 9
    for ours, wanted in zip(found[1:], ends, strict=True):
        keep = torch.from_numpy(finite)
        assert bits(ours[keep]) == bits(wanted[finite])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_gradients_of_parameters_of_other_dtypes(dtype: torch.dtype) -> None:
    """Scale and offset are computed in float32, and the gradient of a parameter is rounded to its dtype once."""
    q = quantizer(torch.tensor(-1.0), torch.tensor(2.0), 0, 15, symmetric=False).to(dtype)
    wide = quantizer(torch.tensor(-1.0), torch.tensor(2.0), 0, 15, symmetric=False)
    x = torch.tensor([-3.0, -0.37, 0.11, 0.9, 5.0])
    found, wanted = (torch.autograd.grad(p(x).as_subclass(Tensor).sum(), [p.min, p.max]) for p in (q, wide))
    assert q.get_scale().dtype == q.get_offset().dtype == torch.float32
    assert [g.dtype for g in found] == [dtype, dtype]
    if dtype == torch.float64:
        assert [bits(g.float()) for g in found] == [bits(g) for g in wanted]
    else:
        assert [bits(g) for g in found] == [bits(g.to(dtype)) for g in wanted]


def test_dtype_of_the_scale() -> None:
    q = quantizer(torch.tensor(-1.0), torch.tensor(2.0), 0, 255, symmetric=False)
    for dtype in (torch.float64, torch.float16):
        assert q.get_scale(dtype).dtype == q.get_offset(dtype).dtype == q.get_min(dtype).dtype == dtype
    assert q.get_scale(torch.float64).tolist() == 3 / 255 != q.get_scale().tolist()


def test_recalibrated_ends() -> None:
    q = quantizer(torch.tensor(-1.0), torch.tensor(2.0), 0, 255, symmetric=False, zero_point_shift=0.5)
    s, o = q.get_scale(), q.get_offset()
    assert bits(q.get_min()) == bits(s * (o + 0.5))
    assert bits(q.get_max()) == bits(s * (o + 255.5))
    fresh = QuantizeDequantize((), 8, True)
    assert [f() for f in (fresh.get_min, fresh.get_max, fresh.get_scale, fresh.get_offset, fresh.get_encodings)] == [
        None
    ] * 5


def test_set_range() -> None:
    q = QuantizeDequantize((2, 1), 8, False)
    q.set_range(None, None)
    assert not q.is_initialized()
    q.set_range(None, [[1.0], [2.0]])
    assert not q.is_initialized()
    q.set_range(-1, None)
    assert q.is_initialized()
    assert (q.min.tolist(), q.max.tolist()) == ([[-1.0], [-1.0]], [[1.0], [2.0]])
    before = q.min
    with pytest.raises(RuntimeError):
        q.set_range(torch.zeros(2, 1), torch.ones(3))
    assert q.min is before
    assert q.min.tolist() == [[-1.0], [-1.0]], "nothing was set"
    assert q.min.requires_grad


@pytest.mark.parametrize("symmetric", [True, False])
def test_reparametrized_keeps_every_value(symmetric: bool) -> None:
    low, high = torch.tensor(RANGES, dtype=torch.float32).T.contiguous()
    q = quantizer(low, high, 0, 255, symmetric)
    s, o = bits(q.get_scale()), bits(q.get_offset())
    q._reparametrize_to_scale_offset()
    assert (bits(q.get_scale()), bits(q.get_offset()), q.symmetric) == (s, o, symmetric)
    assert sorted(dict(q.named_parameters())) == (["scale"] if symmetric else ["offset", "scale"])
    assert isinstance(q, ScaleOffsetQuantizer)
    q._reparametrize_to_min_max()
    assert sorted(dict(q.named_parameters())) == ["max", "min"]
    assert isinstance(q, MinMaxQuantizer)
    assert not isinstance(q, ScaleOffsetQuantizer)
    assert (bits(q.get_scale()), bits(q.get_offset()), q.symmetric) == (s, o, symmetric)


def test_scale_and_offset_as_parameters() -> None:
    q = QuantizeDequantize((2,), 8, False)
    q._reparametrize_to_scale_offset()
    assert not q.is_initialized()
    with pytest.raises(ValueError, match="max alone"):
        q.set_range(None, 1.0)
    q.set_range(torch.tensor([0.5, -1.0]), 2.0)
    assert q.is_initialized()
    assert bits(q.get_scale()) == bits(torch.tensor([1.5, 3.0]) / 255)
    assert q.get_offset().tolist() == [85.0, -85.0], "the range may leave out zero"
    q.set_range(None, 3.0)
    assert q.get_offset().tolist() == [51.0, -64.0]
    with torch.no_grad():
        q.offset.copy_(torch.tensor([2.5, -0.4]))
        q.scale.copy_(torch.tensor([-0.5, 1e-12]))
    assert q.get_offset().tolist() == [2.0, -0.0]
    assert q.get_scale().tolist() == [0.5, 2.0**-23]
    y = q(torch.tensor([0.2, 0.3])).as_subclass(Tensor)
    ds, do = torch.autograd.grad(y, [q.scale, q.offset], torch.ones(2))
    assert do.tolist() == [0.5, 2.0**-23], "the clipped ends move with the offset, straight through its rounding"
    assert ds.tolist()[1] == 0.0, "the least scale stops it"
    q.symmetric = True
    assert q.offset is None
    q.requires_grad_(False)
    assert q.get_offset().tolist() == [-128.0, -128.0]
    q.symmetric = False
    assert q.get_offset().tolist() == [-128.0, -128.0]
    assert not q.offset.requires_grad
    q.requires_grad_()
    q.symmetric = True
    q.symmetric = False
    assert q.offset.requires_grad


def test_exact_range_finds_what_there_is() -> None:
    """Every scale of a width is found again, and none that no width gives."""
    for n, k in product((3, 15, 255, 65535), range(2)):
        widths = torch.linspace(1.0, 2.0, 400)[k::2]
        scale = widths / n
        offset = torch.full_like(scale, -(n // 2))
        found = exact_range(scale, offset, 0, n, symmetric=False)
        assert found is not None
        assert bits((found[1] - found[0]) / n) == bits(scale)
        assert bits(torch.round(found[0] / scale)) == bits(offset)
    # The widths on both sides of 3 * s, s = 2 - 2^-22, give its neighbours.
    s, width = torch.tensor(2 - 2**-22), torch.tensor(6 - 2**-20)
    neighbours = [float(w / 3) for w in (width, torch.nextafter(width, torch.tensor(9.0)))]
    assert neighbours == [2 - 3 * 2**-23, 2 - 2**-23]
    assert exact_range(s, torch.tensor(0.0), 0, 3, symmetric=False) is None
