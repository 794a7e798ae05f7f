"""torch: quantize, fake quantize, the operators of quantized_decomposed, observers, learnable quantizers."""
