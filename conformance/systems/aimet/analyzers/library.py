"""AIMET: calibration by the installed library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


__all__ = ["ANSWERS"]


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
