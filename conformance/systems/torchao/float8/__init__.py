"""torchao: float8 with a scale per block, the primitives."""
