"""ONNX: graphs of several nodes between DequantizeLinear and QuantizeLinear, node by node as their operators say.

Nodes whose result is exact or correctly rounded: one value is right whatever a runtime fuses or moves.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.rounding import fused_multiply_add, half_away
from halfeven.reference.systems.onnx.linear import (
    DequantizeLinear,
    QuantizeLinear,
    dequantize_linear,
    quantize_linear,
)

__all__ = ["OneInput", "Twice", "TwoInputs", "qdq_one_input", "qdq_twice", "qdq_two_inputs"]

_SOURCE = "ONNX operators DequantizeLinear, QuantizeLinear, opset 21"
_F32 = np.float32
_PLAIN = "ONNX Runtime 1.32.0 without graph optimization, measured on the CPU"
_OPTIMIZED = "ONNX Runtime 1.32.0 with its default optimizations, measured on x86-64 with FMA"


@dataclass(frozen=True)
class OneInput(Behaviour):
    """The choices in a node between reals of codes and codes."""

    same_grid: str = choice({
        "computed": "computes with reals where both sides have one grid",
        "codes": "moves codes as they are where both sides have one grid, so that no infinity saturates",
    })  # fmt: skip
    maximum: str = choice({
        "exact": "takes minus infinity for the maximum of minus infinities",
        "finite": "takes the lowest finite number for the maximum of minus infinities",
    })  # fmt: skip


@dataclass(frozen=True)
class TwoInputs(Behaviour):
    """The choices in a node between reals of codes of two tensors and codes."""

    arithmetic: str = choice({
        "nodes": "computes node by node, each result a float32",
        "ratios": "multiplies codes by float32 ratios of scales, and adds the zero point before it rounds",
    })  # fmt: skip


@dataclass(frozen=True)
class Twice(Behaviour):
    """The choices in two grids, one after the other."""

    pairs: str = choice({
        "both": "rounds to both grids",
        "merged": "rounds once, to a grid of the reals that both have, as fine as its number of codes lets it be",
    })  # fmt: skip


def _reals(q: Array, scale: Array, zero_point: Array) -> Array:
    return dequantize_linear(DequantizeLinear(), q, scale, zero_point, opset=21)


def _codes(x: Array, scale: Array, zero_point: Array) -> Array:
    return quantize_linear(QuantizeLinear(), x, scale, zero_point, opset=21)


_NODES: dict[str, Callable[[Array], Array]] = {
    "Identity": lambda x: x,
    "Relu": lambda x: np.maximum(x, np.float32(0)),
    "Clip": lambda x: np.clip(x, np.float32(0), np.float32(6)),
    "Reshape": lambda x: x.reshape(-1),
    "Transpose": lambda x: np.swapaxes(x, -1, -2),
    "MaxPool": lambda x: np.maximum(x[..., :-1], x[..., 1:]),
}
_PAIRS: dict[str, Callable[[Array, Array], Array]] = {"Add": np.add, "Mul": np.multiply}


def _known(node: str, nodes: Iterable[str]) -> None:
    if node not in nodes:
        msg = f"node={node!r} is not accepted: give one of {', '.join(nodes)}"
        raise ValueError(msg)


@formula(
    "onnx/qdq-one-input",
    equation=r"y = \mathrm{QuantizeLinear}(\mathrm{node}(\mathrm{DequantizeLinear}(x)))",
    basis=AsComputed(dtype="float32"),
    source=f"{_SOURCE}; Identity, Relu, Clip, Reshape, Transpose, MaxPool",
    behaviour=OneInput(),
    versions={
        "onnxruntime-1.32": (OneInput(maximum="finite"), _PLAIN),
        "optimized-1.32": (OneInput(same_grid="codes", maximum="finite"), _OPTIMIZED),
    },
)
def qdq_one_input(
    b: OneInput, x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, node: str
) -> Array:
    """Codes after a node on the reals of codes.

    Args:
        x: int8 or uint8, (n, c, d).
        x_scale: of ``x``, float32, ().
        x_zero_point: of ``x``, in its dtype, ().
        y_scale: of the result, float32, ().
        y_zero_point: of the result, in the dtype of ``x``, ().
        node: Identity, Relu, Clip (to 0 and 6), Reshape (to one dimension), Transpose (of the last two), or MaxPool (of
            two neighbours in the last).

    Raises:
        ValueError: another node.
    """
    _known(node, _NODES)
    same = x_scale == y_scale and x_zero_point == y_zero_point
    moves = node not in ("Relu", "Clip") or (node == "Relu" and x_zero_point == Grid.from_dtype(x.dtype).qmin)
    if b.same_grid == "codes" and same and moves:  # of codes from their zero point on, Relu changes none
        return x.copy() if node == "Relu" else _NODES[node](x)
    y = _NODES[node](_reals(x, x_scale, x_zero_point))
    if b.maximum == "finite" and node == "MaxPool":
        y = np.maximum(y, np.finfo(_F32).min)
    return _codes(y, y_scale, y_zero_point)


@formula(
    "onnx/qdq-two-inputs",
    equation=r"y = \mathrm{QuantizeLinear}(\mathrm{node}(\mathrm{DequantizeLinear}(a), \mathrm{DequantizeLinear}(b)))",
    basis=AsComputed(dtype="float32"),
    source=f"{_SOURCE}; Add, Mul",
    behaviour=TwoInputs(),
    versions={"optimized-1.32": (TwoInputs(arithmetic="ratios"), _OPTIMIZED)},
)
@np.errstate(all="ignore")
def qdq_two_inputs(
    behaviour: TwoInputs,
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    node: str,
) -> Array:
    """Codes after a node on the reals of codes, element by element.

    Args:
        a: int8 or uint8, any shape.
        a_scale: of ``a``, float32, ().
        a_zero_point: of ``a``, in its dtype, ().
        b: as ``a``, in its shape.
        b_scale: of ``b``.
        b_zero_point: of ``b``.
        y_scale: of the result.
        y_zero_point: of the result.
        node: Add or Mul.

    Raises:
        ValueError: another node.
    """
    _known(node, _PAIRS)
    if behaviour.arithmetic == "ratios":
        ends = Grid.from_dtype(a.dtype)
        given = (a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)
        found = _sum(*given) if node == "Add" else _product(*given)
        return np.clip(np.rint(found), ends.qmin, ends.qmax).astype(a.dtype)
    x, w = _reals(a, a_scale, a_zero_point), _reals(b, b_scale, b_zero_point)
    return _codes(_PAIRS[node](x, w), y_scale, y_zero_point)


def _sum(a: Array, s_a: Array, z_a: Array, b: Array, s_b: Array, z_b: Array, s_y: Array, z_y: Array) -> Array:
    """The code of a sum before it is rounded, in fused multiply-adds: what the zero points come to, b, a."""
    r_a, r_b = np.broadcast_to(s_a / s_y, a.shape), np.broadcast_to(s_b / s_y, b.shape)
    zeros = fused_multiply_add(r_a, np.full(a.shape, z_a, _F32), r_b * z_b.astype(_F32))
    rest = fused_multiply_add(b.astype(_F32), r_b, z_y.astype(_F32) - zeros)
    return fused_multiply_add(a.astype(_F32), r_a, rest)


def _product(a: Array, s_a: Array, z_a: Array, b: Array, s_b: Array, z_b: Array, s_y: Array, z_y: Array) -> Array:
    """The code of a product before it is rounded."""
    codes = (a.astype(_F32) - z_a.astype(_F32)) * (b.astype(_F32) - z_b.astype(_F32))
    return np.asarray(codes * (s_a * s_b / s_y) + z_y.astype(_F32))


@formula(
    "onnx/qdq-twice",
    equation=r"y = \mathrm{DequantizeLinear}_2(\mathrm{QuantizeLinear}_2(\mathrm{DequantizeLinear}_1("
    r"\mathrm{QuantizeLinear}_1(x))))",
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
    behaviour=Twice(),
    versions={"optimized-1.32": (Twice(pairs="merged"), _OPTIMIZED)},
)
def qdq_twice(b: Twice, x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array) -> Array:
    """Reals that went through two grids.

    Args:
        x: float32, any shape.
        x_scale: of the first grid, float32, ().
        x_zero_point: of the first grid, int8 or uint8, ().
        y_scale: of the second grid.
        y_zero_point: of the second grid.
    """
    if b.pairs == "merged":
        s, z = _merged(x_scale, x_zero_point, y_scale, y_zero_point)
        return _reals(_codes(x, s, z), s, z)
    once = _reals(_codes(x, x_scale, x_zero_point), x_scale, x_zero_point)
    return _reals(_codes(once, y_scale, y_zero_point), y_scale, y_zero_point)


@np.errstate(all="ignore")
def _merged(s_1: Array, z_1: Array, s_2: Array, z_2: Array) -> tuple[Array, Array]:
    """Scale and zero point of the grid from the higher of two lowest reals to the lower of two highest, in float32."""
    ends = Grid.from_dtype(z_1.dtype)
    qmin, qmax = _F32(ends.qmin), _F32(ends.qmax)
    low = np.maximum((qmin - z_1.astype(_F32)) * s_1, (qmin - z_2.astype(_F32)) * s_2)
    high = np.minimum((qmax - z_1.astype(_F32)) * s_1, (qmax - z_2.astype(_F32)) * s_2)
    scale = np.asarray((high - low) / (qmax - qmin))
    return scale, half_away(np.asarray(qmin - low / scale)).clip(qmin, qmax).astype(z_1.dtype)
