"""torchao: what its documents say of quantize and dequantize with a zero point in reals or none."""

from halfeven.conformance.requirement import documented, expected, measured, of, silent

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "torchao/quantize_affine_float_domain",
        documented(
            "codes",
            "FLOAT domain: the code counts from the real of code 0, the zero point less scale times the grid's "
            "middle; the quotient is rounded once, ties to even.",
            "quant_primitives: ZeroPointDomain.FLOAT; AffineQuantizedTensor, field zero_point_domain (ties: measured)",
            calls=("float-domain",),
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
        documented(
            "blocks",
            "Elements of one block share its scale and zero point.",
            "AffineQuantizedTensor, field block_size",
        ),
        expected(
            "empty",
            "A tensor without elements, and parameters without entries, give a tensor without elements.",
            "quant_primitives: blocks divide the dimensions; of none there are none",
        ),
        documented(
            "signed-sub-byte",
            "Codes of 1 to 7 signed bits keep to their own grid.",
            "quant_primitives.quantize_affine: output_dtype gives the grid",
        ),
        measured(
            "refusals",
            "What quantize_affine refuses is refused in the FLOAT domain too.",
            "quant_primitives.quantize_affine: the arguments (the error types: measured)",
        ),
    ),
    *of(
        "torchao/dequantize_affine_float_domain",
        documented(
            "codes",
            "FLOAT domain: a code less the grid's middle, times the scale, plus the zero point; the grid is that "
            "of the codes' dtype where none is given.",
            "quant_primitives: ZeroPointDomain.FLOAT; AffineQuantizedTensor, fields quant_min and quant_max (the "
            "roundings: measured)",
        ),
        documented(
            "blocks",
            "The codes of one block share its scale and zero point.",
            "AffineQuantizedTensor, field block_size",
        ),
        measured(
            "refusals",
            "What dequantize_affine refuses is refused in the FLOAT domain too.",
            "quant_primitives.dequantize_affine: the arguments (the error types: measured)",
        ),
    ),
    *of(
        "torchao/quantize_affine_no_zero_point",
        measured(
            "codes",
            "NONE domain, integer codes: the quotient rounded to the nearest integer, a tie to the even one, and "
            "limited to the grid.",
            "quant_primitives: ZeroPointDomain.NONE (for integers no rounding is named)",
            calls=("none-domain",),
        ),
        documented(
            "quotient",
            "NONE domain: the input is divided by the scale.",
            "quant_primitives: ZeroPointDomain.NONE, float_val / scale",
        ),
        documented(
            "float8",
            "NONE domain, float8: the quotient is limited and cast to the nearest float8, not rounded to an "
            "integer before.",
            "quant_primitives._quantize_affine_no_zero_point, the note: scaled and cast",
        ),
        silent(
            "nan",
            "NaN among integer codes is refused, for an integer does not stand for it.",
            "no document says what NaN gives",
        ),
        expected(
            "wide-grids",
            "An end of the grid that the arithmetic's dtype does not hold does not pass the grid's end as an integer.",
            "AffineQuantizedTensor, field quant_max: the greatest code",
        ),
        documented(
            "blocks",
            "Elements of one block share its scale.",
            "AffineQuantizedTensor, field block_size",
        ),
        documented(
            "signed-sub-byte",
            "Codes of 1 to 7 signed bits keep to their own grid.",
            "quant_primitives.quantize_affine: output_dtype gives the grid",
        ),
        measured(
            "zero-point",
            "A zero point in the NONE domain is not read.",
            "quant_primitives._quantize_affine_no_zero_point: zero_point (measured; 0.11 refuses it)",
        ),
        measured(
            "refusals",
            "What quantize_affine refuses is refused in the NONE domain too.",
            "quant_primitives.quantize_affine: the arguments (the error types: measured)",
        ),
    ),
    *of(
        "torchao/dequantize_affine_no_zero_point",
        documented(
            "codes",
            "NONE domain: a code times the scale, in the dtype asked for.",
            "quant_primitives: ZeroPointDomain.NONE",
        ),
        documented(
            "blocks",
            "The codes of one block share its scale.",
            "AffineQuantizedTensor, field block_size",
        ),
        documented(
            "refusals",
            "A zero point is refused in the NONE domain, and so is what dequantize_affine refuses.",
            "quant_primitives._dequantize_affine_no_zero_point: zero_point (the error types: measured)",
        ),
    ),
)
