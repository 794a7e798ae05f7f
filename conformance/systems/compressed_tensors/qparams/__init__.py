"""compressed-tensors: ranges of codes, scales and zero points: requirements, their calls, and the library's answers."""
