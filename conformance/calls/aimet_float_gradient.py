"""Calls of the gradient of AIMET's float quantization: inside the format and beyond, and gradients of many bits."""

from collections.abc import Iterator

import numpy as np

from halfeven.conformance.calls.aimet_affine import F32, scalar
from halfeven.conformance.calls.registry import Arguments, calls

__all__: list[str] = []

_FORMATS = (("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("float16", 65504.0), ("bfloat16", 3e38))


@calls("aimet.float_gradient", "elements")
def elements() -> Iterator[Arguments]:
    """Quotients below, at and above the largest number; gradients that the format holds and others."""
    for dtype, largest in _FORMATS:
        for scale in (scalar(1), scalar(0.1), np.array([[0.5], [3.0]], F32)):
            ends = [largest, largest * (1 + 2.0**-10), largest * 1.1, np.inf]
            x = np.array([0.0, 1e-9, 0.3, 1.0, *ends, *(-v for v in ends)]).astype(F32)
            with np.errstate(over="ignore"):
                tensor = np.broadcast_to(x, (2, x.size)) * scale if scale.ndim else x * scale
            gradient = np.resize(np.array([1.0, 0.3, -0.7, 0.013, 2.0, -1.0], F32), tensor.shape)
            yield {"tensor": tensor, "scale": scale, "gradient": gradient, "dtype": dtype}
