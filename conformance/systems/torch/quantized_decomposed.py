"""torch: the operators ``torch.ops.quantized_decomposed.{quantize,dequantize}_per_{tensor,channel}``."""

from halfeven.conformance.requirement import documented, on

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "torch.quantized_decomposed",
        documented(
            "nearest-code",
            "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
            "quantized_decomposed.quantize_per_tensor: docstring, affine mapping (ties: measured)",
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
            "zero-point-after-rounding",
            "The zero point is added to the rounded quotient.",
            "quantized_decomposed.quantize_per_tensor: docstring, affine mapping",
            operations=("quantize",),
            checks=("odd-zero-point",),
            kills=("zero-point-before-rounding", "zero-point-fused", "sign-flipped"),
        ),
        documented(
            "saturation",
            "The code is limited to [quant_min, quant_max].",
            "quantized_decomposed.quantize_per_tensor: quant_min and quant_max",
            operations=("quantize",),
            checks=("edges",),
            kills=("narrow-range", "clamp-before-zero-point", "wrap"),
        ),
        documented(
            "huge-inputs",
            "Inputs however large, and the infinities, give the end of the range on their side.",
            "quantized_decomposed.quantize_per_tensor: quant_min and quant_max",
            operations=("quantize",),
            checks=("huge",),
            kills=("int32-cast", "int64-cast"),
        ),
        documented(
            "dequantized-value",
            "A code becomes (code - zero_point) * scale.",
            "quantized_decomposed.quantize_per_tensor: docstring, affine mapping",
            operations=("dequantize",),
            checks=("all-codes",),
            kills=("sign-flipped", "scale-one-ulp-off"),
        ),
    ),
)
