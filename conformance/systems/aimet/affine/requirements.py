"""What the documents require of AIMET's affine functions."""

from halfeven.conformance.requirement import documented, expected, measured, of, on

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "aimet",
        documented(
            "nearest-code",
            "The code is the input divided by the scale, rounded to the nearest integer; ties go to the even one.",
            "affine.quantize: equation and example; class QuantizeDequantize: equation of the clamped input (ties: "
            "measured)",
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
            "offset-after-rounding",
            "The offset is subtracted from the rounded quotient, not from the quotient.",
            "class QuantizeDequantize: equation of the clamped input",
            operations=("quantize", "fake_quantize"),
            checks=("odd-zero-point",),
            kills=("zero-point-before-rounding", "zero-point-fused", "sign-flipped"),
        ),
        documented(
            "clamp",
            "The code is limited to [qmin, qmax], after the offset.",
            "affine.quantize: equation; overloads for bitwidth, num_steps, qmin and qmax",
            operations=("quantize", "fake_quantize"),
            checks=("edges",),
            kills=("narrow-range", "clamp-before-zero-point", "wrap"),
        ),
        documented(
            "zero-sign",
            "The codes are floats, and a zero code keeps the sign of its input.",
            "affine.quantize: the example, which prints -0. for a small negative input",
            operations=("quantize",),
            checks=("zero-sign",),
            kills=("zero-sign-lost",),
        ),
        documented(
            "huge-inputs",
            "Inputs however large, and the infinities, give the end of the grid on their side.",
            "affine.quantize: the clamp of the equation, whose argument is unbounded",
            operations=("quantize", "fake_quantize"),
            checks=("huge",),
            kills=("int32-cast", "int64-cast"),
        ),
        documented(
            "dequantized-value",
            "A code becomes (code + offset) * scale.",
            "class QuantizeDequantize: equation of the output",
            operations=("dequantize",),
            checks=("all-codes",),
            kills=("sign-flipped", "scale-one-ulp-off"),
        ),
    ),
    *of(
        "aimet/affine.quantize",
        documented(
            "nearest-code-less-offset",
            "A code is the quotient of input and scale, rounded to the nearest integer (ties to the even one), "
            "less the offset, which is not rounded itself.",
            "affine.quantize: equation (ties and fractional offsets: measured)",
            calls=("codes",),
        ),
        documented(
            "three-overloads",
            "The grid is named by a bitwidth, a number of steps or its two ends; a signed one has ceil(n/2) codes "
            "below zero and floor(n/2) above.",
            "affine.quantize: overloads and their parameters",
            calls=("overloads",),
        ),
        documented(
            "signed-defaults-to-false",
            "Where signed is not given with num_steps, the grid is unsigned.",
            "affine.quantize: second overload; second printed call",
            calls=("default-signed",),
        ),
        documented(
            "blocks",
            "With a block size the parameter of an element is the one at floor(j / B) along each dimension, "
            "counted from the last; -1 spreads a dimension's scales evenly.",
            "affine.quantize: equation with block size; parameter block_size (-1 and alignment: measured)",
        ),
        measured(
            "working-dtype",
            "The quotient is rounded in the input's dtype while four times its steps fit the significand and its "
            "ends are exact, else in float32, else in float64.",
            "aimet-torch 2.42: affine.quantize",
        ),
        measured(
            "extremes",
            "Infinities give the ends of the grid, NaN stays NaN, and a zero code keeps the sign of the input, "
            "whatever the scale.",
            "aimet-torch 2.42: affine.quantize; the sign of zero: affine.quantize, printed example",
        ),
        documented(
            "examples",
            "The three printed calls give the printed codes.",
            "affine.quantize: Examples",
        ),
        measured(
            "refusals",
            "Refused are integer tensors, a grid without codes or with codes that the dtype does not hold, a "
            "bitwidth that is no integer, and shapes or blocks that do not fit.",
            "aimet-torch 2.42: affine.quantize",
        ),
    ),
    *of(
        "aimet/affine.quantize_dequantize",
        documented(
            "grid-value",
            "The result is (code + offset) * scale of the code that quantize gives, computed in the working "
            "dtype and rounded to the input's dtype at the end.",
            "class QuantizeDequantize: equations (the dtype: measured)",
            calls=("codes",),
        ),
        documented(
            "three-overloads",
            "The three ways to name the grid are those of quantize.",
            "affine.quantize: overloads; class QuantizeDequantize: parameter bitwidth",
            calls=("overloads",),
        ),
        documented(
            "signed-defaults-to-false",
            "Where signed is not given with num_steps, the grid is unsigned.",
            "affine.quantize: second overload",
            calls=("default-signed",),
        ),
        documented(
            "blocks",
            "With a block size the parameter of an element is the one at floor(j / B) along each dimension, for "
            "the code and for the value.",
            "class QuantizeDequantize: equations with block size; parameter block_size",
        ),
        measured(
            "working-dtype",
            "Quotient, sum and product are rounded in the working dtype, and the product to the input's dtype "
            "once; a grid that the input's dtype does not hold is accepted.",
            "aimet-torch 2.42: affine.quantize_dequantize",
        ),
        measured(
            "extremes",
            "Infinities give the values of the ends, NaN stays NaN, and an input of either zero gives the value of "
            "zero.",
            "aimet-torch 2.42: affine.quantize_dequantize with a scale that requires grad",
        ),
        measured(
            "zero-point-shift",
            "A zero point shift of z is subtracted before rounding and added back with the offset: every value "
            "of the grid moves by z scales.",
            "aimet-torch 2.42: affine.quantize_dequantize",
        ),
        documented(
            "examples",
            "The printed calls give the values of the printed codes; the values that the class prints are values "
            "of one grid per block, the one of min -1 and max 1 among them.",
            "affine.quantize: Examples; class QuantizeDequantize: equation of the output, both examples",
        ),
        measured(
            "refusals",
            "Refused are integer tensors, a grid without codes or beyond float64, a bitwidth that is no integer, "
            "and shapes or blocks that do not fit.",
            "aimet-torch 2.42: affine.quantize_dequantize",
        ),
    ),
    *of(
        "aimet/affine.dequantize",
        documented(
            "sum-and-product",
            "A code gives (code + offset) * scale, the sum and the product rounded in the dtype of the codes, "
            "without a limit.",
            "class QuantizeDequantize: equation of the output (the dtype: measured)",
            calls=("codes",),
        ),
        documented(
            "blocks",
            "With a block size the parameter of a code is the one at floor(j / B) along each dimension.",
            "class QuantizeDequantize: equations with block size",
        ),
        expected(
            "integer-codes",
            "Codes of an integer dtype are refused, not multiplied by a scale that is cut to an integer.",
            "class QuantizeDequantize: equation of the output",
            calls=("integers",),
        ),
        measured(
            "refusals",
            "Shapes and blocks that do not fit are refused.",
            "aimet-torch 2.42: affine.dequantize",
        ),
    ),
)
