"""torchao: what its documents say of choosing a scale and a zero point."""

from halfeven.conformance.requirement import documented, expected, measured, of, silent

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "torchao/choose_qparams_affine",
        documented(
            "examples",
            "The range [-3.5, 10.2] on the codes -8 to 7: the symmetric scale is 20.4 / 15, the asymmetric 13.7 / 15.",
            "quant_primitives: MappingType, the worked examples",
        ),
        documented(
            "symmetric",
            "SYMMETRIC: the scale is the larger magnitude over half the steps of the grid; the zero point is the "
            "grid's middle, its fraction cut.",
            "quant_primitives: MappingType.SYMMETRIC",
        ),
        documented(
            "symmetric-without-clipping",
            "SYMMETRIC_NO_CLIPPING_ERR: the scale is the larger of the least element over quant_min and the "
            "greatest over quant_max.",
            "quant_primitives: MappingType.SYMMETRIC_NO_CLIPPING_ERR",
            calls=("no-clipping",),
        ),
        documented(
            "asymmetric",
            "ASYMMETRIC: the range drawn out to 0, over the steps of the grid; the zero point is the code of 0, "
            "limited to the grid.",
            "quant_primitives: MappingType.ASYMMETRIC; from_hp_to_intx, preserve_zero",
        ),
        documented(
            "eps",
            "The scale is at least eps, by default the machine epsilon of the input's dtype, before it takes the "
            "dtype asked for.",
            "quant_primitives.choose_qparams_affine: eps; from_hp_to_intx, eps",
        ),
        measured(
            "result-dtypes",
            "The arithmetic is the input's; scale and zero point are converted to scale_dtype and "
            "zero_point_dtype at the end, an integer wraps.",
            "quant_primitives.choose_qparams_affine: scale_dtype, zero_point_dtype (the conversion: measured)",
        ),
        measured(
            "zero-point-default-dtype",
            "Without zero_point_dtype an asymmetric zero point in the integer domain is int32, and any other has "
            "the input's dtype.",
            "from_hp_to_intx, zero_point_dtype: no default is named (measured on 0.11; since 0.15 int32 throughout)",
            calls=("zero-point-default",),
        ),
        documented(
            "zero-not-preserved",
            "With preserve_zero=False the range is that of the elements, and not drawn out to 0.",
            "from_hp_to_intx, preserve_zero; _choose_qparams_affine_dont_preserve_zero",
            calls=("without-zero",),
        ),
        documented(
            "float-domain",
            "In the FLOAT domain the zero point is the real of the middle code: the least element plus scale "
            "times (qmin + qmax + 1) / 2.",
            "quant_primitives: ZeroPointDomain.FLOAT; AffineQuantizedTensor, field zero_point_domain",
        ),
        documented(
            "none-domain",
            "In the NONE domain there is no zero point.",
            "quant_primitives: ZeroPointDomain.NONE",
        ),
        expected(
            "specials",
            "NaN gives a scale of NaN, an infinity one of infinity; an integer zero point of NaN is refused.",
            "no document says what NaN and infinities give",
        ),
        silent(
            "asymmetric-float8",
            "A float8 is mapped to symmetrically.",
            "from_hp_to_floatx maps so itself; whether another mapping is refused no document says",
        ),
        documented(
            "blocks",
            "Each block has a scale and a zero point of its own; with keepdim there is an entry per block along "
            "every dimension.",
            "AffineQuantizedTensor, field block_size; quant_primitives.choose_qparams_affine: block_size, keepdim",
        ),
        expected(
            "blocks-of-one",
            "A block of one element along every dimension gives each element a scale of its own.",
            "AffineQuantizedTensor, field block_size: the elements that share one parameter",
        ),
        measured(
            "refusals",
            "A grid beyond the target dtype, a dtype without codes, an unknown mapping, an input that is not "
            "float, and blocks that do not fit or are empty are refused.",
            "quant_primitives.choose_qparams_affine: the arguments (the error types: measured)",
        ),
        measured(
            "symmetric-keeps-zero",
            "A symmetric mapping with preserve_zero=False, or with a zero point in reals, is refused.",
            "from_hp_to_intx, preserve_zero and zero_point_domain (the refusal: measured on 0.11)",
            calls=("refused-symmetric",),
        ),
        measured(
            "rounded-ends",
            "An end of the grid that the input's dtype does not hold is rounded to it before the zero point is taken.",
            "quant_primitives.choose_qparams_affine: the arithmetic is the input's (measured)",
        ),
        measured(
            "blocks-below-one",
            "With keepdim a block of -1 along a dimension of one element is the rest of the blocks, and one of 0 "
            "is refused.",
            "quant_primitives.choose_qparams_affine: keepdim (entries below 1: measured)",
        ),
        silent(
            "inverted-grid",
            "A grid whose ends are equal or in the other order is not refused: the scale is infinite, or the least.",
            "no document asks that quant_min lies below quant_max",
        ),
    ),
    *of(
        "torchao/choose_qparams_affine_with_min_max",
        documented(
            "extremes",
            "Given extremes lead to the same scale and zero point as the elements that have them; they are "
            "neither sorted nor reduced.",
            "quant_primitives.choose_qparams_affine_with_min_max",
        ),
        measured(
            "zero-point-quotient",
            "For the zero point the least element is divided by the scale.",
            "quant_primitives: MappingType.ASYMMETRIC (the division: measured)",
        ),
        measured(
            "nan",
            "A given extreme of NaN gives a scale of NaN, and an asymmetric zero point of NaN where a float is "
            "asked for.",
            "no document says what NaN gives",
        ),
        expected(
            "integer-nan",
            "An integer zero point of NaN is refused.",
            "no document says what NaN gives",
        ),
        measured(
            "symmetric-keeps-zero",
            "A symmetric mapping of given extremes is refused without a zero that is kept, as one of elements is.",
            "from_hp_to_intx, preserve_zero and zero_point_domain (the refusal: measured on 0.11)",
            calls=("refused-symmetric",),
        ),
        documented(
            "defaults",
            "Of given extremes too the scale is at least the machine epsilon of their dtype, and the zero point "
            "is of that dtype.",
            "quant_primitives.choose_qparams_affine_with_min_max: arguments as choose_qparams_affine",
        ),
        measured(
            "refusals",
            "Extremes of two dtypes or of integers, and a grid beyond the target dtype, are refused.",
            "quant_primitives.choose_qparams_affine_with_min_max (the error types: measured)",
        ),
    ),
)
