"""The dtypes of the kernels, by the names and in the order of core/dtype.h."""

import ml_dtypes
import numpy as np

__all__ = ["DTYPES"]

DTYPES = {
    "F32": np.dtype("float32"),
    "F64": np.dtype("float64"),
    "F16": np.dtype("float16"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I8": np.dtype("int8"),
    "U8": np.dtype("uint8"),
    "I16": np.dtype("int16"),
    "U16": np.dtype("uint16"),
    "I32": np.dtype("int32"),
    "U32": np.dtype("uint32"),
    "I64": np.dtype("int64"),
}
