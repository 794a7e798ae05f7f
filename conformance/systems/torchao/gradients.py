"""torchao: the gradients of fake quantize: inside, on and beyond the ends; infinities and NaN."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.quote import Spelling, Spelt
from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured
from halfeven.conformance.systems.torchao.by_release import by_release, primitive
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

DTYPES = tuple(np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16))
GRADIENTS = "torchao/fake_quantize_affine_gradients"


def _near_the_ends(scale: float, zero: float, qmin: int, qmax: int, dtype: "np.dtype[Any]") -> Array:
    """Inputs whose codes tie around the ends of the grid and around zero, and their neighbours."""
    codes = np.array([qmin - 1, qmin, -1, 0, 1, qmax, qmax + 1], np.float64) - zero
    ties = ((codes[:, None] + [-0.5, 0.25, 0.5]) * scale).astype(dtype).ravel()
    x: Array = np.unique(step(ties[:, None], np.arange(-1, 2)).ravel().astype(np.float64)).astype(dtype)
    kept: Array = x[(np.abs(x) > 2.0**-12) | (x == 0)]
    return kept


def _calls(scales: tuple[float, ...], grads: tuple[float, ...]) -> Iterator[Arguments]:
    for dtype in DTYPES:
        for i, scale in enumerate(scales):
            for zero, (qmin, qmax) in ((0.0, (-8, 7)), (3.0, (0, 15)), (-1.0, (-128, 127)), (None, (-8, 7))):
                s = np.asarray(scale, dtype)
                x = _near_the_ends(float(s), zero or 0.0, qmin, qmax, dtype)
                yield {
                    "input": x,
                    "block_size": x.shape,
                    "scale": s,
                    "zero_point": None if zero is None else np.asarray(zero, dtype),
                    "grad": np.full(x.shape, grads[i % len(grads)], dtype),
                    "quant_dtype": "int8" if qmin < 0 else "uint8",
                    "quant_min": qmin,
                    "quant_max": qmax,
                }


@documented(
    GRADIENTS,
    "quant_primitives.fake_quantize_affine, for quantization-aware training: rounding passes the gradient on",
    aspect="exact",
)
def powers_of_two() -> Calls:
    """The gradient of the input passes where the code lies on the grid, ends included; that of the scale is the code
    less zero point and quotient, beyond the grid the end's code less zero point; that of the zero point is 0 on the
    grid, beyond it minus the scale."""
    # Scales by which nothing is rounded.
    yield from _calls((1.0, 0.5, 2.0**-4), (1.0, 4.0))


@documented(
    GRADIENTS, "quant_primitives.fake_quantize_affine, for quantization-aware training: rounding passes the gradient on"
)
def roundings() -> Calls:
    """The gradient of the input is that of the result to the bit, and the quotient in that of the scale is the one that
    was rounded."""
    # Scales and gradients whose products are rounded.
    yield from _calls((0.1, 3.0, 0.37, -0.1), (1.0, 0.3, -0.7))


@documented(GRADIENTS, "AffineQuantizedTensor, field block_size")
def blocks() -> Calls:
    """Each element adds to the gradients of its own block."""
    # Blocks of a matrix, each with a scale of its own.
    x = np.arange(-12, 12, dtype=np.float32).reshape(4, 6) * 2
    for block, count in (((4, 6), 1), ((1, 6), 4), ((4, 1), 6), ((2, 3), 4)):
        yield {
            "input": x,
            "block_size": block,
            "scale": 2.0 ** np.arange(count, dtype=np.float32),
            "zero_point": np.arange(count, dtype=np.float32) - 1,
            "grad": np.ones_like(x),
            "quant_dtype": "int8",
            "quant_min": -8,
            "quant_max": 7,
        }


@expected(GRADIENTS, "no document says what infinities and NaN give")
def specials() -> Calls:
    """An infinite input lies beyond the grid: no gradient passes, and that of the scale is finite."""
    # Infinities and NaN, which no code on the grid stands for.
    for dtype in DTYPES:
        x = np.array([np.inf, -np.inf, np.nan], dtype)
        one = np.asarray(1, dtype)
        given = {"input": x, "block_size": (3,), "scale": one, "grad": np.ones_like(x), "quant_dtype": "int8"}
        yield {**given, "zero_point": one}


@documented(GRADIENTS, "quant_primitives.fake_quantize_affine: quant_dtype")
def whole_dtype() -> Calls:
    """Without quant_min and quant_max the grid is that of quant_dtype."""
    # The grid of the dtype.
    for name, ends in (("int8", (-128, 127)), ("uint8", (0, 255)), ("uint4", (0, 15))):
        x = np.array([e + d for e in ends for d in (-1, -0.5, 0, 0.5, 1)], np.float32)
        one = np.asarray(1, np.float32)
        given = {
            "input": x,
            "block_size": x.shape,
            "scale": one,
            "zero_point": np.zeros(1, np.float32),
            "grad": np.ones_like(x),
        }
        yield {**given, "quant_dtype": name}


@measured(GRADIENTS, "quant_primitives.fake_quantize_affine: the arguments (the error types: measured)")
def refusals() -> Calls:
    """What fake quantize refuses has no gradient."""
    # A grid beyond its dtype, a dtype without codes, inputs of float64.
    x = np.arange(4, dtype=np.float32)
    one = np.ones(1, np.float32)
    given = {"input": x, "block_size": (4,), "scale": one, "zero_point": one, "grad": x, "quant_dtype": "int8"}
    yield from (
        {**given, "quant_max": 128},
        {**given, "quant_dtype": "int64"},
        {**given, "input": x.astype(np.float64), "grad": x.astype(np.float64)},
    )


def _gradients(name: str, /, block_size: tuple[int, ...], scale: Any, zero_point: Any, grad: Any, **given: Any) -> Any:
    import torch

    x = given.pop("input")
    leaves = [x]
    for parameter in (scale, zero_point):
        if parameter is not None:
            full = parameter.reshape([n // b for n, b in zip(x.shape, block_size, strict=True)])
            for dim, size in enumerate(block_size):
                full = full.repeat_interleave(size, dim)
            leaves.append(full)
    x, s, *z = (p.clone().requires_grad_() for p in leaves)
    own = {"block_size": (1,) * x.dim(), "scale": s, "zero_point": z[0] if z else None}
    out = primitive(name, zero_point_domain="INT" if z else "NONE")(input=x, **own, **given)
    found = torch.autograd.grad(out, [x, s, *z], grad)
    return found if z else (*found, None)


def _spelt(name: str, passed: Mapping[str, str]) -> Spelt:
    """The same for a script: each element with a scale and a zero point of its own, which lose none of a sum."""
    point = passed["zero_point"] != "None"
    parameters = ["scale", "zero_point"] if point else ["scale"]
    leaves = ", ".join(["input", *parameters])
    steps = [
        f"block_size = {passed['block_size']}",
        "blocks = [n // b for n, b in zip(input.shape, block_size)]",
        *(f"{p} = {p}.reshape(blocks)" for p in parameters),
        "for dim, size in enumerate(block_size):",
        *(f"    {p} = {p}.repeat_interleave(size, dim)" for p in parameters),
        f"leaves = [p.clone().requires_grad_() for p in ({leaves})]",
        f"{leaves} = leaves",
    ]
    given = {key: text for key, text in passed.items() if key != "grad"} | {"block_size": "(1,) * input.dim()"}
    forward = primitive(name, zero_point_domain="INT" if point else "NONE").spelt(given)
    backward = f"torch.autograd.grad(out, leaves, {passed['grad']})"
    called = backward if point else f"(*{backward}, None)"
    steps += [*forward.steps.splitlines(), f"out = {forward.called}"]
    return replace(forward, called=called, steps="\n".join(steps))


def _answer(name: str) -> Spelling:
    return Spelling(partial(_gradients, name), partial(_spelt, name))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {GRADIENTS: _answer("_fake_quantize_affine")}, v0_11={GRADIENTS: _answer("fake_quantize_affine")}
    ),
}
