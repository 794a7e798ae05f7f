"""The calls of documented functions beyond their own: wrong implementations are caught, the formula itself is not."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.engine.call import Answer, Call, CallShape
from halfeven.conformance.engine.function_calls import LARGEST, SIZES, function_calls, grown, own_calls
from halfeven.conformance.engine.memory import Strided
from halfeven.conformance.engine.operation_calls import Asked
from halfeven.conformance.requirement import CALLS, REQUIREMENTS
from halfeven.conformance.systems import judged_sets, rooms, takes_arrays
from halfeven.reference import FORMULAS

from .right import first_difference

Given = dict[str, Any]


def not_offered(asked: Sequence[Asked], answers: Sequence[Answer]) -> set[tuple[str, str]]:
    """The modes and layouts, as (axis, level), in which every call raised where the formula has an answer.

    Such as gradients, where a library writes into an array or leaves torch for NumPy, and arrays that a library asserts
    to be contiguous. A plain call that raises is none of these. A level in which a single call returned is offered.
    """
    raised: dict[tuple[str, str], set[bool]] = {}
    for a, given in zip(asked, answers, strict=True):
        if a.expected.kind == "returned" and given.kind in {"returned", "raised"}:
            for axis in ("mode", "layout"):
                level = getattr(a.call.shape, axis)
                if axis != "mode" or level != "requires_grad" or differentiable(a.call):
                    raised.setdefault((axis, level), set()).add(given.kind == "raised")
    return {level for level, found in raised.items() if found == {True} and level[1] not in {"grad", "contiguous"}}


def differentiable(call: Call) -> bool:
    return any(
        v.memory.dtype.name.startswith(("float", "bfloat")) for v in call.named.values() if isinstance(v, Strided)
    )


@cache
def asked(formula: str) -> tuple[Asked, ...]:
    rooms()
    judged = {c for r in REQUIREMENTS.values() if r.formula == formula and r.basis != "silent" for c in r.checks}
    return tuple(function_calls(formula, [s for (f, name), s in CALLS.items() if f == formula and name in judged]))


def backend(formula: str, fn: Callable[..., Any]) -> Backend:
    return Backend("tried", "onnx", functions={formula: fn}, array="numpy")


def arrays(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else ()
    return [a for v in inner for a in arrays(v)]


def size(given: Given) -> int:
    return max((a.size for a in arrays(given)), default=0)


def off(result: Any) -> Any:
    """The result with another last element, or number, somewhere."""
    if isinstance(result, np.ndarray) and result.size:
        changed = np.array(result)
        changed.reshape(-1).view(np.uint8)[-1] ^= 1
        return changed
    if isinstance(result, Mapping):
        return {k: off(v) for k, v in result.items()}
    if isinstance(result, tuple | list):
        return type(result)(map(off, result))
    return result + type(result)(1) if isinstance(result, int | float | np.generic) else result


def as_contiguous(a: Any) -> Any:
    """What lies in memory from the first element on."""
    if not isinstance(a, np.ndarray) or a.flags.c_contiguous or 0 in a.strides or min(a.strides, default=0) < 0:
        return a
    return np.array(np.lib.stride_tricks.as_strided(a, a.shape, np.empty(a.shape, a.dtype).strides))


def first_array(given: Given) -> str:
    return next(name for name, value in given.items() if arrays(value))


def when(condition: Callable[[Given, dict[str, Any]], bool]) -> Callable[..., Any]:
    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        state: dict[str, Any] = {"calls": 0}

        def fn(**given: Any) -> Any:
            state["calls"] += 1
            right = function(**given)
            return off(right) if condition(given, state) else right

        return fn

    return make


def arguments(changed: Callable[[Given], Given]) -> Callable[..., Any]:
    return lambda function: lambda **given: function(**changed(given))


def others_as_contiguous(given: Given) -> Given:
    first = first_array(given)
    return {k: v if k == first else as_contiguous(v) for k, v in given.items()}


def kept_by_shape(function: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    def fn(**given: Any) -> Any:
        key = repr({k: [a.shape for a in arrays(v)] or v for k, v in given.items()})
        if key not in kept:
            kept[key] = function(**given)
        return kept[key]

    return fn


def raising(limit: int) -> Callable[..., Any]:
    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def fn(**given: Any) -> Any:
            if size(given) > limit:
                raise MemoryError
            return function(**given)

        return fn

    return make


def last_of_odd_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    def fn(**given: Any) -> Any:
        odd = any(a.ndim and a.shape[-1] % 2 and a.shape[-1] > 8 for a in arrays(given))
        return off(function(**given)) if odd else function(**given)

    return fn


def again(given: Given, state: dict[str, Any]) -> bool:
    key = repr({k: [a.tobytes() for a in arrays(v)] or v for k, v in given.items()})
    same, state["key"] = state.get("key") == key, key
    return same


def shared(given: Given, _: Any) -> bool:
    found = arrays(given)
    return any(a is not b and np.may_share_memory(base(a), base(b)) for a in found for b in found)


def base(a: Any) -> Any:
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def data(given: Given) -> Any:
    found = arrays(given[first_array(given)])[0]
    return found.reshape(-1).astype(np.float64) if found.size > 1 else np.ones(1)


def steps(given: Given) -> tuple[int, ...]:
    a = max(arrays(given), key=lambda a: a.size)
    return tuple(s // a.itemsize for s in a.strides)


def lost(places: Callable[[int], slice]) -> Callable[..., Any]:
    """Reduces long data as if these elements were not there: it has the first element in their place."""

    def without(a: Any) -> Any:
        if isinstance(a, tuple | list):
            return type(a)(map(without, a))
        if not isinstance(a, np.ndarray) or a.size < 100 or not a.dtype.name.startswith(("float", "bfloat")):
            return a
        changed = np.array(a)
        changed.reshape(-1)[places(a.size)] = a.flat[0]
        return changed

    return arguments(lambda given: {k: without(v) if k == first_array(given) else v for k, v in given.items()})


def lost_lane(block: int) -> Callable[..., Any]:
    """Stores scales as if the last lane of one of a row's blocks of 32 were not there."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def fn(**given: Any) -> Any:
            whole, name = function(**given), first_array(given)
            told = given.get("block_size", given.get("blocksize", 32))
            length = np.shape(given[name])[-1] if np.ndim(given[name]) else 0
            if told != 32 or length < 64 or length % 32:
                return whole
            x = np.array(given[name])
            x.reshape(-1, length // 32, 32)[:, block, -1] = 0
            fewer = function(**given | {name: x})
            scales = min(range(len(whole)), key=lambda i: np.size(whole[i]))
            return tuple(fewer[i] if i == scales else leaf for i, leaf in enumerate(whole))

        return fn

    return make


#: Formulas that store a scale with each block.
BLOCKED = ("torchao/to_mx", "modelopt/int4_quantize", "bitsandbytes/quantize_4bit")
#: Formulas that reduce what they are given.
REDUCING = (
    "torch/MinMaxObserver",
    "torch/MovingAverageMinMaxObserver",
    "onnx/DynamicQuantizeLinear",
    "torchao/tensor_to_scale",
    "pytorch-quantization/max_calibrator",
    "aimet/minmax_encodings",
    "torch/quantized_decomposed.choose_qparams",
)

WRONG: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "a strided argument answered as if contiguous": (
        arguments(lambda given: {k: as_contiguous(v) for k, v in given.items()}),
        (
            "aimet/affine.quantize",
            "brevitas/IntQuant",
            "torchao/to_mx",
            "gguf/Q4_0.quantize",
            "torchao/from_hp_to_intx",
        ),
    ),
    "strided parameters answered as if contiguous": (
        arguments(others_as_contiguous),
        ("bitsandbytes/dequantize_blockwise", "torch/quantize_per_channel", "aimet/quantize_dequantize_gradient"),
    ),
    "wrong when the same call is repeated": (
        when(again),
        ("compressed-tensors/cast_to_fp4", "onnx/DynamicQuantizeLinear"),
    ),
    "kept by the shapes of the arguments": (kept_by_shape, ("number-formats/encode", "torchao/choose_qparams_affine")),
    "raises above 4,096 elements": (raising(4096), ("aimet/lpbq_scale", "torchao/quantize_affine_float8")),
    "wrong above 65,536 elements": (
        when(lambda given, _: size(given) > 1 << 16),
        ("pytorch-quantization/histogram", "torch/PerChannelMinMaxObserver", "torchao/nvfp4_quantize"),
    ),
    "wrong above 2^20 elements": (
        when(lambda given, _: size(given) > 1 << 20),
        ("onnx/QuantizeLinear", "pytorch-quantization/fake_tensor_quant"),
    ),
    "loses the last element of odd rows": (
        last_of_odd_rows,
        ("torchao/f32_to_floatx_unpacked", "torch/quantized_decomposed.choose_qparams_per_token"),
    ),
    "wrong at an address that is no multiple of 64": (
        when(lambda given, _: any(a.size > 1 and a.__array_interface__["data"][0] % 64 for a in arrays(given))),
        ("compressed-tensors/quantize", "torch/MinMaxObserver"),
    ),
    "wrong on several threads": (
        when(lambda *_: torch.get_num_threads() > 1),
        ("aimet/histogram", "torch/fake_quantize_per_channel_affine.backward"),
    ),
    "wrong in inference mode": (
        when(lambda *_: torch.is_inference_mode_enabled()),
        ("brevitas/RescalingIntQuant", "onnx/DequantizeLinear"),
    ),
    "wrong without gradients": (
        when(lambda *_: not torch.is_grad_enabled() and not torch.is_inference_mode_enabled()),
        ("aimet/percentile_encodings", "bitsandbytes/quantize_4bit"),
    ),
    "wrong where arguments share their memory": (
        when(shared),
        ("aimet/affine.dequantize", "torch/_fake_quantize_learnable_per_tensor_affine"),
    ),
    "wrong where every second element is skipped": (
        when(lambda given, _: bool(steps(given)) and steps(given)[-1] == 2),
        ("gguf/Q8_0.dequantize", "torchao/amax_to_scale"),
    ),
    "wrong where the first dimension is expanded": (
        when(lambda given, _: any(a.ndim > 1 and a.strides[0] == 0 for a in arrays(given))),
        ("torchao/quantize_affine", "compressed-tensors/fake_quantize"),
    ),
    "loses the last n mod 8 elements where it reduces": (lost(lambda n: slice(n // 8 * 8, None)), REDUCING),
    "loses the last element where it reduces": (lost(lambda n: slice(n - 1, None)), REDUCING),
    "loses the border of two halves where it reduces": (lost(lambda n: slice(n // 2, n // 2 + 1)), REDUCING),
    "reduces no more than 65,536 elements": (lost(lambda n: slice(1 << 16, None)), REDUCING),
    "loses the last lane of a row's last block": (lost_lane(-1), BLOCKED),
    "loses the last lane of a row's first block": (lost_lane(0), BLOCKED),
    "wrong where the data are mostly zero": (
        when(lambda given, _: bool(np.mean(data(given) == 0) > 0.5)),
        ("aimet/float_cast", "torchao/tensor_to_scale"),
    ),
    "wrong where no number is positive": (
        when(lambda given, _: bool((data(given) < 0).all())),
        ("aimet/float_cast", "gguf/Q8_0.quantize"),
    ),
    "wrong where the data fall": (
        when(lambda given, _: data(given).size > 3 and bool((np.diff(data(given)) <= 0).all())),
        ("number-formats/encode", "torchao/choose_scale_float8"),
    ),
    "wrong on the first call": (when(lambda _, state: state["calls"] == 1), ("aimet/scale_and_offset",)),
    "wrong from the 30th call on": (when(lambda _, state: state["calls"] >= 30), ("torchao/tensor_to_scale",)),
}
CASES = [(wrong, formula) for wrong, (_, formulas) in WRONG.items() for formula in formulas]


@pytest.mark.parametrize(("wrong", "formula"), CASES)
def test_a_wrong_function_is_caught(wrong, formula):
    fn = WRONG[wrong][0](FORMULAS[formula].function)
    assert first_difference(backend(formula, fn), asked(formula)) is not None


@pytest.mark.parametrize("formula", sorted({formula for _, formula in CASES}))
def test_the_formula_itself_is_not_charged(formula):
    function = FORMULAS[formula].function
    assert asked(formula)
    assert first_difference(backend(formula, function), asked(formula)) is None


def test_the_tables_name_formulas():
    assert {*LARGEST} <= set(FORMULAS)
    assert max(LARGEST.values()) <= max(SIZES)


def test_call_shapes_are_planned_wherever_there_are_calls_for_them():
    own = {f for f in FORMULAS if "@" not in f and own_calls(judged_sets(f), FORMULAS[f].function)}
    assert {f for f in own if not takes_arrays(f)} == set()


def test_longer_arrays_mix_their_rows():
    x, scale = np.arange(6.0).reshape(2, 3), np.array([[1.0, 2, 3]])
    longer = next(grown({"x": x, "scale": scale, "block_size": (1, 3)}, 9))
    assert longer["block_size"] == (1, 9)
    assert longer["scale"].shape == (1, 9)
    assert longer["x"].shape == (2, 9)
    assert longer["x"][:, :3].tolist() != longer["x"][:, 3:6].tolist()
    assert np.unique(longer["x"][longer["x"] % 3 == 0]).tolist() == [0.0, 3.0]


def test_no_other_array_is_grown_where_the_largest_has_one_element():
    assert not list(grown({"x": np.ones((1, 1))}, 9))


def test_a_mode_that_every_call_refuses_is_not_offered():
    def of(mode: str, kind: str) -> tuple[Asked, Answer]:
        x = Strided(np.ones(2, np.float32), (2,), (1,))
        call = Call("f", (), {"x": x}, CallShape(mode=mode))  # type: ignore[arg-type]
        return Asked(call, Answer("returned", 1)), Answer(kind)  # type: ignore[arg-type]

    pairs = [of("grad", "raised"), of("inference", "raised"), of("no_grad", "raised"), of("no_grad", "returned")]
    assert not_offered(*zip(*pairs, strict=True)) == {("mode", "inference")}
