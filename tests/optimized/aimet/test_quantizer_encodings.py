"""Encodings that a quantizer gives and takes, also in the older format, and groups of blocks."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet import affine
from halfeven.optimized.aimet.affine import (
    AffineEncoding,
    GroupedBlockEncoding,
    GroupedBlockQuantizeDequantize,
    Quantize,
    QuantizeDequantize,
)
from halfeven.reference import FORMULAS

GRIDS = ((0, 255), (-128, 127), (-8, 7), (0, 3), (-7, 7), (1, 4), (-(2**15), 2**15 - 1))


def bits(t: Tensor) -> list[int]:
    found: list[int] = t.detach().as_subclass(Tensor).contiguous().view(torch.int32).flatten().tolist()
    return found


def scales(n: int) -> Tensor:
    """Scales of every last digit, some of which no width gives."""
    return 2.0 ** torch.linspace(-3, 3, n) * (1 + torch.arange(n) % 7 * 2.0**-23)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("each", [True, False])
def test_from_encodings(grid: tuple[int, int], symmetric: bool, shift: float, each: bool) -> None:
    """Exact to the bit, whether a range has the scale or not. Upstream: some scales change, and there is no shift."""
    scale, n = scales(40 if each else 200), grid[1] - grid[0]
    offset = torch.full_like(scale, -round(sum(grid) / 2))
    if not symmetric:
        offset = -grid[0] - (torch.arange(len(scale)) * 7 % (n + 1)).float()
        offset[0] = -0.0
    kinds = set()
    for s, o in zip(scale, offset, strict=True) if each else [(scale.view(20, 10), offset.view(20, 10))]:
        encoding = AffineEncoding(s, o, *grid, symmetric, (-1,) * s.dim() or None, shift)
        q = QuantizeDequantize.from_encodings(encoding)
        found = q.get_encodings()
        assert found is not None
        assert (bits(found.scale), bits(found.offset)) == (bits(s), bits(o))
        assert (q.qmin, q.qmax, q.symmetric, q.block_size) == (*grid, symmetric, encoding.block_size)
        assert (q.zero_point_shift, q.shape, q.is_initialized()) == (shift, tuple(s.shape), True)
        kinds.add(isinstance(q, affine.MinMaxQuantizer))
        fresh = QuantizeDequantize(s.shape, 8, symmetric=False)
        fresh.load_state_dict(q.state_dict())
        assert bits(fresh.get_scale()) == bits(s)
    if each and n in {3, 15}:
        assert kinds == {True, False}, "some ranges give the scale, some do not"
    if each and n == 255:
        assert True in kinds


def test_set_encodings() -> None:
    """Upstream: not implemented."""
    q = QuantizeDequantize((2,), 8, False, block_size=(3,))
    before = q.min
    q.set_encodings(AffineEncoding(torch.tensor([0.5, 0.25]), torch.tensor([-3.0, -1.0]), 0, 15, False, None, 0.5))
    assert (q.qmin, q.qmax, q.block_size, q.zero_point_shift) == (0, 15, None, 0.5)
    assert q.min is before, "in place"
    assert (q.min.tolist(), q.max.tolist()) == ([-1.5, -0.25], [6.0, 3.5])
    unreachable = torch.tensor([2 - 2**-22, 1.0])
    q.set_encodings(AffineEncoding(unreachable, torch.tensor([0.0, -1.0]), 0, 3))
    assert isinstance(q, affine.ScaleOffsetQuantizer)
    assert bits(q.get_scale()) == bits(unreachable)
    q.set_encodings(AffineEncoding(torch.tensor([0.5, 0.25]), torch.tensor([0.0, 0.0]), -8, 7, True))
    assert (q.symmetric, q.offset, q.get_scale().tolist()) == (True, None, [0.5, 0.25])
    low = QuantizeDequantize.from_encodings(AffineEncoding(torch.tensor(0.5), torch.tensor(-0.0), 0, 15))
    assert isinstance(low, affine.MinMaxQuantizer)
    assert bits(low.get_offset()) == bits(low.min) == bits(torch.tensor(-0.0))
    half = QuantizeDequantize((), 8, False).to(torch.float16)
    half.set_encodings(AffineEncoding(torch.tensor(0.1), torch.tensor(-7.0), 0, 255))
    assert bits(half.get_scale()) == bits(torch.tensor(0.1))


@pytest.mark.parametrize(
    ("encoding", "error", "words"),
    [
        ((torch.ones(3), torch.zeros(3), 0, 15), RuntimeError, "of shape (3,)"),
        ((torch.tensor([1.0, 1e-9]), torch.zeros(2), 0, 15), ValueError, "scale=9.99"),
        ((torch.tensor([1.0, -1.0]), torch.zeros(2), 0, 15), ValueError, "scale=-1.0"),
        ((torch.ones(2), torch.tensor([0.0, 0.5]), 0, 15), ValueError, "offset=0.5"),
        ((torch.ones(2), torch.tensor([0.0, 1.0]), -8, 7, True), ValueError, "offset=1.0"),
    ],
)
def test_encodings_that_no_quantizer_has(encoding: tuple[Any, ...], error: type[Exception], words: str) -> None:
    q = QuantizeDequantize((2,), 8, False)
    q.set_range(-1.0, 1.0)
    kept = str(q), q.min.tolist()
    with pytest.raises(error) as raised:
        q.set_encodings(AffineEncoding(*encoding))
    assert words in str(raised.value)
    assert (str(q), q.min.tolist()) == kept


def test_refused_kinds() -> None:
    for kind in (Quantize, GroupedBlockQuantizeDequantize):
        with pytest.raises(TypeError, match="encodings=None"):
            kind.from_encodings(None)
    with pytest.raises(TypeError, match="encodings=None"):
        Quantize((), 8, True).set_encodings(None)
    with pytest.raises(TypeError, match="GroupedBlockEncoding"):
        GroupedBlockQuantizeDequantize.from_encodings(AffineEncoding(torch.ones(2), torch.zeros(2), 4, True, True))
    with pytest.raises(RuntimeError, match="zero_point_shift"):
        Quantize.from_encodings(AffineEncoding(torch.ones(2), torch.zeros(2), 4, True, True, None, 0.5))


def test_the_older_name() -> None:
    q = QuantizeDequantize((), 8, False)
    with pytest.warns(DeprecationWarning, match="get_encodings"):
        assert q.get_encoding() is None


def test_legacy_encodings() -> None:
    q = QuantizeDequantize((2, 1), 8, True)
    assert q.get_legacy_encodings() is None
    q.set_range(-1.0, [[0.5], [2.0]])
    legacy = q.get_legacy_encodings()
    assert legacy is not None
    assert [e["offset"] for e in legacy] == [-128, -128]
    other = QuantizeDequantize((2, 1), 4, False)
    other.set_legacy_encodings(legacy)
    assert (other.qmin, other.qmax, other.symmetric) == (-128, 127, True)
    assert (other.min.tolist(), other.max.tolist()) == ([[e["min"]] for e in legacy], [[e["max"]] for e in legacy])
    unsigned = [{"min": -1.0, "max": 2.0, "bitwidth": 4, "is_symmetric": "FALSE", "zero_point_shift": 0.5}] * 2
    other.set_legacy_encodings(unsigned)
    assert (other.qmin, other.qmax, other.symmetric, other.zero_point_shift) == (0, 15, False, 0.5)
    for bad, error in (("maybe", ValueError), (None, ValueError)):
        with pytest.raises(error, match="is_symmetric"):
            other.set_legacy_encodings([{**unsigned[0], "is_symmetric": bad}])
    with pytest.raises(RuntimeError):
        other.set_legacy_encodings(unsigned * 2)


X = torch.tensor([[-1.3, 0.4, 2.2, -0.1, 0.05, 0.3], [0.7, -0.2, 0.31, 3.9, -7.5, 0.6]])


def grouped(groups: tuple[int, ...] | None = (1, -1), **options: Any) -> GroupedBlockQuantizeDequantize:
    return GroupedBlockQuantizeDequantize((2, 3), 4, True, 8, block_size=(1, 2), block_grouping=groups, **options)


@pytest.mark.parametrize("groups", [(1, -1), (1, 3), (-1, 1), (2, 3), None])
def test_groups(groups: tuple[int, ...] | None) -> None:
    """Inside ``compute_encodings`` as after it. Upstream: inside without groups."""
    q, plain = grouped(groups), QuantizeDequantize((2, 3), 4, True, block_size=(1, 2))
    with q.compute_encodings(), plain.compute_encodings():
        inside, raw = q(X), plain(X)
    encoding = q(X).encoding
    assert isinstance(encoding, GroupedBlockEncoding)
    wanted = FORMULAS["aimet/lpbq_scale"].function(q.min.detach().numpy(), q.max.detach().numpy(), 4, 8, groups)
    for name, value in wanted.items():
        assert bits(getattr(encoding, name)) == bits(torch.from_numpy(value))
    assert bits(q.get_scale()) == bits(encoding.scale)
    assert bits(q.get_per_channel_scale()) == bits(encoding.per_channel_scale)
    assert bits(inside) == bits(q(X))
    assert (bits(inside) == bits(raw)) is (groups is None)
    again = GroupedBlockQuantizeDequantize.from_encodings(encoding)
    assert (again.decompressed_bw, again.block_grouping) == (8, groups or (1, 1))
    assert bits(again.get_scale()) == bits(encoding.scale)
    assert bits(again(X)) == bits(q(X))
    other = GroupedBlockQuantizeDequantize((2, 3), 4, True, 5)
    other.set_encodings(encoding)
    assert (other.decompressed_bw, other.block_grouping) == (8, groups or (1, 1))
    assert bits(other(X)) == bits(q(X))


def test_gradient_of_groups() -> None:
    """Ranges of 15 steps of scales 16, 5.4 and 3, in a group: k is 16, 5 and 3, of c = 1."""
    q = GroupedBlockQuantizeDequantize((3,), 4, True, 8, block_size=(1,), block_grouping=(-1,))
    raw = torch.tensor([16.0, 5.4, 3.0])
    q.min, q.max = torch.nn.Parameter(-8 * raw), torch.nn.Parameter(7 * raw)
    assert q.get_scale().tolist() == [16.0, 5.0, 3.0]
    with torch.no_grad():
        q.max[2], q.min[2] = 0.4, -0.4
    assert q.get_scale().tolist() == [16.0, 5.0, 1.0], "k is 1 at least"
    q.set_range(-8 * raw, 7 * raw)
    g = torch.tensor([1.0, 10.0, 100.0])
    d_min, d_max = torch.autograd.grad(q.get_scale(), [q.min, q.max], g)
    # d scale / d raw is 1, and what c adds, R - u of each, goes to the block that gives it: c = raw / 16.
    residual = torch.tensor([0.0, 5.0, 3.0]) - torch.tensor([0.0, 1.0, 1.0]) * (8 * raw + 7 * raw) / 15
    extra = (g * residual).sum() / 16
    assert bits(d_max) == bits((g + torch.tensor([1.0, 0.0, 0.0]) * extra) / 15)
    assert bits(d_min) == bits(-d_max)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"symmetric": False}, "symmetric=False"),
        ({"decompressed_bw": 3}, "decompressed_bw=3"),
        ({"block_grouping": (1,)}, "block_grouping=(1,)"),
        ({"block_grouping": (1, 2)}, "block_grouping=(1, 2)"),
        ({"block_grouping": (1, 0)}, "block_grouping=(1, 0)"),
    ],
)
def test_refused_groups(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"shape": (2, 3), "bitwidth": 4, "symmetric": True, "decompressed_bw": 8}
    with pytest.raises(RuntimeError) as raised:
        GroupedBlockQuantizeDequantize(**given | change)
    assert words in str(raised.value)


def test_scales_that_are_no_multiples() -> None:
    encoding = GroupedBlockEncoding(
        torch.tensor([16.0, 5.5]), torch.zeros(2), 4, True, True, (1,), (2,), 8, torch.tensor([1.0])
    )
    with pytest.raises(ValueError, match="whole multiples, 1 to 16"):
        GroupedBlockQuantizeDequantize.from_encodings(encoding)


def test_no_warning_is_left() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grouped()
