"""torch: its native operators, observers and casts."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "torch.fake_quantize_per_tensor_affine": Entry(
        "torch.fake_quantize", "torch", "the native operator, one scale", adapter="torch.adapter_fake_quantize"
    ),
    "torch.fake_quantize_per_channel_affine": Entry(
        "torch.fake_quantize",
        "torch",
        "the native operator, one scale per channel",
        adapter="torch.adapter_fake_quantize",
    ),
    "torch.quantize_per_tensor": Entry(
        "torch.quantize", "torch", "quantized tensors, one scale", adapter="torch.adapter_quantize"
    ),
    "torch.quantize_per_channel": Entry(
        "torch.quantize", "torch", "quantized tensors, one scale per channel", adapter="torch.adapter_quantize"
    ),
    "torch.quantized_decomposed.per_tensor": Entry(
        "torch.quantized_decomposed",
        "torch",
        "export's operators, one scale",
        adapter="torch.adapter_quantized_decomposed",
    ),
    "torch.quantized_decomposed.per_channel": Entry(
        "torch.quantized_decomposed", "torch", "one scale per channel", adapter="torch.adapter_quantized_decomposed"
    ),
    "torch.quantized_decomposed.per_token": Entry(
        "torch.quantized_decomposed", "torch", "one scale per token", adapter="torch.adapter_quantized_decomposed"
    ),
    "torch.quantized_decomposed.per_channel_group": Entry(
        "torch.quantized_decomposed",
        "torch",
        "groups along the last dimension",
        adapter="torch.adapter_quantized_decomposed",
    ),
    "torch.float8": Entry("number-formats", "torch", "casts to the float8 dtypes"),
    "torch.observers": Entry("torch", "torch", "observers and choose_qparams"),
    "torch.learnable": Entry("torch", "torch", "learnable fake quantize"),
}
