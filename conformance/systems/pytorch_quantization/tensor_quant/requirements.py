"""What the documents require of pytorch-quantization's integer quantizers."""

from halfeven.conformance.requirement import documented, expected, measured, of, on, silent

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "pytorch-quantization",
        documented(
            "nearest-code",
            "The input times the scale is rounded to the nearest integer; a tie goes to the even one.",
            "TensorQuantFunction.forward: num_bits, which gives the scale (ties: measured)",
            operations=("quantize", "fake_quantize"),
            checks=("boundaries", "odd-zero-point"),
            kills=(
                "half-away",
                "half-up",
                "half-down",
                "half-to-zero",
                "toward-zero",
                "floor",
                "ceil",
                "scale-one-ulp-off",
            ),
        ),
        documented(
            "range",
            "With narrow_range the signed codes are symmetric, [-127, 127] for 8 bits; without it they reach one "
            "lower.",
            "TensorQuantFunction.forward: narrow_range",
            operations=("quantize", "fake_quantize"),
            checks=("edges",),
            kills=("narrow-range", "wrap"),
        ),
        documented(
            "huge-inputs",
            "Inputs beyond [-amax, amax], however large, are quantized within that range.",
            "TensorQuantFunction.forward: amax",
            operations=("quantize", "fake_quantize"),
            checks=("huge",),
            kills=("int32-cast", "int64-cast"),
        ),
        measured(
            "zero-sign",
            "A zero result keeps the sign of its input.",
            "tensor_quant and fake_tensor_quant: rounding, clamping and dividing keep it; the document does not "
            "speak of it",
            operations=("fake_quantize",),
            checks=("zero-sign",),
            kills=("zero-sign-lost",),
        ),
    ),
    *of(
        "pytorch-quantization/tensor_quant",
        measured(
            "ties",
            "The product of input and scale goes to the nearest integer, a tie to the even one, for both signs.",
            "TensorQuantFunction.forward: num_bits, which gives the scale; the document does not speak of rounding",
        ),
        documented(
            "range",
            "The signed codes are the 2^b - 1 integers from -(2^(b-1) - 1), in [-127, 127] for 8 bits; without "
            "narrow_range they reach one lower; unsigned ones are [0, 2^b - 1]; all beyond goes to the ends.",
            "TensorQuantFunction; TensorQuantFunction.forward: unsigned, narrow_range",
        ),
        documented(
            "defaults",
            "Left out, num_bits is 8, unsigned False and narrow_range True.",
            "TensorQuantFunction.forward: num_bits, unsigned, narrow_range",
        ),
        documented(
            "scale",
            "The scale is the largest code over amax, and is returned in amax's shape.",
            "TensorQuantFunction.forward: num_bits, amax; Returns",
        ),
        documented(
            "per-channel",
            "The shape of amax gives the granularity: it broadcasts to the inputs, and each element takes its own "
            "entry's scale.",
            "TensorQuantFunction; TensorQuantFunction.forward: amax",
        ),
        measured(
            "tiny-amax",
            "Where amax is 2**-24 or less a finite input gets the code 0 with its own sign, and the scale is 1.",
            "TensorQuantFunction.forward: amax; the document does not speak of an amax near 0",
        ),
        measured(
            "not-finite",
            "NaN stays NaN, and an infinity goes to the end of the range, where amax is above 2**-24 and finite; "
            "infinity times a scale of 0 is NaN.",
            "TensorQuantFunction.forward: the document does not speak of them",
        ),
        measured(
            "zero-sign",
            "What rounds to zero from below is -0.0.",
            "TensorQuantFunction.forward: the document does not speak of it",
        ),
        measured(
            "float16",
            "float16 inputs are quantized in float32; codes and scale are then rounded to float16.",
            "TensorQuantFunction.forward: inputs, which the document has in float32",
        ),
        measured(
            "float16-scale",
            "A scale above 65504 is refused for float16 inputs, also one that would round to 65504.",
            "TensorQuantFunction.forward: the document does not speak of it",
        ),
        measured(
            "dtypes",
            "bfloat16 and float64 inputs and amax are promoted as torch does: an amax without dimensions widens "
            "nothing, and in bfloat16 the product is rounded before it is rounded to an integer.",
            "TensorQuantFunction.forward: inputs and amax, which the document has in float32",
        ),
        expected(
            "refused-amax",
            "A negative or NaN entry of amax is refused, even beside others; so is an amax that does not "
            "broadcast to the inputs.",
            "TensorQuantFunction.forward: amax, the absolute maximum, broadcasts to the inputs",
        ),
        expected(
            "refused-negative",
            "Unsigned, a negative input is refused, also beside NaN; -0.0 is none.",
            "TensorQuantFunction.forward: unsigned",
        ),
        expected(
            "refused-num-bits",
            "num_bits is an integer of 1 or more.",
            "TensorQuantFunction.forward: num_bits, an integer",
        ),
        expected(
            "refused-inputs",
            "Integer inputs are refused.",
            "TensorQuantFunction.forward: inputs, a float32 tensor",
        ),
        measured(
            "output-dtype",
            "output_dtype, which the argument list has and the signature has not, is no argument.",
            "TensorQuantFunction.forward: output_dtype beside the signature",
            calls=("refused-output-dtype",),
        ),
        silent(
            "empty-unsigned",
            "Unsigned, an empty input has no minimum, and is refused.",
            "TensorQuantFunction.forward: the document does not speak of it",
            calls=("refused-empty-unsigned",),
        ),
    ),
    *of(
        "pytorch-quantization/fake_tensor_quant",
        measured(
            "ties",
            "The product of input and scale goes to the nearest integer, a tie to the even one, for both signs.",
            "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, which gives the scale; the document does "
            "not speak of rounding",
        ),
        documented(
            "range",
            "The signed codes are the 2^b - 1 integers from -(2^(b-1) - 1), in [-127, 127] for 8 bits; without "
            "narrow_range they reach one lower; unsigned ones are [0, 2^b - 1]; all beyond goes to the ends.",
            "TensorQuantFunction; fake_tensor_quant, as TensorQuantFunction.forward: unsigned, narrow_range",
        ),
        documented(
            "defaults",
            "Left out, num_bits is 8, unsigned False and narrow_range True.",
            "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, unsigned, narrow_range",
        ),
        documented(
            "scale",
            "The scale is the largest code over amax, and the codes are divided by it.",
            "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, amax; outputs / scale dequantizes",
        ),
        documented(
            "per-channel",
            "The shape of amax gives the granularity: it broadcasts to the inputs, and each element takes its own "
            "entry's scale.",
            "TensorQuantFunction; fake_tensor_quant, as TensorQuantFunction.forward: amax",
        ),
        measured(
            "tiny-amax",
            "Where amax is 2**-24 or less a finite input gets the code 0 with its own sign, and the scale is 1.",
            "fake_tensor_quant, as TensorQuantFunction.forward: amax; the document does not speak of an amax near 0",
        ),
        measured(
            "not-finite",
            "NaN stays NaN, and an infinity goes to the end of the range, where amax is above 2**-24 and finite; "
            "infinity times a scale of 0 is NaN.",
            "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of them",
        ),
        measured(
            "zero-sign",
            "What rounds to zero from below is -0.0.",
            "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of it",
        ),
        measured(
            "float16",
            "float16 inputs are quantized in float32; codes and scale are rounded to float16 before they are divided.",
            "fake_tensor_quant, as TensorQuantFunction.forward: inputs, which the document has in float32",
        ),
        measured(
            "float16-scale",
            "A scale above the range of float16 is infinite for float16 inputs, and every finite result 0.",
            "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of it",
        ),
        measured(
            "dtypes",
            "bfloat16 and float64 inputs and amax are promoted as torch does: an amax without dimensions widens "
            "nothing, and in bfloat16 the product is rounded before it is rounded to an integer.",
            "fake_tensor_quant, as TensorQuantFunction.forward: inputs and amax, which the document has in float32",
        ),
        expected(
            "refused-amax",
            "A negative or NaN entry of amax is refused, even beside others; so is an amax that does not "
            "broadcast to the inputs.",
            "fake_tensor_quant, as TensorQuantFunction.forward: amax, the absolute maximum, broadcasts to the inputs",
        ),
        expected(
            "refused-negative",
            "Unsigned, a negative input is refused, also beside NaN; -0.0 is none.",
            "fake_tensor_quant, as TensorQuantFunction.forward: unsigned",
        ),
        expected(
            "refused-num-bits",
            "num_bits is an integer of 1 or more.",
            "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, an integer",
        ),
        expected(
            "refused-inputs",
            "Integer inputs are refused.",
            "fake_tensor_quant, as TensorQuantFunction.forward: inputs, a float32 tensor",
        ),
        measured(
            "output-dtype",
            "output_dtype, which the argument list has and the signature has not, is no argument.",
            "fake_tensor_quant, as TensorQuantFunction.forward: output_dtype beside the signature",
            calls=("refused-output-dtype",),
        ),
        silent(
            "empty-unsigned",
            "Unsigned, an empty input has no minimum, and is refused.",
            "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of it",
            calls=("refused-empty-unsigned",),
        ),
    ),
    *of(
        "pytorch-quantization/legacy_fake_tensor_quant",
        measured(
            "as-fake-tensor-quant",
            "The legacy function gives what fake_tensor_quant gives on a CPU.",
            "tensor_quant module: LegacyFakeTensorQuantFunction",
            calls=(
                "ties",
                "range",
                "defaults",
                "scale",
                "per-channel",
                "tiny-amax",
                "not-finite",
                "zero-sign",
                "float16",
                "float16-scale",
                "dtypes",
                "refused-amax",
                "refused-negative",
                "refused-num-bits",
                "refused-inputs",
                "refused-output-dtype",
            ),
        ),
        silent(
            "empty-unsigned",
            "Unsigned, an empty input has no minimum, and is refused.",
            "the document does not speak of it",
            calls=("refused-empty-unsigned",),
        ),
    ),
)
