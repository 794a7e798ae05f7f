"""ONNX: graphs of several nodes between DequantizeLinear and QuantizeLinear, node by node as their operators say.

Nodes whose result is exact or correctly rounded: one value is right whatever a runtime fuses or moves.
"""

from collections.abc import Callable, Iterable

import numpy as np

from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.systems.onnx.linear import (
    DequantizeLinear,
    QuantizeLinear,
    dequantize_linear,
    quantize_linear,
)

__all__ = ["qdq_one_input", "qdq_twice", "qdq_two_inputs"]

_SOURCE = "ONNX operators DequantizeLinear, QuantizeLinear, opset 21"


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
)
def qdq_one_input(
    x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, node: str
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
    return _codes(_NODES[node](_reals(x, x_scale, x_zero_point)), y_scale, y_zero_point)


@formula(
    "onnx/qdq-two-inputs",
    equation=r"y = \mathrm{QuantizeLinear}(\mathrm{node}(\mathrm{DequantizeLinear}(a), \mathrm{DequantizeLinear}(b)))",
    basis=AsComputed(dtype="float32"),
    source=f"{_SOURCE}; Add, Mul",
)
@np.errstate(all="ignore")
def qdq_two_inputs(
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
    x, w = _reals(a, a_scale, a_zero_point), _reals(b, b_scale, b_zero_point)
    return _codes(_PAIRS[node](x, w), y_scale, y_zero_point)


@formula(
    "onnx/qdq-twice",
    equation=r"y = \mathrm{DequantizeLinear}_2(\mathrm{QuantizeLinear}_2(\mathrm{DequantizeLinear}_1("
    r"\mathrm{QuantizeLinear}_1(x))))",
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
)
def qdq_twice(x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array) -> Array:
    """Reals that went through two grids.

    Args:
        x: float32, any shape.
        x_scale: of the first grid, float32, ().
        x_zero_point: of the first grid, int8 or uint8, ().
        y_scale: of the second grid.
        y_zero_point: of the second grid.
    """
    once = _reals(_codes(x, x_scale, x_zero_point), x_scale, x_zero_point)
    return _reals(_codes(once, y_scale, y_zero_point), y_scale, y_zero_point)
