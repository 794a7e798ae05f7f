"""What the documents require of AIMET's calibration by the least and the greatest value."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured
from halfeven.reference.blocks import Array, Shape

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS", "BLOCKS", "SHAPES", "lattice", "values"]

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


@documented("aimet/minmax_encodings", "QuantizeDequantize: parameter encoding_analyzer, the default")
def asymmetric() -> Calls:
    """The default calibration takes the least and the greatest value as the minimum and the maximum of an asymmetric
    grid."""
    for numbers, n in product(_RANGES, _STEPS):
        yield {"batches": _of(*numbers), "num_steps": n, "symmetric": False, "shape": ()}


@documented(
    "aimet/minmax_encodings", "QuantizeDequantize: parameters symmetric and encoding_analyzer (sides: measured)"
)
def _symmetric() -> Calls:
    """The default calibration makes the greatest magnitude of a symmetric grid fit its side of the grid, which has a
    step more below zero than above it where the steps are odd."""
    for numbers, n in product(_RANGES, _STEPS[3:]):
        yield {"batches": _of(*numbers), "num_steps": n, "symmetric": True, "shape": ()}
    for numbers in ((-3.04e-5, 0.0), (-3.04e-5, 1e-6), (-2.9e-5, 0.0), (-0.7, 0.3)):  # 127 steps below zero
        yield {"batches": _of(*numbers), "num_steps": 253, "symmetric": True, "shape": ()}


@measured("aimet/minmax_encodings", "aimet-torch 2.42")
def two_bits() -> Calls:
    """Of three symmetric steps the positive side counts as two, so that a maximum as far from zero as the minimum is
    clipped and no code is spare."""
    for numbers, n in product((*_RANGES, (-1.0, 2.0), (-2.0, 1.0)), (2, 3, 4)):
        yield {"batches": _of(*numbers), "num_steps": n, "symmetric": True, "shape": ()}


@expected("aimet/minmax_encodings", "QuantizeDequantize: parameters bitwidth and symmetric, no exception for one bit")
def one_symmetric_bit() -> Calls:
    """Finite values give a finite minimum and maximum on every grid: with one symmetric bit, which has no code above
    zero, by the negative values alone."""
    for numbers in (*_RANGES, (-1.0, -0.5), (0.5, 1.0), (0.0, 0.0)):
        yield {"batches": _of(*numbers), "num_steps": 1, "symmetric": True, "shape": ()}
    low = np.array([[-1.0, 2.0], [-3.0, -0.5]], _F32)
    yield {"batches": (low,), "num_steps": 1, "symmetric": True, "shape": (2, 1)}


@measured("aimet/minmax_encodings", "aimet-torch 2.42")
def zero_included() -> Calls:
    """The calibrated range has zero in it, the zero of the values where they have one."""
    for numbers, n in product(((0.5, 2.0), (-3.0, -1.0), (7.0,), (-7.0,), (0.0, 0.0, 1.0), (-1.0, 0.0)), (15, 255)):
        for symmetric in (False, True):
            yield {"batches": _of(*numbers), "num_steps": n, "symmetric": symmetric, "shape": ()}
    for n in (15, 255):
        yield {"batches": _of(-0.0, -0.0), "num_steps": n, "symmetric": False, "shape": ()}


@measured("aimet/minmax_encodings", "aimet-torch 2.42", aspect="narrow-range")
def narrow() -> Calls:
    """A range of less than the least scale per step is widened by that scale times the steps: upwards where it is
    asymmetric, on both sides where it is symmetric."""
    for n in (3, 15, 255, 65535, 2**17 - 1, 2**32 - 1):
        least = _F32(min(2.0**-23, 0.01 / n))
        edge = [float(least * _F32(n) * k) for k in (_F32(0.25), _F32(1) - _F32(2**-23), _F32(1), _F32(1.5))]
        for e, symmetric in product((0.0, 1e-42, *edge), (False, True)):
            for numbers in ((0.0, e), (-e / 2, e / 2), (-e, -e / 4)):
                if any(numbers) or numbers == (0.0, 0.0):
                    call = {"num_steps": n, "symmetric": symmetric, "shape": ()}
                    yield {"batches": _of(*(abs(v) if v == 0 else v for v in numbers)), **call}


@documented("aimet/minmax_encodings", "QuantizeDequantize: parameter shape (alignment: measured)")
def shapes() -> Calls:
    """The parameters' shape meets the last dimensions of the input, and an entry of 1 gathers its whole dimension."""
    for (shape, given), symmetric in product(SHAPES, (False, True)):
        yield {"batches": (values(given, 1),), "num_steps": 255, "symmetric": symmetric, "shape": shape}


@documented("aimet/minmax_encodings", "QuantizeDequantize: parameter block_size and the equation of blocks")
def _blocks() -> Calls:
    """The parameter of an element is the one at its index over the block size, rounded down, along every dimension."""
    for (shape, blocks, given), symmetric in product(BLOCKS, (False, True)):
        call = {"batches": (values(given, 2),), "num_steps": 15, "symmetric": symmetric}
        yield {**call, "shape": shape, "block_size": blocks}
    yield {**call, "shape": (1, 3), "block_size": (4,), "batches": (values((4, 12), 3),)}  # entries left out
    yield {**call, "shape": (4, 3), "block_size": (4,), "batches": (values((4, 12), 3),)}


@measured("aimet/minmax_encodings", "aimet-torch 2.42")
def _batches() -> Calls:
    """Several batches count as one: the least of their minima and the greatest of their maxima."""
    for symmetric in (False, True):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric}
        yield {**call, "shape": (), "batches": (*_of(-1.0, 0.5), *_of(0.25, 3.0), *_of(-0.5, 0.1))}
        yield {**call, "shape": (), "batches": (*_of(2.0, 3.0), *_of(1.0), *_of(-4.0, -3.0))}
        yield {**call, "shape": (3, 1), "batches": (values((3, 4), 4), values((3, 2), 5, scale=3), values((3, 4), 6))}
        blocks = {"shape": (2, 2), "block_size": (1, 3)}
        yield {**call, **blocks, "batches": (values((2, 6), 7), values((3, 2, 6), 8, scale=3))}


@measured("aimet/minmax_encodings", "aimet-torch 2.42")
def dtypes() -> Calls:
    """The range is computed in the wider of the input's dtype and float32, and kept in the input's."""
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


@measured("aimet/minmax_encodings", "aimet-torch 2.42")
def non_finite() -> Calls:
    """One NaN makes the range NaN; an infinity becomes the largest number of the dtype."""
    inf, nan = float("inf"), float("nan")
    for numbers in ((nan, 1.0), (-1.0, nan), (inf, -1.0), (-inf, 1.0), (inf, -inf), (inf, nan), (-3e38, 3e38)):
        for symmetric, dtype in product((False, True), (_F32, np.float16, ml_dtypes.bfloat16, np.float64)):
            call: Arguments = {"num_steps": 255, "symmetric": symmetric, "shape": ()}
            yield {**call, "batches": _of(*numbers, dtype=dtype)}
            yield {**call, "batches": (*_of(0.5, dtype=dtype), *_of(*numbers, dtype=dtype), *_of(-0.5, dtype=dtype))}


@documented("aimet/minmax_encodings", "QuantizeDequantize: the equation of blocks, an index over the block size")
def misfit_blocks() -> Calls:
    """Blocks that do not divide the input into the parameters' shape are an error."""
    for shape, blocks, given in (((2, 3), (4, 1), (4, 6)), ((2,), (3,), (2, 3)), ((3, 2), (1, 4), (4, 6))):
        call: Arguments = {"num_steps": 15, "symmetric": False, "batches": (values(given, 13),)}
        yield {**call, "shape": shape, "block_size": blocks}
    yield {**call, "shape": (1,), "block_size": (1,), "batches": (values((5,), 13),)}
    yield {**call, "shape": (2, 3), "block_size": (4, 1), "batches": (values((4, 6), 13), values((4, 5), 13))}
    yield {**call, "shape": (2, 3), "block_size": (2, 1), "batches": (values((4, 5), 13),)}
    yield {**call, "shape": (2, 3), "block_size": (2,), "batches": (values((4, 6), 13),)}
    yield {**call, "shape": (2, 3), "block_size": (4, -1), "batches": (values((4, 6), 13),)}
    yield {**call, "shape": (2,), "block_size": (-1,), "batches": (values((4, 5), 13), values((5,), 13))}


@measured("aimet/minmax_encodings", "aimet-torch 2.42")
def refusals() -> Calls:
    """No step, no batch, an empty batch, integers, and shapes that do not meet are errors."""
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
        yield {**call, "shape": (0,), "block_size": (1,)}


@documented("aimet/compute_encodings", "QuantizeDequantize: the note on initialisation, the first example")
def bitwidths() -> Calls:
    """Inside compute_encodings a quantizer takes the range of what it sees, from which scale and offset follow, for
    every bitwidth."""
    for bitwidth, symmetric in product((1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16), (False, True)):
        if bitwidth > 1 or not symmetric:
            call = {"bitwidth": bitwidth, "symmetric": symmetric}
            yield {**call, "batches": (values((3, 5), 14),), "shape": (3, 1)}
            yield {**call, "batches": (np.zeros(3, _F32),), "shape": ()}


@expected("aimet/compute_encodings", "QuantizeDequantize: parameters bitwidth and symmetric, no exception for one bit")
def _one_symmetric_bit() -> Calls:
    """Finite values leave a quantizer of one symmetric bit with finite parameters."""
    for numbers in ((-1.0, 1.0), (-0.5, 3.0), (-2.0, -1.0), (0.5, 2.0)):
        yield {"batches": _of(*numbers), "bitwidth": 1, "symmetric": True, "shape": ()}


@measured("aimet/compute_encodings", "aimet-torch 2.42", aspect="batches")
def compute_batches() -> Calls:
    """All batches with elements that the quantizer sees before the context ends count together."""
    for symmetric in (False, True):
        call: Arguments = {"bitwidth": 8, "symmetric": symmetric}
        yield {**call, "batches": (*_of(-1.0, 0.5), *_of(0.25, 3.0), *_of(-0.5, 0.1)), "shape": ()}
        yield {**call, "batches": (values((3, 4), 4), values((3, 2), 5, scale=3), values((3, 4), 6)), "shape": (3, 1)}
        yield {**call, "batches": (*_of(-1.0, 0.5), np.zeros(0, _F32)), "shape": ()}


@documented("aimet/compute_encodings", "QuantizeDequantize: parameter shape", aspect="shapes")
def compute_shapes() -> Calls:
    """Minimum, maximum, scale and offset have the shape that the quantizer was made with."""
    for (shape, given), symmetric in product(SHAPES, (False, True)):
        yield {"batches": (values(given, 15),), "bitwidth": 8, "symmetric": symmetric, "shape": shape}


@documented("aimet/compute_encodings", "QuantizeDequantize: parameter block_size, both examples", aspect="blocks")
def compute_blocks() -> Calls:
    """A quantizer with a block size calibrates every block by its own elements."""
    for (shape, blocks, given), symmetric in product(BLOCKS, (False, True)):
        call: Arguments = {"batches": (values(given, 16),), "bitwidth": 4, "symmetric": symmetric}
        yield {**call, "shape": shape, "block_size": blocks}


@measured("aimet/compute_encodings", "aimet-torch 2.42", aspect="dtypes")
def compute_dtypes() -> Calls:
    """What was calibrated in another dtype is kept in float32 after it was rounded to that dtype."""
    for dtype, symmetric in product((np.float64, np.float16, ml_dtypes.bfloat16), (False, True)):
        call: Arguments = {"symmetric": symmetric, "shape": ()}
        yield {**call, "batches": _of(-1.0, 1.0, dtype=dtype), "bitwidth": 8}
        yield {**call, "batches": (values((6,), 17, dtype),), "bitwidth": 4}


@measured("aimet/compute_encodings", "aimet-torch 2.42", aspect="non-finite")
def compute_non_finite() -> Calls:
    """A NaN among the inputs shows in the parameters; an infinity gives the widest finite range on its side where the
    grid is asymmetric."""
    inf, nan = float("inf"), float("nan")
    for numbers, symmetric in product(((nan, 1.0), (inf, -1.0), (-inf, 1.0), (inf, -inf)), (False, True)):
        yield {"batches": _of(*numbers), "bitwidth": 8, "symmetric": symmetric, "shape": ()}


@measured("aimet/compute_encodings", "aimet-torch 2.42")
def least_scale() -> Calls:
    """Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's machine epsilon."""
    for bitwidth, symmetric in product((16, 17, 24), (False, True)):
        yield {"batches": _of(-1e-9, 1e-9), "bitwidth": bitwidth, "symmetric": symmetric, "shape": ()}


@documented("aimet/compute_encodings", "QuantizeDequantize: the note on initialisation (error type: measured)")
def uninitialized() -> Calls:
    """A quantizer that has seen no element cannot run: it raises a RuntimeError."""
    for symmetric, batches in product((False, True), ((), (np.zeros(0, _F32),), (np.zeros((0, 3), _F32),))):
        yield {"batches": batches, "bitwidth": 8, "symmetric": symmetric, "shape": ()}


@measured("aimet/compute_encodings", "aimet-torch 2.42", aspect="refusals")
def compute_refusals() -> Calls:
    """No bits, integers, and shapes or blocks that do not meet the input are errors."""
    call: Arguments = {"batches": (values((4, 6), 18),), "bitwidth": 8, "symmetric": False, "shape": ()}
    yield {**call, "bitwidth": 0}
    yield {**call, "batches": (np.arange(3),)}
    yield {**call, "shape": (4,)}
    yield {**call, "shape": (1, 4, 6)}
    yield {**call, "shape": (2, 3), "block_size": (4, 1)}
    yield {**call, "shape": (4, 3), "block_size": (2,)}
    yield {**call, "shape": (3,), "block_size": (4, 2)}


@documented("aimet/is_initialized", "QuantizeDequantize: the note on initialisation, both examples")
def documented_ways() -> Calls:
    """A quantizer runs only once both its minimum and its maximum were assigned, or compute_encodings saw an input;
    is_initialized says which it is."""
    yield {"steps": ()}
    yield {"steps": ("assign min",)}
    yield {"steps": ("assign max",)}
    yield {"steps": ("assign min", "assign max")}
    yield {"steps": ("calibrate",)}


@measured("aimet/is_initialized", "aimet-torch 2.42")
def other_ways() -> Calls:
    """Changing a parameter in place or by set_range counts like assigning it; a calibration that saw nothing or failed
    counts for nothing."""
    for step in ("fill min", "fill max", "range", "range min", "range max", "calibrate nothing", "calibrate and fail"):
        yield {"steps": (step,)}
        yield {"steps": (step, "assign min")}
        yield {"steps": (step, "range max")}
        yield {"steps": ("fill max", step)}
    yield {"steps": ("calibrate", "calibrate nothing")}


def minmax_encodings(
    batches: tuple[Tensor, ...], num_steps: int, symmetric: bool, shape: tuple[int, ...], block_size: Any = None
) -> tuple[Tensor, Tensor]:
    """The default analyzer, fed the batches."""
    from aimet_torch.quantization.encoding_analyzer import MinMaxEncodingAnalyzer

    analyzer = MinMaxEncodingAnalyzer(shape, block_size)
    for x in batches:
        analyzer.update_stats(x)
    low, high = analyzer.compute_encodings(num_steps, symmetric)
    return low, high


def compute_encodings(
    batches: tuple[Tensor, ...], bitwidth: int, symmetric: bool, shape: tuple[int, ...], block_size: Any = None
) -> dict[str, Tensor]:
    """A quantizer that saw the batches, and then runs."""
    import warnings

    import torch
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize(shape, bitwidth, symmetric, block_size=block_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values that are not finite
        with quantizer.compute_encodings():
            for x in batches:
                quantizer(x)
    quantizer(next((x for x in batches if x.numel()), torch.zeros(1)))
    ends = {"min": quantizer.min, "max": quantizer.max}
    derived = {"scale": quantizer.get_scale(), "offset": quantizer.get_offset()}
    return {name: value.detach() for name, value in {**ends, **derived}.items()}


def is_initialized(steps: tuple[str, ...]) -> bool:
    """A quantizer after the steps; it must run where it says that it can, and only there."""
    from contextlib import suppress

    import torch
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize((), 8, False)
    for step in steps:
        match step.split():
            case ["assign", name]:
                setattr(quantizer, name, torch.nn.Parameter(getattr(quantizer, name).detach().clone()))
            case ["fill", name]:
                with torch.no_grad():
                    getattr(quantizer, name).mul_(2.0)
            case ["range", *names]:
                quantizer.set_range(*(0.5 if name in (names or ["min", "max"]) else None for name in ("min", "max")))
            case ["calibrate", *how]:
                with suppress(KeyError), quantizer.compute_encodings():
                    if how != ["nothing"]:
                        quantizer(torch.ones(2))
                    if how == ["and", "fail"]:
                        raise KeyError
    try:
        quantizer(torch.ones(2))
        runs = True
    except RuntimeError:
        runs = False
    if runs != quantizer.is_initialized():
        msg = f"is_initialized() is {not runs}, and forward {'runs' if runs else 'does not run'}"
        raise AssertionError(msg)
    return runs


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/minmax_encodings": minmax_encodings,
        "aimet/compute_encodings": compute_encodings,
        "aimet/is_initialized": is_initialized,
    },
}
