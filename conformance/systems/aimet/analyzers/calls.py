"""Calls of AIMET's calibration: the min-max analyzer, compute_encodings, and when a quantizer can run."""

from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, calls
from halfeven.reference.blocks import Array, Shape

__all__ = ["BLOCKS", "SHAPES", "lattice", "values"]

_F32 = np.float32
_STEPS = (1, 2, 3, 4, 14, 15, 254, 255, 65535)

SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((), ()),
    ((), (5,)),
    ((1,), (5,)),
    ((3,), (3,)),
    ((3,), (4, 3)),
    ((4, 1), (4, 3)),
    ((1, 3), (4, 3)),
    ((4, 3), (4, 3)),
    ((1, 3, 1), (2, 3, 2)),
    ((3, 1), (2, 3, 2)),
    ((2, 1, 2), (2, 3, 2)),
    ((1, 1, 1), (2, 3, 2)),
)
"""Shapes of the parameters, and of an input that they meet."""

BLOCKS: tuple[tuple[Shape, tuple[int, ...], Shape], ...] = (
    ((2,), (3,), (6,)),
    ((2,), (3,), (2, 6)),
    ((2, 3), (2, 2), (4, 6)),
    ((4, 2), (1, 3), (4, 6)),
    ((4, 2), (1, -1), (4, 6)),
    ((2, 1), (-1, 6), (4, 6)),
    ((2, 1, 2), (2, 3, 1), (4, 3, 2)),
    ((2, 2), (3, 1), (2, 6, 2)),
)
"""Shapes of the parameters, block sizes that fit, and shapes of inputs."""


def values(shape: Shape, seed: int, dtype: object = _F32, scale: float = 1.0) -> Array:
    """Normal numbers of ``shape``, the same every time."""
    numbers = np.random.default_rng(seed).standard_normal(shape) * scale
    return np.asarray(numbers).astype(np.dtype(dtype))  # type: ignore[call-overload]


def lattice(count: int, seed: int) -> Array:
    """Multiples of 1/8, many of which stand on the edges of bins."""
    return (np.random.default_rng(seed).integers(-24, 40, count) / 8).astype(_F32)


def _of(*numbers: float, dtype: object = _F32) -> tuple[Array, ...]:
    return (np.array(numbers, np.float64).astype(np.dtype(dtype)),)  # type: ignore[call-overload]


_RANGES = ((-1.0, 0.2), (-0.2, 1.0), (-1.0, 1.0), (-0.7, 5.3, 2.0), (-1e4, 3.3e3), (-2.5, 1e-6))


@calls("aimet/minmax_encodings", "asymmetric")
def _asymmetric() -> Iterator[Arguments]:
    for numbers, n in product(_RANGES, _STEPS):
        yield {"batches": _of(*numbers), "num_steps": n, "symmetric": False, "shape": ()}


@calls("aimet/minmax_encodings", "symmetric")
def _symmetric() -> Iterator[Arguments]:
    for numbers, n in product(_RANGES, _STEPS[3:]):
        yield {"batches": _of(*numbers), "num_steps": n, "symmetric": True, "shape": ()}
    for numbers in ((-3.04e-5, 0.0), (-3.04e-5, 1e-6), (-2.9e-5, 0.0), (-0.7, 0.3)):  # 127 steps below zero
        yield {"batches": _of(*numbers), "num_steps": 253, "symmetric": True, "shape": ()}


@calls("aimet/minmax_encodings", "two-bits")
def _two_bits() -> Iterator[Arguments]:
    for numbers, n in product((*_RANGES, (-1.0, 2.0), (-2.0, 1.0)), (2, 3, 4)):
        yield {"batches": _of(*numbers), "num_steps": n, "symmetric": True, "shape": ()}


@calls("aimet/minmax_encodings", "one-symmetric-bit")
def _one_bit() -> Iterator[Arguments]:
    for numbers in (*_RANGES, (-1.0, -0.5), (0.5, 1.0), (0.0, 0.0)):
        yield {"batches": _of(*numbers), "num_steps": 1, "symmetric": True, "shape": ()}
    low = np.array([[-1.0, 2.0], [-3.0, -0.5]], _F32)
    yield {"batches": (low,), "num_steps": 1, "symmetric": True, "shape": (2, 1)}


@calls("aimet/minmax_encodings", "zero-included")
def _zero_included() -> Iterator[Arguments]:
    for numbers, n in product(((0.5, 2.0), (-3.0, -1.0), (7.0,), (-7.0,), (0.0, 0.0, 1.0), (-1.0, 0.0)), (15, 255)):
        for symmetric in (False, True):
            yield {"batches": _of(*numbers), "num_steps": n, "symmetric": symmetric, "shape": ()}
    for n in (15, 255):
        yield {"batches": _of(-0.0, -0.0), "num_steps": n, "symmetric": False, "shape": ()}


@calls("aimet/minmax_encodings", "narrow")
def _narrow() -> Iterator[Arguments]:
    for n in (3, 15, 255, 65535, 2**17 - 1, 2**32 - 1):
        least = _F32(min(2.0**-23, 0.01 / n))
        edge = [float(least * _F32(n) * k) for k in (_F32(0.25), _F32(1) - _F32(2**-23), _F32(1), _F32(1.5))]
        for e, symmetric in product((0.0, 1e-42, *edge), (False, True)):
            for numbers in ((0.0, e), (-e / 2, e / 2), (-e, -e / 4)):
                if any(numbers) or numbers == (0.0, 0.0):
                    call = {"num_steps": n, "symmetric": symmetric, "shape": ()}
                    yield {"batches": _of(*(abs(v) if v == 0 else v for v in numbers)), **call}


@calls("aimet/minmax_encodings", "shapes")
def _shapes() -> Iterator[Arguments]:
    for (shape, given), symmetric in product(SHAPES, (False, True)):
        yield {"batches": (values(given, 1),), "num_steps": 255, "symmetric": symmetric, "shape": shape}


@calls("aimet/minmax_encodings", "blocks")
def _blocks() -> Iterator[Arguments]:
    for (shape, blocks, given), symmetric in product(BLOCKS, (False, True)):
        call = {"batches": (values(given, 2),), "num_steps": 15, "symmetric": symmetric}
        yield {**call, "shape": shape, "block_size": blocks}
    yield {**call, "shape": (1, 3), "block_size": (4,), "batches": (values((4, 12), 3),)}  # entries left out
    yield {**call, "shape": (4, 3), "block_size": (4,), "batches": (values((4, 12), 3),)}


@calls("aimet/minmax_encodings", "batches")
def _batches() -> Iterator[Arguments]:
    for symmetric in (False, True):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric}
        yield {**call, "shape": (), "batches": (*_of(-1.0, 0.5), *_of(0.25, 3.0), *_of(-0.5, 0.1))}
        yield {**call, "shape": (), "batches": (*_of(2.0, 3.0), *_of(1.0), *_of(-4.0, -3.0))}
        yield {**call, "shape": (3, 1), "batches": (values((3, 4), 4), values((3, 2), 5, scale=3), values((3, 4), 6))}
        blocks = {"shape": (2, 2), "block_size": (1, 3)}
        yield {**call, **blocks, "batches": (values((2, 6), 7), values((3, 2, 6), 8, scale=3))}


@calls("aimet/minmax_encodings", "dtypes")
def _dtypes() -> Iterator[Arguments]:
    for dtype, symmetric, n in product(
        (np.float64, np.float16, ml_dtypes.bfloat16), (False, True), (3, 15, 255, 65535)
    ):
        call: Arguments = {"num_steps": n, "symmetric": symmetric}
        yield {**call, "batches": (values((3, 5), 9, dtype),), "shape": (3, 1)}
        yield {**call, "batches": (values((3, 5), 10, dtype, 1e-7),), "shape": (3, 1)}
        yield {**call, "batches": (values((7,), 11, dtype, 3e-6), values((7,), 12, dtype, 1e-6)), "shape": ()}
        yield {**call, "batches": _of(-1.0, 1.0, dtype=dtype), "shape": ()}
        yield {**call, "batches": _of(-60000.0, 65000.0, dtype=dtype), "shape": ()}
        # 2^-24 per step of 17 bits: the least scale itself, as float16 rounds it
        yield {**call, "batches": _of(0.0, 0.0078, dtype=dtype), "num_steps": 2**17 - 1, "shape": ()}


@calls("aimet/minmax_encodings", "non-finite")
def _non_finite() -> Iterator[Arguments]:
    inf, nan = float("inf"), float("nan")
    for numbers in ((nan, 1.0), (-1.0, nan), (inf, -1.0), (-inf, 1.0), (inf, -inf), (inf, nan), (-3e38, 3e38)):
        for symmetric, dtype in product((False, True), (_F32, np.float16, ml_dtypes.bfloat16, np.float64)):
            call: Arguments = {"num_steps": 255, "symmetric": symmetric, "shape": ()}
            yield {**call, "batches": _of(*numbers, dtype=dtype)}
            yield {**call, "batches": (*_of(0.5, dtype=dtype), *_of(*numbers, dtype=dtype), *_of(-0.5, dtype=dtype))}


@calls("aimet/minmax_encodings", "misfit-blocks")
def _misfit() -> Iterator[Arguments]:
    for shape, blocks, given in (((2, 3), (4, 1), (4, 6)), ((2,), (3,), (2, 3)), ((3, 2), (1, 4), (4, 6))):
        call: Arguments = {"num_steps": 15, "symmetric": False, "batches": (values(given, 13),)}
        yield {**call, "shape": shape, "block_size": blocks}


@calls("aimet/minmax_encodings", "refusals")
def _refusals() -> Iterator[Arguments]:
    for symmetric in (False, True):
        call: Arguments = {"batches": _of(1.0, 2.0, 3.0), "num_steps": 15, "symmetric": symmetric, "shape": ()}
        yield {**call, "num_steps": 0}
        yield {**call, "num_steps": -1}
        yield {**call, "batches": ()}
        yield {**call, "batches": (np.zeros(0, _F32),)}
        yield {**call, "batches": (np.zeros((2, 0), _F32),), "shape": (2, 1)}
        yield {**call, "batches": (np.arange(3),)}
        yield {**call, "shape": (2,)}
        yield {**call, "shape": (1, 3)}
        yield {**call, "shape": (1, 3), "block_size": (1, 1)}
        yield {**call, "shape": (3,), "block_size": (1, 1)}
        yield {**call, "shape": (2,), "block_size": (2,)}
        yield {**call, "shape": (2,), "block_size": (-1,)}


@calls("aimet/compute_encodings", "bitwidths")
def _bitwidths() -> Iterator[Arguments]:
    for bitwidth, symmetric in product((1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16), (False, True)):
        if bitwidth > 1 or not symmetric:
            call = {"bitwidth": bitwidth, "symmetric": symmetric}
            yield {**call, "batches": (values((3, 5), 14),), "shape": (3, 1)}
            yield {**call, "batches": (np.zeros(3, _F32),), "shape": ()}


@calls("aimet/compute_encodings", "one-symmetric-bit")
def _one_symmetric_bit() -> Iterator[Arguments]:
    for numbers in ((-1.0, 1.0), (-0.5, 3.0), (-2.0, -1.0), (0.5, 2.0)):
        yield {"batches": _of(*numbers), "bitwidth": 1, "symmetric": True, "shape": ()}


@calls("aimet/compute_encodings", "batches")
def _compute_batches() -> Iterator[Arguments]:
    for symmetric in (False, True):
        call: Arguments = {"bitwidth": 8, "symmetric": symmetric}
        yield {**call, "batches": (*_of(-1.0, 0.5), *_of(0.25, 3.0), *_of(-0.5, 0.1)), "shape": ()}
        yield {**call, "batches": (values((3, 4), 4), values((3, 2), 5, scale=3), values((3, 4), 6)), "shape": (3, 1)}
        yield {**call, "batches": (*_of(-1.0, 0.5), np.zeros(0, _F32)), "shape": ()}


@calls("aimet/compute_encodings", "shapes")
def _compute_shapes() -> Iterator[Arguments]:
    for (shape, given), symmetric in product(SHAPES, (False, True)):
        yield {"batches": (values(given, 15),), "bitwidth": 8, "symmetric": symmetric, "shape": shape}


@calls("aimet/compute_encodings", "blocks")
def _compute_blocks() -> Iterator[Arguments]:
    for (shape, blocks, given), symmetric in product(BLOCKS, (False, True)):
        call: Arguments = {"batches": (values(given, 16),), "bitwidth": 4, "symmetric": symmetric}
        yield {**call, "shape": shape, "block_size": blocks}


@calls("aimet/compute_encodings", "dtypes")
def _compute_dtypes() -> Iterator[Arguments]:
    for dtype, symmetric in product((np.float64, np.float16, ml_dtypes.bfloat16), (False, True)):
        call: Arguments = {"symmetric": symmetric, "shape": ()}
        yield {**call, "batches": _of(-1.0, 1.0, dtype=dtype), "bitwidth": 8}
        yield {**call, "batches": (values((6,), 17, dtype),), "bitwidth": 4}


@calls("aimet/compute_encodings", "non-finite")
def _compute_non_finite() -> Iterator[Arguments]:
    inf, nan = float("inf"), float("nan")
    for numbers, symmetric in product(((nan, 1.0), (inf, -1.0), (-inf, 1.0), (inf, -inf)), (False, True)):
        yield {"batches": _of(*numbers), "bitwidth": 8, "symmetric": symmetric, "shape": ()}


@calls("aimet/compute_encodings", "least-scale")
def _compute_least_scale() -> Iterator[Arguments]:
    for bitwidth, symmetric in product((16, 17, 24), (False, True)):
        yield {"batches": _of(-1e-9, 1e-9), "bitwidth": bitwidth, "symmetric": symmetric, "shape": ()}


@calls("aimet/compute_encodings", "uninitialized")
def _uninitialized() -> Iterator[Arguments]:
    for symmetric, batches in product((False, True), ((), (np.zeros(0, _F32),), (np.zeros((0, 3), _F32),))):
        yield {"batches": batches, "bitwidth": 8, "symmetric": symmetric, "shape": ()}


@calls("aimet/compute_encodings", "refusals")
def _compute_refusals() -> Iterator[Arguments]:
    call: Arguments = {"batches": (values((4, 6), 18),), "bitwidth": 8, "symmetric": False, "shape": ()}
    yield {**call, "bitwidth": 0}
    yield {**call, "batches": (np.arange(3),)}
    yield {**call, "shape": (4,)}
    yield {**call, "shape": (1, 4, 6)}
    yield {**call, "shape": (2, 3), "block_size": (4, 1)}
    yield {**call, "shape": (4, 3), "block_size": (2,)}
    yield {**call, "shape": (3,), "block_size": (4, 2)}


@calls("aimet/is_initialized", "documented")
def _documented() -> Iterator[Arguments]:
    yield {"steps": ()}
    yield {"steps": ("assign min",)}
    yield {"steps": ("assign max",)}
    yield {"steps": ("assign min", "assign max")}
    yield {"steps": ("calibrate",)}


@calls("aimet/is_initialized", "other-ways")
def _other_ways() -> Iterator[Arguments]:
    for step in ("fill min", "fill max", "range", "range min", "range max", "calibrate nothing", "calibrate and fail"):
        yield {"steps": (step,)}
        yield {"steps": (step, "assign min")}
        yield {"steps": (step, "range max")}
        yield {"steps": ("fill max", step)}
    yield {"steps": ("calibrate", "calibrate nothing")}
