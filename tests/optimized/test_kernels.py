"""The compiled kernels of the forward operators have the bits of the torch path, on every instruction set."""

import itertools
import math
import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from halfeven.optimized import kernels
from halfeven.optimized.kernels import chunked
from halfeven.optimized.operators.schemas import OPS

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiled kernels here: " + kernels.path())

REALS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
CODES = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32)
GRIDS = (
    (-1, 0),
    (0, 1),
    (-8, 7),
    (-127, 127),
    (-128, 127),
    (0, 255),
    (1, 200),
    (-2048, 2047),
    (-32768, 32767),
    (0, 65535),
)
WIDE = ((-(2**23), 2**23 - 1), (-(2**31), 2**31 - 1))
# Those that a reciprocal in two parts does not serve: see core/reciprocal.h.
RECIPROCAL = tuple(map(float.fromhex, ("0x1.dcfffcp+0", "0x1.e9fffcp+0", "0x1.fffffep+0")))
# Ordinary ones, the neighbours of a power of two, subnormal in float32, huge, and no scales at all.
SCALES = (0.0123, 1.0, 1 - 2**-24, 1 + 2**-23, 3e-39, 2.0**-126, 1e30, 0.0, math.inf, math.nan, -0.25)


def bits(t: Tensor) -> Tensor:
    """As integers; NaN is one of them, whatever its sign and payload."""
    if not t.dtype.is_floating_point:
        return t.to(torch.int64)
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    t = torch.where(t.isnan(), torch.full((), math.nan, dtype=t.dtype), t)
    return t.contiguous().view(kind).to(torch.int64)


def same(name: str, *arguments: object) -> None:
    """The operator on each instruction set, into a fresh result and into a given one, against the torch path."""
    operator, into = getattr(OPS, name).default, getattr(OPS, name + "_out").default
    expected = chunked.IMPLEMENTATIONS[name](*arguments)
    rest = [a for a, s in zip(arguments, operator._schema.arguments, strict=True) if s.name != "dtype"]
    wanted = bits(expected)
    for isa in kernels.available():
        kernels.choose(isa)
        given = torch.empty_like(expected)
        found = operator(*arguments)
        assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
        assert torch.equal(bits(found), wanted), witness(isa, found, expected, arguments)
        into(*rest, given)
        assert torch.equal(bits(given), wanted), witness(isa, given, expected, arguments)


def witness(isa: str, found: Tensor, expected: Tensor, arguments: tuple[object, ...]) -> str:
    at = (bits(found) != bits(expected)).flatten().nonzero()[0].item()
    x = arguments[0]
    assert isinstance(x, Tensor)
    return (
        f"{isa}: x={x.flatten()[at]!r}: {found.flatten()[at]!r}, expected {expected.flatten()[at]!r}; {arguments[1:]}"
    )


def boundaries(dtype: torch.dtype, s: float, codes: tuple[int, ...]) -> Tensor:
    """The ties at and around ``codes`` with their neighbours, the ends of the dtype, and the specials."""
    s = s if math.isfinite(s) and s else 1.0
    around = [torch.tensor([(k + h) * s for k in codes for h in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)], dtype=torch.float64)]
    t = around[0].to(dtype)
    inf = torch.tensor(math.inf, dtype=dtype)
    info = torch.finfo(dtype)
    ends = [0.0, info.max, info.tiny, info.tiny * info.eps, 1e-3 * info.max]
    special = torch.tensor([v * sign for v in ends for sign in (1, -1)] + [math.inf, -math.inf, math.nan], dtype=dtype)
    return (
        torch.cat([t, t.nextafter(inf), t.nextafter(-inf), special])
        if dtype.itemsize > 2
        else torch.cat([t, *(step(t, by) for by in (1, -1)), special])
    )


def step(t: Tensor, by: int) -> Tensor:
    return (t.view(torch.int16) + by).view(t.dtype)


@pytest.mark.parametrize("s", RECIPROCAL)
def test_every_tie(s: float) -> None:
    x = torch.tensor([(k + 0.5) * s for k in range(-1025, 1025)], dtype=torch.float64).float()
    x = torch.cat([x, x.nextafter(torch.tensor(math.inf)), x.nextafter(torch.tensor(-math.inf))])
    same("quantize", x, torch.tensor(s), None, -1023, 1023, None, None, False)
    same("quantize_dequantize", x, torch.tensor(s), None, -1023, 1023, None, 0.0, False)


def near(qmin: int, qmax: int, z: int) -> tuple[int, ...]:
    wanted = (qmin - z, qmin - z + 1, -z, 0, 1, 2, 100, qmax - z - 1, qmax - z)
    return tuple(sorted({*wanted, *(-w for w in wanted)}))


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("s", SCALES)
def test_grids(dtype: torch.dtype, s: float) -> None:
    scale = torch.tensor(s, dtype=torch.float64)
    for (qmin, qmax), z in itertools.product((*GRIDS, *WIDE), (0, 3)):
        x = boundaries(dtype, s, near(qmin, qmax, z))
        zero = torch.tensor(z)
        for codes in (*CODES, None):
            info = torch.finfo(dtype) if codes is None else torch.iinfo(codes)
            if qmin < info.min or qmax > info.max or (codes is None and qmax - qmin >= 2 / torch.finfo(dtype).eps):
                continue
            same("quantize", x, scale, zero, qmin, qmax, None, codes, False)
        same("quantize_dequantize", x, scale, zero, qmin, qmax, None, 0.0, False)
        same("quantize_dequantize", x, scale, zero, qmin, qmax, None, 0.5, True)


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_offsets_of_every_kind(dtype: torch.dtype) -> None:
    x = boundaries(dtype, 0.1, (-129, -1, 0, 1, 127, 128))
    scale = torch.tensor(0.1, dtype=dtype)
    values = (0.0, -0.0, 0.5, -2.25, 200.0, 3e4, 1e30, math.inf, -math.inf, math.nan)
    floats = [torch.tensor(v, dtype=d) for v in values for d in REALS]
    integers = [
        torch.tensor(v, dtype=d)
        for d in (*CODES, torch.uint32, torch.int64)
        for v in (0, 1, 100, torch.iinfo(d).min, torch.iinfo(d).max)
    ]
    for zero, offset in itertools.product((None, *floats, *integers), (False, True)):
        for codes in (torch.int8, torch.uint8, torch.int32, None):
            ends = (0, 255) if codes == torch.uint8 else (-128, 127)
            same("quantize", x, scale, zero, *ends, None, codes, offset)
        same("quantize_dequantize", x, scale, zero, -128, 127, None, 0.0, offset)
        same("quantize_dequantize", x, scale, zero, -128, 127, None, 0.5, offset)
        same("dequantize", x, scale, zero, None, None, None, offset)


@pytest.mark.parametrize("stored", [*REALS, *CODES, torch.int64], ids=str)
def test_dequantize(stored: torch.dtype) -> None:
    if stored.is_floating_point:
        q = boundaries(stored, 1.0, (-129, -1, 0, 1, 255, 256, 2049))
    else:
        info = torch.iinfo(stored)
        q = torch.tensor([info.min, info.min + 1, 0, 1, 3, 127, info.max - 1, info.max] * 9, dtype=stored)
    for result, compute, kind in itertools.product((None, *REALS), (None, *REALS), REALS):
        scale = torch.tensor(0.0123, dtype=kind)
        for zero, offset in ((None, False), (torch.tensor(-150), False), (torch.tensor(-0.0), True)):
            same("dequantize", q, scale, zero, None, result, compute, offset)


def layouts() -> Iterator[tuple[str, Tensor]]:
    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))) * 3

    yield "0-d", random()
    yield "empty", random(3, 0, 2)
    yield "one", random(1, 1)
    yield "rows", random(37, 100)
    yield "short rows", random(70, 3)
    yield "long rows", random(3, 2051)
    yield "transposed", random(33, 70).t()
    yield "channels last", random(2, 17, 5, 6).contiguous(memory_format=torch.channels_last)
    yield "every other", random(20, 66)[:, ::2]
    yield "every other row", random(40, 64)[::2]
    yield "expanded", random(1, 70).expand(9, 70)
    yield "expanded along", random(9, 1).expand(9, 70)
    yield "five", random(3, 4, 2, 5, 6).permute(2, 0, 4, 1, 3)
    yield "offset by one", random(101)[1:]


@pytest.mark.parametrize("x", [pytest.param(x, id=name) for name, x in layouts()])
@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_layouts(x: Tensor, dtype: torch.dtype) -> None:
    x = x.to(dtype) if 0 in x.stride() else torch.empty_like(x, dtype=dtype).copy_(x)
    generator = torch.Generator().manual_seed(0)
    shapes = {
        tuple(n if kept else 1 for n, kept in zip(x.shape, keep, strict=True))
        for keep in itertools.product((0, 1), repeat=x.ndim)
    }
    shapes |= {x.shape[d:] for d in range(x.ndim + 1)}
    for shape in sorted(shapes):
        scale = torch.rand(shape, generator=generator) * 0.05 + 0.01
        for zero in (None, torch.tensor(2), torch.randint(-9, 9, shape, generator=generator), torch.full((), 0.5)):
            same("quantize", x, scale, zero, -128, 127, None, torch.int8, False)
            same("quantize_dequantize", x, scale, zero, -128, 127, None, 0.0, False)
        same(
            "dequantize",
            x.to(torch.float64).mul(20).clamp(-99, 99).to(torch.int8),
            scale,
            None,
            None,
            dtype,
            None,
            False,
        )
    full = torch.rand(x.shape, generator=generator) + 0.01
    for given in (full.t(), full[..., ::1]) if x.ndim == 2 else (full,):
        scale = given.reshape(x.shape[::-1]).t() if given.shape != x.shape else given
        same("quantize", x, scale, scale.to(torch.int32), 0, 255, None, torch.uint8, True)


BLOCKS = (
    ((64, 96), (1, 32)), ((64, 96), (32, 1)), ((64, 96), (16, 16)), ((64, 96), (7, 13)), ((5, 100), (2, 32)),
    ((5, 100), (1, 128)), ((3, 4, 50), (2, 3, 16)), ((2, 3, 4, 5), (1, 2, 3, 2)), ((4000,), (32,)), ((4003,), (4,)),
    ((40, 64), (1, 64)), ((9, 1024), (1, 128)), ((6, 6), (6, 6)), ((6, 6), (2**62, 1)), ((0, 5), (2, 2)), ((), ()),
)  # fmt: skip


@pytest.mark.parametrize(("shape", "block"), BLOCKS, ids=str)
@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_blocks(shape: tuple[int, ...], block: tuple[int, ...], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(shape, generator=generator) * 3).to(dtype)
    blocks = tuple(-(-n // b) for n, b in zip(shape, block, strict=True))
    scale = torch.rand(blocks, generator=generator) * 0.05 + 0.01
    zero = torch.randint(-5, 5, blocks, generator=generator)
    inputs = [(x, scale, zero)]
    if len(shape) == 2:
        inputs.append((x.t().contiguous().t(), scale.t().contiguous().t(), zero))
        inputs.append((torch.stack([x, x], 2)[:, :, 1], scale, None))
    for x_, s, z in inputs:
        same("quantize", x_, s, z, -128, 127, block, torch.int8, False)
        same("quantize", x_, s, z, -128, 127, block, None, False)
        same("quantize_dequantize", x_, s, z, -8, 7, block, 0.0, False)
        same("quantize_dequantize", x_, s, z, -8, 7, block, 0.5, False)
        same("dequantize", x_, s, z, block, None, torch.float32, False)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_threads(dtype: torch.dtype, threads: int) -> None:
    torch.set_num_threads(threads)
    x = torch.randn(3, 40_961, generator=torch.Generator().manual_seed(threads)).to(dtype)
    for shape in ((), (3, 1), (40_961,)):
        scale = torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 0.02 + 0.01
        same("quantize", x, scale, None, -128, 127, None, torch.int8, False)
        same("quantize_dequantize", x, scale, None, -128, 127, None, 0.0, False)


@pytest.mark.parametrize(("dtype", "rows"), [(torch.float32, 110), (torch.bfloat16, 180)], ids=str)
def test_results_past_the_caches(dtype: torch.dtype, rows: int) -> None:
    # Codes and reals are 2 MiB and more; a result that starts where vectors do, and one that does not.
    kernels.past_caches(2**21)
    piece = torch.randn(4099, generator=torch.Generator().manual_seed(0)).to(dtype)
    columns = torch.rand(4099, generator=torch.Generator().manual_seed(1)) * 0.02 + 0.01
    memory = torch.empty(rows * 4099 + 1, dtype=dtype)
    for scale, first in itertools.product((torch.tensor(0.02), columns), (0, 1)):
        out = memory[first : first + rows * 4099].view(rows, 4099)
        grid = (scale, torch.tensor(3), -128, 127, None)
        OPS.quantize_dequantize_out.default(piece.repeat(rows, 1), *grid, 0.0, False, out.fill_(9))
        expected = bits(chunked.IMPLEMENTATIONS["quantize_dequantize"](piece, *grid, 0.0, False))
        assert all(torch.equal(bits(row), expected) for row in out)
        codes = chunked.IMPLEMENTATIONS["quantize"](piece, *grid, torch.int8, False)
        OPS.dequantize_out.default(codes.repeat(rows, 1), scale, torch.tensor(3), None, None, False, out.fill_(9))
        expected = bits(chunked.IMPLEMENTATIONS["dequantize"](codes, scale, torch.tensor(3), None, dtype, None, False))
        assert all(torch.equal(bits(row), expected) for row in out)


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_in_place(dtype: torch.dtype) -> None:
    for x in (torch.randn(1000), torch.randn(40, 50).t(), torch.randn(40, 50)[:, ::3]):
        given = torch.empty_like(x, dtype=dtype).copy_(x) if x.is_contiguous() else x.to(dtype)
        scale = torch.rand(given.shape[-1:]) + 0.01
        expected = chunked.IMPLEMENTATIONS["quantize_dequantize"](given, scale, None, -128, 127, None, 0.0, False)
        OPS.quantize_dequantize_out.default(given, scale, None, -128, 127, None, 0.0, False, given)
        assert torch.equal(bits(given), bits(expected))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_shift_is_rounded_to_the_dtype_of_the_arithmetic(dtype: torch.dtype) -> None:
    x = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype)
    for scale in (0.3, 0.01, 1.7):
        for shift, zero_point in itertools.product((0.3, 1e-12), (None, torch.tensor(-0.0))):
            same("quantize_dequantize", x, torch.tensor(scale, dtype=dtype), zero_point, -8, 7, None, shift, True)


@pytest.mark.exhaustive
@pytest.mark.skipif(os.environ.get("HALFEVEN_EXHAUSTIVE") != "1", reason="opt-in: HALFEVEN_EXHAUSTIVE=1, some minutes")
@pytest.mark.skipif(len(kernels.available()) < 2, reason="only vector kernels have a reciprocal")
def test_every_significand_of_scales() -> None:
    """A division, which the other instruction set does, gives the codes of the reciprocal: see core/reciprocal.h."""
    step = 2**6  # what fits into the cache
    middles = torch.arange(1024, dtype=torch.float64) + 0.5
    for first in range(0, 2**23, step):
        s = (torch.arange(first, first + step, dtype=torch.int32) + 0x3F800000).view(torch.float32)[:, None]
        tie = (middles * s.double()).float().view(torch.int32)
        x = torch.stack([tie + d for d in range(-2, 3)], 2).view(torch.float32).flatten(1)
        codes = []
        for isa in kernels.available():
            kernels.choose(isa)
            codes.append(OPS.quantize.default(x, s, None, -1023, 1023, None, None, False).view(torch.int32))
        assert all(torch.equal(codes[0], each) for each in codes[1:]), f"significands from {first:#x}"
