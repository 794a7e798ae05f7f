"""torchao: fake quantization and its mask."""
