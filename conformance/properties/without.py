"""The formulas that no property fits, and why: each formula has a role, or stands here."""

__all__ = ["WITHOUT"]

_SETTINGS = "it has no data: settings give the ends of a grid, a table of numbers, or sizes"
_STATE = "it says what state something is in, not a number"
_WORDS = "it takes and gives the settings of a quantizer, and computes nothing"
_WRITES = "it writes numbers as they are into a dictionary"
_MOVES = "it moves codes, whatever numbers they are"

_BY_REASON: dict[str, tuple[str, ...]] = {
    _SETTINGS: (
        "aimet/grid",
        "aimet/bitwidth_grid",
        "aimet/min_scale",
        "bitsandbytes/get_4bit_type",
        "brevitas/max_int",
        "brevitas/min_int",
        "brevitas/IntScaling",
        "compressed-tensors/calculate_range",
        "torchao/get_block_size",
        "torchao/get_reduction_params",
    ),
    _STATE: ("aimet/is_initialized", "aimet/load_state", "aimet/propagation"),
    _WORDS: (
        "pytorch-quantization/descriptor",
        "pytorch-quantization/descriptor_assign",
        "pytorch-quantization/descriptor_dict",
        "pytorch-quantization/descriptor_from_yaml",
        "pytorch-quantization/descriptor_round_trip",
        "pytorch-quantization/descriptor_yaml_round_trip",
    ),
    _WRITES: ("aimet/to_qnn_encoding_dict", "aimet/lpbq_encoding_dict"),
    _MOVES: ("torchao/pack_uint4", "torchao/unpack_uint4", "torchao/to_blocked", "torchao/from_blocked"),
    "it gives max_calibrator's amax of each batch by itself; max_calibrator is judged": (
        "pytorch-quantization/max_calibrator_amaxs",
    ),
    "its codes are about a mean, a sum whose order is open: no property of it is exact": (
        "modelopt/nf4_double_quantize",
    ),
    "it gives counts; the amaxs that are chosen from them are judged": ("pytorch-quantization/histogram",),
}

#: Why, by formula.
WITHOUT = {formula: reason for reason, formulas in _BY_REASON.items() for formula in formulas}
