"""AIMET's quantizers as a user meets them: run in any mode, stored and loaded, made from an encoding."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]


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
        found = {"codes": codes, "values": values, "values of the codes": codes.dequantize()}
        return {name: t.as_subclass(Tensor).detach() for name, t in found.items()}


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aimet.forward": forward,
    "aimet.load_state": load_state,
    "aimet.from_encodings": from_encodings,
    "aimet.encoding_range": encoding_range,
}
