"""ModelOpt: the storages of quantized tensors, NVFP4, MXFP4, INT4 by blocks and FP8: packed codes and scales."""
