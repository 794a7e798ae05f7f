"""Number formats of ml_dtypes: NumPy's ``astype`` and ``view``. Offered by the backend ``ml_dtypes``."""

from collections.abc import Callable
from typing import Any

import torch

from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["FUNCTIONS"]


def _encode(x: torch.Tensor, format: Any, overflow: str) -> torch.Tensor:  # noqa: A002 - the formula's own word
    import ml_dtypes
    import numpy as np

    names = {
        (4, 3, 7, "ieee"): "float8_e4m3",
        (3, 4, 3, "ieee"): "float8_e3m4",
        (4, 3, 11, "fnuz"): "float8_e4m3b11fnuz",
    }
    name = names.get(format, format)
    dtype = np.float16 if name == "float16" else getattr(ml_dtypes, str(name), None)
    follows = "saturate" if name in ("float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn") else "special"
    if dtype is None or overflow != follows or not x.is_floating_point():
        msg = f"x of {x.dtype}, format={format!r}, overflow={overflow!r}: no cast of floats has this format and policy"
        raise Unsupported(msg)
    a = x.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if x.dtype == torch.bfloat16 else x.numpy()
    codes = a.astype(dtype)
    return torch.from_numpy(codes.view(np.uint8 if codes.itemsize == 1 else np.uint16))


def _decode(codes: torch.Tensor, format: Any, dtype: str = "float32") -> torch.Tensor:  # noqa: A002 - the formula's own word
    import ml_dtypes
    import numpy as np

    names = {
        (4, 3, 7, "ieee"): "float8_e4m3",
        (3, 4, 3, "ieee"): "float8_e3m4",
        (4, 3, 11, "fnuz"): "float8_e4m3b11fnuz",
    }
    name = names.get(format, format)
    small = np.float16 if name == "float16" else getattr(ml_dtypes, str(name), None)
    if small is None or codes.dtype.is_floating_point or codes.dtype == torch.bool:
        msg = f"codes of {codes.dtype}, format={format!r}: no dtype has this format, or it has no such codes"
        raise Unsupported(msg)
    whole, form = codes.numpy(), ml_dtypes.finfo(small)  # type: ignore[no-untyped-call]
    if dtype not in ("float64", "float32", "float16", "bfloat16") or (whole < 0).any() or (whole >= 2**form.bits).any():
        msg = f"dtype={dtype!r}, codes={whole}: {name} is read from its own codes, into floats of 16 bits or more"
        raise Unsupported(msg)
    wide = ml_dtypes.finfo(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)  # type: ignore[no-untyped-call]
    if wide.nmant < form.nmant or float(wide.max) < float(form.max):
        msg = f"dtype={dtype!r}: its cast of {name} rounds, it does not decode"
        raise Unsupported(msg)
    reals = whole.astype(np.uint8 if np.dtype(small).itemsize == 1 else np.uint16).view(small)
    if dtype == "bfloat16":
        return torch.from_numpy(reals.astype(ml_dtypes.bfloat16).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(reals.astype(dtype))


FUNCTIONS: dict[str, Callable[..., Any]] = {"number-formats.encode": _encode, "number-formats.decode": _decode}
