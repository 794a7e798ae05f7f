"""bitsandbytes: what is required of its blocks, the calls that decide it, and how the library answers."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.entry import Backends, Entry
from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured, silent
from halfeven.reference.blocks import Array
from halfeven.reference.systems.bitsandbytes import get_4bit_type

__all__ = ["ANSWERS", "BACKENDS"]

BACKENDS: Backends = {
    "bitsandbytes": Entry(
        "bitsandbytes",
        "bitsandbytes",
        "blockwise 8-bit, NF4 and FP4; on the CPU",
        extra="bitsandbytes",
        imports="bitsandbytes.functional",
    ),
}

F32 = np.float32
_EIGHT, _FOUR = "bitsandbytes/quantize_blockwise", "bitsandbytes/quantize_4bit"
_OF_EIGHT, _OF_FOUR = "bitsandbytes/dequantize_blockwise", "bitsandbytes/dequantize_4bit"
_PAPER = "8-bit Optimizers via Block-wise Quantization, section 2: the nearest of the levels; QLoRA, section 2"
_OPEN = "no document says"


def _dynamic() -> Array:
    """The dynamic levels: in each decade down to 10^-7 half as many as above it, evenly spaced; 0 and 1."""
    found = [Fraction(0), Fraction(1)]
    for i in range(7):
        decade, count = Fraction(10) ** (i - 6), 2**i
        centres = [Fraction(1, 10) + Fraction(9, 10) * (2 * k + 1) / (2 * count) for k in range(count)]
        found += [sign * decade * c for c in centres for sign in (1, -1)]
    return np.array([float(v) for v in sorted(found)], np.float64).astype(F32)


_DYNAMIC = _dynamic()
_EVEN = (np.arange(-127, 129) / 128).astype(F32)  # its midpoints are float32 numbers
_MAGNITUDES = (1.0, 0.1, 1 / 3, 3.3, 7e-5, 1e30)


def _books(formula: str) -> Iterator[tuple[Arguments, Array]]:
    """Arguments that choose levels, and the levels."""
    if formula == _EIGHT:
        yield {"code": _DYNAMIC}, _DYNAMIC
        yield {"code": _EVEN}, _EVEN
    else:
        for quant_type in ("nf4", "fp4"):
            yield {"quant_type": quant_type}, np.unique(get_4bit_type(quant_type))


def _filled(largest: float, elements: Array) -> Array:
    """Blocks of 64 with all ``elements``, each with its largest somewhere else, of one sign and the other."""
    rows = np.concatenate([elements, np.zeros(-len(elements) % 63, F32)]).reshape(-1, 63)
    return np.array([np.roll([F32((-1) ** i * largest), *row], 7 * i) for i, row in enumerate(rows)], F32)


@documented((_EIGHT, _FOUR), _PAPER)
def _nearest(formula: str) -> Calls:
    """The code is that of the level nearest to the element over the block's largest."""
    for given, levels in _books(formula):
        midpoints = (levels[:-1].astype(np.float64) + levels[1:]) / 2
        for largest in _MAGNITUDES:
            exact = midpoints * np.float64(F32(largest))
            near = step(exact.astype(F32)[:, None], np.array([-(2**12), -2, -1, 0, 1, 2, 2**12])).astype(F32)
            kept = near[(near != exact[:, None]) & (np.abs(near) < F32(largest))]
            yield {"A": _filled(largest, kept), **given, "blocksize": 64}


@silent((_EIGHT, _FOUR), _OPEN)
def _ties(formula: str) -> Calls:
    """The code of an element half-way between two levels."""
    for given, levels in _books(formula):
        exact = (levels[:-1].astype(np.float64) + levels[1:]) / 2
        ties = exact.astype(F32)[exact.astype(F32) == exact]
        for largest in (1.0, 2.0**-20):
            yield {"A": _filled(largest, ties * F32(largest)), **given, "blocksize": 64}


@documented((_EIGHT, _FOUR), _PAPER)
def _blocks(formula: str) -> Calls:
    """Each run of blocksize elements is a block, and so is what is left at the end."""
    wave = (np.sin(np.arange(8000, dtype=np.float64) ** 2) * np.repeat(2.0 ** np.arange(20), 400)).astype(F32)
    for given, _ in _books(formula):
        for shape, blocksize in (((2, 96), 32), ((7, 33), 64), ((3, 2, 50), 128), ((4096,), 4096), ((0,), 64)):
            yield {"A": wave[: int(np.prod(shape))].reshape(shape), **given, "blocksize": blocksize}
        for blocksize in (256, 512, 1024, 2048):
            yield {"A": wave[-blocksize - 2 :], **given, "blocksize": blocksize}
        yield {"A": wave[:192].reshape(2, 96).T, **given, "blocksize": 64}
        yield {"A": wave, **given}
        if formula == _EIGHT:
            yield {"A": wave[:5], **given, "blocksize": 1}
        else:
            yield {"A": wave}


@documented((_EIGHT, _FOUR), _PAPER)
def _dtypes(formula: str) -> Calls:
    """Elements of float16 and bfloat16 are quantized as the float32 that they are."""
    ramp = np.linspace(-3, 3, 128)
    for given, _ in _books(formula):
        for dtype in (np.float16, ml_dtypes.bfloat16):
            yield {"A": ramp.astype(dtype), **given, "blocksize": 64}


@expected((_EIGHT, _FOUR), _OPEN)
def _zeros(formula: str) -> Calls:
    """Zero has the code of the level zero, in a block of zeros too, whose magnitude is 0."""
    for given, _ in _books(formula):
        for blocksize, count in ((64, 64), (64, 71), (32, 96)):
            for at, largest in ((0, 0), (0, 3), (-1, -3), (-1, 3)):
                x = np.zeros(count, F32)
                x[at] = largest
                yield {"A": x, **given, "blocksize": blocksize}


@expected((_EIGHT, _FOUR), _OPEN)
def _tiny(formula: str) -> Calls:
    """A block of subnormal numbers has the codes that the same block has scaled up."""
    ramp = np.linspace(-1, 1, 64, dtype=F32)
    for given, _ in _books(formula):
        for largest in (1e-38, 2.0**-127, 2.0**-128, 2.0**-132, 1e-40):
            yield {"A": np.concatenate([ramp, ramp[20:50]]) * F32(largest), **given, "blocksize": 64}


@measured((_EIGHT, _FOUR), _PAPER, aspect="refusals")
def _refused(formula: str) -> Calls:
    """A blocksize below 1 or not offered, another type or dtype is refused."""
    x = np.ones(64, F32)
    given = next(_books(formula))[0]
    yield {"A": x, **given, "blocksize": 0}
    yield {"A": x, **given, "blocksize": -64}
    yield {"A": x.astype(np.float64), **given, "blocksize": 64}
    yield {"A": x.astype(np.int32), **given, "blocksize": 64}
    if formula == _FOUR:
        yield {"A": x, "blocksize": 48}
        yield {"A": x, "blocksize": 8192}
        yield {"A": x, "quant_type": "int4"}


@silent((_EIGHT, _FOUR), _OPEN)
def _specials(formula: str) -> Calls:
    """The codes of a block with NaN or an infinity."""
    ramp = np.linspace(-1, 1, 64, dtype=F32)
    for given, _ in _books(formula):
        for special in (np.inf, -np.inf, np.nan):
            yield {"A": np.where(np.arange(64) == 9, F32(special), ramp), **given, "blocksize": 64}  # noqa: PLR2004


@measured(_FOUR, _PAPER)
def odd() -> Calls:
    """After an odd count, the last low half has the code of zero."""
    for quant_type in ("nf4", "fp4"):
        for count in (1, 3, 63, 65):
            yield {"A": np.linspace(0.3, -1, count).astype(F32), "quant_type": quant_type}


@documented("bitsandbytes/get_4bit_type", _PAPER)
def _levels() -> Calls:
    """NF4 has the published levels; FP4 the signed values of its bits, over 12."""
    yield {"typename": "nf4"}
    yield {"typename": "fp4"}


_SCALES = np.array([1, 0.1, 1 / 3, 3.3, 7e-5, 1e30, 0, np.inf], F32)


@documented(_OF_EIGHT, _PAPER)
def products() -> Calls:
    """The element is the level times the block's magnitude."""
    codes = np.tile(np.arange(256, dtype=np.uint8), len(_SCALES))
    for code in (_DYNAMIC, _EVEN):
        yield {"A": codes, "absmax": _SCALES, "code": code, "blocksize": 256}
        yield {"A": codes, "absmax": _SCALES * F32(2.0**-126), "code": code, "blocksize": 256}


@documented(_OF_EIGHT, _PAPER)
def blocks() -> Calls:
    """Each run of blocksize codes is a block, and so is what is left at the end."""
    codes = np.arange(4200).astype(np.uint8)
    for shape, blocksize in (((5,), 64), ((5,), 1), ((7, 33), 64), ((2, 3, 100), 100), ((0, 3), 64), ((3, 1400), 4096)):
        count = -(-int(np.prod(shape)) // blocksize)
        yield {
            "A": codes[: int(np.prod(shape))].reshape(shape),
            "absmax": np.arange(1, count + 1).astype(F32) / F32(3),
            "code": _DYNAMIC,
            "blocksize": blocksize,
        }
    yield {"A": codes, "absmax": np.array([0.1, 3], F32), "code": _DYNAMIC}


@measured(_OF_EIGHT, _PAPER)
def refusals() -> Calls:
    """A blocksize below 1 and codes of another dtype are refused."""
    given = {"absmax": np.ones(1, F32), "code": _DYNAMIC}
    yield {"A": np.zeros(8, np.uint8), **given, "blocksize": 0}
    yield {"A": np.zeros(8, np.int8), **given}


def _stored(count: int) -> Array:
    """Bytes of codes other than FP4's for zero, of both signs."""
    i = np.arange(-(-count // 2))
    return ((i % 7 + 1) * 16 + i % 5 + 9).astype(np.uint8)[:, None]


@documented(_OF_FOUR, _PAPER, aspect="products")
def every_pair() -> Calls:
    """The element is the level times the block's magnitude, as the dtype has it."""
    stored = np.arange(256, dtype=np.uint8)[:, None]
    for quant_type in ("nf4", "fp4"):
        for dtype in ("float32", "float16", "bfloat16"):
            given = {"dtype": dtype, "quant_type": quant_type}
            yield {"A": stored, "absmax": _SCALES, "shape": (8, 64), **given}
            for scale in (1 + 2.0**-9, 0.7, 60000.0):
                yield {"A": stored, "absmax": np.full(2, scale, F32), "shape": (2, 256), **given, "blocksize": 256}


@expected(_OF_FOUR, _OPEN)
def shapes() -> Calls:
    """The result has the shape asked for."""
    for shape in (
        (2, 2),
        (4, 1),
        (3, 34),
        (2, 3, 64),
        (1, 64),
        (64,),
        (130,),
        (63,),
        (2,),
        (1, 2),
        (2, 1),
        (0,),
        (0, 4),
    ):
        count = int(np.prod(shape))
        given = {"absmax": np.arange(1, -(-count // 64) + 1).astype(F32), "dtype": "float32"}
        yield {"A": _stored(count), "shape": shape, **given}


@silent(_OF_FOUR, _OPEN)
def subnormals() -> Calls:
    """Whether a subnormal result is kept."""
    for quant_type in ("nf4", "fp4"):
        for dtype, scale in (("float32", 2.0**-130), ("float16", 2.0**-18), ("bfloat16", 2.0**-130)):
            given = {"dtype": dtype, "quant_type": quant_type}
            yield {"A": _stored(128), "absmax": np.full(2, scale, F32), "shape": (2, 64), **given}


@silent(_OF_FOUR, _OPEN)
def zero_sign() -> Calls:
    """The sign of the zero that FP4's code 8, of minus zero, stands for."""
    for shape in ((2, 64), (3, 34), (1, 130), (2, 63)):
        count = int(np.prod(shape))
        given = {"absmax": np.ones(-(-count // 64), F32), "dtype": "float32"}
        yield {"A": np.full((count // 2, 1), 0x80, np.uint8), "shape": shape, **given}


@measured(_OF_FOUR, _PAPER, aspect="refusals")
def unknown() -> Calls:
    """A blocksize or type not offered and another dtype are refused."""
    given = {"A": _stored(64), "absmax": np.ones(1, F32), "shape": (1, 64)}
    yield {**given, "dtype": "float32", "blocksize": 48}
    yield {**given, "dtype": "float32", "quant_type": "int4"}
    yield {**given, "dtype": "float64"}


def _get_4bit_type(typename: str) -> Any:
    from bitsandbytes import functional

    return functional.get_4bit_type(typename, device="cpu")


def _quantize(function: str, **given: Any) -> Any:
    from bitsandbytes import functional

    codes, state = getattr(functional, function)(**given)
    return codes, state.absmax


def _dequantize_blockwise(**given: Any) -> Any:
    from bitsandbytes import functional

    return functional.dequantize_blockwise(**given)


def _dequantize_4bit(A: Any, absmax: Any, shape: Any, dtype: str, blocksize: int = 64, quant_type: str = "fp4") -> Any:  # noqa: N803 - the document's own word
    import torch
    from bitsandbytes import functional

    state = functional.QuantState(
        absmax, torch.Size(shape), dtype=getattr(torch, dtype), blocksize=blocksize, quant_type=quant_type
    )
    return functional.dequantize_4bit(A, state)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "bitsandbytes": {
        "bitsandbytes/get_4bit_type": _get_4bit_type,
        _EIGHT: partial(_quantize, "quantize_blockwise"),
        _FOUR: partial(_quantize, "quantize_4bit"),
        _OF_EIGHT: _dequantize_blockwise,
        _OF_FOUR: _dequantize_4bit,
    },
}
