"""ModelOpt: the storages of quantized tensors, FP8 and INT8, INT4 and NF4, MXFP4, MXFP8 and NVFP4: codes and scales."""
