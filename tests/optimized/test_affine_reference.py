"""``optimized.affine`` against ``halfeven.reference``, bit for bit, at code boundaries and up to 3 ulp around them."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch

from halfeven.conformance.inputs import boundaries
from halfeven.optimized import affine
from halfeven.reference import Grid, model
from halfeven.reference.systems import PROFILES

Array = npt.NDArray[Any]

AIMET = PROFILES["aimet"]
DTYPES = {
    "float32": (torch.float32, torch.int32),
    "float64": (torch.float64, torch.int64),
    "float16": (torch.float16, torch.int16),
    "bfloat16": (torch.bfloat16, torch.int16),
}
GRIDS = (Grid(0, 1), Grid(-8, 7), Grid(0, 255), Grid(-128, 127), Grid(-127, 127), Grid(-(2**15), 2**15 - 1), Grid(3, 3))
# Scale and zero-point shapes, and the block size, for inputs of shape (3, 5, 7).
GRANULARITIES: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
    "tensor": ((), None),
    "channel": ((5, 1), None),
    "token": ((3, 5, 1), None),
    "group": ((3, 5, 2), (1, 1, 4)),
    "block": ((2, 3, 1), (2, 2, 9)),
    "whole-blocks": ((3, 1, 7), (1, 5, 1)),
}


def numpy_dtype(name: str) -> "np.dtype[Any]":
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def to_torch(a: Array, name: str) -> torch.Tensor:
    dtype, carrier = DTYPES[name]
    return (
        torch.from_numpy(np.ascontiguousarray(a).view(str(carrier).removeprefix("torch."))).view(dtype).reshape(a.shape)
    )


def bit_patterns(t: torch.Tensor, name: str) -> Array:
    """The bits as integers; every NaN is one, since no document tells one from another."""
    pattern = t.contiguous().view(DTYPES[name][1]).numpy()
    return np.where(t.isnan().numpy(), -1, pattern)


def expected_bits(a: Array, name: str) -> Array:
    pattern = np.ascontiguousarray(a).view(str(DTYPES[name][1]).removeprefix("torch.")).reshape(a.shape)
    return np.where(np.isnan(a), -1, pattern)


def around_boundaries(grid: Grid, scale: Array, zero: Array, rng: np.random.Generator, size: int) -> Array:
    """For each element a code boundary of its own scale and zero point, moved by -3 to 3 ulp, and some specials."""
    dtype = scale.dtype
    codes = rng.integers(max(grid.qmin - 2, -(2**15)), min(grid.qmax + 2, 2**15), size=(size, *scale.shape))
    with np.errstate(all="ignore"):
        x = ((codes - zero + rng.choice([0.0, 0.5], codes.shape)) * scale.astype(np.float64)).astype(dtype)
        carrier = np.dtype(f"int{8 * dtype.itemsize}")
        moved = (x.view(carrier) + rng.integers(-3, 4, x.shape).astype(carrier)).view(dtype)
    info = ml_dtypes.finfo(dtype)
    specials = [np.nan, np.inf, -np.inf, 0.0, -0.0, float(info.max), float(info.smallest_subnormal), -1.0]
    flat = moved.reshape(-1)
    flat[rng.permutation(flat.size)[: 4 * len(specials)]] = np.resize(np.asarray(specials, dtype), 4 * len(specials))[
        : flat.size
    ]
    return moved


def case(name: str, granularity: str, grid: Grid, seed: int) -> tuple[Array, Array, Array, tuple[int, ...] | None]:
    rng = np.random.default_rng(seed)
    shape, block = GRANULARITIES[granularity]
    # A power of two by a random significand: wide enough to tell a reciprocal, narrow enough for float16.
    scale = np.asarray(np.exp2(rng.integers(-6, 3, shape)) * rng.uniform(1, 2, shape)).astype(numpy_dtype(name))
    span = grid.qmax - grid.qmin
    zero = np.asarray(rng.integers(grid.qmin - span // 4, grid.qmax + span // 4 + 1, shape))
    full = (3, 5, 7)
    if block is not None:
        index = np.ix_(*(np.arange(n) // b for n, b in zip(full, block, strict=True)))
        s, z = scale[index], zero[index]
    else:
        s, z = np.broadcast_to(scale, full), np.broadcast_to(zero, full)
    x = around_boundaries(grid, np.ascontiguousarray(s), z, rng, 20)
    # 20 draws side by side along a leading dimension of one block.
    return x, scale[None] if block else scale, zero[None] if block else zero, (len(x), *block) if block else None


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_same_bits_as_the_aimet_profile(grid: Grid, name: str, granularity: str) -> None:
    dtype = numpy_dtype(name)
    wide = model.compute_dtype(AIMET.model, dtype, dtype, grid)
    for seed in range(3):
        x, scale, zero, block = case(name, granularity, grid, seed)
        tx, ts, tz = to_torch(x, name), to_torch(scale, name), torch.from_numpy(np.asarray(zero))
        offset = -zero

        real = AIMET.fake_quantize(x, scale, offset, grid, block)
        fake = affine.quantize_dequantize(tx, ts, tz, qmin=grid.qmin, qmax=grid.qmax, block_size=block)
        np.testing.assert_array_equal(bit_patterns(fake, name), expected_bits(real, name))

        codes = AIMET.quantize(x.astype(wide), scale.astype(wide), offset, grid, block)
        if all(
            int(np.asarray(end).astype(dtype)) == end for end in (grid.qmin, grid.qmin + 1, grid.qmax - 1, grid.qmax)
        ):
            q = affine.quantize(tx, ts, tz, qmin=grid.qmin, qmax=grid.qmax, block_size=block)
            np.testing.assert_array_equal(bit_patterns(q, name), expected_bits(codes.astype(dtype), name))

        integer = torch.int32 if grid.qmin < 0 else torch.uint16
        q = affine.quantize(tx, ts, tz, qmin=grid.qmin, qmax=grid.qmax, block_size=block, dtype=integer)
        nan_to_zero_point = replace(AIMET.model, nan="zero-point")
        np.testing.assert_array_equal(q.numpy(), model.quantize(nan_to_zero_point, x, scale, offset, grid, block))

        back = AIMET.dequantize(q.numpy().astype(np.int64), scale, offset, grid, dtype, block)
        r = affine.dequantize(q, ts, tz, block_size=block)
        np.testing.assert_array_equal(bit_patterns(r, name), expected_bits(back, name))


WIDE = [Grid.from_bitwidth(b, signed=s) for b in (17, 24, 25, 31, 32) for s in (True, False)]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("grid", WIDE, ids=str)
def test_codes_that_float32_does_not_hold(grid: Grid, name: str) -> None:
    """Boundaries, ends and what lies beyond, with zero points at the ends; codes of 32 bits go back to float32."""
    dtype, scales = numpy_dtype(name), np.array([1, 0.1, 0.75, 2.0**-20], np.float32)
    for z in (0, 1, -3, grid.qmin, grid.qmax):
        s, zero = scales.astype(np.float64), np.full(scales.shape, z)
        with np.errstate(all="ignore"):
            each = [boundaries.boundaries(s, zero, grid, dtype), boundaries.edges(s, zero, grid, dtype)]
            x = np.concatenate([*each, boundaries.huge(s, dtype)], axis=1)
        given = to_torch(x, name), torch.from_numpy(scales)[:, None], torch.tensor(z)
        expected = scales[:, None], np.asarray(float(-z))
        fake = affine.quantize_dequantize(*given, qmin=grid.qmin, qmax=grid.qmax)
        np.testing.assert_array_equal(
            bit_patterns(fake, name), expected_bits(AIMET.fake_quantize(x, *expected, grid), name)
        )
        if grid.qmax >= 2**31:
            with pytest.raises(ValueError, match=r"dtype=torch.int32 is not accepted|does not hold|qmax"):
                affine.quantize(*given, qmin=grid.qmin, qmax=grid.qmax, dtype=torch.int32)
            continue
        codes = model.quantize(AIMET.model, x, *expected, grid)
        q = affine.quantize(*given, qmin=grid.qmin, qmax=grid.qmax, dtype=torch.int32)
        np.testing.assert_array_equal(q.numpy(), codes)
        assert codes.min() == grid.qmin
        assert codes.max() == grid.qmax
        back = affine.dequantize(q, *given[1:], dtype=torch.float32).numpy()
        np.testing.assert_array_equal(back, AIMET.dequantize(codes, *expected, grid, np.dtype(np.float32)))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("scale_name", DTYPES)
def test_scale_of_another_dtype_is_cast_to_that_of_the_arithmetic(name: str, scale_name: str) -> None:
    grid = Grid(-128, 127)
    rng = np.random.default_rng(7)
    scale = np.asarray(0.0371, numpy_dtype(scale_name))
    x = around_boundaries(grid, np.full(64, 0.0371, numpy_dtype(name)), np.asarray(3), rng, 40)
    given = to_torch(x, name), to_torch(scale, scale_name), 3
    got = affine.quantize_dequantize(*given, qmin=-128, qmax=127)
    expected = AIMET.fake_quantize(x, scale, np.asarray(-3), grid)
    np.testing.assert_array_equal(bit_patterns(got, name), expected_bits(expected, name))


@pytest.mark.parametrize("name", DTYPES)
def test_scales_that_are_no_scales(name: str) -> None:
    values = [0.0, -0.0, -0.5, np.inf, -np.inf, np.nan, float(ml_dtypes.finfo(numpy_dtype(name)).smallest_subnormal)]
    scale = np.asarray(values, numpy_dtype(name))[:, None]
    x = np.resize(np.asarray([-1.0, -0.0, 0.0, 1.0, np.nan, np.inf, -np.inf, 2.5], numpy_dtype(name)), (len(values), 8))
    grid = Grid(-8, 7)
    for operation, function in (("quantize", affine.quantize), ("fake_quantize", affine.quantize_dequantize)):
        got = function(to_torch(x, name), to_torch(scale, name), 0, qmin=-8, qmax=7)
        expected = getattr(AIMET, operation)(x, scale, np.asarray(0), grid)
        np.testing.assert_array_equal(bit_patterns(got, name), expected_bits(expected, name))
