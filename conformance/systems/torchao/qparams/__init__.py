"""torchao: how a scale and a zero point are chosen."""
