"""``optimized.affine`` on values derived by hand: specials, layouts, blocks, ``out``, and what a torch user expects."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from halfeven.optimized import affine
from halfeven.optimized.arguments.memory import check_out

ONE = torch.tensor(1.0)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def bits(t: Tensor) -> list[str]:
    """Values as text in which -0.0 differs from 0.0."""
    return [repr(v) for v in t.flatten().tolist()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_go_to_the_even_integer_before_the_zero_point_is_added(dtype: torch.dtype) -> None:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5], dtype=dtype)
    assert bits(affine.quantize(x, ONE, 0, qmin=-8, qmax=7)) == ["0.0", "2.0", "2.0", "-0.0", "-2.0"]
    # An odd zero point tells the order: 0.5 + 1 = 1.5 would round to 2.
    assert bits(affine.quantize(x, ONE, 1, qmin=-8, qmax=7)) == ["1.0", "3.0", "3.0", "1.0", "-1.0"]
    assert bits(affine.quantize_dequantize(x, ONE, 1, qmin=-8, qmax=7)) == ["0.0", "2.0", "2.0", "0.0", "-2.0"]


@pytest.mark.parametrize("size", [1, 7, 8, 33, 100])
def test_minus_zero_keeps_its_sign_under_an_integer_zero_point(size: int) -> None:
    x = torch.full((2, size), -0.03)
    q = affine.quantize(x, ONE, 0, qmin=0, qmax=15)
    assert bits(q) == ["-0.0"] * (2 * size)
    # A float zero point of +0.0 is an offset of -0.0.
    assert bits(affine.quantize(x, ONE, torch.tensor(0.0), qmin=0, qmax=15)) == ["0.0"] * (2 * size)
    assert bits(affine.quantize(x, ONE, torch.tensor(-0.0), qmin=0, qmax=15)) == ["-0.0"] * (2 * size)
    assert bits(affine.quantize_dequantize(x, ONE, 0, qmin=0, qmax=15)) == ["0.0"] * (2 * size)


def test_specials() -> None:
    x = torch.tensor([math.nan, math.inf, -math.inf, 3e38, -1e-45])
    s = torch.tensor(0.1)
    assert bits(affine.quantize(x, s, 2, qmin=0, qmax=15)) == ["nan", "15.0", "0.0", "15.0", "2.0"]
    thirteen, minus_two = (float(torch.tensor(float(k)) * s) for k in (13, -2))
    expected = ["nan", repr(thirteen), repr(minus_two), repr(thirteen), "0.0"]
    assert bits(affine.quantize_dequantize(x, s, 2, qmin=0, qmax=15)) == expected


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32])
def test_integer_codes_send_nan_to_the_zero_point_limited_to_the_grid(dtype: torch.dtype) -> None:
    x = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 1.5])
    q = affine.quantize(x, ONE, 3, qmin=0, qmax=15, dtype=dtype)
    assert q.dtype == dtype
    assert q.tolist() == [3, 15, 0, 3, 5]
    assert affine.quantize(x, ONE, 99, qmin=0, qmax=15, dtype=dtype).tolist() == [15, 15, 0, 15, 15]
    assert affine.quantize(x, ONE, torch.tensor(math.nan), qmin=0, qmax=15, dtype=dtype).tolist() == [0] * 5


@pytest.mark.parametrize("x", DTYPES)
def test_int32_reaches_its_ends(x: torch.dtype) -> None:
    given = torch.tensor([math.inf, -math.inf, 1.0, math.nan], dtype=x)
    q = affine.quantize(given, ONE, 0, qmin=-(2**31), qmax=2**31 - 1, dtype=torch.int32)
    assert q.tolist() == [2**31 - 1, -(2**31), 1, 0]


def test_division_is_a_true_one() -> None:
    # 0.3 in float32 is above 0.3: the quotient is 7.4999997, and its neighbours are 7.4999995 and 7.5. The product
    # with the reciprocal is 7.5, which would give code 8.
    x, s = torch.tensor([2.25]), torch.tensor(0.3)
    assert (x * (1 / s)).item() == 7.5
    assert affine.quantize(x, s, 0, qmin=0, qmax=15).tolist() == [7]
    assert affine.quantize(x, s.expand(1), 0, qmin=0, qmax=15).tolist() == [7]


def test_a_narrow_dtype_is_widened_until_it_holds_the_grid() -> None:
    # bfloat16 holds 5 bits with a quarter step to spare. There the scale is 0.30078125 and the quotient 8.5, a tie;
    # 8 bits run in float32, where the quotient is 8.541666.
    x = torch.tensor([2.5625], dtype=torch.bfloat16)
    assert affine.quantize(x, 0.3, 0, qmin=0, qmax=31).tolist() == [8]
    assert affine.quantize(x, 0.3, 0, qmin=0, qmax=255).tolist() == [9]


def test_numbers_of_python_and_numpy_are_float32_scales() -> None:
    x = torch.tensor([0.25, 0.35], dtype=torch.float64)
    a, b, c = (
        affine.quantize_dequantize(x, scale, zero_point, qmin=-128, qmax=127)
        for scale, zero_point in ((0.1, 1), (torch.tensor(0.1), torch.tensor(1)), (np.float32(0.1), np.int16(1)))
    )
    assert bits(a) == bits(b) == bits(c)
    assert bits(a) != bits(affine.quantize_dequantize(x, torch.tensor(0.1).double() + 1e-12, 1, qmin=-128, qmax=127))
    assert affine.quantize(x, 1, 0, qmin=0, qmax=1).tolist() == [0, 0]


def test_dequantize_takes_its_dtype_from_the_codes_or_else_from_the_scale() -> None:
    q = torch.tensor([-128, 0, 127], dtype=torch.int8)
    r = affine.dequantize(q, torch.tensor(0.5), -1)
    assert r.dtype == torch.float32
    assert r.tolist() == [-63.5, 0.5, 64.0]
    assert affine.dequantize(q, torch.tensor(0.5, dtype=torch.float16), 0).dtype == torch.float16
    assert affine.dequantize(q, 0.5, 0).dtype == torch.float32
    assert affine.dequantize(q.to(torch.bfloat16), torch.tensor(0.5), 0).dtype == torch.bfloat16
    assert affine.dequantize(q, 0.5, 0, dtype=torch.float64).dtype == torch.float64
    # An unsigned zero point does not wrap, and int32 codes are rounded to the result's dtype first.
    assert affine.dequantize(q, 0.5, torch.tensor(3, dtype=torch.uint8)).tolist() == [-65.5, -1.5, 62.0]
    assert affine.dequantize(torch.tensor([2**24 + 1], dtype=torch.int32), 1.0, 0).tolist() == [2.0**24]
    # 3 - 257 in bfloat16, where 257 is 256.
    assert affine.dequantize(torch.tensor([3.0], dtype=torch.bfloat16), 1.0, 257).tolist() == [-253.0]


def test_blocks_index_the_parameters_by_floor_of_position_over_size() -> None:
    x = torch.ones(5, 6)
    s = torch.arange(1.0, 7.0).reshape(3, 2)
    z = torch.arange(6).reshape(3, 2)
    got = affine.quantize(x, 1 / s, z, qmin=0, qmax=100, block_size=(2, 3))
    for i in range(5):
        for j in range(6):
            assert got[i, j] == s[i // 2, j // 3] + z[i // 2, j // 3], (i, j)
    again = affine.quantize(x, 1 / s, 0, qmin=0, qmax=100, block_size=[2, 3])
    assert again[4].tolist() == [5, 5, 5, 6, 6, 6]


def test_short_last_blocks_in_every_dimension() -> None:
    x = torch.arange(5 * 7 * 4, dtype=torch.float32).reshape(5, 7, 4)
    s = torch.rand(3, 3, 2) + 0.5
    whole = torch.stack([s[i // 2, j // 3, k // 3] for i in range(5) for j in range(7) for k in range(4)])
    got = affine.quantize(x, s, 0, qmin=0, qmax=200, block_size=(2, 3, 3))
    assert torch.equal(got, affine.quantize(x, whole.reshape(5, 7, 4), 0, qmin=0, qmax=200))
    # Blocks larger than the tensor are one block each.
    assert torch.equal(
        affine.quantize(x, s[:1, :1, :1], 0, qmin=0, qmax=200, block_size=(100, 7, 4)),
        affine.quantize(x, s[0, 0, 0], 0, qmin=0, qmax=200),
    )


def layouts(x: Tensor) -> dict[str, Tensor]:
    """``x``, of rank 4, laid out in several ways."""
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
    wide[..., ::2] = x
    return {
        "contiguous": x,
        "transposed": x.transpose(0, 3).contiguous().transpose(0, 3),
        "strided": wide[..., ::2],
        "channels-last": x.to(memory_format=torch.channels_last),
        "offset": torch.cat([x.new_zeros(3), x.flatten()])[3:].view(x.shape),
    }


@pytest.mark.parametrize("block", [None, (1, 2, 3, 5), (2, 2, 2, 2)])
@pytest.mark.parametrize("dtype", [None, torch.int8])
def test_layout_of_input_and_out_changes_nothing(block: tuple[int, ...] | None, dtype: torch.dtype | None) -> None:
    x = torch.arange(2 * 4 * 3 * 5, dtype=torch.float32).reshape(2, 4, 3, 5) - 60
    shape = (4, 1, 1) if block is None else tuple(-(-n // b) for n, b in zip(x.shape, block, strict=True))
    s = torch.rand(shape) + 0.5
    z = torch.randint(-3, 4, shape)
    expected = affine.quantize(x, s, z, qmin=-128, qmax=127, block_size=block, dtype=dtype)
    fake = affine.quantize_dequantize(x, s, z, qmin=-128, qmax=127, block_size=block)
    reals = affine.dequantize(expected, s, z, block_size=block)
    assert len(set(expected.flatten().tolist())) > 50
    for name, given in layouts(x).items():
        got = affine.quantize(given, s, z, qmin=-128, qmax=127, block_size=block, dtype=dtype)
        assert torch.equal(got, expected), name
        assert got.stride() == torch.empty_like(given).stride(), name
        assert torch.equal(given, x), name
        for out in layouts(torch.full_like(expected, 99)).values():
            base = out._base
            assert affine.quantize(given, s, z, qmin=-128, qmax=127, block_size=block, dtype=dtype, out=out) is out
            assert torch.equal(out, expected), name
            assert out._base is base
        for out in layouts(torch.full_like(x, 99)).values():
            affine.quantize_dequantize(given, s, z, qmin=-128, qmax=127, block_size=block, out=out)
            assert torch.equal(out, fake), name
    for given in layouts(expected).values():
        for out in layouts(torch.full_like(x, 99)).values():
            affine.dequantize(given, s, z, block_size=block, out=out)
            assert torch.equal(out, reals)


def test_what_lies_between_the_elements_of_out_is_left_alone() -> None:
    wide = torch.full((4, 10), 99.0)
    affine.quantize(torch.ones(4, 5), ONE, 0, qmin=0, qmax=1, out=wide[:, ::2])
    assert torch.equal(wide[:, 1::2], torch.full((4, 5), 99.0))


@pytest.mark.parametrize("block", [None, (1, 3), (1, 2)])
def test_expanded_input(block: tuple[int, ...] | None) -> None:
    x = torch.tensor([[0.5], [1.5]]).expand(2, 6)
    parameter = torch.ones(()) if block is None else torch.ones(2, 6 // block[1])
    got = affine.quantize(x, parameter, 1, qmin=0, qmax=15, block_size=block)
    assert got.tolist() == [[1.0] * 6, [3.0] * 6]
    expanded = torch.ones(1, 1).expand(2, 6)
    assert affine.quantize(x, expanded, torch.tensor([1]).expand(6), qmin=0, qmax=15).tolist() == got.tolist()


def test_empty_and_0d() -> None:
    assert affine.quantize(torch.empty(0, 3), torch.ones(0, 1), 0, qmin=0, qmax=1).shape == (0, 3)
    assert affine.quantize(torch.empty(0, 3), torch.ones(0, 2), 0, qmin=0, qmax=1, block_size=(4, 2)).shape == (0, 3)
    assert affine.quantize(torch.tensor(1.5), ONE, 1, qmin=0, qmax=9, dtype=torch.int8).item() == 3
    assert affine.quantize(torch.tensor(1.5), ONE, 1, qmin=0, qmax=9, block_size=()).item() == 3
    assert affine.dequantize(torch.tensor(3), ONE, 1).item() == 2.0
    assert affine.quantize_dequantize(torch.tensor(1.5), ONE, 1, qmin=0, qmax=9).item() == 2.0


def test_in_place() -> None:
    x = torch.tensor([[0.5, 1.5, 2.5, 9.0]])
    y = x.clone()
    assert affine.quantize(y, ONE, 1, qmin=0, qmax=7, out=y) is y
    assert y.tolist() == [[1.0, 3.0, 3.0, 7.0]]
    affine.dequantize(y, 0.5, 1, out=y)
    assert y.tolist() == [[0.0, 1.0, 1.0, 3.0]]
    halves = x.to(torch.bfloat16)
    affine.quantize_dequantize(halves, torch.ones(1, 2), 1, qmin=0, qmax=255, block_size=(1, 2), out=halves)
    assert halves.tolist() == [[0.0, 2.0, 2.0, 9.0]]


def test_the_dtype_follows_out_where_only_out_is_given() -> None:
    x = torch.linspace(-3, 300, 4096)
    for reals in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        given = x.to(reals)
        for dtype in (reals, torch.uint8, torch.int16, torch.uint16, torch.int32):
            expected = affine.quantize(given, 1.1, 7, qmin=0, qmax=255, dtype=dtype)
            out = torch.full_like(expected, 99)
            assert affine.quantize(given, 1.1, 7, qmin=0, qmax=255, out=out) is out
            assert out.dtype == dtype
            assert torch.equal(out, expected)
    q = torch.arange(-128, 128, dtype=torch.int8)
    for codes in (q, q.to(torch.float32)):
        found = {}
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            expected = affine.dequantize(codes, 0.1, 3, dtype=dtype)
            out = torch.full_like(expected, 99)
            assert affine.dequantize(codes, 0.1, 3, out=out) is out
            assert torch.equal(out, expected)
            found[dtype] = out.tolist()
        assert found[torch.float32] != found[torch.float64] != found[torch.float16] != found[torch.bfloat16]


def test_out_may_be_the_input_said_otherwise() -> None:
    x = torch.arange(4.0).as_strided((1, 4), (7, 1))  # the stride of one row leads nowhere
    out = x.flatten().view(1, 4)
    check_out(out, torch.float32, {"x": x})
    assert affine.quantize(x, 1.0, 1, qmin=-8, qmax=3, out=out).tolist() == [[1, 2, 3, 3]]


def test_interleaved_columns_do_not_overlap() -> None:
    both = torch.tensor([[0.5, 99.0], [1.5, 99.0]])
    affine.quantize(both[:, 0], ONE, 0, qmin=0, qmax=9, out=both[:, 1])
    assert both.tolist() == [[0.5, 0.0], [1.5, 2.0]]


def test_gradients_flow_through_float_codes_alone() -> None:
    x = torch.tensor([0.25, 1.75, 8.0], requires_grad=True)
    s = torch.tensor(0.5, requires_grad=True)
    affine.quantize_dequantize(x, s, 1, qmin=0, qmax=9).sum().backward()
    assert x.grad is not None
    assert s.grad is not None
    # 8 / 0.5 + 1 is above 9: no gradient to x; the scale's is R - x/s inside and 9 - 1 beyond.
    assert x.grad.tolist() == [1.0, 1.0, 0.0]
    assert s.grad.item() == (0 - 0.5) + (4 - 3.5) + 8
    assert not affine.quantize(x, s, 0, qmin=0, qmax=9, dtype=torch.int8).requires_grad


def test_out_records_no_gradient_and_refuses_to_where_one_is_wanted() -> None:
    parameter = torch.nn.Parameter(torch.full((3,), 1.5))
    with pytest.raises(RuntimeError, match=r"out is not accepted .* torch\.no_grad"):
        affine.quantize(parameter, ONE, 0, qmin=0, qmax=9, out=torch.empty(3))
    with torch.no_grad():
        affine.quantize(parameter, ONE, 0, qmin=0, qmax=9, out=parameter)
    assert parameter.requires_grad
    assert parameter.tolist() == [2.0] * 3
