"""What compressed-tensors requires of its ranges of codes, scales and zero points, by calls."""

from halfeven.conformance.requirement import documented, measured, of, silent

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "compressed-tensors/calculate_range",
        documented(
            "integer",
            "An integer of b bits has the codes -2^(b-1) to 2^(b-1) - 1.",
            "utils.helpers.calculate_range: the effective range of the arguments",
        ),
        documented(
            "float",
            "A float of 8, 6 or 4 bits is E4M3, E2M3 or E2M1 and reaches 448, 7.5 or 6 on both sides.",
            "quant_args: FP8_E4M3_DATA, FP6_E2M3_DATA, FP4_E2M1_DATA",
        ),
        silent(
            "no-width",
            "What a width of 0 or below gives; nothing refuses it.",
            "QuantizationArgs: num_bits",
        ),
        documented(
            "refusals",
            "A width that is no integer, another type than int and float, and a float of a width without a format "
            "are refused.",
            "QuantizationArgs: types of num_bits and type; calculate_range: only 4, 6 and 8 bits",
        ),
    ),
    *of(
        "compressed-tensors/calculate_qparams",
        measured(
            "symmetric-scale",
            "A symmetric scale is the largest magnitude over half the number of steps, 127.5 for 8 bits, and the "
            "zero point is 0.",
            "QuantizationArgs: symmetric; utils.helpers.calculate_qparams (the divisor: measured)",
            calls=("symmetric", "shapes"),
        ),
        measured(
            "asymmetric-scale",
            "An asymmetric scale is the range over the number of steps; the zero point is qmin - min / scale.",
            "QuantizationArgs: symmetric; utils.helpers.calculate_qparams (the equation: measured)",
            calls=("asymmetric", "shapes"),
        ),
        documented(
            "zero-point-rounding",
            "The zero point is limited to the range and rounded to the nearest integer, ties to even, then held in "
            "the integer type of the codes.",
            "QuantizationArgs: zp_dtype; round_to_quantized_type_dtype: rounds to the nearest representation",
            calls=("zero-point-ties",),
        ),
        documented(
            "zero-in-range",
            "The range is widened to hold 0, so that 0 has a code.",
            "utils.helpers.calculate_qparams: 0.0 is always representable",
        ),
        documented(
            "zero-scale",
            "A scale of 0 is replaced: by the epsilon of its dtype, or 0.125 where it is rounded to E4M3.",
            "utils.helpers.calculate_qparams: zeros are updated to prevent a division by 0 (the values: measured)",
        ),
        measured(
            "wide-codes-of-narrow-floats",
            "The number of steps is rounded to the dtype of the minima: 65535 becomes an infinity in float16, and "
            "the scale its epsilon.",
            "utils.helpers.calculate_qparams, measured",
        ),
        documented(
            "float",
            "For floats the same equations hold with the range of the format; the zero point is an E4M3 number.",
            "QuantizationArgs: type, zp_dtype",
        ),
        documented(
            "scale-dtype",
            "With a scale_dtype the scale is limited to its range and rounded to it, before zeros are replaced; "
            "the result keeps the dtype it had.",
            "utils.helpers.calculate_qparams: the third step; round_to_quantized_type_dtype",
        ),
        documented(
            "global-scale",
            "A global scale multiplies the scale before it is rounded to scale_dtype.",
            "utils.helpers.calculate_qparams: global_scale",
        ),
        documented(
            "mx",
            "MX scales (float elements, groups of 32, scale_dtype uint8) are powers of two whose exponent fits a byte.",
            "utils.mxfp_utils.generate_mx_scales; maybe_convert_from_mx_exp",
        ),
        silent(
            "nan-and-infinity",
            "What minima and maxima that are no finite numbers give; the document does not say.",
            "utils.helpers.calculate_qparams",
        ),
        documented(
            "refusals",
            "Asymmetric floats of 4 or 6 bits, floats of other widths, unknown types and group sizes of 0 or "
            "below -1 are refused.",
            "utils.helpers.calculate_qparams; QuantizationArgs: group_size, type",
        ),
    ),
    *of(
        "compressed-tensors/generate_gparam",
        documented(
            "quotient",
            "The global scale is 448 * 6 over the largest magnitude, so that the scales of groups use the whole of "
            "E4M3 where the codes use the whole of E2M1.",
            "utils.helpers.generate_gparam: goal of the global scale",
            calls=("magnitudes",),
        ),
        documented(
            "no-finite-number",
            "Where the quotient is no finite number, as of a largest magnitude of 0 or NaN, the global scale is "
            "1; of an infinity it is 0.",
            "utils.helpers.generate_gparam: NaN and infinity are replaced by 1",
        ),
        documented(
            "one-number",
            "The minimum and maximum of one whole tensor are one number each; more are refused.",
            "utils.helpers.generate_gparam: a global scale for an entire tensor",
            calls=("refusals",),
        ),
    ),
)
