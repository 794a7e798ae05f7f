"""The table of call shapes: implementations wrong in one level of it are caught, right ones are not."""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.conformance.backends.offer import offer
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.engine.operation_calls import Asked, operation_calls, subject
from halfeven.conformance.engine.shapes import (
    AXES,
    block_levels,
    covering,
    dimensions,
    laid_out,
    operation_rows,
    possible,
    together,
)
from halfeven.reference import Grid

from .right import (
    EVERY,
    Seen,
    away,
    backend,
    by_block,
    dequantize,
    fake_quantize,
    first_difference,
    index,
    quantize,
    refused,
    refusing,
    when,
    with_numpy,
)

INT8 = Grid(-128, 127)


@cache
def asked(operation: str = "quantize", array: str = "torch", dtype: str = "float32") -> tuple[Asked, ...]:
    """The calls of the quick tier."""
    fn: Any = {"quantize": quantize, "dequantize": dequantize, "fake_quantize": fake_quantize}[operation]
    of = subject("onnx", operation, dtype, INT8)  # type: ignore[arg-type]
    return tuple(operation_calls(offer(backend(fn, operation, array=array)), of))


def dense(x: torch.Tensor) -> bool:
    return x.is_contiguous() or x.numel() < 2


def flat(t: torch.Tensor) -> torch.Tensor:
    """The memory from the first element on, as if the tensor were contiguous."""
    room = t.untyped_storage().nbytes() // t.element_size() - t.storage_offset()
    return torch.as_strided(t, (min(t.numel(), room),), (1,))


def taken_as_contiguous(condition: Callable[[torch.Tensor], bool], name: str = "x") -> Callable[[], Any]:
    def fn(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, **named: Any) -> torch.Tensor:
        given = {"x": x, "scale": scale, "zero_point": zero_point}
        t = given[name]
        if t.numel() > 1 and condition(t):
            given[name] = torch.nn.functional.pad(flat(t), (0, t.numel() - flat(t).numel())).reshape(t.shape)
        return quantize(*given.values(), **named)

    return lambda: fn


def cached(key: Callable[[Seen], Any], of: str = "result") -> Callable[[], Any]:
    """Keeps what it gave for what looks like the same call; or the scale that it had there."""

    def make() -> Any:
        kept: dict[Any, torch.Tensor] = {}

        def fn(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, **named: Any) -> torch.Tensor:
            k = key(Seen(x, scale, zero_point, named["block_size"], 0))
            if of == "scale":
                return quantize(x, kept.setdefault(k, scale.clone()), zero_point, **named)
            if k not in kept:
                kept[k] = quantize(x, scale, zero_point, **named)
            return kept[k].clone()

        return fn

    return make


def again(count: int) -> Callable[[Seen], bool]:
    """Whether the same call is made for the ``count``-th time in a row."""

    def condition(s: Seen) -> bool:
        same = s.earlier.get("key") == s.key
        s.earlier.update(key=s.key, times=s.earlier.get("times", 1) + 1 if same else 1)
        return bool(s.earlier["times"] == count and s.n > 1)

    return condition


def size_class(i: int) -> Callable[[Seen], bool]:
    return lambda s: min(AXES["size"][i]) <= s.n <= max(AXES["size"][i]) * 1.1


def at_offset(*rests: int) -> Callable[[Seen], bool]:
    return lambda s: s.x.data_ptr() // 4 % 16 in rests


def group(n: int) -> Callable[[Seen], bool]:
    return lambda s: (
        s.block is not None and s.block[-1] == n and all(b == 1 for b in s.block[:-1]) and s.x.shape[-1] != n
    )


def rows_of_one(s: Seen) -> bool:
    """Whether the blocks are the whole last dimension, one for each row."""
    return s.block is not None and s.x.ndim > 1 and s.block[-1] == s.x.shape[-1] and all(b == 1 for b in s.block[:-1])


def channel(s: Seen) -> bool:
    return s.block is not None and sum(b == 1 and n > 1 for b, n in zip(s.block, s.x.shape, strict=True)) == 1


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.detach().contiguous().view(torch.int32)


def of_parameter(marked: Callable[[Seen], torch.Tensor]) -> Callable[[Seen], torch.Tensor]:
    """A condition on each parameter, as one on each element of a call that has one or rows of them."""

    def condition(s: Seen) -> Any:
        found = marked(s)
        return (
            bool(found)
            if not found.ndim
            else found
            if s.block and all(n in {1, m} for n, m in zip(found.shape, s.x.shape, strict=True))
            else False
        )

    return condition


def off_by_one(marked: Callable[..., torch.Tensor], right: Any = quantize) -> Callable[[], Any]:
    """Gives another code, or real, where the result or the arguments are marked."""

    def fn(x: torch.Tensor, *rest: torch.Tensor, **named: Any) -> torch.Tensor:
        found = right(x, *rest, **named)
        return torch.where(marked(x, found, *rest), found + 1, found).to(found.dtype)

    return lambda: fn


def empty_is_flat(x: torch.Tensor, *rest: Any, **named: Any) -> torch.Tensor:
    return quantize(x, *rest, **named) if x.numel() else torch.empty(0, dtype=torch.int8)


def previous_block(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, **named: Any) -> torch.Tensor:
    """The short last block has the parameters of the one before it."""
    b = named["block_size"]
    if b is None or not x.shape[-1] % b[-1] or scale.shape[-1] < 2:
        return quantize(x, scale, zero_point, **named)
    s, z = scale.clone(), zero_point.clone()
    s[..., -1], z[..., -1] = s[..., -2], z[..., -2]
    return quantize(x, s, z, **named)


def first_channels(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, **named: Any) -> torch.Tensor:
    """From the 1024th parameter on they begin again."""
    if scale.numel() <= 1024:
        return quantize(x, scale, zero_point, **named)
    at = torch.arange(scale.numel()) % 1024
    s, z = (p.reshape(-1)[at].reshape(p.shape) for p in (scale, zero_point))
    return quantize(x, s, z, **named)


#: Implementations that are wrong in one level: each by the axis and the number of the class, or what else it is about.
WRONG: dict[tuple[Any, ...], Callable[[], Any]] = {
    ("size", 0): lambda: empty_is_flat,
    **{("size", i): when(size_class(i)) for i in range(1, 8)},
    ("size", 8): when(lambda s: s.n > 500_000),
    ("size", "above 2^16"): when(lambda s: s.n > 1 << 16),
    ("size", "above 2^20"): when(lambda s: s.n > 1 << 20),
    ("size", "from element 2^20 on"): when(lambda s: index(s.x) >= 1 << 20 if s.n > 1 << 20 else False),
    ("size", "from element 65,536 on"): when(lambda s: index(s.x) >= 1 << 16 if s.n > 1 << 16 else False),
    ("size", "the last n mod 8"): when(lambda s: index(s.x) >= s.n // 8 * 8 if s.n % 8 else False),
    ("size", "the last n mod 64"): when(lambda s: index(s.x) >= s.n // 64 * 64 if s.n % 64 and s.n > 64 else False),
    ("size", "the last of an odd number"): when(lambda s: index(s.x) == s.n - 1 if s.n % 2 and s.n > 2 else False),
    ("size", "a power of two"): when(lambda s: s.n >= 256 and s.n & (s.n - 1) == 0),
    ("size", "lane 7 of 8"): when(lambda s: index(s.x) % 8 == 7 if s.n > 7 else False),
    ("size", "lane 0 of 16"): when(lambda s: index(s.x) % 16 == 0 if s.n > 100 else False),
    ("rank", 0): when(lambda s: s.x.ndim == 1 and s.block is None and s.n > 4096),
    ("rank", 1): when(lambda s: s.x.ndim == 2 and s.block is None),
    ("rank", 2): when(lambda s: s.x.ndim == 4),
    ("rank", 3): when(lambda s: s.x.ndim == 5),
    ("rank", 4): when(lambda s: s.x.ndim == 0),
    ("rank", 5): when(lambda s: s.x.ndim == 3),
    ("rank", 6): when(lambda s: s.x.ndim >= 6),
    ("rank", "8"): when(lambda s: s.x.ndim == 8),
    ("layout", 0): when(lambda s: s.x.is_contiguous() and s.x.ndim == 3),
    ("layout", 1): taken_as_contiguous(lambda t: t.ndim > 1 and t.mT.is_contiguous() and not t.is_contiguous()),
    ("layout", 2): taken_as_contiguous(lambda t: t.ndim > 0 and t.stride()[-1] == 2),
    ("layout", 3): taken_as_contiguous(lambda t: t.ndim > 1 and t.stride()[-2] == t.shape[-1] + 3),
    ("layout", 4): taken_as_contiguous(
        lambda t: t.ndim == 4 and t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous()
    ),
    ("layout", "channels last in five dimensions"): taken_as_contiguous(
        lambda t: t.ndim == 5 and t.is_contiguous(memory_format=torch.channels_last_3d) and not t.is_contiguous()
    ),
    ("layout", 5): taken_as_contiguous(lambda t: t.ndim > 1 and t.stride()[0] == 0),
    ("layout", 6): taken_as_contiguous(lambda t: t.ndim > 0 and t.stride()[-1] == 0),
    ("layout", "any"): taken_as_contiguous(lambda t: not dense(t)),
    ("offset", 0): when(lambda s: s.x.data_ptr() % 64 == 0),
    ("offset", 1): when(at_offset(4, 8, 12)),
    ("offset", 2): when(at_offset(1, 5, 9, 13)),
    ("offset", 3): when(at_offset(2, 6, 10, 14)),
    ("offset", 4): when(at_offset(3, 7, 11, 15)),
    ("offset", "not of 64 bytes"): when(lambda s: s.x.data_ptr() % 64 != 0),
    ("offset", "not of 16 bytes"): when(lambda s: s.x.data_ptr() % 16 != 0),
    ("offset", "the first elements up to alignment"): when(
        lambda s: index(s.x) < (-(s.x.data_ptr() // 4) % 8) if s.x.data_ptr() % 32 else False
    ),
    ("parameters", 0): when(lambda s: s.scale.ndim == 0 and s.scale.storage_offset() == 64),
    ("parameters", 1): taken_as_contiguous(lambda t: not dense(t) and 0 not in t.stride(), "scale"),
    ("parameters", 2): taken_as_contiguous(lambda t: t.ndim > 0 and t.stride()[0] == 0, "scale"),
    ("parameters", 3): when(lambda s: s.scale.numel() > 1 and bool((s.scale == s.scale.flatten()[0]).all())),
    ("parameters", 4): when(
        lambda s: s.zero.numel() > 1 and bool((s.zero == s.zero.flatten()[0]).all() and s.zero.flatten()[0] != 0)
    ),
    ("parameters", 5): when(lambda s: s.n > 100 and bool((s.zero == 0).all())),
    ("parameters", 6): when(
        lambda s: bool((bits(s.scale) & 0x7FFFFF == 0).all()) and bool((s.scale != 1).any()), away
    ),
    ("parameters", 7): when(lambda s: bool((s.scale == 1).all()), away),
    ("parameters", 8): when(lambda s: s.scale.untyped_storage().data_ptr() == s.x.untyped_storage().data_ptr()),
    ("parameters", "zero points that are no vector"): taken_as_contiguous(lambda t: not dense(t), "zero_point"),
    ("parameters", "one zero point for all"): when(
        lambda s: s.zero.numel() > 64 and bool((s.zero == s.zero.flatten()[0]).all())
    ),
    ("block", "tensor"): when(lambda s: s.block is None and s.n > 10),
    ("block", "channel"): when(channel),
    ("block", "token"): when(rows_of_one),
    **{("block", f"group {n}"): when(group(n)) for n in (16, 32, 64, 128, 256)},
    ("block", "group 48"): when(lambda s: s.block is not None and s.block[-1] in {48, 100}),
    ("block", "block 2"): when(lambda s: s.block is not None and sum(b > 1 for b in s.block) > 2),
    ("block", "a short last block"): lambda: previous_block,
    ("block", "more than 1,024 parameters"): lambda: first_channels,
    ("block", "channels of the last axis"): when(lambda s: channel(s) and s.block[-1] == 1),
    ("threads", 0): when(lambda s: torch.get_num_threads() == 1 and s.n > 1000),
    ("threads", 1): when(lambda s: torch.get_num_threads() > 1),
    ("threads", "the borders of chunks"): when(
        lambda s: index(s.x) == s.n // 2 if torch.get_num_threads() > 1 and s.n > 32768 else False, away
    ),
    ("mode", 0): when(lambda s: torch.is_grad_enabled() and not s.x.requires_grad),
    ("mode", 1): when(lambda s: not torch.is_grad_enabled() and not torch.is_inference_mode_enabled()),
    ("mode", 2): when(lambda s: torch.is_inference_mode_enabled()),
    ("mode", 3): when(lambda s: s.x.requires_grad),
    ("repeats", 0): when(lambda s: s.calls == 1),
    ("repeats", 1): when(again(2)),
    ("repeats", "the third time"): when(again(3)),
    ("repeats", "kept by shape"): cached(lambda s: (s.x.shape, s.block)),
    ("repeats", "kept by address"): cached(lambda s: (s.x.data_ptr(), s.n)),
    ("repeats", "kept by identity"): cached(lambda s: id(s.x)),
    ("repeats", "the scale kept by address"): cached(lambda s: s.scale.data_ptr(), "scale"),
    ("repeats", "from the 500th call on"): when(lambda s: s.calls > 500),
    ("values", "zero point 77"): when(of_parameter(lambda s: s.zero == 77)),
    ("values", "zero point 77 of a tensor"): when(lambda s: s.zero.ndim == 0 and bool(s.zero == 77)),
    ("values", "zero point -101 in rows"): off_by_one(
        lambda x, q, s, z: (z == -101).broadcast_to(x.shape) if z.ndim and z.shape[1:] == (1,) else torch.tensor(False)
    ),
    ("values", "code 100"): off_by_one(lambda x, q, *_: q == 100),
    ("values", "code -128"): off_by_one(lambda x, q, *_: q == -128),
    ("values", "one exponent"): when(of_parameter(lambda s: bits(s.scale) >> 23 == 127 - 40)),
    ("values", "one large exponent"): when(of_parameter(lambda s: bits(s.scale) >> 23 == 127 + 60), away),
    ("values", "significands above 0x7f0000"): when(of_parameter(lambda s: bits(s.scale) & 0x7FFFFF > 0x7F0000)),
    ("values", "significands around 1.25"): when(of_parameter(lambda s: bits(s.scale) & 0x7F0000 == 0x200000)),
    ("values", "inputs above 2^31 codes"): off_by_one(lambda x, q, s, z: (x / spread_(s, x)).abs() > 2.0**31),
}  # fmt: skip


def spread_(s: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return s if not s.ndim or all(n in {1, m} for n, m in zip(s.shape, x.shape, strict=True)) else torch.ones(())


@pytest.mark.parametrize("level", WRONG, ids=lambda level: ": ".join(map(str, level)))
def test_what_is_wrong_in_one_level_is_caught(level):
    assert first_difference(backend(WRONG[level]()), asked()) is not None


def test_every_level_has_something_that_depends_on_it():
    numbered = {(axis, i) for axis, classes in AXES.items() if axis != "block" for i in range(len(classes))}
    numbered |= {("block", levels[0]) for levels in block_levels(EVERY, partial=True)}
    numbered.remove(("layout", [c[0] for c in AXES["layout"]].index("reversed")))  # NumPy's, below
    assert numbered <= WRONG.keys()


def test_reversed_arrays_are_asked_of_numpy_alone():
    def wrong(x: Any, *rest: Any, **named: Any) -> Any:
        negative = any(s < 0 for s in x.strides)
        return with_numpy(np.flip(x) if negative else x, *rest, **named)

    assert first_difference(backend(wrong, array="numpy"), asked(array="numpy"))
    assert not any(min(a.call.positional[0].strides, default=0) < 0 for a in asked())


DECODING = {
    "code 77": off_by_one(lambda q, found, *_: q == 77, dequantize),
    "zero point 77": off_by_one(lambda q, found, s, z: z == 77 if not z.ndim else torch.tensor(False), dequantize),
    "one exponent": off_by_one(
        lambda q, found, s, z: (bits(s) >> 23 == 127) & (q != 0) if not s.ndim else torch.tensor(False), dequantize
    ),
    "the last of 8": off_by_one(lambda q, found, *_: index(q) >= q.numel() // 8 * 8, dequantize),
    "above 2^16": off_by_one(lambda q, found, *_: torch.tensor(q.numel() > 1 << 16), dequantize),
}


@pytest.mark.parametrize("wrong", DECODING)
def test_what_is_wrong_in_dequantize_is_caught(wrong):
    assert first_difference(backend(DECODING[wrong](), "dequantize"), asked("dequantize"))


RIGHT: dict[str, tuple[Backend, str, str]] = {
    "quantize": (backend(quantize), "quantize", "torch"),
    "block by block": (backend(by_block), "quantize", "torch"),
    "with NumPy": (backend(with_numpy, array="numpy"), "quantize", "numpy"),
    "refusing blocks": (backend(refusing), "quantize", "torch"),
    "dequantize": (backend(dequantize, "dequantize"), "dequantize", "torch"),
    "fake_quantize": (backend(fake_quantize, "fake_quantize"), "fake_quantize", "torch"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_charged(name):
    tried, operation, array = RIGHT[name]
    assert first_difference(tried, asked(operation, array)) is None


def test_a_refusal_is_no_difference_and_is_seen():
    assert any(refused(backend(refusing), (a for a in asked() if (a.call.shape.size or 0) < 100)))


TENSOR = dict(AXES)
BLOCKED = {**AXES, "block": block_levels(EVERY[1:], partial=True), "size": AXES["size"][:-1]}


@pytest.mark.parametrize("axes", [TENSOR, BLOCKED], ids=["tensor", "blocks"])
def test_any_two_classes_that_go_together_meet(axes):
    rows = operation_rows(EVERY[:1] if axes is TENSOR else EVERY[1:], partial=True, negative=True)
    number = {(a, level): i for a, classes in axes.items() for i, levels in enumerate(classes) for level in levels}
    met = {
        pair
        for row in rows
        for pair in itertools.combinations([(a, number.get((a, getattr(row, a)))) for a in axes], 2)
    }
    lost = [
        (axes[a][i], axes[b][j])
        for a, b in itertools.combinations(axes, 2)
        for i, j in itertools.product(range(len(axes[a])), range(len(axes[b])))
        if ((a, i), (b, j)) not in met
        and any(possible({"block": block, a: axes[a][i][0], b: axes[b][j][0]}) for (block, *_) in axes["block"])
    ]
    assert len(lost) <= 12, lost  # those that a third axis forbids
    never = {(a, level) for a, level in number if not any(getattr(row, a) == level for row in rows)}
    blocks = [block for block, *_ in axes["block"]]
    assert not any(possible({"block": block, a: level}) for a, level in never for block in blocks), never
    assert len(rows) < 125


def test_a_design_is_the_same_again():
    assert covering(AXES) == covering(AXES)
    assert covering(AXES) != covering(AXES, seed=1)


@pytest.mark.parametrize("turn", range(6))
def test_dimensions_have_the_elements(turn):
    for size, rank in itertools.product((0, 1, 7, 64, 1000, 65537), range(1, 9)):
        sizes = dimensions(size, rank, turn)
        assert len(sizes) == rank
        assert size <= np.prod(sizes) <= size * 1.5 + 3
        assert dimensions(size, rank, turn, 16)[-1] % 16 == 0


def test_arrays_of_one_storage_keep_their_values():
    a, b = laid_out(np.arange(6.0), "stepped", 3), laid_out(np.arange(3.0), "contiguous", 1)
    first, second = together(a, b)
    assert first.memory is second.memory
    assert first.view().tolist() == list(range(6))
    assert second.view().tolist() == list(range(3))
