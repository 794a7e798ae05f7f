"""What is said of torchao's MX blocks."""

from halfeven.conformance.requirement import expected, measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "torchao/to_mx",
        measured(
            "scale",
            "The scale of a block is the power of two that its mode makes of the largest magnitude: rounded down, "
            "up, after rounding to the element's mantissa, or such that the quotient by the largest number is "
            "rounded up.",
            "torchao.prototype.mx_formats.mx_tensor.to_mx; OCP MX 1.0, section 6.3",
            calls=("scale", "far-scales", "largest-scale"),
        ),
        expected(
            "rceil-is-exact",
            "In RCEIL a quotient just above a power of two belongs to the next one, however close it is and "
            "whatever its exponent.",
            "OCP MX 1.0, section 6.3: round up; the quotient is a float32",
            calls=("rceil-just-above-a-power-of-two",),
        ),
        measured(
            "nearest",
            "An element becomes the number nearest to it over the scale, of two equally near the one with the even "
            "code.",
            "torchao.prototype.mx_formats.mx_tensor.to_mx; OCP MX 1.0, section 6.3",
            calls=("nearest", "shapes"),
        ),
        measured(
            "saturation",
            "An element that a scale rounded down leaves above the largest number becomes that number, with its sign.",
            "torchao.prototype.mx_formats.mx_tensor.to_mx",
        ),
        measured(
            "zeros",
            "A block of zeros has the scale code zero; a zero, and an element too small, keeps its sign.",
            "torchao.prototype.mx_formats.mx_tensor.to_mx",
        ),
        expected(
            "smallest-scale",
            "Where the scale code is zero, elements are divided by 2^-127, which is what the code says.",
            "OCP MX 1.0, section 5.4: the scale code 0 is 2^-127",
        ),
        measured(
            "infinity",
            "An infinity counts as 2^128, or has the largest scale in RCEIL, and becomes the largest number.",
            "torchao.prototype.mx_formats.mx_tensor.to_mx",
        ),
        measured(
            "nan-block",
            "A block with NaN has the scale code 255.",
            "torchao.prototype.mx_formats.mx_tensor.to_mx; its elements are without meaning",
            calls=("nan",),
        ),
        measured(
            "refusals",
            "The input is float32 or bfloat16, the block divides the last dimension, and the element dtype and the "
            "mode are among those named.",
            "torchao.prototype.mx_formats.mx_tensor.to_mx",
        ),
    ),
    *of(
        "torchao/mx_dequantize",
        measured(
            "product",
            "A real is the element times the power of two of its block, each in the target dtype; the scale code "
            "255 makes NaN.",
            "torchao.prototype.mx_formats.mx_tensor.to_dtype; OCP MX 1.0, section 5",
            calls=("all-codes", "every-scale"),
        ),
        measured(
            "refusals",
            "There is one scale for each whole block, and the element dtype is among those named.",
            "torchao.prototype.mx_formats.mx_tensor.to_dtype",
        ),
    ),
    *of(
        "torchao/pack_uint4",
        measured(
            "low-half-first",
            "Of two float4 codes in a byte the one of the even index is in the low half.",
            "torchao.prototype.mx_formats.kernels.pack_uint4",
        ),
        measured(
            "refusals",
            "The last dimension of what is packed is even.",
            "torchao.prototype.mx_formats.kernels.pack_uint4",
        ),
    ),
    *of(
        "torchao/unpack_uint4",
        measured(
            "low-half-first",
            "A byte holds the code of the even index in its low half, and the last dimension doubles.",
            "torchao.prototype.mx_formats.kernels.unpack_uint4",
        ),
    ),
    *of(
        "torchao/to_blocked",
        measured(
            "tiles",
            "Swizzled scales are tiles of 128 rows by 4 columns, row of tiles by row of tiles, in each of which "
            "row r stands in group r / 32 of line r mod 32; what is missing is zero.",
            "torchao.prototype.mx_formats.utils.to_blocked",
        ),
        measured(
            "refusals",
            "Only a matrix of scales is swizzled.",
            "torchao.prototype.mx_formats.utils.to_blocked",
        ),
    ),
    *of(
        "torchao/from_blocked",
        measured(
            "tiles",
            "The matrix comes back from its swizzled form, without the padding.",
            "torchao.prototype.mx_formats.utils.from_blocked",
            calls=("tiles", "order-of-tiles"),
        ),
        measured(
            "refusals",
            "The swizzled form has 512 entries for each tile.",
            "torchao.prototype.mx_formats.utils.from_blocked",
        ),
    ),
)
