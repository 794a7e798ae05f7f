"""The operators ``torch.ops.halfeven.*`` as operators: opcheck, compile, autocast, vmap, gradients of gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized import affine, aimet, kernels, operators
from halfeven.optimized.operators import registration

OPS = torch.ops.halfeven
# Finite: a code of an infinity has a gradient of NaN by the scale, which opcheck takes for a difference.
X = torch.tensor([[-9.0, -0.25, 0.25, 0.75], [1.25, 3.0, 7.5, 99.0]])
S = torch.tensor([0.5, 0.25])
Z = torch.tensor([1.0, 3.0])
GRID = (-8, 7)
BLOCKS = [2, 2]
FLAGS = (True, True, True)
FORMAT = (4, 3, False, False)  # bits of exponent and of mantissa; with infinities and -0.0

CALLS: dict[str, tuple[Any, ...]] = {
    "quantize": (X, S[:, None], Z[:, None], *GRID, None, None, False),
    "quantize-integer": (X, S[None], Z[None], *GRID, BLOCKS, torch.int8, True),
    "quantize_out": (X, S[0], None, *GRID, None, False, torch.empty(2, 4, dtype=torch.int8)),
    "dequantize": (X, S[:, None], Z[:, None], None, None, torch.float64, False),
    "dequantize-integer": (X.to(torch.int8), S[0], None, None, torch.bfloat16, None, False),
    "dequantize_out": (X, S[None], Z[None], BLOCKS, None, True, torch.empty(2, 4)),
    "quantize_dequantize": (X, S[None], Z[None], *GRID, BLOCKS, 0.5, True),
    "quantize_dequantize_out": (X, S[0], Z[0], *GRID, None, 0.0, True, torch.empty(2, 4)),
    "quantize_backward": (X, X, S[:, None], Z[:, None], *GRID, None, False, *FLAGS),
    "dequantize_backward": (X, X, S[None], Z[None], BLOCKS, None, True, False, True, False),
    "quantize_dequantize_backward": (X, X, S[0], None, *GRID, None, 0.0, False, True, True, False),
    "aminmax": (X, BLOCKS),
    "amax": (X, None),
    "range_scale": (-S, S, 15),
    "range_scale_backward": (Z, -S, S, 15),
    "range_offset": (-S, S / 8, *GRID),
    "range_offset_backward": (Z, -S, S / 8, *GRID),
    "float_cast": (X, S[:, None], *FORMAT, True),
    "float_cast-codes": (X, S[:, None], *FORMAT, False),
    "float_cast_backward": (X, X, S[:, None], *FORMAT, True, True, True),
    "float_cast_backward-x": (X, X, S[:, None], *FORMAT, False, True, False),
    "float_scale": (S, *FORMAT),
}
DIFFERENTIABLE = (
    "quantize",
    "dequantize",
    "quantize_dequantize",
    "range_scale",
    "range_offset",
    "float_cast",
    "float_scale",
)


def leaf(value: Any) -> Any:
    return value.clone().requires_grad_(value.is_floating_point()) if isinstance(value, Tensor) else value


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name: str) -> None:
    operator = getattr(OPS, name.partition("-")[0]).default
    torch.library.opcheck(operator, CALLS[name])
    if name.partition("-")[0] in DIFFERENTIABLE:
        torch.library.opcheck(operator, tuple(map(leaf, CALLS[name])))


def test_every_operator_is_tried() -> None:
    assert aimet.affine  # which registers its own
    assert sorted({name.partition("-")[0] for name in CALLS}) == sorted(registration.REGISTERED)


def same(a: Tensor, b: Tensor) -> bool:
    return (
        a.dtype == b.dtype
        and torch.equal(a.nan_to_num(77), b.nan_to_num(77))
        and torch.equal(*map(torch.signbit, (a, b)))
    )


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "quantize": lambda x, s: affine.quantize(x * 2, s, 3, qmin=-8, qmax=7),
    "fake": lambda x, s: affine.quantize_dequantize(x * 2, s, torch.tensor(3), qmin=-8, qmax=7),
    "codes": lambda x, s: affine.dequantize(affine.quantize(x, s, 3, qmin=-8, qmax=7, dtype=torch.int8), s, 3),
    "blocks": lambda x, s: affine.quantize_dequantize(x, s.expand(1, 2), 3, qmin=-8, qmax=7, block_size=(2, 2)),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_without_a_graph_break(name: str, dynamic: bool) -> None:
    torch.compiler.reset()
    function = FUNCTIONS[name]
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    results = []
    for f in (function, compiled):
        x, s = X.clone().requires_grad_(), S[0].clone().requires_grad_()
        y = f(x, s)
        y.sum().backward()
        results.append([y.detach(), *(t.grad for t in (x, s) if t.grad is not None)])
    assert len(results[0]) == len(results[1]) == (2 if name == "codes" else 3)
    assert all(same(a, b) for a, b in zip(*results, strict=True))


def test_autocast_leaves_the_arithmetic_alone() -> None:
    plain = affine.quantize_dequantize(X, S[0], 3, qmin=-8, qmax=7)
    with torch.autocast("cpu", torch.bfloat16):
        assert same(affine.quantize_dequantize(X, S[0], 3, qmin=-8, qmax=7), plain)
        product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert affine.quantize_dequantize(product, S[0], 3, qmin=-8, qmax=7).dtype == torch.bfloat16


@pytest.mark.parametrize("in_dims", [(0, None, None), (1, None, 0), (0, 0, None), (None, 0, 0), (0, 0, 0)])
@pytest.mark.parametrize("blocks", [None, (2,)])
def test_vmap_is_the_loop(in_dims: tuple[int | None, ...], blocks: tuple[int] | None) -> None:
    shape = (4,) if blocks is None else (2,)
    s, z = torch.tensor([0.5, 0.25, 0.125, 1.0])[: shape[0]], torch.tensor([1.0, 3.0, -2.0, 0.0])[: shape[0]]
    given = [X if in_dims[0] == 0 else X.T if in_dims[0] == 1 else X[0]]
    given += [t if d is None else torch.stack([t, t * 2]) for t, d in zip((s, z), in_dims[1:], strict=True)]

    def function(x: Tensor, s: Tensor, z: Tensor) -> Tensor:
        return affine.quantize_dequantize(x, s, z, qmin=-8, qmax=7, block_size=blocks)

    batched = torch.func.vmap(function, in_dims)(*given)
    each = [[t if d is None else t.select(d, i) for t, d in zip(given, in_dims, strict=True)] for i in range(2)]
    assert same(batched, torch.stack([function(*arguments) for arguments in each]))


def test_gradient_of_a_gradient() -> None:
    """ds = g (R - x/s), and so d(ds)/dx = -g/s and d(ds)/dg = R - x/s."""
    x, s, g = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.75, 0.5, 3.0))
    y = affine.quantize_dequantize(x, s, 0, qmin=-8, qmax=7)
    (ds,) = torch.autograd.grad(y, s, g, create_graph=True)
    assert ds.item() == 3 * (2 - 1.5)
    assert [t.item() for t in torch.autograd.grad(ds, (x, g))] == [-6.0, 0.5]


def test_transforms_of_gradients() -> None:
    def loss(x: Tensor, s: Tensor) -> Tensor:
        return affine.quantize_dequantize(x, s, 3, qmin=-8, qmax=7).square().sum()

    x, s = X.clone().requires_grad_(), S[0].clone().requires_grad_()
    plain = torch.autograd.grad(loss(x, s), (x, s))
    assert all(map(torch.equal, torch.func.grad(loss, (0, 1))(X, S[0]), plain))
    each = torch.func.vmap(torch.func.grad(loss, 1), (0, None))(X, S[0])
    assert torch.equal(each, torch.stack([torch.autograd.grad(loss(row, s), s)[0] for row in X]))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # torch's own, on entering
def test_forward_mode_is_refused() -> None:
    """Silence would be a tangent of zeros."""

    def function(x: Tensor) -> Tensor:
        return affine.quantize_dequantize(x, 0.5, 3, qmin=-8, qmax=7)

    with pytest.raises(NotImplementedError, match="x with a tangent is not accepted"):
        torch.func.jvp(function, (X,), (X,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(X, X)
        with pytest.raises(NotImplementedError, match="x with a tangent is not accepted"):
            function(dual)


def test_a_meta_tensor_among_others_is_refused() -> None:
    with pytest.raises(RuntimeError, match="tensors on cpu, meta are not accepted"):
        OPS.quantize_out.default(X, S[0].to("meta"), None, *GRID, None, False, torch.empty(2, 4))


def test_writing_is_seen_by_autograd() -> None:
    x = torch.tensor([1.3], requires_grad=True)
    b = x * x
    loss = (b * b).sum()
    with torch.no_grad():
        affine.quantize_dequantize(b, 0.1, 0, qmin=-8, qmax=7, out=b)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("name", ["quantize", "dequantize", "quantize_dequantize"])
def test_what_is_written_is_counted_and_what_is_refused_is_not(name: str) -> None:
    function = getattr(operators, name)
    grid = () if name == "dequantize" else GRID
    out = torch.zeros(2, 4)
    function(X, S[0], None, *grid, out=out)
    counted = out._version
    assert counted > 0
    leaves = [S[0].clone().requires_grad_(), torch.ones((), requires_grad=True), torch.zeros(2, 4, requires_grad=True)]
    for given, into in (((leaves[0], None), out), ((S[0], leaves[1]), out), ((S[0], None), leaves[2])):
        with pytest.raises(RuntimeError, match="out is not accepted where a gradient is wanted"):
            function(X, *given, *grid, out=into)
    with pytest.raises(RuntimeError, match="out is not accepted where a gradient is wanted"):
        function(X.clone().requires_grad_(), S[0], None, *grid, out=out)
    with pytest.raises(RuntimeError, match="negative bit"):
        function(X, S[0], None, *grid, out=torch.zeros(2, 4, dtype=torch.complex64).conj().imag)
    with pytest.raises((RuntimeError, ValueError), match="block_size"):
        function(X, S[0], None, *grid, block_size=(0, 1), out=out)
    assert out._version == counted


def test_nan_scales_of_any_payload_give_nan() -> None:
    scales = torch.tensor([0x7FFF8000, 0x7FFFFFFF, -1, 0x7FC00000], dtype=torch.int32).view(torch.float32)
    codes = torch.ones(64, dtype=torch.uint8)
    for isa in kernels.available() or ("torch",):
        if kernels.available():
            kernels.choose(isa)
        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
            for scale in scales:
                assert affine.dequantize(codes, scale, 0, dtype=dtype).isnan().all(), (isa, dtype)
                assert affine.quantize_dequantize(codes.to(dtype), scale, 0, qmin=-8, qmax=7).isnan().all()


def test_out_in_a_compiled_function_and_in_inference_mode() -> None:
    def function(x: Tensor, out: Tensor) -> Tensor:
        affine.quantize(x * 2, 0.5, 3, qmin=-8, qmax=7, out=out)
        return out + 1

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    mine, other = torch.empty(2, 4), torch.empty(2, 4)
    assert same(compiled(X, mine), function(X, other))
    assert same(mine, other)
    with torch.inference_mode():
        assert same(affine.quantize(X * 2, 0.5, 3, qmin=-8, qmax=7, out=torch.empty(2, 4)), other)
