"""pytorch-quantization: tensor_quant and what its documents say around it."""
