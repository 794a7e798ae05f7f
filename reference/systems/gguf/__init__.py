"""gguf: ggml's blocks of codes with a scale, as gguf's Python package computes them."""
