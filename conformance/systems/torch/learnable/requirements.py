"""What torch's learnable quantizers are required to give, and their gradients."""

from halfeven.conformance.requirement import measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "torch/_fake_quantize_learnable_per_tensor_affine",
        measured(
            "values",
            "The zero point is rounded, a tie to the even integer, and limited to the grid; the input times the "
            "reciprocal of the scale is rounded, then the zero point is added and the sum limited.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
        measured(
            "specials",
            "Infinities saturate on their side, and NaN takes the lowest code.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
        measured(
            "refusals",
            "Ends of the grid that are no integers, a lowest code above the highest, a zero point of NaN and an "
            "input of integers are refused.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
        measured(
            "dtypes",
            "float16 and bfloat16 are computed with in float32; of float64 the quotient is in float64, the rest in "
            "float32; the result has the input's dtype.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
    ),
    *of(
        "torch/_fake_quantize_learnable_per_channel_affine",
        measured(
            "dtypes",
            "float16 and bfloat16 are computed with in float32, float64 in itself; the result has the input's dtype.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
        measured(
            "values",
            "Every index along axis has its own scale and zero point, rounded and limited as per tensor.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
        measured(
            "specials",
            "Codes that an int64 does not hold, infinities and NaN take the lowest code.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
        measured(
            "refusals",
            "An axis outside the dimensions, a negative one, and parameters that are not as many as the channels "
            "are refused.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
    ),
    *of(
        "torch/_fake_quantize_learnable_per_tensor_affine.backward",
        measured(
            "one-element",
            "Inside the grid the gradient of the scale is that of the result times the rounding error over the "
            "scale, outside the distance of the end from the zero point; the zero point has one outside only.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
        measured(
            "zero-points",
            "The gradients see the zero point plus a half, limited to the grid and cut towards zero.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
        measured(
            "sums",
            "The gradients of scale and zero point are sums over the elements, times grad_factor.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
        measured(
            "specials",
            "Codes that an int64 does not hold, infinities and NaN count as below the grid; without elements the "
            "gradients are scale and zero point themselves.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
        measured(
            "refusals",
            "A range without zero, a zero point of NaN, and float16 and float64 are refused.",
            "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
        ),
    ),
    *of(
        "torch/_fake_quantize_learnable_per_channel_affine.backward",
        measured(
            "one-element",
            "The gradients are those per tensor, with the zero point that the result has.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
        measured(
            "sums",
            "The gradients of scale and zero point are sums over the elements of a channel.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
        measured(
            "specials",
            "Codes that an int64 does not hold, infinities and NaN count as below the grid.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
        measured(
            "refusals",
            "What per_channel refuses, a range without zero, and an input of one dimension are refused.",
            "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
        ),
    ),
)
