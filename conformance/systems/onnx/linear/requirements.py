"""What ONNX requires of QuantizeLinear and DequantizeLinear, by calls and as operations."""

from halfeven.conformance.requirement import documented, expected, measured, of, on, silent

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "onnx",
        documented(
            "nearest-code",
            "The input divided by y_scale is rounded to the nearest integer; a tie goes to the even one.",
            "QuantizeLinear: description of the rounding",
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
            "y_zero_point is added to the rounded quotient.",
            "QuantizeLinear: it is (x / y_scale) that is rounded",
            operations=("quantize", "fake_quantize"),
            checks=("odd-zero-point",),
            kills=("zero-point-before-rounding", "zero-point-fused", "sign-flipped"),
        ),
        documented(
            "saturation",
            "The sum saturates to the range of the output type.",
            "QuantizeLinear: description of the saturation, by type",
            operations=("quantize", "fake_quantize"),
            checks=("edges",),
            kills=("narrow-range", "clamp-before-zero-point", "wrap"),
        ),
        documented(
            "huge-inputs",
            "Inputs however large, and the infinities, saturate to the end of the range on their side.",
            "QuantizeLinear: description of the saturation",
            operations=("quantize", "fake_quantize"),
            checks=("huge",),
            kills=("int32-cast", "int64-cast"),
        ),
        documented(
            "dequantized-value",
            "A code becomes (x - x_zero_point) * x_scale.",
            "DequantizeLinear: equation",
            operations=("dequantize",),
            checks=("all-codes",),
            kills=("sign-flipped", "scale-one-ulp-off"),
        ),
    ),
    *of(
        "onnx/QuantizeLinear",
        documented(
            "round-then-add",
            "The quotient of x and y_scale is rounded to the nearest integer, a tie to the even one, and "
            "y_zero_point is added after that.",
            "QuantizeLinear, opsets 10 to 25: equation, and the sentence on rounding",
            calls=("ties",),
        ),
        documented(
            "saturation",
            "The sum saturates to the whole range of the output type, of 2, 4, 8 or 16 bits.",
            "QuantizeLinear, opset 25: list of the ranges",
        ),
        documented(
            "huge-inputs",
            "Quotients however large, and infinities, saturate on their side whatever the zero point is.",
            "QuantizeLinear, opsets 10 to 25: saturation",
            calls=("huge",),
        ),
        measured(
            "nan",
            "NaN becomes the lowest code.",
            "QuantizeLinear says nothing of NaN; ONNX Runtime 1.31.0 in float32",
        ),
        documented(
            "precision",
            "The division is rounded in the type of y_scale, or in the type that precision names.",
            "QuantizeLinear, opset 23: sentence on the precision of the division, and attribute precision",
            calls=("division",),
        ),
        measured(
            "int32",
            "An int32 input is divided in the type of y_scale; an int32 scale divides as if over the reals.",
            "QuantizeLinear, opset 23: type of y_scale; for an int32 scale onnx 1.23.0: onnx.reference",
        ),
        documented(
            "granularity",
            "A scalar scale serves the tensor, a list of scales has one per index along axis, which is 1 by "
            "default and may be negative.",
            "QuantizeLinear, opsets 13 and 21: granularities, and attribute axis",
        ),
        documented(
            "blocks",
            "Blocks of block_size along axis have one scale each, and the last may be shorter.",
            "QuantizeLinear, opset 21: blocked quantization, and attribute block_size",
        ),
        documented(
            "output-type",
            "The output has the type of y_zero_point, else of output_dtype, else uint8.",
            "QuantizeLinear, opset 21: attribute output_dtype",
        ),
        documented(
            "float8-saturating",
            "By default a number that rounds beyond the largest float8 becomes the largest; an infinity does so in "
            "e4m3fn and e5m2 and becomes NaN in the fnuz types; -0 stays where the type has it.",
            "QuantizeLinear, opset 19: attribute saturate; Cast, opset 19: first table",
        ),
        documented(
            "float8-not-saturating",
            "With saturate=0 a number that rounds beyond the largest float8 becomes an infinity in e5m2 and NaN in "
            "the other types.",
            "QuantizeLinear, opset 19: attribute saturate; Cast, opset 19: second table",
        ),
        documented(
            "float8-zero-point",
            "A float8 zero point is added to the quotient before it is rounded to float8.",
            "QuantizeLinear, opset 19: the equation holds for float8 too",
        ),
        measured(
            "float4",
            "float4e2m1 takes the nearest number, a tie the even code, and saturates; its zero point is added "
            "first; NaN becomes -0.",
            "QuantizeLinear, opset 23: output type float4e2m1; NaN: onnx 1.23.0, onnx.reference",
        ),
        documented(
            "types-by-opset",
            "Each opset accepts its own types and attributes and refuses others: x and y_scale of one type before "
            "23, output_dtype that agrees with y_zero_point.",
            "QuantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25: type constraints and attributes",
            calls=("types",),
        ),
        documented(
            "shapes",
            "Scales of another shape, a zero point of another shape than the scale, an axis outside the rank and a "
            "block size outside its range are refused.",
            "QuantizeLinear, opsets 10, 13 and 21: shapes of y_scale and y_zero_point, attributes axis and block_size",
            calls=("refused-shapes",),
        ),
        documented(
            "examples",
            "The worked examples come out as printed.",
            "QuantizeLinear, opset 25: examples",
        ),
    ),
    *of(
        "onnx/DequantizeLinear",
        documented(
            "value",
            "A code or small float becomes its difference from x_zero_point times x_scale.",
            "DequantizeLinear, opsets 10 to 25: equation",
            calls=("all-codes", "int32", "special-scales"),
        ),
        expected(
            "int32-zero-point",
            "The difference of int32 codes from a zero point does not wrap.",
            "DequantizeLinear, opsets 10 to 25: int32 has a zero point of zero",
        ),
        documented(
            "output-type",
            "The product is computed in the output's type: output_dtype, else the type of x_scale.",
            "DequantizeLinear, opset 23: sentences on the output type",
        ),
        documented(
            "float-zero-point",
            "A zero point of float8 or float4 is subtracted like any other.",
            "DequantizeLinear, opsets 19 and 23: the equation holds for float8 and 4 bits too",
        ),
        documented(
            "granularity",
            "One scale serves the tensor, an index along axis, or a block along it, as in QuantizeLinear.",
            "DequantizeLinear, opsets 13 and 21: granularities",
        ),
        documented(
            "types-by-opset",
            "Each opset accepts its own types and attributes and refuses others, and x and x_zero_point have one type.",
            "DequantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25: type constraints and attributes",
            calls=("types",),
        ),
        documented(
            "shapes",
            "Scales of another shape, a zero point of another shape than the scale, an axis outside the rank and a "
            "block size outside its range are refused.",
            "DequantizeLinear, opsets 10, 13, 21: shapes of x_scale and x_zero_point, attributes axis and block_size",
            calls=("refused-shapes",),
        ),
        silent(
            "block-size-of-one-scale",
            "One scale serves the tensor whatever block_size says.",
            "DequantizeLinear, opset 21: attribute block_size, which is for a scale per block",
        ),
        documented(
            "examples",
            "The worked examples come out as printed.",
            "DequantizeLinear, opset 25: examples",
        ),
    ),
)
