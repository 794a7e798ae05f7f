"""Ids of the first edition that today's mould does not give by itself: ``system.symbol`` is ``system/symbol`` now."""

__all__ = ["FORMER"]

# fmt: off
FORMER = {
    "aimet.dequantize": "aimet/affine.dequantize",
    "aimet.quantize": "aimet/affine.quantize",
    "aimet.quantize_dequantize": "aimet/affine.quantize_dequantize",
    "brevitas.fake_quantize": "brevitas/IntQuant",
    "brevitas.quantize": "brevitas/IntQuant.to_int",
    "compressed_tensors.forward.dequantize": "compressed-tensors/dequantize",
    "compressed_tensors.forward.fake_quantize": "compressed-tensors/fake_quantize",
    "compressed_tensors.forward.quantize": "compressed-tensors/quantize",
    "onnx.dequantize_linear": "onnx/DequantizeLinear",
    "onnx.dynamic_quantize_linear": "onnx/DynamicQuantizeLinear",
    "onnx.quantize_linear": "onnx/QuantizeLinear",
    "pytorch_quantization.fake_tensor_quant_function": "pytorch-quantization/fake_tensor_quant",
    "pytorch_quantization.legacy_fake_tensor_quant_function": "pytorch-quantization/legacy_fake_tensor_quant",
    "pytorch_quantization.tensor_quant_function": "pytorch-quantization/tensor_quant",
    "torch.fake_quantize": "torch/fake_quantize_per_tensor_affine",
    "torch.learnable.fixed_per_channel_gradient": "torch/fake_quantize_per_channel_affine.backward",
    "torch.learnable.fixed_per_tensor_gradient": "torch/fake_quantize_per_tensor_affine.backward",
    "torch.learnable.per_channel": "torch/_fake_quantize_learnable_per_channel_affine",
    "torch.learnable.per_channel_gradients": "torch/_fake_quantize_learnable_per_channel_affine.backward",
    "torch.learnable.per_tensor": "torch/_fake_quantize_learnable_per_tensor_affine",
    "torch.learnable.per_tensor_gradients": "torch/_fake_quantize_learnable_per_tensor_affine.backward",
    "torch.observers.calculate_qparams": "torch/MinMaxObserver.calculate_qparams",
    "torch.observers.choose_qparams": "torch/quantized_decomposed.choose_qparams",
    "torch.observers.choose_qparams_per_token": "torch/quantized_decomposed.choose_qparams_per_token",
    "torch.observers.choose_qparams_per_token_asymmetric":
        "torch/quantized_decomposed.choose_qparams_per_token_asymmetric",
    "torch.observers.choose_qparams_symmetric": "torch/quantized_decomposed.choose_qparams_symmetric",
    "torch.observers.min_max": "torch/MinMaxObserver",
    "torch.observers.moving_average_min_max": "torch/MovingAverageMinMaxObserver",
    "torch.observers.per_channel_min_max": "torch/PerChannelMinMaxObserver",
    "torch.quantize": "torch/quantize_per_tensor",
    "torch.quantized_decomposed.dequantize": "torch/quantized_decomposed.dequantize_per_tensor",
    "torch.quantized_decomposed.quantize": "torch/quantized_decomposed.quantize_per_tensor",
    "torchao.quant_primitives.dequantize_affine": "torchao/dequantize_affine",
    "torchao.quant_primitives.fake_quantize_affine": "torchao/fake_quantize_affine",
    "torchao.quant_primitives.quantize_affine": "torchao/quantize_affine",
}
# fmt: on
