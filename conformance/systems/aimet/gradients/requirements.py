"""What the documents require of AIMET's gradients."""

from halfeven.conformance.requirement import expected, measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "aimet/quantize_gradient",
        measured(
            "straight-through",
            "Inside the grid the gradient of a code is 1 / scale for the input, -(x / scale) / scale for the scale "
            "and -1 for the offset; outside all are zero.",
            "aimet-torch 2.42: affine.quantize, autograd",
            calls=("elements",),
        ),
        measured(
            "not-finite",
            "What is not finite in the gradient from above stays so outside the grid, where it is multiplied by zero.",
            "aimet-torch 2.42: affine.quantize, autograd",
        ),
        measured(
            "sums",
            "The gradient of a scale or offset is the sum over the elements, or the blocks' elements, that share it.",
            "aimet-torch 2.42: affine.quantize, autograd",
        ),
        expected(
            "cancelling-sums",
            "The sum that is the gradient of a scale or offset is exact and rounded once, also where large "
            "elements cancel.",
            "derivative of aimet_torch.quantization.affine; the library leaves the order of its sums open, and "
            "is not asked",
        ),
        measured(
            "refusals",
            "A grid whose ends are in the other order, and scales that do not fit the tensor, are refused as "
            "without gradients.",
            "aimet-torch 2.42: affine.quantize, autograd",
        ),
        expected(
            "scalar-scale",
            "One scale for a tensor of a narrow dtype gets the gradient that one scale per element would get: x / "
            "scale is not rounded to the narrow dtype.",
            "aimet-torch 2.42: affine.quantize with a scale of shape (1,), autograd",
        ),
    ),
    *of(
        "aimet/quantize_dequantize_gradient",
        measured(
            "elements",
            "Inside the grid, ends included and by the rounded code, the input gets the gradient and the scale the "
            "rounding error; outside the scale gets the end plus the offset, and the offset the scale.",
            "aimet-torch 2.42: affine.quantize_dequantize, autograd",
        ),
        measured(
            "not-finite",
            "Outside the grid the input's gradient is zero whatever comes from above; a NaN input gives its "
            "scale a NaN.",
            "aimet-torch 2.42: affine.quantize_dequantize, autograd",
        ),
        measured(
            "sums",
            "The gradient of a scale or offset is the sum over the elements, or the blocks' elements, that share it.",
            "aimet-torch 2.42: affine.quantize_dequantize, autograd",
        ),
        expected(
            "cancelling-sums",
            "The sum that is the gradient of a scale or offset is exact and rounded once, also where large "
            "elements cancel.",
            "derivative of aimet_torch.quantization.affine; the library leaves the order of its sums open, and "
            "is not asked",
        ),
        measured(
            "refusals",
            "A grid whose ends are in the other order, and scales that do not fit the tensor, are refused as "
            "without gradients.",
            "aimet-torch 2.42: affine.quantize_dequantize, autograd",
        ),
        expected(
            "zero-point-shift",
            "With a zero point shift the value of a clipped element is (end + offset + shift) * scale, and so is "
            "its derivative with respect to the scale.",
            "derivative of affine.quantize_dequantize, aimet-torch 2.42",
        ),
    ),
    *of(
        "aimet/dequantize_gradient",
        measured(
            "elements",
            "The gradient of (q + offset) * scale is scale for the code and the offset, and q + offset for the scale.",
            "aimet-torch 2.42: affine.dequantize, autograd",
        ),
        measured(
            "sums",
            "The gradient of a scale or offset is the sum over the codes that share it.",
            "aimet-torch 2.42: affine.dequantize, autograd",
        ),
        expected(
            "cancelling-sums",
            "The sum that is the gradient of a scale or offset is exact and rounded once, also where large "
            "elements cancel.",
            "derivative of aimet_torch.quantization.affine; the library leaves the order of its sums open, and "
            "is not asked",
        ),
    ),
    *of(
        "aimet/range_gradient",
        measured(
            "refusals",
            "A grid of fewer than two codes is refused.",
            "aimet-torch 2.42: QuantizeDequantize",
        ),
        measured(
            "symmetric",
            "Of a symmetric quantizer max gets the scale's gradient over the number of steps, min its negative, "
            "both with the sign of max - min.",
            "aimet-torch 2.42: QuantizeDequantize, autograd of scale",
        ),
        measured(
            "asymmetric",
            "Of an asymmetric quantizer the offset's gradient reaches min and the scale through min / scale, save "
            "where the offset is clamped to keep zero in the range.",
            "aimet-torch 2.42: QuantizeDequantize, autograd of scale and offset",
        ),
        measured(
            "smallest-scale",
            "A width below the smallest scale has no gradient; at the smallest scale it has.",
            "aimet-torch 2.42: QuantizeDequantize, autograd of scale",
        ),
    ),
)
