"""What is said of torchao's float8 primitives."""

from halfeven.conformance.requirement import documented, expected, measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "torchao/choose_scale_float8",
        documented(
            "largest-magnitude-over-largest-number",
            "The scale of a block is its largest magnitude over the largest number of the float8 dtype, divided in "
            "the dtype of the input and then held in float32.",
            "AffineQuantizedTensor: from_hp_to_floatx; the dtype of the division measured",
            calls=("scale",),
        ),
        documented(
            "one-scale-per-block",
            "Elements of one block share a scale, blocks of any rank and shape, and the scales have n / b entries "
            "along each dimension.",
            "AffineQuantizedTensor: block_size",
            calls=("blocks",),
        ),
        documented(
            "blocks-of-one-element",
            "A block size of ones gives each element its own scale.",
            "AffineQuantizedTensor: block_size, the elements that share a parameter",
            calls=("single-elements",),
        ),
        measured(
            "zero-block",
            "A block of zeros has the scale zero, for there is no least scale, and so may a small block of float16.",
            "torchao.quantization.quant_primitives._choose_scale_float8",
            calls=("zero-and-small-blocks",),
        ),
        measured(
            "specials",
            "A block with NaN has the scale NaN, a block with an infinity an infinite one, unless an upper bound "
            "limits it.",
            "torchao.quantization.quant_primitives._choose_scale_float8",
        ),
        measured(
            "bounds",
            "The bounds limit the magnitude before it is divided, in the dtype of the input; of bounds that cross "
            "the upper one wins.",
            "torchao.quantization.quant_primitives._choose_scale_float8: hp_value_lb, hp_value_ub",
        ),
        measured(
            "e8m0-scale",
            "A scale of dtype e8m0 is the power of two whose exponent is nearest to the scale's logarithm; zero, "
            "infinity and NaN stay.",
            "torchao.quantization.quant_primitives._choose_scale_float8: scale_dtype",
        ),
        expected(
            "e8m0-decided-at-the-root-of-two",
            "Between two powers of two the nearer one is decided at the lower times the square root of two, exactly.",
            "the equation of the e8m0 scale over the reals",
            calls=("e8m0-half-way",),
        ),
        measured(
            "refusals",
            "The block size has one entry per dimension, each at least one and a divisor, and the scale dtype is "
            "float32 or e8m0.",
            "torchao.quantization.quant_primitives._choose_scale_float8",
        ),
    ),
    *of(
        "torchao/quantize_affine_float8",
        documented(
            "nearest",
            "A code is the float8 number nearest to the float32 quotient of the number and its scale, of two "
            "equally near the one with the even code.",
            "AffineQuantizedTensor: the affine transformation, float over scale",
        ),
        measured(
            "saturation",
            "What is beyond the largest number, and an infinity, becomes the largest number of its sign, in dtypes "
            "with an infinity too.",
            "torchao.quantization.quant_primitives._quantize_affine_float8",
        ),
        measured(
            "nan-and-zero",
            "NaN stays NaN, and so becomes zero over a zero scale; a zero keeps its sign where the dtype has one.",
            "torchao.quantization.quant_primitives._quantize_affine_float8",
        ),
        documented(
            "scale-of-the-block",
            "Every element is divided by the scale of its block, in float32 whatever the input's dtype, and one "
            "scale serves all.",
            "AffineQuantizedTensor: block_size",
            calls=("blocks",),
        ),
        measured(
            "quotient-in-float32",
            "The quotient is computed in float32, also where the input and the scale have one narrower dtype.",
            "torchao.quantization.quant_primitives._quantize_affine_float8",
            calls=("sixteen-bit-scales",),
        ),
        expected(
            "scale-of-another-rank",
            "A scale of another rank than the input, with more than one entry, is refused.",
            "torchao.quantization.quant_primitives._quantize_affine_float8: scales have a dimension for each of "
            "the input's",
        ),
        measured(
            "refusals",
            "A dimension of the scale divides that of the input.",
            "torchao.quantization.quant_primitives._quantize_affine_float8",
        ),
    ),
    *of(
        "torchao/dequantize_affine_float8",
        documented(
            "product",
            "A real is the number of the code times the scale, in float32, rounded to the output dtype; NaN stays NaN.",
            "AffineQuantizedTensor: dequantize",
            calls=("all-codes",),
        ),
        documented(
            "scale-of-the-block",
            "Every code is multiplied by the scale of its block.",
            "AffineQuantizedTensor: block_size",
            calls=("blocks",),
        ),
        expected(
            "scale-of-another-rank",
            "A scale of another rank than the codes, with more than one entry, is refused.",
            "torchao.quantization.quant_primitives._dequantize_affine_float8",
        ),
        measured(
            "refusals",
            "A dimension of the scale divides that of the codes.",
            "torchao.quantization.quant_primitives._dequantize_affine_float8",
        ),
    ),
)
