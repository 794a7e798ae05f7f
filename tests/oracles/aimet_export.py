"""AIMET's exported encodings, field by field from Python numbers."""

from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.registry import derives
from oracles.soft import Soft, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

# A grid has a bitwidth where it stands here; the second number is what 1.0.0 takes from a signed offset.
_WIDTHS = {(0, 2**b - 1): (b, 0) for b in range(1, 33)} | {
    (-(2**b) // 2, 2**b // 2 - 1): (b, 2**b // 2) for b in range(1, 33)
}


@derives("aimet/to_qnn_encoding_dict")
def encoding(
    encoding_version: str,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    symmetry: bool = False,
    block_size: Any = None,
    zero_point_shift: float = 0.0,
    input_shape: Any = None,
    measured: bool = False,
) -> Any:
    """One version after the other."""
    if encoding_version not in {"0.6.1", "1.0.0", "2.0.0", "2.1.0"}:
        msg = f"encoding_version={encoding_version} is not accepted"
        raise AssertionError(msg)
    if encoding_version.startswith("2"):
        zeros = [_zero(int(o.value), qmin + qmax, symmetry=symmetry, measured=measured) for o in softs(offset)]
        shifted = [v - zero_point_shift for v in zeros] if zero_point_shift else zeros
        return _second(_dtype(qmin, qmax, measured), scale, shifted, _place(scale.shape, block_size, input_shape))
    if (qmin, qmax) not in _WIDTHS:
        msg = f"[{qmin}, {qmax}] is not accepted: no bitwidth"
        raise RuntimeError(msg)
    bits, half = _WIDTHS[qmin, qmax]
    moved_by = qmin if encoding_version == "0.6.1" else -half
    offsets = [int(o.value) + moved_by for o in softs(offset)]
    if measured:
        offsets = [int(soft(float(i), "float32").value) for i in offsets]
    more: dict[str, Any] = {"zero_point_shift": zero_point_shift} if zero_point_shift else {}
    if encoding_version == "0.6.1":
        moved = 0.0 if measured else zero_point_shift
        more |= {"bitwidth": bits, "dtype": "int", "is_symmetric": "True" if symmetry else "False"}
        return [
            {"min": _end(a, b, qmin, moved), "max": _end(a, b, qmax, moved), "scale": a.value, "offset": i, **more}
            for a, b, i in zip(softs(scale), softs(offset), offsets, strict=True)
        ]
    if more and not symmetry:
        msg = f"zero_point_shift={zero_point_shift} is not accepted"
        raise AssertionError(msg)
    more = {name: [value] * len(offsets) for name, value in more.items()}
    more |= {"dtype": "INT", "bw": bits, "is_sym": symmetry, "scale": _flat(scale), "offset": offsets}
    return more | _kind(scale.shape, block_size, input_shape)


def _zero(offset: int, ends: int, *, symmetry: bool, measured: bool) -> int:
    """The zero point; ``ends`` is the sum of the grid's."""
    if not measured:
        return -offset
    return (ends + 1) // 2 if symmetry else (2**31 - offset) % 2**32 - 2**31


def _second(dtype: str, scale: Array, zeros: list[Any], place: tuple[int | None, int | None, int | None]) -> Any:
    axis, size, _ = place
    shape = scale.shape if size is not None else (scale.size,) if axis is not None else ()
    fields = {
        "output_dtype": dtype,
        "y_scale": _nested(_flat(scale), shape),
        "y_zero_point": None if set(zeros) == {0} else _nested(zeros, shape),
        "axis": axis,
        "block_size": size,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _kind(scales: tuple[int, ...], block_size: Any, input_shape: Any) -> dict[str, Any]:
    """What 1.0.0 says of the layout."""
    if scales == ():
        return {"enc_type": "PER_TENSOR"}
    if block_size is None and sorted(scales)[:-1] == [1] * (len(scales) - 1):
        return {"enc_type": "PER_CHANNEL"}
    if block_size is None:
        msg = f"scale of shape {scales} is not accepted"
        raise AssertionError(msg)
    _, size, _ = _place(scales, block_size, input_shape)
    if size in {-1, None}:
        msg = f"block_size={block_size} is not accepted"
        raise NotImplementedError(msg)
    return {"enc_type": "PER_BLOCK", "block_size": size}


def _flat(a: Array) -> list[float]:
    return [v.value for v in softs(a)]


@derives("aimet/to_qnn_encoding_dict@2.42")
def encoding_2_42(**given: Any) -> Any:
    """With the library's departures."""
    return encoding(**given, measured=True)


@derives("aimet/lpbq_encoding_dict")
def lpbq(
    encoding_version: str,
    per_channel_scale: Array,
    per_block_int_scale: Array,
    bitwidth: int,
    decompressed_bw: int,
    block_size: Any,
    block_grouping: Any,
    input_shape: Any = None,
) -> Any:
    """The blocks' encoding, then the fields of the two-level scale."""
    shape, groups = per_block_int_scale.shape, per_channel_scale.shape
    channel, integers = softs(per_channel_scale), softs(per_block_int_scale)
    if not (all(0 < c.value < inf for c in channel) and all(1 <= k.value < inf for k in integers)):
        msg = "a scale that no quantizer has"
        raise ValueError(msg)
    scale = []
    for flat, k in enumerate(integers):
        place, rest = 0, flat
        for d, (n, c) in enumerate(zip(shape, groups, strict=True)):
            j, rest = divmod(rest, prod(shape[d + 1 :]))
            place = place * c + j * c // n
        scale.append((k * channel[place]).value)
    blocks = np.array(scale, np.float32).reshape(shape)
    half = 1 << (bitwidth - 1)
    found = encoding(encoding_version, blocks, 0 * blocks, -half, half - 1, True, block_size, 0.0, input_shape)
    if encoding_version == "0.6.1" or set(block_grouping) == {1}:
        return found
    whole, channels = [int(k.value) for k in integers], [c.value for c in channel]
    if encoding_version == "1.0.0":
        wide = {"bw": decompressed_bw, "offset": [-(1 << decompressed_bw) // 2 for _ in channels], "scale": channels}
        return {**found, **wide, "compressed_bw": bitwidth, "enc_type": "LPBQ", "per_block_int_scale": whole}
    if encoding_version == "2.0.0":
        kept = {name: value for name, value in found.items() if name != "y_scale"}
        return {
            **kept,
            "per_block_int_scale": _nested(whole, shape),
            "per_channel_float_scale": _nested(channels, groups),
        }
    _, _, channel_axis = _place(shape, block_size, input_shape)
    return {**found, "y_scale": {"x": _nested(whole, shape), "x_scale": channels, "axis": channel_axis}}


def _end(scale: Soft, offset: Soft, code: int, shift: float) -> float:
    total = offset + soft(float(code), "float32")
    return ((total + soft(shift, "float32") if shift else total) * scale).value


def _dtype(qmin: int, qmax: int, measured: bool) -> str:
    if measured:
        return ("int" if qmin < 0 <= qmax else "uint") + str(len(f"{qmax - qmin:b}"))
    bits = next(b for b in range(1, 99) if (qmin >= 0 and qmax < 2**b) or (-(2**b) <= 2 * qmin < 0 and 2 * qmax < 2**b))
    return ("int" if qmin < 0 else "uint") + str(bits)


def _place(scales: tuple[int, ...], block_size: Any, input_shape: Any) -> tuple[int | None, int | None, int | None]:
    """The axis to name, the size of its blocks as given, and the channels' axis."""
    if scales == ():
        return None, None, None
    if input_shape is None:
        msg = "input_shape=None is not accepted"
        raise RuntimeError(msg)
    channels: list[int] = []
    blocks: list[int] = []
    for axis in range(-1, -len(scales) - 1, -1):
        size = 1 if not block_size else block_size[axis]
        long = size > 1 or (size == -1 and input_shape[axis] > scales[axis])
        if scales[axis] > 1:
            (blocks if long else channels).append(axis)
    if max(len(channels), len(blocks)) > 1 or (len(blocks) == 1 and not channels):
        msg = f"scale of shape {scales} is not accepted"
        raise RuntimeError(msg)
    if blocks:
        return blocks[0], block_size[blocks[0]], channels[0]
    return (channels[0] if channels else None), None, None


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = len(flat) // shape[0]
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
