"""torchao: half-quadratic quantization (HQQ), without the proximal loop, and the variant that fits only a scale.

The proximal loop of the first takes a power of -0.3 and a mean over the whole weight: neither has a rounding that is
stated, so no bits follow from its document.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.sums import Open, in_any_order, rounded_each, unproved
from halfeven.reference.systems.torchao.storage import dtype_of, machine_integers

__all__ = ["choose_qparams_and_quantize_affine_hqq", "choose_qparams_and_quantize_scale_only_hqq"]

_MOST_CODES_PER_REAL = np.float32(2e4)
_LEAST_SCALE = np.float32(2.0**-23)
_ROUNDED_ZERO = 4


@dataclass(frozen=True)
class Hqq(Behaviour):
    """What implementations do differently without the proximal loop."""

    rounding: str = roundings("codes")
    steps: str = choice({
        "reciprocal": "multiplies the reciprocal of the range by the steps of the grid",
        "divide": "divides the steps of the grid by the range",
    })  # fmt: skip
    most: str = choice({
        "20000": "makes at most 20000 codes of a real",
        "none": "makes any number of codes of a real",
    })  # fmt: skip
    offset: str = choice({
        "4-bits": "rounds the offset of the codes where they have 4 bits",
        "never": "never rounds the offset of the codes",
        "always": "rounds the offset of the codes whatever their width",
    })  # fmt: skip
    parameters: str = choice({
        "rounded": "makes codes by parameters that are already of their own dtype",
        "float32": "makes codes by parameters in float32, and gives them in their own dtype",
    })  # fmt: skip


@dataclass(frozen=True)
class ScaleOnly(Behaviour):
    """What implementations do differently where only a scale is fitted."""

    rounding: str = roundings("codes")
    first: str = choice({
        "larger-end": "begins with the largest magnitude over the larger end of the grid",
        "greatest": "begins with the largest magnitude over qmax",
        "half-steps": "begins with the largest magnitude over half the steps of the grid",
    })  # fmt: skip
    least: str = choice({
        "2^-23": "takes 2^-23 as the least scale",
        "none": "has no least scale",
    })  # fmt: skip
    empty: str = choice({
        "kept": "keeps the scale of a group whose codes are all 0",
        "least": "gives a group whose codes are all 0 the least scale",
    })  # fmt: skip
    codes: str = choice({
        "last": "returns the codes of the scale that it returns",
        "turn": "returns the codes of the last turn, of the scale before",
    })  # fmt: skip


@formula(
    "torchao/choose_qparams_and_quantize_affine_hqq",
    equation=r"c = \min((x_{max} - x_{min})^{-1} \cdot (2^b - 1),\ 2 \cdot 10^4);\quad o = -x_{min} c;\quad "
    r"q = \mathrm{clamp}(\lceil x c + o \rfloor,\ 0,\ 2^b - 1);\quad s = c^{-1};\quad z = (2^{b-1} - o)\,s",
    basis=AsComputed(dtype="float32; c, o, s and z rounded to compute_dtype"),
    source="torchao.quantization.quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)",
    behaviour=Hqq(),
)
def choose_qparams_and_quantize_affine_hqq(
    b: Hqq,
    tensor: Array,
    nbits: int = 4,
    group_size: int = 64,
    axis: int = 1,
    compute_dtype: str = "float16",
    raw_output: bool = False,
) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """Codes, scale and zero point of groups, without the optimizing loop.

    Args:
        tensor: float of any shape, taken to float32.
        nbits: bits per code, 1 to 8; for 4 the offset of the codes is rounded to an integer.
        group_size: elements per group.
        axis: 1 for groups of consecutive elements; 0 for the columns of ``group_size`` rows.
        compute_dtype: the dtype of scale and zero point.
        raw_output: the offset as it is, and one row (axis 1) or column of parameters per row or column of ``tensor``;
            else the zero point in reals of the FLOAT domain, and parameters with the reduced dimension kept.

    Returns:
        uint8 codes of the tensor's shape, scale, zero point, and that shape.

    Raises:
        AssertionError: ``axis`` is another, or ``group_size`` does not divide the number of elements.
    """
    if axis not in (0, 1):
        msg = f"axis={axis} is not accepted: give 0 or 1"
        raise AssertionError(msg)
    if tensor.size % group_size != 0:
        msg = f"group_size={group_size} is not accepted: it does not divide the {tensor.size} elements"
        raise AssertionError(msg)
    w = tensor.astype(np.float32).reshape((-1, group_size) if axis == 1 else (group_size, -1))
    greatest, middle = np.float32(2**nbits - 1), np.float32(2 ** (nbits - 1))
    with np.errstate(all="ignore"):
        low, high = w.min(axis=axis, keepdims=True), w.max(axis=axis, keepdims=True)
        span = high - low
        codes_per_real = np.float32(1) / span * greatest if b.steps == "reciprocal" else greatest / span
        if b.most == "20000":
            codes_per_real = np.minimum(codes_per_real, _MOST_CODES_PER_REAL)
        offset = -low * codes_per_real
        if b.offset == "always" or (b.offset == "4-bits" and nbits == _ROUNDED_ZERO):
            offset = np.rint(offset)
        own_offset, own_codes = (v.astype(dtype_of(compute_dtype)) for v in (offset, codes_per_real))
        if b.parameters == "rounded":
            offset, codes_per_real = own_offset, own_codes
        q = ROUNDINGS[b.rounding](w * codes_per_real + offset)
        q = np.minimum(np.maximum(q, 0), greatest)
        scale = np.ones((), own_codes.dtype) / own_codes
        zero_point = own_offset
        if not raw_output:
            zero_point = ((middle - own_offset) * scale).astype(own_offset.dtype)
    if raw_output:
        kept = (tensor.shape[0], -1) if axis == 1 else (-1, tensor.shape[-1])
        scale, zero_point = scale.reshape(kept), zero_point.reshape(kept)
    return machine_integers(q, "uint8").reshape(tensor.shape), scale, zero_point, tensor.shape


def _open_fit(b: ScaleOnly, **given: Any) -> dict[str, Open]:
    q, scale, certain = _fitted(b, **given)
    return {} if certain else {"result[0]": unproved(q.shape), "result[1]": unproved(scale.shape)}


@formula(
    "torchao/choose_qparams_and_quantize_scale_only_hqq",
    equation=r"s_0 = \frac{\max |x|}{\max(|q_{min}|, |q_{max}|)};\quad "
    r"q_k = \mathrm{clamp}(\lceil x / s_k \rfloor,\ q_{min},\ q_{max});\quad s_{k+1} = \frac{\sum x q_k}{\sum q_k^2}",
    basis=AsComputed(dtype="float32"),
    source="torchao.quantization.quant_primitives._choose_qparams_and_quantize_scale_only_hqq, stochastic=False",
    behaviour=ScaleOnly(),
    open=_open_fit,
)
def choose_qparams_and_quantize_scale_only_hqq(
    b: ScaleOnly,
    hp_tensor: Array,
    block_size: tuple[int, ...],
    qmin: int,
    qmax: int,
    iters: int = 20,
    early_stop_tol: float = 1e-5,
) -> tuple[Array, Array]:
    """Codes and the scale that fits them, found in turns; one scale per group of a row, at least 2^-23.

    The order in which the two sums add is not stated: bits follow where every partial sum is a float32. Elsewhere
    they are the exact sums, rounded once; in another order each is within ``halfeven.reference.sums.bound``, and what
    codes follow in the next turn is open.

    Args:
        hp_tensor: a float matrix, taken to float32.
        block_size: (1, g), g elements to a group.
        qmin: the least code.
        qmax: the greatest code.
        iters: the most turns, at least one is made.
        early_stop_tol: the turns end where no scale moved by this part of itself.

    Returns:
        int32 codes of the matrix's shape, and scales of its dtype, (rows, groups).

    Raises:
        AssertionError: not a matrix, ``block_size`` is none of (1, g) or does not divide it, or qmin >= qmax.
    """
    if hp_tensor.ndim != 2 or len(block_size) != 2 or block_size[0] != 1 or block_size[1] < 1:  # noqa: PLR2004 - a matrix
        msg = f"block_size={block_size} is not accepted for shape {hp_tensor.shape}: give a matrix and (1, group)"
        raise AssertionError(msg)
    if qmin >= qmax or hp_tensor.shape[1] % block_size[1] != 0:
        msg = f"qmin={qmin}, qmax={qmax}, block_size={block_size} is not accepted for shape {hp_tensor.shape}"
        raise AssertionError(msg)
    q, scale, _ = _fitted(b, hp_tensor, block_size, qmin, qmax, iters, early_stop_tol)
    return q, scale


def _fitted(
    b: ScaleOnly,
    hp_tensor: Array,
    block_size: tuple[int, ...],
    qmin: int,
    qmax: int,
    iters: int,
    early_stop_tol: float,
) -> tuple[Array, Array, bool]:
    """Codes and scale, and whether they are those of every order of addition."""
    certain = True
    rows, columns = hp_tensor.shape
    w = hp_tensor.astype(np.float32).reshape(rows, columns // block_size[1], block_size[1])
    first, last = np.float32(qmin), np.float32(qmax)
    least = _LEAST_SCALE if b.least == "2^-23" else 0
    end = {"larger-end": max(-qmin, qmax), "greatest": qmax, "half-steps": (qmax - qmin) / 2}[b.first]

    def codes(scale: Array) -> Array:
        rounded = ROUNDINGS[b.rounding](w / scale[..., None])
        return np.minimum(np.maximum(rounded, first), last)

    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(w).max(axis=2) / np.float32(end), least)
        for _ in range(max(1, iters)):
            q = codes(scale)
            both = ((w * q).reshape(-1, block_size[1]), (q * q).reshape(-1, block_size[1]))
            certain &= all((in_any_order(terms) | np.isnan(terms).any(axis=1)).all() for terms in both)
            products, squares = (rounded_each(terms).reshape(scale.shape) for terms in both)
            fitted = np.where(squares > 0, products / squares, scale if b.empty == "kept" else least)
            previous, scale = scale, np.maximum(fitted, least)
            if (np.abs(scale - previous) / np.maximum(previous, least)).max() < np.float32(early_stop_tol):
                break
        if b.codes == "last":
            q = codes(scale)
    return machine_integers(q, "int32").reshape(rows, columns), scale.astype(hp_tensor.dtype), bool(certain)
