"""State dicts, copies, pickles and moves of quantizers."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from halfeven.conformance.backends.common import installed
from halfeven.conformance.backends.shim import shimmed_import
from halfeven.optimized.aimet import affine
from halfeven.optimized.aimet.affine import GroupedBlockQuantizeDequantize, Quantize, QuantizeDequantize
from halfeven.optimized.aimet.encoding_analyzer import PercentileEncodingAnalyzer

GRID = ("qmin", "qmax", "symmetric", "block_size", "zero_point_shift", "shape")
UPSTREAM = "aimet_torch.quantization"
needs_upstream = pytest.mark.skipif(installed("aimet-torch") is None, reason="aimet-torch is not installed")


def bits(t: Tensor) -> list[int]:
    found: list[int] = t.detach().as_subclass(Tensor).contiguous().view(torch.int32).flatten().tolist()
    return found


def made(value: bool = True, **options: Any) -> QuantizeDequantize:
    q = QuantizeDequantize((2, 3), -7, 8, True, block_size=(1, 4), zero_point_shift=0.5, **options)
    if value:
        q.set_range(torch.linspace(-1, -0.1, 6).view(2, 3), 1.0)
    return q


def settings(q: Any) -> list[Any]:
    found = [getattr(q, name) for name in GRID]
    assert [type(v) for v in found] == [int, int, bool, type(q.block_size), float, tuple]
    assert q.block_size is None or all(type(b) is int for b in q.block_size)
    return found


def words(value: Any) -> Any:
    """A state dict in words that tell dtype, shape and values."""
    if isinstance(value, dict):
        return {key: words(inner) for key, inner in value.items()}
    return str(value.dtype), tuple(value.shape), value.tolist()


def test_what_it_holds() -> None:
    yes, shape = ("torch.bool", (), True), (2, 3)
    own = {"qmin": ("torch.int64", (), -7), "qmax": ("torch.int64", (), 8), "symmetric": yes}
    own |= {"block_size": ("torch.int64", (2,), [1, 4]), "zero_point_shift": ("torch.float32", (), 0.5)}
    q = made()
    state = words(q.state_dict())
    assert list(state) == ["min", "max", "_extra_state"]
    assert state["max"] == ("torch.float32", shape, torch.ones(shape).tolist())
    assert state["_extra_state"] == {"min": yes, "max": yes, **own}
    plain = QuantizeDequantize((), 8, False).state_dict()["_extra_state"]
    assert words(plain)["block_size"] == ("torch.float32", (0,), [])
    assert words(plain)["min"] == ("torch.bool", (), False)


def test_two_quantizers_take_one_state() -> None:
    """Upstream takes the grid out of the state, and the second keeps its own."""
    q = made()
    state = q.state_dict()
    before = words(state)
    for _ in range(2):
        fresh = QuantizeDequantize((2, 3), 8, False)
        fresh.load_state_dict(state)
        assert words(state) == before
        assert settings(fresh) == settings(q)
        assert fresh.is_initialized()
        assert bits(fresh(torch.linspace(-2, 2, 24).view(2, 12))) == bits(q(torch.linspace(-2, 2, 24).view(2, 12)))


def test_without_a_value() -> None:
    fresh = QuantizeDequantize((2, 3), 8, False)
    fresh.set_range(-1.0, 1.0)
    fresh.load_state_dict(made(value=False).state_dict())
    assert not fresh.is_initialized()
    half = made(value=False)
    half.max = nn.Parameter(torch.ones(2, 3))
    fresh.load_state_dict(half.state_dict())
    assert not fresh.is_initialized()
    fresh.min = nn.Parameter(-torch.ones(2, 3))
    assert fresh.is_initialized()


def test_without_extra_state() -> None:
    state = {"min": -torch.ones(2, 3), "max": torch.ones(2, 3)}
    fresh = QuantizeDequantize((2, 3), 8, False)
    fresh.load_state_dict(state)
    assert list(state) == ["min", "max"]
    assert fresh.is_initialized()
    assert settings(fresh)[:3] == [0, 255, False]
    parent = nn.ModuleDict({"q": QuantizeDequantize((), 8, False)})
    with pytest.raises(RuntimeError, match=r"q\._extra_state"):
        parent.load_state_dict({"q.min": torch.tensor(-1.0), "q.max": torch.tensor(1.0)})


def test_inside_of_a_module() -> None:
    def parent(value: bool) -> Any:
        return nn.Sequential(nn.Linear(2, 2), made(value), Quantize((), 4, True))

    first, second = parent(value=True), parent(value=False)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    for assign in (False, True):
        second.load_state_dict(state, assign=assign)
        assert settings(second[1]) == settings(first[1])
        assert (second[1].is_initialized(), second[2].is_initialized()) == (True, False)
        assert bits(second[1].min) == bits(first[1].min)


def test_shapes_that_differ() -> None:
    state = made().state_dict()
    with pytest.raises(RuntimeError, match="size mismatch"):
        QuantizeDequantize((2, 1), 8, False).load_state_dict(state)
    fresh = QuantizeDequantize((2, 1), 8, False).requires_grad_(False)
    fresh.load_state_dict(state, strict=False)
    assert settings(fresh) == settings(made())
    assert bits(fresh.min) == bits(state["min"])
    assert not fresh.min.requires_grad
    fresh.load_state_dict({"min": torch.zeros(2, 3)}, strict=False)
    assert fresh.min.tolist() == [[0.0] * 3] * 2
    with pytest.raises(RuntimeError, match="Missing"):
        fresh.load_state_dict({"min": torch.zeros(2, 3)})


@pytest.mark.parametrize("symmetric", [True, False])
def test_scale_and_offset(symmetric: bool) -> None:
    """A quantizer takes the parameters that the state has."""
    q = QuantizeDequantize((2, 1), 8, symmetric)
    q.set_range(-1.0, torch.tensor([[0.5], [2.0]]))
    ends = q.state_dict()
    q._reparametrize_to_scale_offset()
    state = q.state_dict()
    assert list(state) == ["scale", *([] if symmetric else ["offset"]), "_extra_state"]
    for other in (QuantizeDequantize((2, 1), 4, not symmetric), copy.deepcopy(q)):
        other.load_state_dict(state)
        assert isinstance(other, affine.ScaleOffsetQuantizer)
        assert settings(other) == settings(q)
        assert (bits(other.get_scale()), bits(other.get_offset())) == (bits(q.get_scale()), bits(q.get_offset()))
        other.load_state_dict(ends)
        assert isinstance(other, affine.MinMaxQuantizer)
        assert bits(other.get_scale()) == bits(q.get_scale())


def test_the_groups() -> None:
    q = GroupedBlockQuantizeDequantize((2, 4), 4, True, 8, block_size=(1, 2), block_grouping=(1, 2))
    q.set_range(-torch.arange(1.0, 9.0).view(2, 4), 1.0)
    fresh = GroupedBlockQuantizeDequantize((2, 4), 4, True, 6, block_size=(1, 2))
    fresh.load_state_dict(q.state_dict())
    assert (fresh.decompressed_bw, fresh.block_grouping) == (8, (1, 2))
    assert bits(fresh.get_scale()) == bits(q.get_scale())
    upstream = q.state_dict()
    for name in ("decompressed_bw", "block_grouping"):
        del upstream["_extra_state"][name]
    fresh.load_state_dict(upstream)
    assert fresh.decompressed_bw == 8


def copies(q: Any) -> list[Any]:
    file = io.BytesIO()
    torch.save(q, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    return [copy.deepcopy(q), copy.copy(q), pickle.loads(pickle.dumps(q)), loaded]


def test_copies() -> None:
    for value in (False, True):
        for copied in copies(made(value)):
            assert copied.is_initialized() is value
            assert settings(copied) == settings(made())
            if not value:
                copied.set_range(-1.0, 1.0)
            assert copied(torch.ones(2, 12)).encoding.producer is copied
    q = made(value=False)
    with torch.no_grad():
        q.min.zero_()
    for copied in copies(q):
        assert not copied.is_initialized()
        with torch.no_grad():
            copied.max.zero_()
        assert copied.is_initialized()
    analyzer = PercentileEncodingAnalyzer((), 64, 99.0)
    assert type(copy.deepcopy(made(encoding_analyzer=analyzer)).encoding_analyzer) is PercentileEncodingAnalyzer


@pytest.mark.parametrize("swap", [False, True])
def test_moves(swap: bool) -> None:
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(swap)
    try:
        for value in (False, True):
            q = made(value)
            nn.ModuleList([q]).to(torch.bfloat16)
            assert (q.min.dtype, q.is_initialized()) == (torch.bfloat16, value)
            assert q.double().is_initialized() is value
        q = made(value=False).to("meta")
        assert not q.to_empty(device="cpu").is_initialized()
        with torch.no_grad():
            q.min.zero_()
            q.max.zero_()
        assert q.is_initialized()
        assert q.half().is_initialized()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


def test_scale_is_float32_where_the_parameters_are_not() -> None:
    q = QuantizeDequantize((), 8, False)
    q.set_range(-1.0, 2.0)
    q.bfloat16()
    encoding = q(torch.ones(2, dtype=torch.bfloat16)).encoding
    assert encoding.scale.dtype == encoding.offset.dtype == torch.float32
    assert bits(encoding.scale) == bits(torch.tensor(3.0) / 255)


@pytest.mark.library
@needs_upstream
def test_upstream_states() -> None:
    """Each takes the state of the other."""
    upstream = shimmed_import(UPSTREAM).affine
    x = torch.linspace(-2, 2, 24).view(2, 12)
    for options in ({"block_size": (1, 4), "zero_point_shift": 0.5}, {"block_size": (1, 4)}):
        theirs = upstream.QuantizeDequantize((2, 3), -8, 7, False, **options)
        with theirs.compute_encodings():
            theirs(x)
        ours = QuantizeDequantize((2, 3), 8, True)
        assert words(ours.state_dict()["_extra_state"]).keys() == words(theirs.state_dict()["_extra_state"]).keys()
        ours.load_state_dict(theirs.state_dict())
        assert words(ours.state_dict()) == words(theirs.state_dict())
        again = upstream.QuantizeDequantize((2, 3), 8, True)
        again.load_state_dict(ours.state_dict())
        assert bits(ours(x)) == bits(theirs(x)) == bits(again(x))
    fresh = QuantizeDequantize((), 8, True)
    fresh.set_range(-1, 1)
    fresh.load_state_dict(upstream.QuantizeDequantize((), 8, False).state_dict())
    assert not fresh.is_initialized()
    assert (fresh.qmin, fresh.block_size) == (0, None)
