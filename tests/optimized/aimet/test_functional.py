"""``optimized.aimet.affine``'s functions: the document's examples, overloads, refusals, and one arithmetic."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet import affine

F32 = np.float32
INPUT = torch.arange(start=-0.3, end=1.3, step=0.05)
SCALE, OFFSET = torch.tensor(1 / 15), torch.tensor(0.0)
BIG = torch.tensor([-1e9, 1e9])
ONE, ZERO = torch.tensor(1.0), torch.tensor(0.0)
# What the document prints.
CODES = "0 0 0 0 0 0 -0 1 2 2 3 4 4 5 6 7 7 8 9 10 10 11 12 13 13 14 15 15 15 15 15 15"
REALS = (
    "0 0 0 0 0 0 0 .0667 .1333 .1333 .2 .2667 .2667 .3333 .4 .4667 .4667 .5333 .6 .6667 .6667 .7333 .8 "
    ".8667 .8667 .9333 1 1 1 1 1 1"
)
FUNCTIONS = (affine.quantize, affine.quantize_dequantize)


def bits(t: Tensor) -> list[int]:
    """The bits of floats; any NaN is one."""
    carrier = {2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    found: list[int] = torch.where(t.isnan(), -1, t.detach().contiguous().view(carrier)).flatten().tolist()
    return found


@pytest.mark.parametrize("grid", [{"bitwidth": 4}, {"num_steps": 15}, {"qmin": 0, "qmax": 15}])
def test_the_documents_examples(grid: dict[str, int]) -> None:
    codes = affine.quantize(INPUT, SCALE, OFFSET, **grid)
    assert " ".join(f"{c:g}" for c in codes.tolist()) == CODES
    reals = affine.quantize_dequantize(INPUT, SCALE, OFFSET, **grid)
    assert " ".join(f"{round(r, 4):g}".replace("0.", ".") for r in reals.tolist()) == REALS


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((4,), {}, (0, 15)),
        ((4, True), {}, (-8, 7)),
        ((4, False), {}, (0, 15)),
        ((4,), {"signed": True}, (-8, 7)),
        ((), {"bitwidth": 4, "signed": True}, (-8, 7)),
        ((np.int64(4),), {}, (0, 15)),
        ((0,), {}, (0, 0)),
        ((1, True), {}, (-1, 0)),
        ((), {"num_steps": 15}, (0, 15)),
        ((), {"num_steps": 16, "signed": True}, (-8, 8)),
        ((), {"num_steps": 15, "signed": False}, (0, 15)),
        ((-3, 5), {}, (-3, 5)),
        ((-3,), {"qmax": 5}, (-3, 5)),
        ((0, 1), {}, (0, 1)),
        ((), {"qmin": -3, "qmax": 5}, (-3, 5)),
        ((), {"qmin": -3, "qmax": 5, "signed": False}, (-3, 5)),
        ((), {"qmin": np.int64(-3), "qmax": np.int64(5)}, (-3, 5)),
        ((-3, 5, None), {}, (-3, 5)),
        ((4, True, ()), {}, (-8, 7)),
    ],
)
def test_overloads(
    function: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert tuple(function(BIG, ONE, ZERO, *args, **kwargs).tolist()) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("args", "kwargs", "error", "words"),
    [
        ((), {}, TypeError, "no grid"),
        ((), {"signed": True}, TypeError, "bitwidth"),
        ((4.5,), {}, TypeError, "bitwidth=4.5"),
        ((4.0, True), {}, TypeError, "bitwidth=4.0"),
        ((), {"num_steps": 15.0}, TypeError, "num_steps=15.0"),
        ((4,), {"num_steps": 15}, TypeError, "num_steps=15"),
        ((4,), {"bitwidth": 4}, TypeError, "bitwidth"),
        ((0, 15), {"num_steps": 15}, TypeError, "num_steps=15"),
        ((), {"qmin": 0}, TypeError, "qmin=0"),
        ((), {"qmax": 15}, TypeError, "qmax=15"),
        ((4,), {"signd": True}, TypeError, "signd"),
        ((4, True, None, 0.0, 1), {}, TypeError, "5 arguments"),
        ((-1,), {}, RuntimeError, "bitwidth=-1"),
        ((), {"num_steps": -1}, RuntimeError, "num_steps=-1"),
        ((5, 4), {}, RuntimeError, "qmin=5"),
        ((0, 2**60 - 1), {}, RuntimeError, "qmax=1152921504606846975"),
    ],
)
def test_refused_grids(
    function: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        function(BIG, ONE, ZERO, *args, **kwargs)


@pytest.mark.parametrize(
    ("dtype", "widest"), [(torch.bfloat16, 8), (torch.float16, 11), (torch.float32, 24), (torch.float64, 53)]
)
def test_codes_need_a_dtype_that_holds_them(dtype: torch.dtype, widest: int) -> None:
    x, scale = torch.tensor([1.0], dtype=dtype), torch.tensor(2.0**-60)
    assert affine.quantize(x, scale, ZERO, widest).item() == 2**widest - 1
    with pytest.raises(RuntimeError, match=f"qmax={2 ** (widest + 1) - 1} "):
        affine.quantize(x, scale, ZERO, widest + 1)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_tensors_of_other_dtypes(dtype: torch.dtype) -> None:
    x = torch.ones(3).to(dtype)
    for function in FUNCTIONS:
        with pytest.raises(ValueError, match=str(dtype)):
            function(x, ONE, ZERO, 8)
    with pytest.raises(TypeError, match=str(dtype)):
        affine.dequantize(x, ONE, ZERO)


@pytest.mark.parametrize("name", ["tensor", "scale", "offset"])
def test_numbers_are_no_tensors(name: str) -> None:
    given: dict[str, Any] = {"tensor": INPUT, "scale": SCALE, "offset": OFFSET, name: 0.5}
    for function, grid in ((affine.quantize, {"bitwidth": 4}), (affine.dequantize, {})):
        with pytest.raises(TypeError, match=f"{name}=0.5"):
            function(**given, **grid)


def test_shift_moves_the_grid() -> None:
    x = torch.tensor([0.0, -0.25, 0.25, 9.0, -9.0])
    reals = affine.quantize_dequantize(x, torch.tensor(0.5), ZERO, 2, True, None, 0.5)
    assert reals.tolist() == [0.25, -0.25, 0.25, 0.75, -0.75]
    for given in ({"zero_point_shift": None}, {"zero_point_shift": 0.0}, {}):
        assert affine.quantize_dequantize(x, torch.tensor(0.5), ZERO, 2, True, **given).tolist() == [
            0,
            -0.0,
            0,
            0.5,
            -1,
        ]
    with pytest.raises(RuntimeError, match=r"zero_point_shift=0\.5"):
        affine.quantize(x, ONE, ZERO, 2, True, zero_point_shift=0.5)


EDGES = [-0.0, -0.03, -1e-45, float("nan"), float("inf"), 3e38, -float("inf"), 0.05, 0.15, 0.25]


def modes(function: Callable[..., Tensor], x: Tensor, scale: Tensor, offset: Tensor, *grid: int) -> list[Tensor]:
    """The result however it is computed: frozen, trainable by one argument or all, compiled."""
    found = [function(x, scale, offset, *grid)]
    for wanted in ((True, False, False), (False, True, False), (True, True, True)):
        leaves = [t.clone().requires_grad_(w) for t, w in zip((x, scale, offset), wanted, strict=True)]
        found.append(function(*leaves, *grid).detach())
        with torch.no_grad():
            found.append(function(*leaves, *grid))
    torch.compiler.reset()
    compiled = torch.compile(lambda *t: function(*t, *grid), fullgraph=True, backend="aot_eager")
    return [*found, compiled(x, scale, offset)]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("scale", "qmin", "qmax"), [(0.1, 0, 15), (0.1, -8, 7), (2.0**-130, -8, 7), (0.3, 0, 255)])
def test_one_arithmetic(scale: float, qmin: int, qmax: int, per_channel: bool) -> None:
    s = F32(scale)
    ties = F32((np.arange(qmin - 2, qmax + 3) + F32(0.5)) * s)
    x = np.concatenate([F32(EDGES), ties, np.nextafter(ties, F32(9)), np.nextafter(ties, F32(-9))])
    with np.errstate(all="ignore"):
        codes = np.rint(x / s)
    codes = np.where(codes < qmin, F32(qmin), np.where(codes > qmax, F32(qmax), codes))
    tensor, shape = torch.from_numpy(x), (1,) if per_channel else ()
    given = (tensor, torch.full(shape, scale), torch.zeros(shape), qmin, qmax)
    for found in modes(affine.quantize, *given):
        assert bits(found) == bits(torch.from_numpy(codes))
    for found in modes(affine.quantize_dequantize, *given):
        assert bits(found) == bits(torch.from_numpy((codes + F32(0)) * s))


def test_where_the_division_decides() -> None:
    """In float32 0.1 / (1 / 15) is 1.5, and 0.1 times the rounded reciprocal is below that."""
    x = torch.tensor(0.1)
    assert x / SCALE == 1.5
    assert x * (1 / SCALE) < 1.5
    assert bits(affine.quantize_dequantize(x, SCALE, ZERO, 4)) == bits(2 * SCALE)


def test_dequantize_computes_in_the_tensors_dtype() -> None:
    assert affine.dequantize(torch.tensor([1.0, 2.0]), torch.tensor(0.5), torch.tensor(3.0)).tolist() == [2.0, 2.5]
    narrow = affine.dequantize(torch.tensor([3.0], dtype=torch.bfloat16), ONE, torch.tensor(-257.0))
    assert narrow.dtype == torch.bfloat16
    assert narrow.item() == -253  # bfloat16 holds -256 and not -257


@pytest.mark.parametrize(
    ("shape", "scales", "block_size"),
    [
        ((4, 6), (2, 3), (2, 2)),
        ((4, 6), (2, 3), (-1, 2)),
        ((4, 6), (1, 3), (4, -1)),
        ((2, 4, 6), (3,), (2,)),
        ((3, 4, 2), (3, 1, 2), (1, 4, 1)),
        ((0, 4), (2,), (2,)),
        ((0, 4), (0, 2), (-1, 2)),
    ],
)
def test_blocks(shape: tuple[int, ...], scales: tuple[int, ...], block_size: tuple[int, ...]) -> None:
    n = int(np.prod(shape))
    x = ((torch.arange(n) * 7 % 41 - 20) / 4).reshape(shape)
    scale = (0.25 + torch.arange(int(np.prod(scales))) / 8).reshape(scales)
    offset = torch.arange(int(np.prod(scales))).remainder(3).float().reshape(scales)
    s, o = scale, offset
    for axis in range(-len(scales), 0):
        each = shape[axis] // max(scales[axis], 1)
        s, o = s.repeat_interleave(each, axis), o.repeat_interleave(each, axis)
    codes = torch.clamp(torch.round(x / s) - o, -8, 7)
    given = (x, scale, offset)
    assert bits(affine.quantize(*given, 4, True, block_size)) == bits(codes)
    assert bits(affine.quantize_dequantize(*given, -8, 7, block_size)) == bits((codes + o) * s)
    assert bits(affine.dequantize(codes, scale, offset, block_size)) == bits((codes + o) * s)


@pytest.mark.parametrize(
    ("scales", "block_size", "error", "words"),
    [
        ((3,), None, RuntimeError, r"\(3,\)|3"),
        ((1, 1), None, RuntimeError, r"\(1, 1\)"),
        ((2,), (3,), RuntimeError, r"block_size=\(3,\)"),
        ((2,), (1,), RuntimeError, r"block_size=\(1,\)"),
        ((2,), (0,), RuntimeError, r"block_size=\(0,\)"),
        ((2,), (1, 2), RuntimeError, r"block_size=\(1, 2\)"),
        ((3,), (-1,), RuntimeError, r"block_size=\(-1,\)"),
        ((1,), (1,), RuntimeError, r"block_size=\(1,\)"),
        ((1, 1), (1, 4), IndexError, r"\(1, 1\)"),
    ],
)
def test_shapes_that_do_not_fit(
    scales: tuple[int, ...], block_size: tuple[int, ...] | None, error: type, words: str
) -> None:
    given = (torch.ones(4), torch.ones(scales), torch.zeros(scales))
    for function in FUNCTIONS:
        with pytest.raises(error, match=words):
            function(*given, 4, block_size=block_size)
    with pytest.raises(error, match=words):
        affine.dequantize(*given, block_size=block_size)


def test_parameters_of_integers_and_of_one_number_per_blocks() -> None:
    x = torch.tensor([[1.0, 5.0], [9.0, -3.0]])
    found = affine.quantize(x, torch.tensor([[2], [3]]), torch.tensor(-1), 4, True)
    assert found.tolist() == [[1.0, 3.0], [4.0, 0.0]]
    found = affine.quantize(x, torch.tensor([[2.0], [3.0]]), torch.tensor(-1.0), 4, True, (1, 2))
    assert found.tolist() == [[1.0, 3.0], [4.0, 0.0]]


def test_a_subclass_is_read_as_a_plain_tensor() -> None:
    class Named(Tensor):
        pass

    x, s, o = (t.clone().requires_grad_().as_subclass(Named) for t in (INPUT, SCALE, OFFSET))
    for found in (affine.quantize(x, s, o, 4), affine.quantize_dequantize(x, s, o, 4), affine.dequantize(x, s, o)):
        assert type(found) is Tensor
        assert found.requires_grad


def test_gradients_reach_all_three() -> None:
    x = torch.tensor([0.3, 9.0, -9.0], requires_grad=True)
    s, o = torch.tensor(0.5, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    upstream = torch.tensor([1.0, 2.0, 4.0])
    found = torch.autograd.grad(affine.quantize_dequantize(x, s, o, -2, 1, None, 0.5), (x, s, o), upstream)
    # u = (0.1, 17.5, -18.5), rounded (0, 18, -18): inside, above and below; the ends in x are 1 + 1 and -2 + 1.
    inside = float(-(F32(0.3) / F32(0.5) - F32(0.5)))
    assert found[0].tolist() == [1, 0, 0]
    assert found[1].item() == float(F32(inside + 2 * (2 + 0.5) + 4 * (-1 + 0.5)))
    assert found[2].item() == 2 * 0.5 + 4 * 0.5


def test_no_graph_breaks() -> None:
    def function(x: Tensor, scale: Tensor, offset: Tensor) -> tuple[Tensor, ...]:
        codes = affine.quantize(x, scale, offset, num_steps=15)
        return (
            codes,
            affine.dequantize(codes, scale, offset),
            affine.quantize_dequantize(x, scale, offset, 4, True, (1, -1)),
        )

    given = (torch.randn(4, 8), torch.rand(4, 1) + 0.1, torch.zeros(4, 1))
    for dynamic in (False, True):
        compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
        for x in (given[0], torch.randn(4, 12)):
            for found, expected in zip(compiled(x, *given[1:]), function(x, *given[1:]), strict=True):
                assert bits(found) == bits(expected)


def test_backends_change_nothing() -> None:
    for name in ("torch_builtins", "triton"):
        with affine.set_backend(name):
            backend = affine.get_backend()
            assert backend.quantize(BIG, ONE, ZERO, -8, 7).tolist() == [-8, 7]
            assert backend.quantize_dequantize(BIG, ONE, ZERO, -8, 7, None, 0.5).tolist() == [-7.5, 7.5]
            assert backend.dequantize(torch.tensor([2.0]), ONE, ONE, None).tolist() == [3.0]
    with pytest.raises(RuntimeError, match="name='cuda'"):
        affine.set_backend("cuda")
