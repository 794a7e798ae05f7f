"""pytorch-quantization's gradients, and ``clip``: requirements, calls, answers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, measured
from halfeven.conformance.systems.pytorch_quantization.tensor_quant import around

__all__ = ["ANSWERS", "clip_gradients"]

P = "pytorch-quantization/"
AFFINE = P + "fake_affine_tensor_quant_backward"
CLIP, CLIP_BACKWARD = P + "clip", P + "clip_backward"
F32 = np.dtype(np.float32)


def _gradients(n: int) -> np.ndarray:
    return np.resize(np.array([3, -1.5, 0.25, -0.0, 7e30], F32), n)


@documented("pytorch-quantization/tensor_quant_backward", "TensorQuantFunction.backward")
@measured("pytorch-quantization/fake_tensor_quant_backward", "FakeTensorQuantFunction, as TensorQuantFunction.backward")
@measured(
    "pytorch-quantization/legacy_fake_tensor_quant_backward",
    "LegacyFakeTensorQuantFunction, as TensorQuantFunction.backward",
)
@measured("pytorch-quantization/scaled_e4m3_backward", "ScaledE4M3Function, as TensorQuantFunction.backward")
def ends() -> Calls:
    """The gradient passes unchanged where -amax <= input <= amax, both ends included, and is zero elsewhere, whatever
    the grid, and for a tiny amax too."""
    # An amax itself passes, of either sign; what is a float beyond does not.
    for amax in (1.0, 0.7, 127.0, 1e-30, 0.0, 2.0**-25):
        inputs = np.concatenate([around([amax, amax * 128 / 127, amax / 2]), np.array([0.0, -0.0], F32)])
        yield {"inputs": inputs, "amax": np.asarray(amax, F32), "grad_outputs": _gradients(inputs.size)}


@documented("pytorch-quantization/tensor_quant_backward", "TensorQuantFunction.backward")
@measured("pytorch-quantization/fake_tensor_quant_backward", "FakeTensorQuantFunction, as TensorQuantFunction.backward")
@measured(
    "pytorch-quantization/legacy_fake_tensor_quant_backward",
    "LegacyFakeTensorQuantFunction, as TensorQuantFunction.backward",
)
@measured("pytorch-quantization/scaled_e4m3_backward", "ScaledE4M3Function, as TensorQuantFunction.backward")
def not_finite() -> Calls:
    """A NaN input has no gradient; a NaN or infinite gradient leaves zero where it does not pass."""
    inputs = np.array([np.nan, np.inf, -np.inf, 0.5, 0.5, 0.5, 2, 2, 2], F32)
    gradients = np.array([1, 1, 1, np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf], F32)
    for amax in (1.0, np.inf):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32), "grad_outputs": gradients}


@documented("pytorch-quantization/tensor_quant_backward", "TensorQuantFunction.backward; forward: amax broadcasts")
@measured(
    "pytorch-quantization/fake_tensor_quant_backward",
    "FakeTensorQuantFunction, as TensorQuantFunction.backward; forward: amax broadcasts",
)
@measured(
    "pytorch-quantization/legacy_fake_tensor_quant_backward",
    "LegacyFakeTensorQuantFunction, as TensorQuantFunction.backward; forward: amax broadcasts",
)
@measured(
    "pytorch-quantization/scaled_e4m3_backward",
    "ScaledE4M3Function, as TensorQuantFunction.backward; forward: amax broadcasts",
)
def per_channel() -> Calls:
    """Each input is compared with its own entry of amax."""
    # Each element against its own entry.
    inputs = (np.arange(-6, 6, dtype=F32) / np.float32(3)).reshape(2, 2, 3)
    for shape in ((), (1,), (3,), (2, 1, 1), (1, 2, 3)):
        amax = (np.arange(1, int(np.prod(shape)) + 1, dtype=F32) / np.float32(3)).reshape(shape)
        yield {"inputs": inputs, "amax": amax, "grad_outputs": _gradients(12).reshape(2, 2, 3)}
    for empty in ((), (0, 2)):
        yield {"inputs": np.ones(empty, F32), "amax": np.asarray(1, F32), "grad_outputs": np.ones(empty, F32)}


@measured(
    "pytorch-quantization/tensor_quant_backward", "TensorQuantFunction.backward; the document has both in float32"
)
@measured(
    "pytorch-quantization/fake_tensor_quant_backward",
    "FakeTensorQuantFunction, as TensorQuantFunction.backward; the document has both in float32",
)
@measured(
    "pytorch-quantization/legacy_fake_tensor_quant_backward",
    "LegacyFakeTensorQuantFunction, as TensorQuantFunction.backward; the document has both in float32",
)
def dtypes() -> Calls:
    """An amax without dimensions is compared in the inputs' dtype, one with dimensions in the wider of both."""
    # 0.7 rounds up in float16 and down in bfloat16: an amax without dimensions is rounded as the inputs are.
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        inputs = around([0.7, 0.3, 1.1], np.dtype(dtype))
        for shape in ((), (1,)):
            amax = np.full(shape, 0.7, F32)
            yield {"inputs": inputs, "amax": amax, "grad_outputs": np.ones(inputs.size, dtype)}


@measured("pytorch-quantization/scaled_e4m3_backward", "ScaledE4M3Function.backward")
def no_amax() -> Calls:
    """Without an amax the ends are -448 and 448."""
    # 447, 448 and 449, their neighbours, NaN.
    inputs = np.append(around([447, 448, 449]), np.array([np.nan, np.inf, 0], F32))
    yield {"inputs": inputs, "amax": None, "grad_outputs": np.ones(inputs.size, F32)}


@measured(AFFINE, "FakeAffineTensorQuantFunction.backward", aspect="ends")
def affine_ends() -> Calls:
    """The gradient passes unchanged where min <= input <= max, and is zero elsewhere."""
    # Both ends of the range pass.
    for low, high in ((-1.0, 1.0), (0.1, 0.7), (-3.0, -0.2), (1.0, -1.0)):
        inputs = np.append(around([low, high, 0.3]), np.array([np.nan, np.inf, -np.inf, 0], F32))
        limits = {"min_range": np.asarray(low, F32), "max_range": np.asarray(high, F32)}
        yield {"inputs": inputs, **limits, "grad_outputs": _gradients(inputs.size)}


def _bounds(low: Any, high: Any) -> Arguments:
    return {"clip_value_min": np.asarray(low, F32), "clip_value_max": np.asarray(high, F32)}


@measured(CLIP, "ClipFunction, which a learnable amax goes through")
def bounds() -> Calls:
    """Clip takes the smaller of input and upper bound, then the larger of that and the lower bound; NaN stays."""
    # The bounds and their neighbours, bounds in the other order, NaN anywhere, a bound per row.
    inputs = np.append(around([0.3, 0.7, 5]), np.array([np.nan, np.inf, -np.inf, 0], F32))
    ranges = ((0.3, 0.7), (-0.7, 0.3), (-0.7, 0.7), (0.7, 0.3), (np.nan, 1.0), (-1.0, np.nan), (-np.inf, np.inf))
    for low, high in ranges:
        yield {"inputs": inputs, **_bounds(low, high)}
    yield {"inputs": np.array([[-2, 2], [-2, 2]], F32), **_bounds([[-1], [-3]], [[1], [0.5]])}


@measured(CLIP, "ClipFunction, which a learnable amax goes through")
def refusals() -> Calls:
    """The bounds are arrays."""
    # Bounds that are Python numbers.
    inputs = np.ones(2, F32)
    yield {"inputs": inputs, "clip_value_min": 0.0, "clip_value_max": 1.0}
    yield {"inputs": inputs, "clip_value_min": np.asarray(0, F32), "clip_value_max": 1.0}


@measured(CLIP_BACKWARD, "ClipFunction, which a learnable amax goes through", aspect="ends")
def clip_ends() -> Calls:
    """The gradient passes strictly inside; the lower bound gets the sum of the gradients at and below it, the upper one
    the sum at and above it."""
    # Neither bound passes; the gradients are small integers, so that every order gives one sum.
    plain = np.array([0, 0.3, 0.5, 0.7, 1], F32)
    yield {"inputs": plain, **_bounds(0.3, 0.7), "grad_outputs": np.arange(1, 6, dtype=F32)}
    inputs = np.append(around([0.3, 0.7, 5]), np.array([np.inf, -np.inf, 0.0], F32))
    gradients = np.resize(np.array([1, -2, 3, 5, -8], F32), inputs.size)
    for low, high in ((0.3, 0.7), (-0.7, 0.7), (0.7, 0.3)):
        yield {"inputs": inputs, **_bounds(low, high), "grad_outputs": gradients}
    yield {"inputs": plain[:4].reshape(2, 2), **_bounds(0.3, 0.7), "grad_outputs": np.array([[1, 2], [3, 4]], F32)}


@measured(CLIP_BACKWARD, "ClipFunction, which a learnable amax goes through", aspect="not-finite")
def clip_not_finite() -> Calls:
    """A NaN input counts for both bounds; gradients are multiplied by the masks, so that an infinite one gives NaN
    outside; infinities of both signs sum up to NaN."""
    inputs = np.array([np.nan, 0.5, 2, -2], F32)
    for gradients in ([1, 2, 4, 8], [1, np.inf, 4, 8], [1, 2, np.inf, 8], [1, np.nan, 2, 3]):
        yield {"inputs": inputs, **_bounds(-1, 1), "grad_outputs": np.array(gradients, F32)}
    for gradients in ([1, -np.inf, np.inf, 8], [1, np.inf, np.inf, 8]):
        yield {"inputs": np.zeros(4, F32), **_bounds(-1, -1), "grad_outputs": np.array(gradients, F32)}


@measured(CLIP_BACKWARD, "ClipFunction, which a learnable amax goes through", aspect="refusals")
def clip_backward_refusals() -> Calls:
    """A bound that gets a gradient has one element."""
    ones = np.ones(2, F32)
    yield {"inputs": ones, **_bounds([0, 0], 1), "grad_outputs": ones}
    yield {"inputs": ones, **_bounds(0, [1, 1]), "grad_outputs": ones}


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


def clip_gradients(clip_function: Any, given: tuple[Any, Any, Any], grad_outputs: Any) -> tuple[Any, Any, Any]:
    """What autograd hands to each tensor that a clip function, of either library, is given."""
    leaves = [t.clone().requires_grad_() for t in given]
    clip_function(*leaves).backward(grad_outputs)
    return leaves[0].grad, leaves[1].grad, leaves[2].grad


def clip_backward(inputs: Any, clip_value_min: Any, clip_value_max: Any, grad_outputs: Any) -> tuple[Any, Any, Any]:
    """The gradients that autograd hands to the inputs and to both bounds."""
    from modelopt.torch.quantization.nn.functional import clip as clip_function

    return clip_gradients(clip_function, (inputs, clip_value_min, clip_value_max), grad_outputs)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt": {
        "pytorch-quantization/fake_tensor_quant_backward": fake_tensor_quant_backward,
        "pytorch-quantization/scaled_e4m3_backward": scaled_e4m3_backward,
        "pytorch-quantization/clip": clip,
        "pytorch-quantization/clip_backward": clip_backward,
    },
}
