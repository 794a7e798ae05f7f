"""What the documents require of AIMET's grids, scales and offsets."""

from halfeven.conformance.requirement import documented, measured, of

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "aimet/grid",
        documented(
            "from-bitwidth",
            "A bitwidth b gives 2^b codes: the non-negative integers from 0, or as many below zero as from zero on "
            "where the codes are signed.",
            "quantize: parameters bitwidth and signed",
            calls=("bitwidths",),
        ),
        documented(
            "from-num-steps",
            "A number of steps gives one code more than steps; of an odd number of signed steps the greater half "
            "lies below zero.",
            "quantize: parameters num_steps and signed (halves: measured)",
            calls=("steps",),
        ),
        documented(
            "refusals",
            "The grid is given in one way, by an integer that is not negative; else the call is an error.",
            "quantize: the overloads, bitwidth (int) and num_steps (int)",
        ),
    ),
    *of(
        "aimet/bitwidth_grid",
        documented(
            "two-modes",
            "A symmetric quantizer of b bits has the signed grid, an asymmetric one the unsigned grid.",
            "QuantizeDequantize: parameters bitwidth and symmetric (signs: measured)",
            calls=("bitwidths",),
        ),
        documented(
            "refusals",
            "A bitwidth that is no integer, or leaves no step, is an error.",
            "QuantizeDequantize: bitwidth (int)",
        ),
    ),
    *of(
        "aimet/min_scale",
        measured(
            "two-limits",
            "The least scale is 2^-23, or 0.01 over the number of steps where that is less.",
            "aimet-torch 2.42: the scale of a range without width",
            calls=("steps",),
        ),
    ),
    *of(
        "aimet/scale_and_offset",
        measured(
            "symmetric",
            "A symmetric scale is the width of the range over the number of steps, and the offset is minus the "
            "middle of the grid, rounded half to even: the range's own middle has no say.",
            "aimet-torch 2.42 (QuantizeDequantize: scale and offset are derived from min and max)",
        ),
        documented(
            "asymmetric",
            "Scale and offset of an asymmetric quantizer derive from its minimum and maximum: the width over the "
            "number of steps, and the minimum in codes less the lowest code.",
            "QuantizeDequantize: the equation, and variables min and max (arithmetic: measured)",
        ),
        measured(
            "offset-rounding",
            "The minimum in codes is rounded to the nearest integer, of two equally near to the even one, before "
            "the lowest code is subtracted.",
            "aimet-torch 2.42",
            calls=("ties",),
        ),
        measured(
            "zero-in-range",
            "A range without zero is moved until zero is on its edge and keeps its width.",
            "aimet-torch 2.42",
            calls=("zero-outside",),
        ),
        measured(
            "swapped-ends",
            "A maximum below the minimum gives the scale of the same width: a scale is never negative.",
            "aimet-torch 2.42",
            calls=("swapped",),
        ),
        measured(
            "least-scale",
            "A scale is never below the least scale of its grid.",
            "aimet-torch 2.42",
            calls=("tiny",),
        ),
        measured(
            "non-finite",
            "A range that is not finite gives a scale and an asymmetric offset that are not, never a number that "
            "hides it.",
            "aimet-torch 2.42",
        ),
        measured(
            "every-bitwidth",
            "Scale and offset follow for every bitwidth from 1 to 32, with the grid's ends rounded to float32.",
            "aimet-torch 2.42 (QuantizeDequantize: parameter bitwidth)",
        ),
        measured(
            "dtypes",
            "Scale and offset are float32, computed in float32 from a minimum and a maximum of any float dtype; "
            "only a float64 minimum is divided in float64.",
            "aimet-torch 2.42",
        ),
        measured(
            "refusals",
            "A grid of one code or none, and a minimum and maximum of unlike shapes, are errors.",
            "aimet-torch 2.42",
        ),
    ),
    *of(
        "aimet/recalibrated_range",
        documented(
            "ends",
            "The range that a quantizer covers is its scale times the lowest and the highest code moved by the "
            "offset, which is not the range it was given.",
            "QuantizeDequantize: the equation, at qmin and qmax",
        ),
        measured(
            "shift",
            "A shift of half a code moves both ends of the range by half a scale.",
            "aimet-torch 2.42",
            calls=("shifted",),
        ),
        measured(
            "least-scale",
            "Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's "
            "machine epsilon.",
            "aimet-torch 2.42",
        ),
        measured(
            "float64",
            "The offset of a minimum of float64 is found in float64, the range in float32.",
            "aimet-torch 2.42",
        ),
        measured(
            "refusals",
            "A shift other than 0 and one half, and a grid of no step, are errors.",
            "aimet-torch 2.42",
        ),
    ),
)
