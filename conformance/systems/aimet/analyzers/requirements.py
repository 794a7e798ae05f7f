"""What the documents require of AIMET's calibration by the least and the greatest value."""

from halfeven.conformance.requirement import documented, expected, measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "aimet/minmax_encodings",
        documented(
            "asymmetric",
            "The default calibration takes the least and the greatest value as the minimum and the maximum of an "
            "asymmetric grid.",
            "QuantizeDequantize: parameter encoding_analyzer, the default",
        ),
        documented(
            "symmetric",
            "The default calibration makes the greatest magnitude of a symmetric grid fit its side of the grid, "
            "which has a step more below zero than above it where the steps are odd.",
            "QuantizeDequantize: parameters symmetric and encoding_analyzer (sides: measured)",
        ),
        measured(
            "two-bits",
            "Of three symmetric steps the positive side counts as two, so that a maximum as far from zero as the "
            "minimum is clipped and no code is spare.",
            "aimet-torch 2.42",
        ),
        expected(
            "one-symmetric-bit",
            "Finite values give a finite minimum and maximum on every grid: with one symmetric bit, which has no "
            "code above zero, by the negative values alone.",
            "QuantizeDequantize: parameters bitwidth and symmetric, no exception for one bit",
        ),
        measured(
            "zero-included",
            "The calibrated range has zero in it, the zero of the values where they have one.",
            "aimet-torch 2.42",
        ),
        measured(
            "narrow-range",
            "A range of less than the least scale per step is widened by that scale times the steps: upwards "
            "where it is asymmetric, on both sides where it is symmetric.",
            "aimet-torch 2.42",
            calls=("narrow",),
        ),
        documented(
            "shapes",
            "The parameters' shape meets the last dimensions of the input, and an entry of 1 gathers its whole "
            "dimension.",
            "QuantizeDequantize: parameter shape (alignment: measured)",
        ),
        documented(
            "blocks",
            "The parameter of an element is the one at its index over the block size, rounded down, along every "
            "dimension.",
            "QuantizeDequantize: parameter block_size and the equation of blocks",
        ),
        measured(
            "batches",
            "Several batches count as one: the least of their minima and the greatest of their maxima.",
            "aimet-torch 2.42",
        ),
        measured(
            "dtypes",
            "The range is computed in the wider of the input's dtype and float32, and kept in the input's.",
            "aimet-torch 2.42",
        ),
        measured(
            "non-finite",
            "One NaN makes the range NaN; an infinity becomes the largest number of the dtype.",
            "aimet-torch 2.42",
        ),
        documented(
            "misfit-blocks",
            "Blocks that do not divide the input into the parameters' shape are an error.",
            "QuantizeDequantize: the equation of blocks, an index over the block size",
        ),
        measured(
            "refusals",
            "No step, no batch, an empty batch, integers, and shapes that do not meet are errors.",
            "aimet-torch 2.42",
        ),
    ),
    *of(
        "aimet/compute_encodings",
        documented(
            "bitwidths",
            "Inside compute_encodings a quantizer takes the range of what it sees, from which scale and offset "
            "follow, for every bitwidth.",
            "QuantizeDequantize: the note on initialisation, the first example",
        ),
        expected(
            "one-symmetric-bit",
            "Finite values leave a quantizer of one symmetric bit with finite parameters.",
            "QuantizeDequantize: parameters bitwidth and symmetric, no exception for one bit",
        ),
        measured(
            "batches",
            "All batches with elements that the quantizer sees before the context ends count together.",
            "aimet-torch 2.42",
        ),
        documented(
            "shapes",
            "Minimum, maximum, scale and offset have the shape that the quantizer was made with.",
            "QuantizeDequantize: parameter shape",
        ),
        documented(
            "blocks",
            "A quantizer with a block size calibrates every block by its own elements.",
            "QuantizeDequantize: parameter block_size, both examples",
        ),
        measured(
            "dtypes",
            "What was calibrated in another dtype is kept in float32 after it was rounded to that dtype.",
            "aimet-torch 2.42",
        ),
        measured(
            "non-finite",
            "A NaN among the inputs shows in the parameters; an infinity gives the widest finite range on its side "
            "where the grid is asymmetric.",
            "aimet-torch 2.42",
        ),
        measured(
            "least-scale",
            "Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's "
            "machine epsilon.",
            "aimet-torch 2.42",
        ),
        documented(
            "uninitialized",
            "A quantizer that has seen no element cannot run: it raises a RuntimeError.",
            "QuantizeDequantize: the note on initialisation (error type: measured)",
        ),
        measured(
            "refusals",
            "No bits, integers, and shapes or blocks that do not meet the input are errors.",
            "aimet-torch 2.42",
        ),
    ),
    *of(
        "aimet/is_initialized",
        documented(
            "documented-ways",
            "A quantizer runs only once both its minimum and its maximum were assigned, or compute_encodings saw "
            "an input; is_initialized says which it is.",
            "QuantizeDequantize: the note on initialisation, both examples",
            calls=("documented",),
        ),
        measured(
            "other-ways",
            "Changing a parameter in place or by set_range counts like assigning it; a calibration that saw "
            "nothing or failed counts for nothing.",
            "aimet-torch 2.42",
        ),
    ),
)
