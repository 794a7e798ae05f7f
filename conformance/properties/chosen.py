"""The roles of formulas that choose a scale."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.properties.affine import Ends, bits_ends, dtype_ends, given_ends, spread
from halfeven.conformance.properties.role import Path, Role, Seen, picked, place
from halfeven.conformance.requirement import Arguments
from halfeven.reference.blocks import Array

__all__ = ["CHOSEN"]

_Read = Mapping[str, Path]
_BIAS = 127  # of e8m0


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
    less: frozenset[str] = frozenset(),
    more: frozenset[str] = frozenset(),
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
        less: the traits that its kind has, and it has not.
        more: those that it has besides.
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
    return Role("choose", see, read, element, data, data[0], frozenset(traits) - less | more)


def _by_exponent(role: Role) -> Role:
    """The same of a formula that gives the exponent of its scale, with the bias of e8m0."""

    def read(a: Arguments, value: Any) -> Mapping[str, Array]:
        return {name: np.exp2(v.astype(np.float64) - _BIAS) for name, v in role.read(a, value).items()}

    def element(a: Arguments, value: Any, leaf: str, i: int) -> str:
        return f"float(np.exp2({role.element(a, value, leaf, i)} - {_BIAS}))"

    return replace(role, read=read, element=element)


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

_CLIPS = frozenset({"covering", "batches"})  # what leaves out outliers, as a histogram shows them, in turn
_OF_ALL = frozenset({"covering"})
_ZEROS = frozenset({"zeros"})


def _no_amax(a: Arguments) -> bool:
    return a.get("amax") is None and not a.get("learn_amax") and a.get("scale_amax") is None


CHOSEN: dict[str, Role] = {
    "aimet/recalibrated_range": _choosing(("min", "max"), _RANGE, _QMIN, less=_OF_ALL),
    "aimet/percentile_encodings": _choosing(("batches",), _RANGE, less=_CLIPS),
    "aimet/sqnr_encodings": _choosing(("batches",), _RANGE, less=_CLIPS),
    "aimet/histogram": _choosing(
        ("batches",), {"least": ("min",), "most": ("max",)}, sees=lambda a: a["shape"] == (), less=_CLIPS
    ),
    "aimet/encoding_range": _choosing(("scale",), _RANGE, _QMIN, less=_OF_ALL),
    "aimet/from_encodings": _choosing(("scale",), {"scale": ("scale",)}),
    "aimet/scaled_encoding": _choosing(("scale",), {"scale": (1,)}),
    "aimet/lpbq_scaled": _choosing(("min", "max"), {"scale": ("scale",)}),
    "aimet/lpbq_scale": _choosing(("min", "max"), {"scale": ("scale",)}),
    "compressed-tensors/generate_mx_scales": _by_exponent(_choosing(("x",), _SCALE)),
    "pytorch-quantization/described_amax": _choosing(
        ("inputs",), {"amax": ()}, sees=_no_amax, odd=lambda _: True, more=_ZEROS
    ),
    "pytorch-quantization/percentile_amax": _choosing(("edges",), {"amax": ()}, less=_OF_ALL, more=_ZEROS),
    "pytorch-quantization/mse_amax": _choosing(("edges",), {"amax": ()}, less=_OF_ALL, more=_ZEROS),
    "pytorch-quantization/entropy_amax": _choosing(("edges",), {"amax": ()}, less=_OF_ALL, more=_ZEROS),
    "torch/HistogramObserver": _choosing(("batches",), {"least": (1,), "most": (2,)}),
    "torch/HistogramObserver._non_linear_param_search": _choosing(("min_val", "max_val"), _RANGE, less=_OF_ALL),
    "torch/MovingAverageMinMaxObserver": _choosing(("batches",), _RANGE, less=_CLIPS),
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
