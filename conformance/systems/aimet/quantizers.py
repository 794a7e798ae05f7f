"""AIMET's quantizers in every mode, their states, and those made of encodings: requirements, calls, answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected
from halfeven.conformance.systems.aimet.affine import F32, boundaries, scalar
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

MODES = ("trained", "frozen", "no-grad", "inference")
# Minimum and maximum of a grid; the first scale is 0.1 in float32, whose reciprocal is not exact.
_RANGES = (
    (-12.8, 12.7, -128, 127, True),
    (-3.0, 22.5, 0, 255, False),
    (-0.8, 0.7, -8, 7, True),
    (-1.3, 0.2, 0, 15, False),
)


@documented(
    "aimet/forward",
    "class QuantizeDequantize: equations, which know no mode (ties, infinities and NaN: measured)",
    aspect="one-arithmetic",
)
def modes() -> Calls:
    """A quantizer's codes and values are those of the equations whether its parameters are trained or frozen, with
    gradients or without."""
    # Ties of every code and their neighbours, and the extremes, in every mode; one range, and one per channel.
    for low, high, qmin, qmax, symmetric in _RANGES:
        scale = (high - low) / (qmax - qmin)
        codes = np.arange(round(low / scale) - 2, round(high / scale) + 3)
        x = boundaries(scale, codes[:: 1 + codes.size // 20], F32)
        grid = {"qmin": qmin, "qmax": qmax, "symmetric": symmetric}
        extremes = np.array([np.nan, np.inf, -np.inf, 3e38, -0.0, -1e-45], F32)
        yield {"tensor": x, "min": scalar(low), "max": scalar(high), **grid}
        for mode in MODES:
            given = {"min": scalar(low), "max": scalar(high), **grid, "mode": mode}
            yield {"tensor": x, **given}
            yield {"tensor": extremes, **given}
            ends = {"min": np.array([[low], [low / 3]], F32), "max": np.array([[high], [high / 3]], F32)}
            yield {"tensor": np.stack([x, x / 3])[:, ::3], **ends, **grid, "mode": mode}


@documented(
    "aimet/forward",
    "class QuantizedTensorBase: first paragraph; class QuantizeDequantize: first sentence",
    aspect="values-of-the-codes",
)
def narrow_dtypes() -> Calls:
    """What Quantize returns, dequantized, has the values that QuantizeDequantize returns, in every dtype."""
    # float16 and bfloat16 tensors, whose ranges are float32.
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        for low, high, qmin, qmax, symmetric in _RANGES:
            x = np.linspace(1.1 * low, 1.1 * high, 60).astype(dtype)
            given = {"tensor": x, "min": scalar(low), "max": scalar(high), "qmin": qmin, "qmax": qmax}
            yield from ({**given, "symmetric": symmetric, "mode": mode} for mode in MODES[:2])
    low, high, qmin, qmax, symmetric = _RANGES[0]
    wide = {"tensor": boundaries(0.1, np.arange(-9, 9), np.dtype(np.float64)), "min": scalar(low), "max": scalar(high)}
    yield {**wide, "qmin": qmin, "qmax": qmax, "symmetric": symmetric, "mode": "frozen"}


@documented(
    "aimet/load_state",
    "class QuantizeDequantize: a module of torch, whose load_state_dict does not change its argument",
    aspect="round-trip",
)
def loaded_once() -> Calls:
    """A quantizer that loads the state of another has its minimum, maximum, grid, symmetry, block size and shift, and
    the state stays as it was."""
    low, high = np.array([[-1.0, -0.3]], F32), np.array([[0.5, 0.7]], F32)
    for grid in ((-8, 7, True), (-3, 12, False), (0, 255, False)):
        given = dict(zip(("qmin", "qmax", "symmetric"), grid, strict=True))
        for blocks in ({}, {"block_size": (1, 4)}, {"zero_point_shift": 0.5}):
            yield {"min": low, "max": high, **given, **blocks}


@documented(
    "aimet/load_state",
    "class QuantizeDequantize: a module of torch, whose load_state_dict does not change its argument",
    aspect="again",
)
def several() -> Calls:
    """One state can be loaded by any number of quantizers."""
    # The same state for two and for three quantizers.
    for given in loaded_once():
        yield from ({**given, "quantizers": n} for n in (2, 3))


def _scales(qmin: int, qmax: int) -> tuple[Array, Array]:
    """Scales that some range gives: of widths of every last digit. The offsets keep zero in the range."""
    n = F32.type(qmax - qmin)
    widths = (1 + np.arange(40) * 0.0131).astype(F32) * (2.0 ** (np.arange(40) % 7 - 3)).astype(F32)
    offsets = -(qmin + (np.arange(40) * 13) % (qmax - qmin + 1))
    return (widths / n).astype(F32), offsets.astype(F32)


@expected(
    "aimet/from_encodings",
    "AffineQuantizerBase.from_encodings; aimet-torch 2.42 rounds on the way through minimum and maximum",
    aspect="exact",
)
def scales() -> Calls:
    """A quantizer made from an encoding has its scale and offset to the bit."""
    # Scales of which some change in the last place on the way to a range and back.
    for qmin, qmax in ((0, 255), (-128, 127), (-8, 7), (0, 15), (-32768, 32767)):
        scale, offset = _scales(qmin, qmax)
        grid = {"qmin": qmin, "qmax": qmax}
        yield {"scale": scale, "offset": offset, **grid, "symmetric": False}
        middle = np.full_like(offset, -round((qmin + qmax) / 2))
        yield {"scale": scale, "offset": middle, **grid, "symmetric": True}


@expected("aimet/from_encodings", "AffineQuantizerBase.from_encodings; aimet-torch 2.42 drops it", aspect="shift")
def shifted() -> Calls:
    """A quantizer made from an encoding has its zero point shift."""
    # With a shift; the scales are those of powers of two, which every way gives exactly.
    for qmin, qmax in ((-8, 7), (-2, 1)):
        scale = 2.0 ** np.arange(-3, 4).astype(F32)
        given = {"scale": scale, "offset": np.zeros_like(scale), "qmin": qmin, "qmax": qmax, "symmetric": True}
        yield {**given, "zero_point_shift": 0.5}
        yield given


@documented("aimet/encoding_range", "class QuantizeDequantize: equation of the output, at qmin and qmax")
def ends() -> Calls:
    """The ends of an encoding's range are the reals of its lowest and its highest code."""
    # Both ends, of scales with long products.
    for qmin, qmax in ((0, 255), (-128, 127), (-8, 7), (5, 9)):
        scale, offset = _scales(qmin, qmax)
        yield {"scale": scale, "offset": offset, "qmin": qmin, "qmax": qmax}


@expected("aimet/encoding_range", "AffineQuantizerBase.get_min, get_max, which aimet-torch 2.42 moves", aspect="shift")
def shifted_ends() -> Calls:
    """A zero point shift moves both ends of an encoding's range, as it moves every real of the grid."""
    # Half a code further.
    yield from ({**given, "zero_point_shift": 0.5} for given in ends())


def forward(
    tensor: Tensor,
    min: Tensor,  # noqa: A002 - the document's names
    max: Tensor,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    mode: str = "trained",
) -> dict[str, Tensor]:
    """``Quantize`` and ``QuantizeDequantize`` in the mode."""
    from contextlib import nullcontext

    import torch
    from aimet_torch.quantization import affine

    context = {"no-grad": torch.no_grad, "inference": torch.inference_mode}.get(mode, nullcontext)
    results = []
    for kind in (affine.Quantize, affine.QuantizeDequantize):
        quantizer = kind(tuple(min.shape), qmin, qmax, symmetric)
        quantizer.min, quantizer.max = torch.nn.Parameter(min.clone()), torch.nn.Parameter(max.clone())
        quantizer.requires_grad_(mode == "trained")
        with context():
            results.append(quantizer(tensor))
    codes, values = results
    with context():
        found = [t.as_subclass(torch.Tensor).detach() for t in (codes, values, codes.dequantize())]
    return dict(zip(("codes", "values", "values of the codes"), found, strict=True))


def load_state(
    min: Tensor,  # noqa: A002
    max: Tensor,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    quantizers: int = 1,
    **given: Any,
) -> dict[str, Any]:
    """``QuantizeDequantize.state_dict`` and ``load_state_dict``."""
    import torch
    from aimet_torch.quantization import affine

    first = affine.QuantizeDequantize(tuple(min.shape), qmin, qmax, symmetric, **given)
    first.min, first.max = torch.nn.Parameter(min.clone()), torch.nn.Parameter(max.clone())
    state = first.state_dict()
    entries = [(name, sorted(entry) if isinstance(entry, dict) else entry.tolist()) for name, entry in state.items()]
    for _ in range(quantizers):
        last = affine.QuantizeDequantize(tuple(min.shape), 8, False)
        last.load_state_dict(state)
    after = [(name, sorted(entry) if isinstance(entry, dict) else entry.tolist()) for name, entry in state.items()]
    return {
        "min": last.min.detach(),
        "max": last.max.detach(),
        "qmin": int(last.qmin),
        "qmax": int(last.qmax),
        "symmetric": bool(last.symmetric),
        "block_size": tuple(map(int, last.block_size)) if last.block_size else None,
        "zero_point_shift": float(last.zero_point_shift or 0.0),
        "state unchanged": entries == after,
    }


def from_encodings(
    scale: Tensor, offset: Tensor, qmin: int, qmax: int, symmetric: bool, zero_point_shift: float = 0.0
) -> dict[str, Any]:
    """``QuantizeDequantize.from_encodings`` of an ``AffineEncoding``."""
    from aimet_torch.quantization import affine

    given = {"symmetry": symmetric, "zero_point_shift": zero_point_shift}
    encoding = affine.AffineEncoding(scale, offset, qmin=qmin, qmax=qmax, **given)
    made = affine.QuantizeDequantize.from_encodings(encoding).get_encodings()
    shift = float(made.zero_point_shift or 0.0)
    return {"scale": made.scale.detach(), "offset": made.offset.detach(), "zero_point_shift": shift}


def encoding_range(
    scale: Tensor, offset: Tensor, qmin: int, qmax: int, zero_point_shift: float = 0.0
) -> tuple[Tensor, Tensor]:
    """``AffineEncoding.min`` and ``max``."""
    from aimet_torch.quantization import affine

    encoding = affine.AffineEncoding(scale, offset, qmin=qmin, qmax=qmax, zero_point_shift=zero_point_shift)
    return encoding.min, encoding.max


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/forward": forward,
        "aimet/load_state": load_state,
        "aimet/from_encodings": from_encodings,
        "aimet/encoding_range": encoding_range,
    },
}
