"""Calls of AIMET's export: every version, layout of scales and grid, and what cannot be exported."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.aimet_affine import F32, scalar
from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

VERSIONS = ("0.6.1", "1.0.0", "2.0.0", "2.1.0")
FORMULA = "aimet.to_qnn_encoding_dict"


def _in(versions: tuple[str, ...], given: dict[str, Any]) -> Iterator[Arguments]:
    yield from ({"encoding_version": v, **given} for v in versions)


def _scales(shape: tuple[int, ...], offsets: tuple[float, ...] = (0, -1, 3)) -> dict[str, Any]:
    n = int(np.prod(shape))
    scale = (np.arange(1, n + 1) / 10).astype(F32).reshape(shape)
    return {"scale": scale, "offset": np.resize(np.array(offsets, F32), n).reshape(shape)}


@calls(FORMULA, "per-tensor")
def per_tensor() -> Iterator[Arguments]:
    """Signed and unsigned grids of 1 to 32 bits, offsets of both signs."""
    for bits in (1, 2, 4, 8, 16, 32):
        half = 2 ** (bits - 1)
        far = half - 1 if bits < 24 else 256  # noqa: PLR2004 - float32 holds the sum with half
        for qmin, offset in ((0, 0), (0, -1), (0, -far), (-half, 0), (-half, far)):
            given = {"scale": scalar(0.1), "offset": scalar(offset), "qmin": qmin, "qmax": qmin + 2 * half - 1}
            yield from _in(VERSIONS, given)


@calls(FORMULA, "symmetric")
def symmetric() -> Iterator[Arguments]:
    """Symmetric encodings: the word, and the zero point of signed, strict and unsigned grids."""
    for qmin, qmax, offset in ((-8, 7, 0), (0, 255, -128), (0, 1, -1)):
        given = {"scale": scalar(0.1), "offset": scalar(offset), "qmin": qmin, "qmax": qmax, "symmetry": True}
        yield from _in(VERSIONS, given)
    strict = {"scale": scalar(0.1), "offset": scalar(0), "qmin": -127, "qmax": 127, "symmetry": True}
    yield from _in(VERSIONS[2:], strict)


@calls(FORMULA, "layouts")
def layouts() -> Iterator[Arguments]:
    """Per channel, per block and a scale of one element, at every axis."""
    grid = {"qmin": -8, "qmax": 7}
    for scales, shape in (((1,), (3, 4)), ((3,), (2, 3)), ((3, 1), (3, 4)), ((1, 3, 1, 1), (2, 3, 4, 4))):
        yield from _in(VERSIONS, {**_scales(scales), **grid, "input_shape": shape})
    for own, whole, block in (((2, 3), (2, 6), (1, 2)), ((3, 2), (6, 2), (2, 1)), ((2, 3, 1), (2, 6, 4), (1, 2, 4))):
        yield from _in(VERSIONS, {**_scales(own), **grid, "input_shape": whole, "block_size": block})
    minus = {**_scales((2, 3)), **grid, "input_shape": (2, 6), "block_size": (1, -1)}
    yield from _in(VERSIONS[::2], minus)
    yield from _in(VERSIONS, {**_scales((2,), (0,)), **grid, "symmetry": True, "input_shape": (3, 2)})


@calls(FORMULA, "output-dtype")
def output_dtype() -> Iterator[Arguments]:
    """Grids away from zero, whose codes need more bits than their number."""
    for qmin, qmax in ((2, 9), (-4, -1), (-100, 155), (1, 4), (-1, 4)):
        given = {"scale": scalar(0.1), "offset": scalar(-1), "qmin": qmin, "qmax": qmax}
        yield from _in(VERSIONS[2:], given)


@calls(FORMULA, "zero-point")
def zero_point() -> Iterator[Arguments]:
    """Symmetric grids with an odd number of codes above their centre, and offsets of 32 bits."""
    for qmin, qmax, offset in ((0, 5, -2), (-4, 1, 2), (-1, 4, -2)):
        given = {"scale": scalar(0.1), "offset": scalar(offset), "qmin": qmin, "qmax": qmax, "symmetry": True}
        yield from _in(VERSIONS[2:], given)
    given = {"scale": scalar(0.1), "offset": scalar(-(2**31)), "qmin": 0, "qmax": 2**32 - 1}
    yield from _in(VERSIONS, given)
    signed = {"scale": scalar(0.1), "offset": scalar(2**20 - 1), "qmin": -(2**31), "qmax": 2**31 - 1}
    yield from _in(VERSIONS, signed)


@calls(FORMULA, "zero-point-shift")
def zero_point_shift() -> Iterator[Arguments]:
    """A shift of half a code, per tensor and per channel."""
    given = {"qmin": -2, "qmax": 1, "symmetry": True, "zero_point_shift": 0.5}
    yield from _in(VERSIONS, {**given, **_scales((), (0,))})
    yield from _in(VERSIONS, {**given, **_scales((3, 1), (0,)), "input_shape": (3, 4)})


@calls(FORMULA, "refusals")
def refusals() -> Iterator[Arguments]:
    """Versions that there are not, grids without bitwidth, axes that are not unique, no shape to tell them by."""
    plain = {"scale": scalar(0.1), "offset": scalar(0), "qmin": -8, "qmax": 7}
    yield from _in(("", "0.6", "2.2.0"), plain)
    yield from _in(VERSIONS[:2], {**plain, "qmin": -127, "qmax": 127})
    yield from _in(VERSIONS[:2], {**plain, "qmin": 3, "qmax": 6})
    yield from _in(VERSIONS[1:], {**plain, **_scales((2, 2)), "input_shape": (2, 2)})
    yield from _in(VERSIONS[1:], {**plain, **_scales((2, 2)), "input_shape": (4, 4), "block_size": (2, 2)})
    yield from _in(VERSIONS[1:], {**plain, **_scales((1, 2)), "input_shape": (2, 4), "block_size": (-1, 2)})
    yield from _in(VERSIONS[2:], {**plain, **_scales((2, 1))})
    yield from _in(VERSIONS[1:2], {**plain, **_scales((2, 3)), "input_shape": (2, 6), "block_size": (1, -1)})
    yield from _in(VERSIONS[1:2], {**plain, "zero_point_shift": 0.5})


@calls("aimet.lpbq_encoding_dict", "versions")
def lpbq() -> Iterator[Arguments]:
    """Two groupings of (2, 4) blocks, channels first and last, and none."""
    k = np.array([[16, 3, 1, 8], [5, 16, 9, 16]], F32)
    channel = np.array([[0.01], [0.3]], F32)
    given = {"bitwidth": 4, "decompressed_bw": 8}
    row = {"per_block_int_scale": k, "block_size": (1, 3), "input_shape": (2, 12), **given}
    yield from _in(VERSIONS, {**row, "per_channel_scale": channel, "block_grouping": (1, -1)})
    pairs = np.array([[0.01, 0.2], [0.3, 4]], F32)
    yield from _in(VERSIONS, {**row, "per_channel_scale": pairs, "block_grouping": (1, 2)})
    column = {"per_block_int_scale": k.T, "block_size": (3, 1), "input_shape": (12, 2), **given}
    yield from _in(VERSIONS, {**column, "per_channel_scale": channel.T, "block_grouping": (4, 1)})
    own = {**row, "per_block_int_scale": np.full((2, 4), 16, F32), "block_grouping": (1, 1)}
    yield from _in(VERSIONS, {**own, "per_channel_scale": k / F32.type(16)})


@calls("aimet.lpbq_encoding_dict", "refusals")
def lpbq_refusals() -> Iterator[Arguments]:
    """Scales and integers that no grouped quantizer has."""
    given = {
        "bitwidth": 4,
        "decompressed_bw": 8,
        "block_size": (1, 3),
        "block_grouping": (1, -1),
        "input_shape": (1, 6),
    }
    whole = np.array([[16, 3]], F32)
    for scale in (0, -1, np.inf, np.nan):
        channel = np.array([[scale]], F32)
        yield from _in(VERSIONS, {**given, "per_channel_scale": channel, "per_block_int_scale": whole})
    for k in (0, np.nan):
        integers = np.array([[16, k]], F32)
        yield from _in(VERSIONS, {**given, "per_channel_scale": np.ones((1, 1), F32), "per_block_int_scale": integers})
