"""The casts of libraries: ``astype`` and ``view`` of ml_dtypes' dtypes, ``to`` and ``view`` of torch's float8.

Neither has an overflow policy to choose: each answers for the one that it follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.protocol import Unsupported

if TYPE_CHECKING:
    import torch

__all__ = ["ANSWERS", "FINITE", "TORCH"]

#: The formats without infinities and NaN.
FINITE = ("float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn")
#: Those that torch has casts for.
TORCH = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")


def _encode_by_ml_dtypes(x: torch.Tensor, format: Any, overflow: str) -> torch.Tensor:  # noqa: A002 - the formula's own word
    import torch

    dtype = np.float16 if format == "float16" else getattr(ml_dtypes, str(format), None)
    follows = "saturate" if format in FINITE else "special"
    if dtype is None or overflow != follows or not x.is_floating_point():
        msg = f"x of {x.dtype}, format={format!r}, overflow={overflow!r}: no cast of floats has this format and policy"
        raise Unsupported(msg)
    plain = x.detach()
    a = plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if x.dtype == torch.bfloat16 else plain.numpy()
    codes = a.astype(dtype)
    return torch.from_numpy(codes.view(np.uint8 if codes.itemsize == 1 else np.uint16))


def _decode_by_ml_dtypes(codes: torch.Tensor, format: Any, dtype: str = "float32") -> torch.Tensor:  # noqa: A002 - the formula's own word
    import torch

    small = np.float16 if format == "float16" else getattr(ml_dtypes, str(format), None)
    if small is None or codes.dtype.is_floating_point or codes.dtype == torch.bool:
        msg = f"codes of {codes.dtype}, format={format!r}: no dtype has this format, or it has no such codes"
        raise Unsupported(msg)
    whole, form = codes.numpy(), ml_dtypes.finfo(small)  # type: ignore[no-untyped-call]
    if dtype not in ("float64", "float32", "float16", "bfloat16") or (whole < 0).any() or (whole >= 2**form.bits).any():
        msg = f"dtype={dtype!r}, codes={whole}: {format} is read from its own codes, into floats of 16 bits or more"
        raise Unsupported(msg)
    wide = ml_dtypes.finfo(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)  # type: ignore[no-untyped-call]
    if wide.nmant < form.nmant or float(wide.max) < float(form.max):
        msg = f"dtype={dtype!r}: its cast of {format} rounds, it does not decode"
        raise Unsupported(msg)
    reals = whole.astype(np.uint8 if np.dtype(small).itemsize == 1 else np.uint16).view(small)
    if dtype == "bfloat16":
        return torch.from_numpy(reals.astype(ml_dtypes.bfloat16).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(reals.astype(dtype))


def _encode_by_torch(x: torch.Tensor, format: Any, overflow: str) -> torch.Tensor:  # noqa: A002 - the formula's own word
    import torch

    follows = "saturate" if format == "float8_e4m3fn" else "special"
    if format not in TORCH or overflow != follows or not x.is_floating_point():
        msg = f"x of {x.dtype}, format={format!r}, overflow={overflow!r}: no cast of floats has this format and policy"
        raise Unsupported(msg)
    return x.to(getattr(torch, format)).view(torch.uint8)


def _decode_by_torch(codes: torch.Tensor, format: Any, dtype: str = "float32") -> torch.Tensor:  # noqa: A002 - the formula's own word
    import torch

    if format not in TORCH or codes.dtype.is_floating_point or codes.dtype == torch.bool:
        msg = f"codes of {codes.dtype}, format={format!r}: no dtype has this format, or it has no such codes"
        raise Unsupported(msg)
    outside = bool(((codes.to(torch.int64) < 0) | (codes.to(torch.int64) > 255)).any())  # noqa: PLR2004 - one byte
    if outside or dtype not in ("float64", "float32", "float16", "bfloat16"):
        msg = f"dtype={dtype!r}, codes={codes.tolist()}: {format} is read from bytes, into floats of 16 bits or more"
        raise Unsupported(msg)
    if (format, dtype) == ("float8_e8m0fnu", "float16"):
        msg = f"dtype={dtype!r}: its cast of {format} rounds, it does not decode"
        raise Unsupported(msg)
    return codes.to(torch.uint8).view(getattr(torch, format)).to(getattr(torch, dtype))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "ml_dtypes": {"number-formats/encode": _encode_by_ml_dtypes, "number-formats/decode": _decode_by_ml_dtypes},
    "torch.float8": {"number-formats/encode": _encode_by_torch, "number-formats/decode": _decode_by_torch},
}
