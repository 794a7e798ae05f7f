"""nvidia-modelopt's quantizers, the successors of pytorch-quantization's. Off a GPU they run as eager torch."""

from collections.abc import Callable
from typing import Any

__all__ = ["ANSWERS"]


def fake_tensor_quant(
    inputs: Any, amax: Any, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Any:
    """FakeTensorQuantFunction: on a CPU ``_tensor_quant``, on a GPU the extension's kernel."""
    from modelopt.torch.quantization.tensor_quant import fake_tensor_quant as fake

    return fake(inputs, amax, None, num_bits, unsigned, narrow_range)


def legacy_fake_tensor_quant(
    inputs: Any, amax: Any, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Any:
    """``_tensor_quant``, the eager body that the function falls back to."""
    from modelopt.torch.quantization.tensor_quant import _tensor_quant

    return _tensor_quant(inputs, amax, num_bits, unsigned, narrow_range)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt": {
        "pytorch-quantization/fake_tensor_quant": fake_tensor_quant,
        "pytorch-quantization/legacy_fake_tensor_quant": legacy_fake_tensor_quant,
    },
}
