"""torchao: ``AffineQuantizedTensor`` of floatx. Calls: rows, ties, small scales and NaN."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented, measured, silent
from halfeven.conformance.systems.torchao.by_release import by_release
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode, floatx

__all__ = ["ANSWERS"]

_FPX = "torchao/from_hp_to_fpx"
_DTYPES = (np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


def _numbers(e: int, m: int) -> Array:
    return decode(np.arange(2 ** (e + m)), floatx(e, m), "float32")


def _row(n: int, seed: int) -> Array:
    """Deterministic numbers of both signs over several binades."""
    k = np.arange(n) * 37 + seed
    return np.ldexp((k % 251 - 125).astype(np.float32), -(k % 11)).astype(np.float32)


@documented(_FPX, "AffineQuantizedTensor: from_hp_to_fpx", aspect="row-scales")
def fpx() -> Calls:
    """A tensor becomes codes of 2 to 7 bits with a scale for each row, which are those of the scale formula and of the
    quotient."""
    for (e, m), dtype in zip(((3, 2), (2, 2), (1, 0), (5, 1)), (*_DTYPES, _DTYPES[0]), strict=True):
        x = _row(64 * 64, e).reshape(64, 64)
        x *= np.ldexp(np.float32(1), (np.arange(64) % 9 - 4)).astype(np.float32)[:, None]
        yield {"input_float": x.astype(dtype), "ebits": e, "mbits": m}


@documented(_FPX, "AffineQuantizedTensor: from_hp_to_fpx")
def quotient() -> Calls:
    """An element is divided by the scale of its row."""
    for mbits in (0, 1):
        v = _numbers(5, mbits)[: 2 ** (5 + mbits)]
        middle = (v[1:] + v[:-1]) / 2
        x = np.resize(np.concatenate([middle, -middle]), (64, 64)).astype(np.float32)
        x[:, 0] = v[-1]
        scales = (np.arange(64) * 2 + 1).astype(np.float32)  # 41 * (1 / 41) is not 1 in float32
        yield {"input_float": x * scales[:, None], "ebits": 5, "mbits": mbits}


def _filled(rows: Array, dtype: Any) -> Array:
    """A matrix of 64 by 64: ``rows``, then ones."""
    x = np.ones((64, 64), np.float32)
    x[: rows.shape[0], : rows.shape[1]] = rows
    return x.astype(dtype)


@documented(_FPX, "AffineQuantizedTensor: from_hp_to_fpx, and choose_qparams_affine_floatx", aspect="arithmetic")
def sixteen_bit_rows() -> Calls:
    """Scales and quotients are computed in float32; a scale is rounded to the input's dtype before it divides."""
    for (e, m), dtype in product(
        ((2, 1), (3, 2), (2, 3), (5, 1)), _DTYPES[1:]
    ):  # float16 does not hold the largest e5m1
        x = _row(64 * 64, e).reshape(64, 64) * (1 + np.arange(64, dtype=np.float32) / 47)[:, None]
        yield {"input_float": x.astype(dtype), "ebits": e, "mbits": m}


@measured(_FPX, "torchao.quantization.quant_primitives.choose_qparams_affine_floatx", aspect="smallest-scale")
def small_rows() -> Calls:
    """The magnitude of a row is at least 1e-12 before it is divided."""
    rows = np.zeros((5, 64), np.float32)
    rows[1:, 0] = 1e-12, 3e-12, 1e-30, 1e-7
    for (e, m), dtype in product(((2, 1), (3, 2)), (_DTYPES[0], _DTYPES[2])):
        yield {"input_float": _filled(rows, dtype), "ebits": e, "mbits": m}


@silent(_FPX, "torchao.quantization.quant_primitives.quantize_affine_floatx")
def nan() -> Calls:
    # The bits of a NaN that becomes a bfloat16 are those of the processor's instruction.
    """NaN is refused, for no code stands for it."""
    for (e, m), dtype in product(((2, 1), (3, 2)), _DTYPES[:2]):
        yield {"input_float": _filled(_f32(np.nan).reshape(1, 1), dtype), "ebits": e, "mbits": m}


@documented(_FPX, "AffineQuantizedTensor: from_hp_to_fpx, float1 to float7; the shape measured")
def refusals() -> Calls:
    """Rows and columns are multiples of 64, and a code has at most seven bits."""
    for shape in ((64,), (64, 32), (63, 64), (1, 64, 64), (0, 64, 64)):
        yield {"input_float": np.ones(shape, np.float32), "ebits": 3, "mbits": 2}
    yield {"input_float": np.ones((64, 64), np.float32), "ebits": 4, "mbits": 3}
    yield {"input_float": np.ones((64, 64), np.float32), "ebits": 0, "mbits": 3}


def _from_hp_to_fpx(input_float: Any, ebits: int, mbits: int) -> dict[str, Any]:
    import importlib

    from torchao.dtypes import AffineQuantizedTensor

    try:
        layouts = importlib.import_module("torchao.dtypes.floatx")
        layout = layouts.FloatxTensorCoreLayout(ebits, mbits)
    except (ImportError, AttributeError):
        layouts = importlib.import_module("torchao.prototype.dtypes.floatx")
        layout = layouts.FloatxTensorCoreLayout(ebits, mbits)
    codes, scale, *_ = AffineQuantizedTensor.from_hp_to_fpx(input_float, layout).tensor_impl.get_plain()
    return {"codes": codes, "scale": scale}


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release({}, v0_15={"torchao/from_hp_to_fpx": _from_hp_to_fpx}),
}
