"""torchao: what its documents say of quantize and dequantize in the integer domain."""

from halfeven.conformance.requirement import documented, expected, measured, of, on, silent

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "torchao",
        documented(
            "nearest-code",
            "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
            "AffineQuantizedTensor: the affine transformation (ties: measured)",
            operations=("quantize", "fake_quantize"),
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
            "In the integer domain the zero point is added to the quantized integer, not to the quotient.",
            "AffineQuantizedTensor, field zero_point_domain",
            operations=("quantize", "fake_quantize"),
            checks=("odd-zero-point",),
            kills=("zero-point-before-rounding", "zero-point-fused", "sign-flipped"),
        ),
        documented(
            "saturation",
            "The code is limited to [quant_min, quant_max].",
            "AffineQuantizedTensor, fields quant_min and quant_max",
            operations=("quantize", "fake_quantize"),
            checks=("edges",),
            kills=("narrow-range", "clamp-before-zero-point", "wrap"),
        ),
        documented(
            "huge-inputs",
            "Inputs however large, and the infinities, give the end of the grid on their side.",
            "AffineQuantizedTensor, fields quant_min and quant_max, the least and the greatest value",
            operations=("quantize", "fake_quantize"),
            checks=("huge",),
            kills=("int32-cast", "int64-cast"),
        ),
        documented(
            "dequantized-value",
            "A code becomes (code - zero_point) * scale: the inverse of the affine transformation.",
            "AffineQuantizedTensor.dequantize and the affine transformation",
            operations=("dequantize",),
            checks=("all-codes",),
            kills=("sign-flipped", "scale-one-ulp-off"),
        ),
    ),
    *of(
        "torchao/quantize_affine",
        documented(
            "codes",
            "INT domain: the quotient is rounded to the nearest integer, a tie to the even one, then the zero "
            "point is added, then the code is limited to the grid.",
            "AffineQuantizedTensor: the affine transformation, field zero_point_domain, fields quant_min and "
            "quant_max (ties: measured)",
        ),
        documented(
            "quotient",
            "The input is divided by the scale, in the dtype to which both promote.",
            "AffineQuantizedTensor: float_tensor / scale; quant_primitives: ZeroPointDomain.INT",
        ),
        documented(
            "extremes",
            "Numbers however large, infinities, subnormals and both zeros: each gives the code of its quotient, "
            "or the end of the grid on its side.",
            "AffineQuantizedTensor, fields quant_min and quant_max",
        ),
        silent(
            "nan",
            "NaN among the codes is refused, for an integer does not stand for it.",
            "no document says what NaN gives",
        ),
        expected(
            "wide-grids",
            "An end of the grid that the arithmetic's dtype does not hold does not pass the grid's end as an integer.",
            "AffineQuantizedTensor, field quant_max: the greatest code",
        ),
        measured(
            "float-zero-point",
            "A zero point that is no integer is added as it is, and the limited sum is cut toward zero.",
            "quant_primitives.quantize_affine: zero_point (an integer by the document)",
        ),
        documented(
            "blocks",
            "Elements of one block share its scale and zero point, given in any shape of one entry per block; a "
            "block of the whole shape is per tensor.",
            "AffineQuantizedTensor, field block_size; quant_primitives.quantize_affine, the table of granularities",
        ),
        documented(
            "unsigned-sub-byte",
            "Codes of 1 to 7 unsigned bits lie in uint8 and keep to their own grid.",
            "quant_primitives.quantize_affine: output_dtype gives the grid; AffineQuantizedTensor, fields "
            "quant_min and quant_max",
            calls=("sub-byte",),
        ),
        documented(
            "signed-sub-byte",
            "Codes of 1 to 7 signed bits keep to their own grid.",
            "quant_primitives.quantize_affine: output_dtype gives the grid",
        ),
        expected(
            "empty",
            "A tensor without elements, and parameters without entries, give a tensor without elements.",
            "quant_primitives: blocks divide the dimensions; of none there are none",
        ),
        measured(
            "refusals",
            "A grid beyond its dtype, a dtype without codes, an input of another dtype than float32, float16 and "
            "bfloat16, blocks and parameters that do not fit, and no zero point are refused.",
            "quant_primitives.quantize_affine: the arguments (the error types: measured)",
        ),
    ),
    *of(
        "torchao/dequantize_affine",
        documented(
            "codes",
            "A code becomes the difference to the zero point times the scale, in the dtype asked for; codes "
            "beyond the grid keep their value.",
            "AffineQuantizedTensor.dequantize and the affine transformation (codes beyond the grid: measured)",
        ),
        measured(
            "subtraction",
            "The zero point is subtracted in the output's dtype, to which both are rounded first; without one "
            "nothing is.",
            "quant_primitives.dequantize_affine (measured on 0.18; 0.11 subtracts in int32)",
        ),
        documented(
            "blocks",
            "The codes of one block share its scale and zero point.",
            "AffineQuantizedTensor, field block_size",
        ),
        measured(
            "refusals",
            "Codes of another dtype than said, reals of another than float32, float16 and bfloat16, and what does "
            "not fit are refused; any codes pass for unsigned ones below 8 bits.",
            "quant_primitives.dequantize_affine: the arguments (the error types: measured)",
        ),
    ),
)
