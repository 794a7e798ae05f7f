"""The roles of formulas that choose a scale, and of those that choose one for each block and quantize with it."""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.properties.affine import Element, Ends, at, bits_ends, dtype_ends, given_ends, spread
from halfeven.conformance.properties.elements import four_bits, gguf, levels, mx, nvfp4, scaled, shifted
from halfeven.conformance.properties.role import Path, Role, Seen, picked, place
from halfeven.conformance.requirement import Arguments
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.systems.gguf import BLOCKS as STORED

__all__ = ["BLOCKS", "CHOSEN"]

_Read = Mapping[str, Path]


def _choosing(
    data: tuple[str, ...],
    leaves: _Read,
    ends: Ends | None = None,
    *,
    negated: bool = False,
    odd: Callable[[Arguments], bool] | None = None,
    sees: Callable[[Arguments], bool] = lambda _: True,
    axis: int | None = None,
    inverse: bool = False,
) -> Role:
    """A formula that chooses parameters.

    Args:
        data: its argument that holds the data, one array or a tuple of batches; or the two with the least and the
            greatest of them.
        leaves: where in the result what is.
        ends: the ends of the grid.
        negated: whether it gives an offset, x̂ = (q + o) * s.
        odd: whether the data's sign does not matter; None where it does.
        sees: whether a property can judge the call.
        axis: what the parameters go along, where the call does not say.
        inverse: whether the scale is what the data are multiplied by.
    """

    def see(a: Arguments) -> Seen:
        if not sees(a):
            msg = "it is no call of the plain kind"
            raise ValueError(msg)
        along = a if axis is None else {**a, "axis": axis}
        if len(data) > 1:
            low, high = np.broadcast_arrays(*(np.asarray(a[name]) for name in data))
            if not np.all(low <= high):
                msg = "the least is above the greatest"
                raise ValueError(msg)
            x = np.stack([low, high])
            shared: Callable[[Array], Array] = lambda p: np.broadcast_to(  # noqa: E731
                p.astype(np.float64).reshape(low.shape if p.size == low.size else p.shape), x.shape
            )
        else:
            given = a[data[0]]
            arrays = [np.asarray(b) for b in given] if isinstance(given, tuple | list) else [np.asarray(given)]
            if any(b.shape != arrays[0].shape for b in arrays):
                arrays = [np.concatenate([b.ravel() for b in arrays])]
            x = arrays[0] if len(arrays) == 1 else np.stack(arrays)
            one = arrays[0]
            shared = lambda p: np.broadcast_to(spread(along, one, p), x.shape)  # noqa: E731
        grid = ends(a) if ends else None
        low_, high_ = grid or (None, None)
        return Seen(
            x.astype(np.float64), x.dtype, None, None, low_, high_, spread=shared, odd=odd is not None and odd(a)
        )

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        found = {name: picked(value, path) for name, path in leaves.items()}
        return found | ({"zero": -found["zero"].astype(np.float64)} if negated and "zero" in found else {})

    def element(_: Arguments, value: Any, leaf: str, i: int) -> str:
        sign = "-" if negated and leaf == "zero" else ""
        return sign + place(value, leaves[leaf], i)

    traits = {
        *([] if inverse else ["reals"]),
        *(["batches"] if data == ("batches",) else []),
        *(["odd"] if odd is not None else []),
    }
    if "amax" in leaves or "least" in leaves or ("zero" in leaves and ends is not None):
        traits.add("covering")
    if "zero" in leaves and ends is not None:
        traits.add("grid")
    return Role("choose", see, read, element, data, data[0], frozenset(traits))


def _torchao(a: Arguments) -> tuple[float, float] | None:
    whole = dtype_ends(a["target_dtype"])
    low, high = a.get("quant_min"), a.get("quant_max")
    if whole is None:
        return None
    return whole[0] if low is None else low, whole[1] if high is None else high


def _integer_domain(a: Arguments) -> bool:
    return a.get("zero_point_domain", "INT") == "INT" and bool(a.get("preserve_zero", True))


def _observer(a: Arguments) -> tuple[float, float] | None:
    whole = dtype_ends(a.get("dtype", "quint8"))
    if a.get("quant_min") is not None and a.get("quant_max") is not None:
        return a["quant_min"], a["quant_max"]
    if whole is None or a.get("quant_min") is not None or a.get("quant_max") is not None:
        return None
    if a.get("reduce_range"):
        return whole[0] // 2, whole[1] // 2
    return whole


_SCALE: _Read = {"scale": ()}
_BOTH: _Read = {"scale": (0,), "zero": (1,)}
_RANGE: _Read = {"least": (0,), "most": (1,)}
_DECOMPOSED = "torch/quantized_decomposed"
_QMIN = given_ends("qmin", "qmax")

CHOSEN: dict[str, Role] = {
    "aimet/scale_and_offset": _choosing(("min", "max"), _BOTH, _QMIN, negated=True),
    "aimet/minmax_encodings": _choosing(("batches",), _RANGE, lambda a: (0, a["num_steps"])),
    "aimet/compute_encodings": _choosing(
        ("batches",),
        {"least": ("min",), "most": ("max",), "scale": ("scale",)},
        lambda a: (0, 2 ** a["bitwidth"] - 1),
    ),
    "aimet/float_scale": _choosing(("maxval",), _SCALE),
    "compressed-tensors/calculate_qparams": _choosing(
        ("min_vals", "max_vals"),
        _BOTH,
        bits_ends("num_bits"),
        sees=lambda a: a.get("type", "int") == "int" and a.get("scale_dtype") is None and a.get("global_scale") is None,
    ),
    "compressed-tensors/generate_gparam": _choosing(("updated_min_val", "updated_max_val"), _SCALE, inverse=True),
    "pytorch-quantization/max_calibrator": _choosing(("batches",), {"amax": ()}, odd=lambda _: True),
    "torch/MinMaxObserver": _choosing(("batches",), _RANGE),
    "torch/PerChannelMinMaxObserver": _choosing(("batches",), _RANGE, sees=lambda a: a.get("ch_axis", 0) == 0, axis=0),
    "torch/MinMaxObserver.calculate_qparams": _choosing(
        ("min_val", "max_val"),
        _BOTH,
        _observer,
        sees=lambda a: not str(a.get("qscheme")).endswith("float_qparams"),
    ),
    f"{_DECOMPOSED}.choose_qparams": _choosing(("input",), _BOTH, _QMIN),
    f"{_DECOMPOSED}.choose_qparams_symmetric": _choosing(("input",), _BOTH, _QMIN, odd=lambda _: True),
    f"{_DECOMPOSED}.choose_qparams_per_token": _choosing(("input",), _BOTH, lambda _: (-128, 127), odd=lambda _: True),
    f"{_DECOMPOSED}.choose_qparams_per_token_asymmetric": _choosing(("input",), _BOTH, lambda _: (-128, 127)),
    "torchao/choose_qparams_affine": _choosing(
        ("input",), _BOTH, _torchao, sees=_integer_domain, odd=lambda a: a["mapping_type"] == "SYMMETRIC"
    ),
    "torchao/choose_qparams_affine_with_min_max": _choosing(
        ("min_val", "max_val"), _BOTH, _torchao, sees=_integer_domain
    ),
    "torchao/choose_scale_float8": _choosing(("tensor",), _SCALE, odd=lambda _: True),
    "torchao/amax_to_scale": _choosing(("amax",), _SCALE, inverse=True),
    "torchao/tensor_to_scale": _choosing(("hp_tensor",), _SCALE, odd=lambda _: True, inverse=True),
    "torchao/choose_qparams_affine_floatx": _choosing(("tensor",), _SCALE, odd=lambda _: True, axis=0),
    "torchao/per_tensor_amax_to_scale": _choosing(("amax",), _SCALE),
}


def _blocks(
    data: str,
    decode: Callable[[Arguments, Any], Array],
    size: Callable[[Arguments], int | None],
    element: Element,
    *,
    reals: tuple[str, ...],
) -> Role:
    """A formula that chooses a scale for each block of its input; ``decode`` gives the reals of what it stores.

    Args:
        data: its argument that holds the data.
        decode: the reals, in the shape of the data.
        size: elements of a block, consecutive ones; None where all of the tensor shares a scale.
        element: one of them as Python.
        reals: the arguments in the unit of the data.
    """

    def see(a: Arguments) -> Seen:
        x = np.asarray(a[data])
        n = size(a)
        block = np.zeros(x.size, np.int64) if n is None else np.arange(x.size) // n
        fits = bool(a.get("preserve_zero", True)) and a.get("zero_point_domain", "INT") != "FLOAT"
        outer = np.asarray(a[reals[-1]] if a.get(reals[-1]) is not None else 1)
        if len(reals) > 1 and not np.all(np.isfinite(outer) & (outer > 0)):
            msg = "the scale of the tensor is none"
            raise ValueError(msg)
        return Seen(x.astype(np.float64), x.dtype, block=block.reshape(x.shape), has_zero=fits)

    def read(a: Arguments, value: Any) -> Mapping[str, Array]:
        return {"reals": np.asarray(decode(a, value)).reshape(np.asarray(a[data]).shape)}

    return Role("blocks", see, read, element, reals, data, frozenset({"reals"}))


def _by(formula: str, *names: str, **more: Any) -> Callable[[Arguments, Any], Array]:
    """What the formula gives for the parts of a result, by the names of its arguments, and for the call's own."""

    def decode(a: Arguments, value: Any) -> Array:
        parts = value if len(names) > 1 else (value,)
        given = dict(zip(names, parts, strict=False))
        given |= {name: word(a) if callable(word) else word for name, word in more.items()}
        return np.asarray(FORMULAS[formula].function(**given))

    return decode


def _scaled(data: Array, scale: Any) -> Array:
    """Elements times the scale of their block, in float64."""
    codes, s = np.asarray(data).astype(np.float64), np.asarray(scale).astype(np.float64)
    if s.ndim == codes.ndim:
        for d, (n, m) in enumerate(zip(codes.shape, s.shape, strict=True)):
            s = np.repeat(s, n // max(m, 1), d)
    return codes * s


BLOCKS: dict[str, Role] = {
    "bitsandbytes/quantize_blockwise": _blocks(
        "A",
        _by(
            "bitsandbytes/dequantize_blockwise",
            "A",
            "absmax",
            code=lambda a: a["code"],
            blocksize=lambda a: a.get("blocksize", 4096),
        ),
        lambda a: a.get("blocksize", 4096),
        levels,
        reals=("A",),
    ),
    "bitsandbytes/quantize_4bit": _blocks(
        "A",
        _by(
            "bitsandbytes/dequantize_4bit",
            "A",
            "absmax",
            shape=lambda a: np.asarray(a["A"]).shape,
            dtype="float32",
            blocksize=lambda a: a.get("blocksize", 64),
            quant_type=lambda a: a.get("quant_type", "fp4"),
        ),
        lambda a: a.get("blocksize", 64),
        four_bits,
        reals=("A",),
    ),
    "brevitas/RescalingIntQuant": _blocks("x", lambda _, v: v[0], lambda _: None, at((0,)), reals=("x", "threshold")),
    **{
        f"gguf/{name}.quantize": _blocks(
            "tensor",
            _by(f"gguf/{name}.dequantize", "tensor"),
            lambda _: 32,
            gguf(block.bits, minimum=block.minimum),
            reals=("tensor",),
        )
        for name, block in STORED.items()
    },
    "onnx/DynamicQuantizeLinear": _blocks(
        "x",
        lambda _, v: (v[0].astype(np.float64) - np.float64(v[2])) * np.float64(v[1]),
        lambda _: None,
        shifted,
        reals=("x",),
    ),
    "torchao/from_hp_to_intx": _blocks(
        "input_float",
        lambda _, v: v["dequantized"],
        lambda a: a["block_size"][-1],
        at(("dequantized",)),
        reals=("input_float",),
    ),
    "torchao/from_hp_to_floatx": _blocks(
        "input_float",
        lambda _, v: _scaled(v["data"], v["scale"]),
        lambda a: a["block_size"][-1],
        scaled,
        reals=("input_float",),
    ),
    "torchao/to_mx": _blocks(
        "data_hp",
        lambda a, v: FORMULAS["torchao/mx_dequantize"].function(v[1], v[0], a["elem_dtype"], a["block_size"]),
        lambda a: a["block_size"],
        mx,
        reals=("data_hp",),
    ),
    "torchao/nvfp4_quantize": _blocks(
        "data_hp",
        lambda a, v: FORMULAS["torchao/nvfp4_dequantize"].function(
            v[1], v[0].view(ml_dtypes.float8_e4m3fn), a.get("block_size", 16), a.get("per_tensor_scale")
        ),
        lambda a: a.get("block_size", 16),
        nvfp4,
        reals=("data_hp", "per_tensor_scale"),
    ),
}
