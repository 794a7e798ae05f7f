"""How pytorch-quantization itself answers: 2.1.3, which runs on a CPU and needs no extension.

It has neither e4m3 nor, without a GPU, the search for the least squared error.
"""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.systems.pytorch_quantization.calibrators import collected
from halfeven.conformance.systems.pytorch_quantization.gradients import clip_gradients
from halfeven.conformance.systems.pytorch_quantization.histogram import counted, holding

__all__ = ["ANSWERS"]

_FIELDS = (
    *("num_bits", "name", "fake_quant", "axis", "amax", "learn_amax"),
    *("scale_amax", "calib_method", "unsigned", "narrow_range"),
)


def tensor_quant(inputs: Any, amax: Any, num_bits: Any = 8, unsigned: bool = False, narrow_range: bool = True) -> Any:
    """TensorQuantFunction."""
    from pytorch_quantization.tensor_quant import tensor_quant as quant

    return quant(inputs, amax, num_bits, unsigned, narrow_range)


def fake_tensor_quant(
    inputs: Any, amax: Any, num_bits: Any = 8, unsigned: bool = False, narrow_range: bool = True
) -> Any:
    """FakeTensorQuantFunction."""
    from pytorch_quantization.tensor_quant import fake_tensor_quant as fake

    return fake(inputs, amax, num_bits, unsigned, narrow_range)


def legacy_fake_tensor_quant(
    inputs: Any, amax: Any, num_bits: Any = 8, unsigned: bool = False, narrow_range: bool = True
) -> Any:
    """LegacyFakeTensorQuantFunction."""
    from pytorch_quantization.tensor_quant import legacy_fake_tensor_quant as legacy

    return legacy(inputs, amax, num_bits, unsigned, narrow_range)


def fake_affine_tensor_quant(inputs: Any, min_range: Any, max_range: Any, num_bits: Any = 8) -> Any:
    """FakeAffineTensorQuantFunction."""
    from pytorch_quantization.tensor_quant import fake_affine_tensor_quant as affine

    return affine(inputs, min_range, max_range, num_bits)


def tensor_quant_backward(inputs: Any, amax: Any, grad_outputs: Any) -> Any:
    """The gradient that autograd hands to the inputs, of the codes alone."""
    from pytorch_quantization.tensor_quant import tensor_quant as quant

    leaf = inputs.clone().requires_grad_()
    quant(leaf, amax)[0].backward(grad_outputs)
    return leaf.grad


def fake_tensor_quant_backward(inputs: Any, amax: Any, grad_outputs: Any) -> Any:
    """The gradient that autograd hands to the inputs."""
    from pytorch_quantization.tensor_quant import fake_tensor_quant as fake

    leaf = inputs.clone().requires_grad_()
    fake(leaf, amax).backward(grad_outputs)
    return leaf.grad


def legacy_fake_tensor_quant_backward(inputs: Any, amax: Any, grad_outputs: Any) -> Any:
    """The gradient that autograd hands to the inputs."""
    from pytorch_quantization.tensor_quant import legacy_fake_tensor_quant as legacy

    leaf = inputs.clone().requires_grad_()
    legacy(leaf, amax).backward(grad_outputs)
    return leaf.grad


def fake_affine_tensor_quant_backward(inputs: Any, min_range: Any, max_range: Any, grad_outputs: Any) -> Any:
    """The gradient that autograd hands to the inputs."""
    from pytorch_quantization.tensor_quant import fake_affine_tensor_quant as affine

    leaf = inputs.clone().requires_grad_()
    affine(leaf, min_range, max_range).backward(grad_outputs)
    return leaf.grad


def clip(inputs: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    """ClipFunction's forward."""
    from pytorch_quantization.nn.functional import clip as clip_function

    return clip_function(inputs, clip_value_min, clip_value_max)


def clip_backward(inputs: Any, clip_value_min: Any, clip_value_max: Any, grad_outputs: Any) -> tuple[Any, Any, Any]:
    """The gradients that autograd hands to the inputs and to both bounds."""
    from pytorch_quantization.nn.functional import clip as clip_function

    return clip_gradients(clip_function, (inputs, clip_value_min, clip_value_max), grad_outputs)


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Tensors as NumPy arrays or scalars: a descriptor takes no tensor."""
    return {name: value.numpy()[()] if hasattr(value, "numpy") else value for name, value in arguments.items()}


def descriptor(**kwargs: Any) -> dict[str, Any]:
    """Its properties."""
    from pytorch_quantization.tensor_quant import QuantDescriptor

    made = QuantDescriptor(**_given(kwargs))
    return {field: getattr(made, field) for field in _FIELDS}


def descriptor_assign(attribute: str, value: Any) -> None:
    """An assignment to an attribute."""
    from pytorch_quantization.tensor_quant import QuantDescriptor

    setattr(QuantDescriptor(), attribute, value)


def descriptor_dict(**kwargs: Any) -> Any:
    """Its dict."""
    from pytorch_quantization.tensor_quant import QuantDescriptor

    return QuantDescriptor(**_given(kwargs)).dict()


def descriptor_round_trip(**kwargs: Any) -> dict[str, Any]:
    """The properties of the descriptor that its dict makes."""
    from pytorch_quantization.tensor_quant import QuantDescriptor

    made = QuantDescriptor(**QuantDescriptor(**_given(kwargs)).dict())
    return {field: getattr(made, field) for field in _FIELDS}


def descriptor_yaml_round_trip(**kwargs: Any) -> dict[str, Any]:
    """The properties of the descriptor that its YAML makes."""
    from pytorch_quantization.tensor_quant import QuantDescriptor

    made = QuantDescriptor.from_yaml(QuantDescriptor(**_given(kwargs)).to_yaml())
    return {field: getattr(made, field) for field in _FIELDS}


def descriptor_from_yaml(yaml_str: str) -> dict[str, Any]:
    """The properties of the descriptor that a YAML text makes."""
    from pytorch_quantization.tensor_quant import QuantDescriptor

    made = QuantDescriptor.from_yaml(yaml_str)
    return {field: getattr(made, field) for field in _FIELDS}


# ruff: noqa: SLF001 - quantizers and calibrators give what they found out, and take it, in no other way


def described_amax(inputs: Any, **kwargs: Any) -> Any:
    """The amax by which a TensorQuantizer quantizes."""
    import torch
    from pytorch_quantization.nn import TensorQuantizer
    from pytorch_quantization.tensor_quant import QuantDescriptor

    quantizer = TensorQuantizer(QuantDescriptor(**_given(kwargs)))
    if quantizer._learn_amax:
        return torch.max(-quantizer.clip.clip_value_min, quantizer.clip.clip_value_max).detach()
    return quantizer._get_amax(inputs)


def described(inputs: Any, **kwargs: Any) -> Any:
    """What a TensorQuantizer makes of the inputs; codes with its scale."""
    from pytorch_quantization.nn import TensorQuantizer
    from pytorch_quantization.tensor_quant import QuantDescriptor

    quantizer = TensorQuantizer(QuantDescriptor(**_given(kwargs)))
    made = quantizer(inputs)
    return made if quantizer.fake_quant else (made, quantizer.scale)


def max_calibrator(batches: Any, axis: Any = None) -> Any:
    """Every batch collected, then the amax."""
    from pytorch_quantization.calib import MaxCalibrator

    return collected(MaxCalibrator(8, axis, False), batches).compute_amax()


def max_calibrator_amaxs(batches: Any, axis: Any = None) -> Any:
    """Every batch collected, then the amax of each."""
    from pytorch_quantization.calib import MaxCalibrator

    return tuple(collected(MaxCalibrator(8, axis, False, track_amax=True), batches).amaxs)


def histogram(batches: Any, num_bins: int = 2048, skip_zeros: bool = False) -> Any:
    """Every batch collected, then counts and edges."""
    from pytorch_quantization.calib import HistogramCalibrator

    return counted(collected(HistogramCalibrator(8, None, False, num_bins=num_bins, skip_zeros=skip_zeros), batches))


def percentile_amax(hist: Any, edges: Any, percentile: float = 99.99) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from pytorch_quantization.calib import HistogramCalibrator

    return holding(HistogramCalibrator(8, None, False), hist, edges).compute_amax("percentile", percentile=percentile)


def entropy_amax(
    hist: Any, edges: Any, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from pytorch_quantization.calib import HistogramCalibrator

    return holding(HistogramCalibrator(num_bits, None, unsigned), hist, edges).compute_amax(
        "entropy", stride=stride, start_bin=start_bin
    )


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "pytorch-quantization": {
        f"pytorch-quantization/{answer.__name__}": answer
        for answer in (
            *(tensor_quant, fake_tensor_quant, legacy_fake_tensor_quant, fake_affine_tensor_quant),
            *(tensor_quant_backward, fake_tensor_quant_backward, legacy_fake_tensor_quant_backward),
            *(fake_affine_tensor_quant_backward, clip, clip_backward),
            *(descriptor, descriptor_assign, descriptor_dict, descriptor_round_trip, descriptor_yaml_round_trip),
            *(descriptor_from_yaml, described_amax, described),
            *(max_calibrator, max_calibrator_amaxs, histogram, percentile_amax, entropy_amax),
        )
    },
}
