"""What AIMET's tensors represent: what is required, the calls that decide it, and the library's answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected
from halfeven.conformance.systems.aimet.affine import DTYPES, F32, boundaries, scalar

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "ANSWERS",
    "EXAMPLE",
    "EXAMPLE_SCALE",
]

EXAMPLE = np.array([[-1.20, 4.1, -0.21, 2.3], [0.2, 5.6, -1.0, -0.1]], F32)
_STEP = EXAMPLE.max(axis=1, keepdims=True) / F32.type(127)
EXAMPLE_SCALE = (F32.type(127) * _STEP - F32.type(-128) * _STEP) / F32.type(255)
_PRINTED = np.array([[11, -57, -128, 38], [28, -0.0, -128, -40]], F32)


@documented("aimet/quantized_repr", "class QuantizedTensorBase: quantized_repr (the dtypes: measured)", aspect="dtype")
def dtypes() -> Calls:
    """The integers are the codes, zeros without sign, in the encoding's dtype: uint8, int8, int16 or int32, the first
    that holds the grid."""
    # Both ends of grids at every dtype's ends, zeros of both signs, and fractions.
    for qmin, qmax in (
        *((0, 2**b - 1) for b in (1, 4, 8, 9, 15, 16, 31)),
        *((-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in (1, 4, 8, 9, 16, 17, 32)),
        *((-127, 127), (1, 4), (-1, 255), (-1, 128), (-129, 0), (-32768, 32768), (-1, 2**15)),
        *((0, 256), (-32769, 0), (0, 32768), (-(2**31), 0)),
    ):
        codes = np.array([qmin, qmax, qmin / 2, qmax / 2, (qmin + qmax) // 2, 0.0, -0.0])
        held = codes[(codes >= qmin) & (codes <= qmax)]
        for dtype in DTYPES:
            narrow = held.astype(dtype)
            yield {"tensor": narrow[narrow.astype(np.float64) == held], "qmin": qmin, "qmax": qmax}
    yield {"tensor": np.zeros((2, 0), F32), "qmin": 0, "qmax": 255}
    yield {"tensor": scalar(3), "qmin": 0, "qmax": 255}


@expected("aimet/quantized_repr", "class QuantizedTensorBase: quantized_repr")
def wide_grids() -> Calls:
    """A grid that no dtype of the encodings holds is refused, not wrapped."""
    # Grids that int32 does not hold.
    codes = np.array([0, 1, 2.0**31 - 1, 2.0**31, 2.0**32 - 1, 2.0**32])
    yield {"tensor": codes, "qmin": 0, "qmax": 2**32}
    yield {"tensor": codes[:4], "qmin": 0, "qmax": 2**31}
    yield {"tensor": -codes[:4], "qmin": -(2**31) - 1, "qmax": 0}
    yield {"tensor": np.array([2.0**31 - 0.5, 0.5 - 2.0**31, -(2.0**31) - 0.5]), "qmin": -(2**32), "qmax": 2**32}
    yield {"tensor": codes[:-1], "qmin": 0, "qmax": 2**32 - 1}
    yield {"tensor": -codes[:-1], "qmin": -(2**32) + 1, "qmax": 0}


@documented("aimet/quantized_repr", "class QuantizedTensorBase: both examples")
def examples() -> Calls:
    """The printed codes have the printed integers."""
    # The codes that the document prints, one of them a negative zero.
    yield {"tensor": _PRINTED, "qmin": -128, "qmax": 127}
    codes = np.array([[-37, 127, -7, 71], [5, 127, -23, -2]], F32)
    yield {"tensor": codes, "qmin": -128, "qmax": 127}


@documented("aimet/represented", "class QuantizedTensorBase: first paragraph, example, quantize, dequantize")
def float32() -> Calls:
    """A dequantized tensor of float32 or float64 gives back its codes, and these its values."""
    # Ties and all codes of small and of 8-bit grids, in blocks too; and the document's example.
    grids = ((-8, 7, 0), (0, 15, -7), (0, 255, -128), (-128, 127, 0), (-128, 127, 5))
    for dtype in DTYPES[:2]:
        for qmin, qmax, offset in grids:
            for scale in (0.1, 3.7e-3, 2.0**-10):
                x = boundaries(scale, np.arange(qmin + offset - 1, qmax + offset + 2, 1 + (qmax - qmin) // 12), dtype)
                given = {"tensor": x, "scale": scalar(scale, dtype), "offset": scalar(offset, dtype)}
                yield {**given, "qmin": qmin, "qmax": qmax}
    example = {"tensor": EXAMPLE, "scale": EXAMPLE_SCALE, "offset": np.zeros((2, 1), F32), "qmin": -128, "qmax": 127}
    yield example
    yield {**example, "block_size": (-1, 4)}
    halves = np.concatenate([EXAMPLE_SCALE, 3 * EXAMPLE_SCALE], axis=1)
    yield {**example, "scale": halves, "offset": np.array([[0, 1], [-5, 3]], F32), "block_size": (1, 2)}


@documented("aimet/represented", "class QuantizedTensorBase: first paragraph")
def narrow_dtypes() -> Calls:
    """So does one of float16 or bfloat16, whose quantizer keeps its scale in float32."""
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        for qmin, qmax in ((-8, 7), (0, 255), (-128, 127)):
            for scale in (0.1, 0.013845434):
                x = (np.arange(qmin, qmax + 1, 1 + (qmax - qmin) // 60) * scale).astype(dtype)
                given = {"tensor": x, "scale": scalar(scale), "offset": scalar(0), "qmin": qmin, "qmax": qmax}
                yield given
    # An offset of more digits than the tensor's dtype has, on a grid that it is widened for.
    wide = {"tensor": np.array([0.2, 1, -3], np.float16), "scale": scalar(0.1), "offset": scalar(1.0004)}
    yield {**wide, "qmin": -1024, "qmax": 1023}


def quantized_repr(tensor: Tensor, qmin: int, qmax: int) -> tuple[str, Tensor]:
    """``QuantizedTensor.quantized_repr``."""
    import torch
    from aimet_torch.quantization import QuantizedTensor, affine

    codes = tensor.as_subclass(QuantizedTensor)
    one = torch.ones((), dtype=tensor.dtype)
    codes.encoding = affine.AffineEncoding(one, 0 * one, qmin=qmin, qmax=qmax)
    found = codes.quantized_repr()
    return str(found.dtype).removeprefix("torch."), found


def represented(
    tensor: Tensor, scale: Tensor, offset: Tensor, qmin: int, qmax: int, block_size: tuple[int, ...] | None = None
) -> tuple[Tensor, Tensor]:
    """``DequantizedTensor.quantize`` and ``QuantizedTensor.dequantize`` of that."""
    import torch
    from aimet_torch.quantization import DequantizedTensor, affine

    encoding = affine.AffineEncoding(
        scale.requires_grad_(), offset, qmin=qmin, qmax=qmax, symmetry=False, block_size=block_size
    )
    values = affine.quantize_dequantize(tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size).as_subclass(
        DequantizedTensor
    )
    values.encoding = encoding
    codes = values.quantize()
    return codes.as_subclass(torch.Tensor).long(), codes.dequantize().as_subclass(torch.Tensor).detach()


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/quantized_repr": quantized_repr,
        "aimet/represented": represented,
    },
}
