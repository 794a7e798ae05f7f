"""The float8 dtypes of torch: ``to`` and ``view``. Offered by the backend ``torch.float8``.

``to`` has no overflow policy to choose; it answers for the one that it follows: what e4m3fn does is to saturate.
"""

from collections.abc import Callable
from typing import Any

import torch

from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["FUNCTIONS"]


def _encode(x: torch.Tensor, format: Any, overflow: str) -> torch.Tensor:  # noqa: A002 - the formula's own word
    names = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
    follows = "saturate" if format == "float8_e4m3fn" else "special"
    if format not in names or overflow != follows or not x.is_floating_point():
        msg = f"x of {x.dtype}, format={format!r}, overflow={overflow!r}: no cast of floats has this format and policy"
        raise Unsupported(msg)
    return x.to(getattr(torch, format)).view(torch.uint8)


def _decode(codes: torch.Tensor, format: Any, dtype: str = "float32") -> torch.Tensor:  # noqa: A002 - the formula's own word
    names = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
    if format not in names or codes.dtype.is_floating_point or codes.dtype == torch.bool:
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


FUNCTIONS: dict[str, Callable[..., Any]] = {"number-formats.encode": _encode, "number-formats.decode": _decode}
