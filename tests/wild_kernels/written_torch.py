"""Kernels of torch as their authors hand them over."""

import torch

from wild_kernels.written import AWAY, BEFORE, RECIPROCAL, UP, Written

__all__ = ["WRITTEN"]


def eager(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int8)


def inverted(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, qmin, qmax)


def zero_point_first(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp((x / scale + zero_point).round(), qmin, qmax)


def lsq(x, scale, zero_point, *, qmin, qmax):
    """Its gradient passes the rounding."""
    y = x / scale
    y = (y.round() - y).detach() + y
    return torch.clamp(y + zero_point, qmin, qmax)


def lsq_clamped_first(x, scale, zero_point, *, qmin, qmax):
    y = torch.clamp(x / scale + zero_point, qmin, qmax)
    return y + (y.round() - y).detach()


def lsq_fake(x, scale, zero_point, *, qmin, qmax):
    y = torch.clamp(x / scale, qmin - int(zero_point), qmax - int(zero_point))
    y = y + (torch.round(y) - y).detach()
    return y * scale


def lsq_plus(x, scale, zero_point, *, qmin, qmax):
    y = x / scale
    q = torch.clamp((y.round() - y) + y + zero_point, qmin, qmax)
    return (q - zero_point) * scale


def straight_through(x, scale, zero_point, *, qmin, qmax):
    q = torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax)
    xq = (q - zero_point) * scale
    return x + (xq - x).detach()


def straight_by_inverse(x, scale, zero_point, *, qmin, qmax):
    inverse = 1.0 / scale
    q = torch.clamp(torch.floor(x * inverse + 0.5) + zero_point, qmin, qmax)
    return (((q - zero_point) * scale) - x).detach() + x


def half_scale(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x / scale.half().float()) + zero_point, qmin, qmax)


def bfloat16_throughout(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x.bfloat16() / scale.bfloat16()) + zero_point, qmin, qmax)


def half_inputs(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x.float() / scale.float()) + zero_point, qmin, qmax)


def bfloat16_inputs(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.floor(x.float() * (1.0 / scale.float()) + 0.5) + zero_point, qmin, qmax)


def int_cast(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x / scale).to(torch.int32) + zero_point, qmin, qmax)


def long_cast(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp((x / scale).round().long() + zero_point, qmin, qmax)


def char_wraps(x, scale, zero_point, *, qmin, qmax):
    return (torch.round(x / scale) + zero_point).to(torch.int8)


def away_by_sign(x, scale, zero_point, *, qmin, qmax):
    v = x / scale
    return torch.clamp(torch.trunc(v + 0.5 * torch.sign(v)) + zero_point, qmin, qmax)


def in_double(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x.double() / scale.double()) + zero_point, qmin, qmax)


def three_at_once(x, scale, zero_point, *, qmin, qmax):
    """The inverse in half, the zero point before rounding, NaN to 0."""
    inverse = (1.0 / scale).half().float()
    v = torch.nan_to_num(x * inverse + zero_point, nan=0.0)
    return torch.clamp(torch.round(v), qmin, qmax)


def addcmul(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.floor(torch.addcmul(zero_point.float() + 0.5, x, 1.0 / scale)), qmin, qmax)


def fake(x, scale, zero_point, *, qmin, qmax):
    inverse = 1.0 / scale
    return (torch.clamp(torch.round(x * inverse + zero_point), qmin, qmax) - zero_point) * scale


def dequantized(q, scale, zero_point):
    return (q.to(torch.float32) - zero_point) * scale


def dequantized_half(q, scale, zero_point):
    return ((q.half() - zero_point.half()) * scale.half()).float()


def dequantized_bfloat16(q, scale, zero_point):
    return (q - zero_point).to(torch.bfloat16) * scale.to(torch.bfloat16)


_THROUGH = {"half": {"difference"}, "nan": ...}


WRITTEN = [
    Written("eager", eager, {"nan": ...}, array="torch"),
    Written("x * (1 / s)", inverted, RECIPROCAL, array="torch"),
    Written("round(x / s + z)", zero_point_first, {"zero_point": {"before-rounding", "fused"}}, array="torch"),
    Written("LSQ's rounding", lsq, _THROUGH, array="torch"),
    Written(
        "LSQ's rounding, clamped first",
        lsq_clamped_first,
        {"zero_point": {"before-rounding", "fused"}, "clamp": {"before-rounding"}, "half": ..., "nan": ...},
        array="torch",
    ),
    # What is limited first has no infinity: its rounding is the textbook's.
    Written("LSQ", lsq_fake, {"clamp": ..., "half": ..., "nan": ...}, "fake_quantize", "torch"),
    Written("LSQ+", lsq_plus, _THROUGH, "fake_quantize", "torch"),
    Written("x + (xq - x)", straight_through, {"returned": {"difference"}, "nan": ...}, "fake_quantize", "torch"),
    Written(
        "(xq - x) + x by the inverse",
        straight_by_inverse,
        {"returned": {"difference"}, "half": {"added"}} | RECIPROCAL | UP,
        "fake_quantize",
        "torch",
    ),
    Written("scale in half", half_scale, {"held": {"float16"}}, array="torch"),
    Written(
        "bfloat16 throughout",
        bfloat16_throughout,
        {"compute": {"bfloat16"}, "quotient": ..., "held": ..., "integer": ...},
        array="torch",
    ),
    Written("float16 in float32", half_inputs, {"compute": ...}, array="torch", dtype="float16"),
    Written(
        "bfloat16 in float32, ties up",
        bfloat16_inputs,
        # With the half added in float32 no bfloat16 tells a product from a quotient.
        {"compute": {"float32", "promoted", "widened"}, "half": ..., "division": {"reciprocal", "divide"}} | UP,
        array="torch",
        dtype="bfloat16",
    ),
    Written("to int32", int_cast, {"integer": {"int32"}, "nan": ...}, array="torch"),
    Written("to int64", long_cast, {"integer": {"int64", "int64-sum"}, "nan": ...}, array="torch"),
    Written("to int8, wraps", char_wraps, {"overflow": ..., "integer": ..., "nan": ...}, array="torch"),
    Written("sign(v) / 2", away_by_sign, AWAY | {"half": {"added"}}, array="torch"),
    Written("double", in_double, {"compute": {"float64"}}, array="torch"),
    Written(
        "1/s in half, zero point first, NaN to 0",
        three_at_once,
        RECIPROCAL | {"zero_point": {"before-rounding"}, "inverse": {"float16"}, "nan": {"zero"}},
        array="torch",
    ),
    Written(
        "addcmul", addcmul, RECIPROCAL | UP | {"zero_point": ..., "half": {"with-zero-point", "fused"}}, array="torch"
    ),
    Written("fake, zero point first", fake, RECIPROCAL | BEFORE, "fake_quantize", "torch"),
    Written("(q - z) * s", dequantized, {}, "dequantize", "torch"),
    Written("(q - z) * s in half", dequantized_half, {"product": {"float16"}, "held": ...}, "dequantize", "torch"),
    Written(
        "(q - z) * s in bfloat16",
        dequantized_bfloat16,
        {"product": {"bfloat16"}, "held": ..., "inverse": ...},
        "dequantize",
        "torch",
        where=("unsigned grids", {"subtract": {"uint8"}}),  # uint8 less a number wraps
    ),
]
