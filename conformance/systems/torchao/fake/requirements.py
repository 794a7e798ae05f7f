"""torchao: what its documents say of fake quantization and its mask."""

from halfeven.conformance.requirement import documented, expected, measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "torchao/fake_quantize_affine",
        documented(
            "codes",
            "Fake quantization gives the reals that dequantize makes of quantize's codes, in the input's dtype.",
            "quant_primitives.fake_quantize_affine: quantize_affine and dequantize_affine without the casts",
        ),
        documented(
            "quotient",
            "The input is divided by the scale, in the dtype to which both promote.",
            "AffineQuantizedTensor: float_tensor / scale; quant_primitives: ZeroPointDomain.INT",
        ),
        measured(
            "nan",
            "NaN stays NaN.",
            "quant_primitives.fake_quantize_affine: no casts (measured on 0.18; 0.11 casts to int32)",
        ),
        documented(
            "extremes",
            "Numbers however large, infinities, subnormals and both zeros: each gives the real of its code, or of "
            "the end of the grid on its side.",
            "AffineQuantizedTensor, fields quant_min and quant_max",
        ),
        documented(
            "float-domain",
            "FLOAT domain: the reals that its dequantize makes of its quantize's codes.",
            "quant_primitives.fake_quantize_affine: zero_point_domain",
        ),
        measured(
            "none-domain",
            "NONE domain: code times scale, integer codes rounded; a zero keeps its sign.",
            "quant_primitives.fake_quantize_affine: zero_point_domain (the sign of zero: measured)",
            calls=("none-domain", "wide-grids"),
        ),
        documented(
            "float8",
            "NONE domain, float8: the quotient is limited and not rounded to an integer.",
            "quant_primitives._quantize_affine_no_zero_point, the note; fake_quantize_affine: without the casts",
        ),
        measured(
            "float-zero-point",
            "A zero point that is no integer is added and subtracted as it is.",
            "quant_primitives.fake_quantize_affine: zero_point (an integer by the document)",
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
        measured(
            "refusals",
            "What quantize_affine refuses is refused here too.",
            "quant_primitives.fake_quantize_affine: the arguments (the error types: measured)",
        ),
        measured(
            "domain",
            "An absent domain is refused, and so is a zero point in the NONE domain.",
            "quant_primitives.fake_quantize_affine: zero_point_domain (the errors: measured)",
            calls=("domains-refused",),
        ),
    ),
    *of(
        "torchao/fake_quantize_affine_cachemask",
        documented(
            "inside",
            "The values are those of fake quantization, and the mask is True where the code lies on the grid.",
            "quant_primitives.fake_quantize_affine_cachemask",
        ),
        documented(
            "outliers",
            "The mask is False exactly where the code, before it is limited, lies outside of the grid; the ends "
            "belong to it.",
            "quant_primitives.fake_quantize_affine_cachemask: the mask of outliers",
        ),
        documented(
            "none-domain",
            "NONE domain: the values are codes rounded to the nearest integer, a tie to the even one, times the scale.",
            "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine; "
            "ZeroPointDomain.NONE (ties: measured)",
        ),
        documented(
            "none-domain-quotient",
            "NONE domain: the input is divided by the scale.",
            "quant_primitives: ZeroPointDomain.NONE, float_val / scale",
        ),
        documented(
            "whole-dtype",
            "Without quant_min and quant_max the mask speaks of the grid of quant_dtype.",
            "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine",
        ),
        documented(
            "values",
            "The values are those of fake quantization in every domain, dtype and scale.",
            "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine",
        ),
        expected(
            "empty",
            "A tensor without elements, and parameters without entries, give a tensor without elements.",
            "quant_primitives: blocks divide the dimensions; of none there are none",
        ),
        measured(
            "refusals",
            "An absent domain and a grid beyond the dtype are refused.",
            "quant_primitives.fake_quantize_affine_cachemask: the arguments (the error types: measured)",
        ),
        documented(
            "none-domain-zero-point",
            "A zero point in the NONE domain is refused as by fake_quantize_affine.",
            "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine",
        ),
    ),
)
