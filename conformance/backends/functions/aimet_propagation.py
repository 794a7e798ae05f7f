"""What operations make of AIMET's tensors."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]


def propagation(operation: str, granularity: str, kind: str) -> tuple[str, bool]:
    """The operation, evaluated."""
    import torch
    from aimet_torch.quantization import DequantizedTensor, QuantizedTensor, affine

    kinds = {"quantized": QuantizedTensor, "dequantized": DequantizedTensor}
    shape, blocks = {"tensor": ((), None), "channel": ((4, 1), None), "block": ((2, 1), (2, 4))}[granularity]
    primes = [2.0, -3, 5, -7, 11, -13, 17, -19, 23, -29, 31, -37, 41, -43, 47, -53]
    x = torch.tensor(primes).reshape(4, 4).as_subclass(kinds[kind])
    x.encoding = affine.AffineEncoding(torch.ones(shape), torch.zeros(shape), qmin=-128, qmax=127, block_size=blocks)
    names = {
        "torch": torch,
        "functional": torch.nn.functional,
        "x": x,
        "y": torch.arange(60.0, 92.0, 2.0).reshape(4, 4),
        "index": torch.tensor([[1, 0], [2, 1]]),
        "rows": torch.tensor([1, 0, 2]),
    }
    found = eval(operation, names)  # noqa: S307 - a call of the call set
    found = x if found is None else found[0] if isinstance(found, (tuple, list)) else found
    found_kind = next((name for name, one in kinds.items() if isinstance(found, one)), "plain")
    return found_kind, getattr(found, "encoding", None) is not None


def scaled_encoding(
    scale: Tensor, offset: Tensor, qmin: int, qmax: int, symmetric: bool, factor: float, divide: bool
) -> tuple[bool] | tuple[bool, Tensor, Tensor]:
    """The encoding of a ``DequantizedTensor`` times, or by, a number."""
    import torch
    from aimet_torch.quantization import DequantizedTensor, affine

    x = torch.zeros_like(scale).as_subclass(DequantizedTensor)
    x.encoding = affine.AffineEncoding(scale, offset, qmin=qmin, qmax=qmax, symmetry=symmetric)
    found = x / factor if divide else x * factor
    encoding = getattr(found, "encoding", None)
    return (False,) if encoding is None else (True, encoding.scale, encoding.offset)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aimet.propagation": propagation,
    "aimet.scaled_encoding": scaled_encoding,
}
