"""pytorch-quantization's integer quantizers: what is required, the calls that decide it, and the library's answers."""
