"""torch: learnable fake quantization: requirements, their calls, and the library's answers."""
