"""Any arguments at all: compiled operators accept what the torch path accepts, agree with it, and touch nothing else.

What the torch path refuses, the kernels refuse before they run, by an exception. ``make sanitize`` runs this file with
kernels built under AddressSanitizer and UndefinedBehaviorSanitizer.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from halfeven.optimized import kernels
from halfeven.optimized.kernels import chunked
from halfeven.optimized.operators import schemas

EXAMPLES = int(os.environ.get("HALFEVEN_FUZZ", "150"))
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
CODES = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32)
OTHERS = (torch.int64, torch.uint32, torch.uint64, torch.bool, torch.complex64, torch.float8_e4m3fn)
VALUES = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -3.5,
    7.25,
    127.5,
    -128.5,
    255.0,
    3e4,
    -7e4,
    1e-45,
    3e38,
    torch.inf,
    -torch.inf,
    torch.nan,
]
SCALES = [0.5, 0.5, 0.1, 1.0, 1e-45, 1e-39, 3e38, 0.0, -0.5, torch.inf, torch.nan]
ENDS = [0, 1, 3, 4, 7, 15, 127, 128, 255, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**53, 2**63 - 1]
REFUSALS = (RuntimeError, TypeError, ValueError, NotImplementedError, OverflowError)


def mostly(*usual: Any, rarely: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 19).flatmap(lambda n: st.sampled_from(rarely if n == 0 else usual))


@st.composite
def tensors(
    draw: st.DrawFn, shape: tuple[int, ...], dtypes: st.SearchStrategy[torch.dtype], values: list[float]
) -> Tensor:
    """A tensor of ``shape`` in one of many layouts, inside a larger buffer."""
    dtype = draw(dtypes)
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(mostly(1, rarely=(2, 3))) for _ in shape]
    strides, reach = [0] * len(shape), 1
    for d in order:
        strides[d] = 0 if draw(mostly(False, rarely=(True,))) else reach * steps[d]
        reach = max(reach, strides[d] * max(shape[d], 1))
    size = sum(stride * (n - 1) for stride, n in zip(strides, shape, strict=True) if n) + 1
    before = draw(st.integers(0, 3))
    chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=8))
    cycled = torch.tensor(chosen, dtype=torch.float64).repeat(before + size + 4)[: before + size + 4]
    wide = dtype.is_floating_point or dtype.is_complex
    return (cycled if wide else cycled.nan_to_num(0).clamp(0, 100)).to(dtype).as_strided(shape, strides, before)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    return tuple(draw(st.lists(mostly(1, 2, 3, 5, rarely=(0, 17, 70)), max_size=3)))


@st.composite
def parameters(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Tensor, Tensor | None, list[int] | None]:
    """Scale, zero point and blocks for an input of ``shape``; now and then of a shape that does not fit."""
    blocks = [draw(mostly(1, 2, 3, 4, 2**40, rarely=(0, -1, -(2**63)))) for _ in shape] if draw(st.booleans()) else None
    if blocks is not None and draw(mostly(False, rarely=(True,))):
        blocks = [*blocks, 1]

    def fitting() -> tuple[int, ...]:
        if draw(mostly(False, rarely=(True,))):
            return draw(shapes())
        if blocks is not None:
            return tuple(-(-n // max(b, 1)) for n, b in zip(shape, blocks, strict=False))
        kept = [n if draw(st.booleans()) else 1 for n in shape]
        return tuple(kept[draw(st.integers(0, len(kept))) :])

    scale = draw(tensors(fitting(), mostly(*FLOATS, rarely=(*CODES, *OTHERS)), SCALES))
    points = mostly(*FLOATS, *CODES, torch.int64, torch.uint32, rarely=OTHERS)
    zero_point = draw(tensors(fitting(), points, [0.0, -0.0, 3.0, -5.0, 0.5, 100.0])) if draw(st.booleans()) else None
    return scale, zero_point, blocks


def grids() -> st.SearchStrategy[tuple[int, int]]:
    ends = st.sampled_from([*ENDS, *(-e for e in ENDS)])
    usual = st.sampled_from(
        [(-8, 7), (0, 15), (-128, 127), (0, 255), (0, 1), (-1, 0), (3, 9), (0, 65535), (-(2**31), 2**31 - 1)]
    )
    return st.one_of(usual, usual, usual, st.tuples(ends, ends))


def calls(name: str) -> st.SearchStrategy[tuple[Any, ...]]:
    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[Any, ...]:
        shape = draw(shapes())
        reals = mostly(*FLOATS, rarely=(*CODES, *OTHERS))
        kinds = mostly(*FLOATS, *CODES, torch.int64, rarely=OTHERS) if name.startswith("dequantize") else reals
        x = draw(tensors(shape, kinds, VALUES))
        if name in ("aminmax", "amax"):
            return x, draw(parameters(shape))[2]
        scale, zero_point, blocks = draw(parameters(shape))
        arguments: list[Any] = [x, scale, zero_point]
        if not name.startswith("dequantize"):
            arguments += draw(grids())
        arguments.append(blocks)
        results = {"quantize": (x.dtype, *CODES), "dequantize": FLOATS}.get(name.removesuffix("_out"), (x.dtype,))
        if name in ("quantize", "dequantize"):
            arguments.append(draw(mostly(None, *results, rarely=(*FLOATS, *CODES, *OTHERS))))
        if name.startswith("dequantize"):
            arguments.append(draw(mostly(None, *FLOATS, rarely=OTHERS)))
        if name.startswith("quantize_dequantize"):
            arguments.append(draw(mostly(0.0, 0.5, rarely=(-0.25, torch.nan, torch.inf))))
        arguments.append(draw(st.booleans()))
        if name.endswith("_out"):
            kinds = mostly(*results, rarely=(*FLOATS, *CODES, *OTHERS))
            where = draw(mostly("apart", rarely=("x", "over")))
            out = draw(tensors(draw(mostly(shape, rarely=((), (2, 3)))), kinds, [1.0]))
            arguments.append({"apart": out, "x": x, "over": x.flatten()[: x.numel()].view_as(x)}[where])
        if name.endswith("_backward"):
            arguments += [draw(st.booleans()) for _ in range(3)]
            same = mostly(x.dtype if x.dtype.is_floating_point else torch.float32, rarely=FLOATS)
            arguments.insert(0, draw(tensors(draw(mostly(shape, rarely=((), (2, 3)))), same, VALUES)))
        return tuple(arguments)

    return drawn()


def at_odd_address(memory: Tensor) -> Tensor:
    """A copy in which no element of two bytes or more is at a multiple of its size."""
    return torch.frombuffer(bytearray(1) + bytes(memory.tolist()), dtype=torch.uint8, offset=1)


def copied(arguments: tuple[Any, ...], misaligned: Sequence[int] = ()) -> list[Any]:
    """The same arguments in memory of their own: each buffer is copied whole, and shared ones stay shared."""
    buffers: dict[int, Tensor] = {}

    def moved(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        storage = value.untyped_storage()
        if storage.data_ptr() not in buffers:
            copy = at_odd_address if storage.nbytes() and len(buffers) in misaligned else torch.clone
            buffers[storage.data_ptr()] = copy(torch.empty(0, dtype=torch.uint8).set_(storage))
        memory = buffers[storage.data_ptr()].view(value.dtype) if storage.nbytes() else value.clone()
        return memory.as_strided(value.shape, value.stride(), value.storage_offset())

    return [moved(value) for value in arguments]


def ran(function: Any, arguments: list[Any]) -> tuple[str, list[Tensor]]:
    """Refused or not, and all tensors afterwards: the results and the whole buffers of the arguments."""
    try:
        found = function(*arguments)
    except REFUSALS as error:
        assert str(error)  # noqa: PT017 - the message is looked at, not the type
        return "refused", []
    if found is None and arguments[-1].dtype.is_floating_point:  # an ``out``: any NaN equals any NaN
        arguments[-1].copy_(torch.where(arguments[-1].isnan(), torch.nan, arguments[-1]))
    results = [found] if isinstance(found, Tensor) else list(found or ())
    storages = {t.untyped_storage().data_ptr(): t for t in arguments if isinstance(t, Tensor)}
    return "accepted", [
        *results,
        *(torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage()) for t in storages.values()),
    ]


def same_bits(a: Tensor, b: Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.is_floating_point:
        numbers = ~(a.isnan() & b.isnan())
        a, b = (t[numbers].contiguous() for t in (a, b))
    # Without elements there are no bits, and torch views no bytes of such a tensor where its stride is not 1.
    if not a.numel():
        return True
    return torch.equal(*(t.reshape(-1).contiguous().view(torch.uint8) for t in (a, b)))


@pytest.mark.parametrize("dtype", [*FLOATS, *CODES])
def test_same_bits_of_tensors_without_elements(dtype: torch.dtype) -> None:
    for stride in (0, 1, 3):
        empty = torch.empty_strided((0,), (stride,), dtype=dtype)
        assert same_bits(empty, torch.empty(0, dtype=dtype))
        assert not same_bits(empty, torch.empty(0, dtype=torch.int64))
        assert not same_bits(empty, torch.empty(1, dtype=dtype))
        assert not same_bits(empty, torch.empty(0, 2, dtype=dtype))


@pytest.mark.skipif(not kernels.path().startswith("C++"), reason=f"no compiled kernels to try: {kernels.path()}")
@pytest.mark.parametrize("name", schemas.OPERATORS)
def test_any_arguments(name: str) -> None:
    # Else the torch path would be compared with itself.
    assert torch._C._dispatch_has_kernel_for_dispatch_key(f"halfeven::{name}", "CPU")
    accepted = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize="HALFEVEN_FUZZ" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls(name))
    def attempt(arguments: tuple[Any, ...]) -> None:
        nonlocal accepted
        with torch.no_grad():
            torch_path = ran(chunked.IMPLEMENTATIONS[name], copied(arguments))
        # As torch allocates memory, and with the first or all of it at odd addresses.
        for misaligned in ((), (0,), range(9)):
            with torch.no_grad():
                kernel = ran(getattr(schemas.OPS, name).default, copied(arguments, misaligned))
            assert kernel[0] == torch_path[0]
            assert len(kernel[1]) == len(torch_path[1])
            exact = name.endswith("_backward")  # sums of gradients may differ in the last place
            for i, (a, b) in enumerate(zip(kernel[1], torch_path[1], strict=True)):
                if not (exact and i in (1, 2)):
                    assert same_bits(a, b), (i, misaligned, a, b)
        accepted += torch_path[0] == "accepted"

    attempt()
    assert accepted > EXAMPLES // 5
