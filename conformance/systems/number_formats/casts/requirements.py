"""What the documents say of numbers and their codes."""

from halfeven.conformance.requirement import documented, expected, measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "number-formats/encode",
        documented(
            "e4m3fn",
            "A number becomes the nearest number of e4m3fn, subnormals among them; midway between two, the one "
            "with the even code.",
            "OCP 8-bit Floating Point Specification (OFP8) 1.0: conversion; IEEE 754-2019: 4.3.1",
            calls=("float8_e4m3fn",),
        ),
        documented(
            "e4m3fnuz",
            "A number becomes the nearest number of e4m3fnuz, subnormals among them; midway between two, the one "
            "with the even code.",
            "ml_dtypes: README, specifications of implemented floating point formats; IEEE 754-2019: 4.3.1",
            calls=("float8_e4m3fnuz",),
        ),
        documented(
            "e5m2",
            "A number becomes the nearest number of e5m2, subnormals among them; midway between two, the one with "
            "the even code.",
            "OCP 8-bit Floating Point Specification (OFP8) 1.0: conversion; IEEE 754-2019: 4.3.1",
            calls=("float8_e5m2",),
        ),
        documented(
            "e5m2fnuz",
            "A number becomes the nearest number of e5m2fnuz, subnormals among them; midway between two, the one "
            "with the even code.",
            "ml_dtypes: README, specifications of implemented floating point formats; IEEE 754-2019: 4.3.1",
            calls=("float8_e5m2fnuz",),
        ),
        documented(
            "e3m2",
            "A number becomes the nearest number of e3m2, subnormals among them; midway between two, the one with "
            "the even code.",
            "OCP Microscaling Formats (MX) 1.0: element data types, FP6; conversion",
            calls=("float6_e3m2fn",),
        ),
        documented(
            "e2m3",
            "A number becomes the nearest number of e2m3, subnormals among them; midway between two, the one with "
            "the even code.",
            "OCP Microscaling Formats (MX) 1.0: element data types, FP6; conversion",
            calls=("float6_e2m3fn",),
        ),
        documented(
            "e2m1",
            "A number becomes the nearest number of e2m1, subnormals among them; midway between two, the one with "
            "the even code.",
            "OCP Microscaling Formats (MX) 1.0: element data types, FP4; conversion",
            calls=("float4_e2m1fn",),
        ),
        documented(
            "bfloat16",
            "A number becomes the nearest number of bfloat16, subnormals among them; midway between two, the one "
            "with the even code.",
            "ml_dtypes: README, specifications of implemented floating point formats; IEEE 754-2019: 4.3.1",
        ),
        documented(
            "float16",
            "A number becomes the nearest number of float16, subnormals among them; midway between two, the one "
            "with the even code.",
            "IEEE 754-2019: 4.3.1",
        ),
        documented(
            "one-rounding",
            "A float64 is rounded once: next to a midpoint it goes to its own side, although a float32 could not "
            "tell it from the midpoint.",
            "IEEE 754-2019: 4.3, one rounding of the infinitely precise value",
        ),
        expected(
            "subnormals-of-float64",
            "A float64 too small for float32 or a subnormal of float64 rounds as any other number, with its sign.",
            "IEEE 754-2019: 4.3.1 and 6.3, for every format",
        ),
        documented(
            "overflow-after-rounding",
            "A number overflows where it would round beyond the largest number, as if the exponent had no end: "
            "below half a gap above the largest it rounds to the largest.",
            "IEEE 754-2019: 7.4; OCP 8-bit Floating Point Specification (OFP8) 1.0: conversion",
            calls=("threshold",),
        ),
        documented(
            "overflow-policy",
            'What overflows, infinities too, becomes the largest number under "saturate"; under "special" an '
            "infinity, or NaN where the format has none.",
            "OCP 8-bit Floating Point Specification (OFP8) 1.0: conversion, saturating and not; MX 1.0: conversion "
            "of finite elements",
            calls=("far-beyond",),
        ),
        measured(
            "nan-code",
            "NaN becomes NaN under either policy; its code has the sign of the input where there is one, and of "
            "the mantissa bits of an IEEE format the first alone.",
            "ml_dtypes 0.6.0; OFP8 1.0 demands a NaN and leaves its code open",
            calls=("nan",),
        ),
        expected(
            "nan-without-code",
            "NaN is refused by a format that has no code for it.",
            "ml_dtypes: README, says that it is undefined",
            calls=("refused-nan",),
        ),
        documented(
            "zeros",
            "Zero and what rounds to it keep their sign; in an fnuz format the code of -0 is NaN, so they are +0.",
            "IEEE 754-2019: 6.3; ml_dtypes: README, specifications of implemented floating point formats",
        ),
        expected(
            "sixteen-bit-sources",
            "float16 and bfloat16 are rounded to the small formats as any number is, their subnormals too.",
            "IEEE 754-2019: 4.3.1, for every format",
        ),
        expected(
            "any-format",
            "Any widths, bias and specials are rounded to by the same rules.",
            "IEEE 754-2019: 4.3.1, for formats of any widths",
        ),
        expected(
            "shapes",
            "The codes have the shape of the input, empty ones too.",
            "of any function of arrays",
        ),
        expected(
            "refusals",
            'A policy or a format that does not exist, "special" for a format without infinity and NaN, and an '
            "input that is not float are refused.",
            "of any strict function: nothing is guessed",
        ),
        expected(
            "e8m0",
            "A positive number becomes the nearest power of two.",
            "no document says how a number becomes an E8M0",
            calls=("float8_e8m0fnu",),
        ),
        expected(
            "e8m0-ties",
            "Midway between two powers of two, a number becomes the one with the even code.",
            "no document says how a number becomes an E8M0; IEEE 754-2019: 4.3.1, for other formats",
        ),
        expected(
            "e8m0-smallest",
            "The nearest power of two is taken between the first two as well, and the first for every smaller "
            "positive number.",
            "no document says how a number becomes an E8M0",
        ),
        measured(
            "e8m0-outside",
            "Zero, negative numbers and -inf have no power of two: they become NaN under either policy.",
            "ml_dtypes 0.6.0; the format has neither zero nor sign (OCP MX 1.0: scale data type E8M0)",
        ),
    ),
    *of(
        "number-formats/decode",
        documented(
            "e4m3fn",
            "Of e4m3fn (bias 7) only the two codes whose exponent and mantissa bits are all ones are NaN; there is "
            "no infinity, and 448 is the largest number.",
            "OCP 8-bit Floating Point Specification (OFP8) 1.0: value encodings, E4M3",
            calls=("float8_e4m3fn",),
        ),
        documented(
            "e4m3fnuz",
            "Of e4m3fnuz (bias 8) the code 0x80 is NaN; there is neither infinity nor -0, and 240 is the largest "
            "number.",
            "ml_dtypes: README, specifications of implemented floating point formats",
            calls=("float8_e4m3fnuz",),
        ),
        documented(
            "e5m2",
            "Of e5m2 (bias 15) the last exponent holds infinity and NaN, as in IEEE 754; 57344 is the largest number.",
            "OCP 8-bit Floating Point Specification (OFP8) 1.0: value encodings, E5M2",
            calls=("float8_e5m2",),
        ),
        documented(
            "e5m2fnuz",
            "Of e5m2fnuz (bias 16) the code 0x80 is NaN; there is neither infinity nor -0, and 57344 is the "
            "largest number.",
            "ml_dtypes: README, specifications of implemented floating point formats",
            calls=("float8_e5m2fnuz",),
        ),
        documented(
            "e8m0",
            "A code f of e8m0 is 2^(f - 127) from 0 to 254, without sign and zero, and 255 is NaN.",
            "OCP Microscaling Formats (MX) 1.0: scale data type E8M0",
            calls=("float8_e8m0fnu",),
        ),
        documented(
            "e3m2",
            "Every code of e3m2 (bias 3) is a number: no infinity, no NaN, and 28 is the largest.",
            "OCP Microscaling Formats (MX) 1.0: element data types, FP6",
            calls=("float6_e3m2fn",),
        ),
        documented(
            "e2m3",
            "Every code of e2m3 (bias 1) is a number: no infinity, no NaN, and 7.5 is the largest.",
            "OCP Microscaling Formats (MX) 1.0: element data types, FP6",
            calls=("float6_e2m3fn",),
        ),
        documented(
            "e2m1",
            "The codes of e2m1 (bias 1) are 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.",
            "OCP Microscaling Formats (MX) 1.0: element data types, FP4",
            calls=("float4_e2m1fn",),
        ),
        documented(
            "bfloat16",
            "A bfloat16 is the upper half of a float32: 8 exponent bits, 7 mantissa bits, bias 127.",
            "ml_dtypes: README, specifications of implemented floating point formats",
        ),
        documented(
            "float16",
            "A float16 has 5 exponent bits, 10 mantissa bits, bias 15, infinities and NaN.",
            "IEEE 754-2019: 3.6, binary16",
        ),
        documented(
            "any-format",
            "A code of any widths, bias and specials is the number that sign, exponent field and mantissa field "
            "spell: subnormals where the field is zero, a hidden one elsewhere.",
            "OCP 8-bit Floating Point Specification (OFP8) 1.0: formats; IEEE 754-2019: 3.4",
        ),
        expected(
            "exact-in-every-dtype",
            "Decoding into any dtype that holds the format rounds nothing.",
            "IEEE 754-2019: 5.4.2, to a wider format",
            calls=("dtypes",),
        ),
        expected(
            "codes-of-any-integer",
            "Codes may come in any integer dtype and any shape; the numbers have their shape.",
            "of any function of arrays",
        ),
        expected(
            "refusals",
            "A code that the format does not have, codes that are no integers, a dtype too narrow and a format "
            "that does not exist are refused.",
            "of any strict function: nothing is guessed",
        ),
    ),
)
