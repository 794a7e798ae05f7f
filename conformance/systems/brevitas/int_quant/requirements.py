"""What brevitas requires of IntQuant and its gradients, by calls and as operations."""

from halfeven.conformance.requirement import documented, expected, measured, of, on, silent

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "brevitas",
        documented(
            "nearest-code",
            "The input divided by the scale is rounded to the nearest integer by RoundSte, the default; a tie "
            "goes to the even one.",
            "IntQuant: float_to_int_impl; round_ste, which is torch.round",
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
        measured(
            "odd-zero-point",
            "The zero point is added to the quotient before it is rounded, so an odd one turns ties.",
            "IntQuant: scale and zero-point of the input (the place of the zero point: measured)",
            operations=("quantize", "fake_quantize"),
            checks=("odd-zero-point",),
            kills=("zero-point-after-rounding", "sign-flipped"),
        ),
        documented(
            "range",
            "The code is limited to the integers from min_int to max_int, by signed, narrow_range and bit width.",
            "IntQuant: narrow_range, signed; min_int and max_int",
            operations=("quantize", "fake_quantize"),
            checks=("edges",),
            kills=("narrow-range", "wrap"),
        ),
        documented(
            "huge-inputs",
            "Inputs however large, and the infinities, give the end of the range on their side.",
            "tensor_clamp: the result lies between the minimum and the maximum",
            operations=("quantize", "fake_quantize"),
            checks=("huge",),
            kills=("int32-cast", "int64-cast"),
        ),
    ),
    *of(
        "brevitas/IntQuant.to_int",
        documented(
            "rounding",
            "ROUND goes to the nearest integer and of a tie to the even one, FLOOR down, CEIL up, ROUND_TO_ZERO to "
            "zero; DPU is ROUND but for negative ties, which go up.",
            "function.ops_ste: round_ste, floor_ste, ceil_ste; function.ops: round_to_zero and dpu_round with "
            "their examples",
        ),
        measured(
            "zero-point-before-rounding",
            "The zero point is added to the quotient, and the sum is rounded; it need not be an integer.",
            "IntQuant.to_int, measured",
            calls=("zero-point",),
        ),
        documented(
            "clamp",
            "What is rounded is limited to min_int and max_int, both included.",
            "IntQuant: bit-width, signed, narrow_range; tensor_clamp",
            calls=("ends",),
        ),
        documented(
            "huge-inputs",
            "Inputs however large, and the infinities, give the end of the range on their side; NaN stays (measured).",
            "tensor_clamp: the result lies between the minimum and the maximum",
            calls=("specials",),
        ),
        measured(
            "zeros",
            "What rounds to zero from below is -0.0 in every rounding; ROUND_TO_ZERO makes 0.0 of -0.0, as sign "
            "and magnitude are multiplied.",
            "function.ops.round_to_zero: its example prints -0. (of -0.0: measured)",
        ),
        expected(
            "shapes",
            "Scale and zero point broadcast to the input, whose shape the codes have.",
            "IntQuant: scale and zero-point of the input tensor",
        ),
        expected(
            "refused-widths",
            "A bit-width is 1 or more.",
            "IntQuant: bit-width",
        ),
        measured(
            "refused-shapes",
            "A scale or zero point that does not broadcast with the input is refused.",
            "IntQuant.to_int, measured",
        ),
    ),
    *of(
        "brevitas/IntQuant",
        measured(
            "refused-shapes",
            "A scale or zero point that does not broadcast with the input is refused.",
            "IntQuant.forward, measured",
        ),
        documented(
            "example",
            "The document's example: at scale 0.01 and 4 narrow bits, 0.042, -0.053, 0.31, -0.44 become 0.04, "
            "-0.05, 0.07, -0.07.",
            "IntQuant: example",
        ),
        documented(
            "dequantized-value",
            "The result is the code less the zero point, times the scale.",
            "IntQuant: quantized output in dequantized format; scale and zero-point (order: measured)",
            calls=("reals",),
        ),
        measured(
            "fractional-zero-point",
            "A zero point that is no integer is taken off as it is: results lie between the multiples of the scale.",
            "IntQuant, measured",
        ),
        silent(
            "zero-scale",
            "What a scale of 0 gives; the document does not say.",
            "IntQuant: scale",
        ),
    ),
    *of(
        "brevitas/IntQuant.backward",
        documented(
            "straight-through",
            "Inside the range the rounding passes gradients through: x gets (g s) / s, the scale g (q - z) - g x "
            "/ s, the zero point 0.",
            "function.ops_ste: straight-through estimators (the order of the operations: measured)",
            calls=("inside",),
        ),
        documented(
            "clamp-mask",
            "The rounded number decides: on and between the ends gradients pass, beyond them x gets 0, the scale "
            "g (q - z), the zero point -g s.",
            "tensor_clamp: differentiable (the ends, and that it is the rounded number: measured)",
            calls=("ends",),
        ),
        silent(
            "specials",
            "What NaN, infinities and a scale of 0 give; the document does not say.",
            "IntQuant",
        ),
    ),
)
