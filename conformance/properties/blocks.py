"""The roles of formulas that choose a scale for each block of their data and quantize with it."""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.properties.affine import Element, at
from halfeven.conformance.properties.elements import (
    float_rows,
    four_bits,
    gguf,
    hqq,
    int4,
    levels,
    mx,
    mxfp4,
    mxfp8,
    nf4,
    nvfp4,
    nvfp4_of_tensor,
    of_scales,
    scaled,
    scaled_codes,
    shifted,
)
from halfeven.conformance.properties.role import Role, Seen
from halfeven.conformance.properties.stored import nibbles
from halfeven.conformance.requirement import Arguments
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.systems.gguf import BLOCKS as STORED
from halfeven.reference.systems.modelopt.mxfp8 import BLOCK as MX_BLOCK
from halfeven.reference.systems.modelopt.nf4 import Nf4Values, nf4_levels

__all__ = ["BLOCKS"]


def _zero_is_kept(a: Arguments) -> bool:
    return bool(a.get("preserve_zero", True)) and a.get("zero_point_domain", "INT") != "FLOAT"


def _blocks(
    data: str,
    decode: Callable[[Arguments, Any], Array],
    size: Callable[[Arguments], int | Array | None],
    element: Element,
    *,
    reals: tuple[str, ...],
    sees: Callable[[Arguments], bool] = lambda _: True,
    has_zero: Callable[[Arguments], bool] = _zero_is_kept,
) -> Role:
    """A formula that chooses a scale for each block of its input; ``decode`` gives the reals of what it stores.

    Args:
        data: its argument that holds the data.
        decode: the reals, in the shape of the data.
        size: elements of a block, consecutive ones; None where all of the tensor shares a scale; or for each element
            the number of its block.
        element: one of them as Python.
        reals: the arguments in the unit of the data.
        sees: whether a property can judge the call.
        has_zero: whether the codes have one for zero.
    """

    def see(a: Arguments) -> Seen:
        if not sees(a):
            msg = "it is no call of the plain kind"
            raise ValueError(msg)
        x, n = np.asarray(a[data]), size(a)
        block = np.arange(x.size) // n if isinstance(n, int) else np.zeros(x.size, np.int64) if n is None else n
        outer = np.asarray(a[reals[-1]] if a.get(reals[-1]) is not None else 1)
        if len(reals) > 1 and not np.all(np.isfinite(outer) & (outer > 0)):
            msg = "the scale of the tensor is none"
            raise ValueError(msg)
        return Seen(x.astype(np.float64), x.dtype, block=block.reshape(x.shape), has_zero=has_zero(a))

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


def _nf4_reals(a: Arguments, value: Any) -> Array:
    """Levels times the largest magnitude of their block, in float64; what was filled up is cut off."""
    codes = nibbles(np.asarray(value[0]), high_first=True).reshape(-1, a["block_size"])
    scale = np.asarray(value[1]).astype(np.float64)
    reals = nf4_levels(Nf4Values())[codes] * scale[: len(codes), None]
    return np.asarray(reals.ravel()[: np.size(a["input"])])


def _described(a: Arguments) -> bool:
    """Whether the largest magnitude of the tensor gives the scale of all of it, and reals come back."""
    whole = a.get("axis") is None and a.get("amax") is None and not a.get("learn_amax")
    return bool(a.get("fake_quant", True)) and whole


def _fp8_blocks(a: Arguments) -> Array | None:
    """For each element the number of its block, or of its index of the axis."""
    x, sizes, axis = np.asarray(a["input"]), a.get("block_sizes"), a.get("axis")
    if sizes is None and axis is not None:
        sizes = [n if d != axis % x.ndim else 1 for d, n in enumerate(x.shape)]
    if sizes is None:
        return None
    places = np.indices(x.shape).reshape(x.ndim, -1) // np.array(sizes)[:, None]
    found: Array = np.unique(places, axis=1, return_inverse=True)[1].ravel()
    return found


def _fp8(a: Arguments) -> bool:
    """Whether it chooses its scale, and every block is whole."""
    x, sizes = np.asarray(a["input"]), a.get("block_sizes")
    return a.get("scales") is None and (sizes is None or not any(n % m for n, m in zip(x.shape, sizes, strict=True)))


def _fp8_reals(a: Arguments, value: Any) -> Array:
    codes, scale = np.asarray(value[0]), np.asarray(value[1])
    sizes = a.get("block_sizes")
    scale = scale if sizes is None else scale.reshape([n // m for n, m in zip(codes.shape, sizes, strict=True)])
    return _scaled(codes, scale)


def _nvfp4(a: Arguments) -> bool:
    """Whether the last dimension is whole blocks; a tensor that chooses its own scale has no infinity in it."""
    x = np.asarray(a["input"])
    whole = x.ndim > 0 and x.shape[-1] % a.get("block_size", 16) == 0
    given = a.get("weights_scaling_factor_2") is not None
    return whole and (given or bool(np.isfinite(x.astype(np.float64)).all()))


def _hqq_blocks(a: Arguments) -> Array:
    """Consecutive elements, or the columns of a matrix of so many rows."""
    x, size = np.asarray(a["tensor"]), a.get("group_size", 64)
    if x.size % size:
        msg = "it is not whole groups"
        raise ValueError(msg)
    found: Array = np.arange(x.size) // size if a.get("axis", 1) == 1 else np.arange(x.size) % (x.size // size)
    return found


def _hqq_reals(a: Arguments, value: Any) -> Array:
    """(q - middle) * scale + zero point."""
    codes, scale, zero = (np.asarray(v).astype(np.float64) for v in value[:3])
    size, middle = a.get("group_size", 64), 2.0 ** (a.get("nbits", 4) - 1)
    rows = codes.reshape((-1, size) if a.get("axis", 1) == 1 else (size, -1))
    found: Array = ((rows - middle) * scale + zero).reshape(codes.shape)
    return found


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
    "pytorch-quantization/described": _blocks(
        "inputs", lambda _, v: v, lambda _: None, at(()), reals=("inputs",), sees=_described
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
    "modelopt/fp8_quantize": _blocks("input", _fp8_reals, _fp8_blocks, of_scales, reals=("input",), sees=_fp8),
    "modelopt/int8_quantize": _blocks("input", _fp8_reals, _fp8_blocks, of_scales, reals=("input",), sees=_fp8),
    "modelopt/int4_quantize": _blocks(
        "input",
        _by(
            "modelopt/int4_dequantize",
            "quantized_data",
            "scale",
            shape=lambda a: np.asarray(a["input"]).shape,
            block_size=lambda a: a["block_size"],
        ),
        lambda a: a["block_size"],
        int4,
        reals=("input",),
    ),
    "modelopt/mxfp4_quantize": _blocks(
        "input",
        _by("modelopt/mxfp4_dequantize", "quantized_data", "scale", block_size=lambda a: a.get("block_size", 32)),
        lambda a: a.get("block_size", 32),
        mxfp4,
        reals=("input",),
    ),
    "modelopt/mxfp8_quantize": _blocks(
        "input",
        _by("modelopt/mxfp8_dequantize", "quantized_data", "scale"),
        lambda _: MX_BLOCK,
        mxfp8,
        reals=("input",),
        sees=lambda a: a.get("weights_scaling_factor") is None and np.shape(a["input"])[-1] % MX_BLOCK == 0,
    ),
    "modelopt/nf4_quantize": _blocks("input", _nf4_reals, lambda a: a["block_size"], nf4, reals=("input",)),
    "modelopt/nvfp4_quantize": _blocks(
        "input",
        _by(
            "modelopt/nvfp4_dequantize",
            "quantized_data",
            "scale",
            "double_scale",
            shape=lambda a: np.asarray(a["input"]).shape,
            block_size=lambda a: a.get("block_size", 16),
        ),
        lambda a: a.get("block_size", 16),
        nvfp4_of_tensor,
        reals=("input", "weights_scaling_factor_2"),
        sees=_nvfp4,
    ),
    "torchao/from_hp_to_fpx": _blocks(
        "input_float",
        lambda a, v: FORMULAS["torchao/dequantize_affine_floatx"].function(
            v["codes"], v["scale"], a["ebits"], a["mbits"]
        ),
        lambda a: np.shape(a["input_float"])[-1],
        float_rows,
        reals=("input_float",),
    ),
    "torchao/choose_qparams_and_quantize_affine_hqq": _blocks(
        "tensor",
        _hqq_reals,
        _hqq_blocks,
        hqq,
        reals=("tensor",),
        sees=lambda a: not a.get("raw_output"),
    ),
    "torchao/choose_qparams_and_quantize_scale_only_hqq": _blocks(
        "hp_tensor",
        lambda _, v: _scaled(v[0], v[1]),
        lambda a: a["block_size"][-1],
        scaled_codes,
        reals=("hp_tensor",),
        has_zero=lambda a: a["qmin"] <= 0 <= a["qmax"],
    ),
}
