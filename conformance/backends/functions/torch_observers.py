"""torch: observers of ``torch.ao.quantization``, and the choose_qparams of ``torch.ops.quantized_decomposed``."""

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["FUNCTIONS"]


def _calculate_qparams(min_val: Any, max_val: Any, **settings: Any) -> Any:
    import warnings

    import torch
    from torch.ao.quantization.observer import MinMaxObserver, PerChannelMinMaxObserver

    warnings.simplefilter("ignore")
    given = {k: getattr(torch, v) if isinstance(v, str) else v for k, v in settings.items()}
    per_channel = settings.get("qscheme", "").startswith("per_channel")
    observer = (PerChannelMinMaxObserver if per_channel else MinMaxObserver)(**given)
    observer.min_val, observer.max_val = min_val, max_val
    return observer.calculate_qparams()


def _min_max(batches: Sequence[Any]) -> Any:
    from torch.ao.quantization.observer import MinMaxObserver

    observer = MinMaxObserver()
    for batch in batches:
        observer(batch)
    return observer.min_val, observer.max_val


def _per_channel_min_max(batches: Sequence[Any], ch_axis: int = 0) -> Any:
    from torch.ao.quantization.observer import PerChannelMinMaxObserver

    observer = PerChannelMinMaxObserver(ch_axis=ch_axis)
    for batch in batches:
        observer(batch)
    return observer.min_val, observer.max_val


def _moving_average_min_max(batches: Sequence[Any], averaging_constant: float = 0.01) -> Any:
    from torch.ao.quantization.observer import MovingAverageMinMaxObserver

    observer = MovingAverageMinMaxObserver(averaging_constant=averaging_constant)
    for batch in batches:
        observer(batch)
    return observer.min_val, observer.max_val


def _choose_qparams(input: Any, qmin: int, qmax: int, eps: float, dtype: str) -> Any:  # noqa: A002 - torch's word
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams.tensor(input, qmin, qmax, eps, getattr(torch, dtype))


def _choose_qparams_symmetric(input: Any, qmin: int, qmax: int, eps: float, dtype: str) -> Any:  # noqa: A002
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams_symmetric.tensor(input, qmin, qmax, eps, getattr(torch, dtype))


def _choose_qparams_per_token(input: Any, dtype: str) -> Any:  # noqa: A002 - torch's word
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams_per_token(input, getattr(torch, dtype))


def _choose_qparams_per_token_asymmetric(input: Any, dtype: str) -> Any:  # noqa: A002 - torch's word
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams_per_token_asymmetric(input, getattr(torch, dtype))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch.observers.calculate_qparams": _calculate_qparams,
    "torch.observers.min_max": _min_max,
    "torch.observers.per_channel_min_max": _per_channel_min_max,
    "torch.observers.moving_average_min_max": _moving_average_min_max,
    "torch.observers.choose_qparams": _choose_qparams,
    "torch.observers.choose_qparams_symmetric": _choose_qparams_symmetric,
    "torch.observers.choose_qparams_per_token": _choose_qparams_per_token,
    "torch.observers.choose_qparams_per_token_asymmetric": _choose_qparams_per_token_asymmetric,
}
