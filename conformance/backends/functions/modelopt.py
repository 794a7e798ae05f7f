"""nvidia-modelopt's quantizers, the successors of pytorch-quantization's. Off a GPU they run as eager torch."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


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


def scaled_e4m3(inputs: Any, amax: Any = None, E: int = 4, M: int = 3) -> Any:  # noqa: N803 - the names it has
    """ScaledE4M3Function: on a CPU ``fp8_eager``."""
    from modelopt.torch.quantization.tensor_quant import scaled_e4m3 as scaled

    return scaled(inputs, amax, None, E, M)


def fake_tensor_quant_backward(inputs: Any, amax: Any, grad_outputs: Any) -> Any:
    """The gradient that autograd hands to the inputs."""
    from modelopt.torch.quantization.tensor_quant import fake_tensor_quant as fake

    leaf = inputs.clone().requires_grad_()
    fake(leaf, amax, None).backward(grad_outputs)
    return leaf.grad


def scaled_e4m3_backward(inputs: Any, amax: Any, grad_outputs: Any) -> Any:
    """The gradient that autograd hands to the inputs."""
    from modelopt.torch.quantization.tensor_quant import scaled_e4m3 as scaled

    leaf = inputs.clone().requires_grad_()
    scaled(leaf, amax, None, 4, 3).backward(grad_outputs)
    return leaf.grad


def clip(inputs: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    """ClipFunction's forward."""
    from modelopt.torch.quantization.nn.functional import clip as clip_function

    return clip_function(inputs, clip_value_min, clip_value_max)


def clip_backward(inputs: Any, clip_value_min: Any, clip_value_max: Any, grad_outputs: Any) -> tuple[Any, Any, Any]:
    """The gradients that autograd hands to the inputs and to both bounds."""
    from modelopt.torch.quantization.nn.functional import clip as clip_function

    leaves = [t.clone().requires_grad_() for t in (inputs, clip_value_min, clip_value_max)]
    clip_function(*leaves).backward(grad_outputs)
    return leaves[0].grad, leaves[1].grad, leaves[2].grad


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pytorch_quantization.fake_tensor_quant_function": fake_tensor_quant,
    "pytorch_quantization.legacy_fake_tensor_quant_function": legacy_fake_tensor_quant,
    "pytorch_quantization.scaled_e4m3": scaled_e4m3,
    "pytorch_quantization.fake_tensor_quant_backward": fake_tensor_quant_backward,
    "pytorch_quantization.scaled_e4m3_backward": scaled_e4m3_backward,
    "pytorch_quantization.clip": clip,
    "pytorch_quantization.clip_backward": clip_backward,
}
