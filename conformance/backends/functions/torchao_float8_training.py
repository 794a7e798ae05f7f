"""torchao: the float8 of training, ``torchao.float8``."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


def _amax_to_scale(amax: Any, float8_dtype: str, round_scales_to_power_of_2: bool = False) -> Any:
    import torch
    from torchao.float8.float8_utils import amax_to_scale

    return amax_to_scale(amax, getattr(torch, float8_dtype), round_scales_to_power_of_2)


def _tensor_to_scale(
    hp_tensor: Any, float8_dtype: str, scaling_granularity: str = "TENSORWISE", axiswise_dim: int | None = None
) -> Any:
    import torch
    from torchao.float8.config import ScalingGranularity
    from torchao.float8.float8_utils import tensor_to_scale

    granularity = ScalingGranularity[scaling_granularity]
    return tensor_to_scale(
        hp_tensor, getattr(torch, float8_dtype), scaling_granularity=granularity, axiswise_dim=axiswise_dim
    )


def _hp_tensor_and_scale_to_float8(hp_tensor: Any, s: Any, float8_dtype: str) -> Any:
    import torch
    from torchao.float8.float8_training_tensor import hp_tensor_and_scale_to_float8

    return hp_tensor_and_scale_to_float8(hp_tensor, s, getattr(torch, float8_dtype))._data  # noqa: SLF001


def _to_original_precision(data: Any, scale: Any, orig_dtype: str) -> Any:
    import torch
    from torchao.float8.float8_training_tensor import Float8TrainingTensor

    return Float8TrainingTensor(data, scale, getattr(torch, orig_dtype), None).to_original_precision()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao.amax_to_scale": _amax_to_scale,
    "torchao.tensor_to_scale": _tensor_to_scale,
    "torchao.hp_tensor_and_scale_to_float8": _hp_tensor_and_scale_to_float8,
    "torchao.to_original_precision": _to_original_precision,
}
