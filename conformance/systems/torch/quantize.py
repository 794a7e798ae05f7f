"""torch: ``quantize_per_tensor`` and ``quantize_per_channel``, and ``dequantize`` of their results."""

from halfeven.conformance.requirement import documented, on

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "torch.quantize",
        documented(
            "nearest-code",
            "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
            "torch.quantize_per_tensor: the affine mapping of quantized tensors (ties: measured)",
            operations=("quantize",),
            checks=("boundaries",),
            kills=(
                "half-away",
                "half-up",
                "half-down",
                "half-to-zero",
                "toward-zero",
                "floor",
                "ceil",
                "reciprocal",
                "scale-one-ulp-off",
            ),
        ),
        documented(
            "odd-zero-point",
            "An odd zero point takes part where the document puts it: inside the rounding.",
            "torch.quantize_per_tensor: the affine mapping of quantized tensors",
            operations=("quantize",),
            checks=("odd-zero-point",),
            kills=("zero-point-after-rounding", "sign-flipped"),
        ),
        documented(
            "saturation",
            "The code is limited to the range of the quantized dtype.",
            "torch.quantize_per_tensor: the dtype of the result",
            operations=("quantize",),
            checks=("edges",),
            kills=("narrow-range", "wrap"),
        ),
        documented(
            "huge-inputs",
            "Inputs however large, and the infinities, give the end of the range on their side.",
            "torch.quantize_per_tensor: the range of the dtype",
            operations=("quantize",),
            checks=("huge",),
            kills=("int32-cast", "int64-cast"),
        ),
        documented(
            "dequantized-value",
            "A code becomes (code - zero_point) * scale.",
            "torch.quantize_per_tensor: the affine mapping of quantized tensors",
            operations=("dequantize",),
            checks=("all-codes",),
            kills=("sign-flipped", "scale-one-ulp-off"),
        ),
    ),
)
