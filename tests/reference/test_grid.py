"""Grids: what each document derives, and every refusal with its name, value and what is accepted."""

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import Grid


@pytest.mark.parametrize("bits", range(1, 33))
def test_bitwidth(bits: int) -> None:
    unsigned, signed = Grid.from_bitwidth(bits, signed=False), Grid.from_bitwidth(bits, signed=True)
    assert (unsigned.qmin, unsigned.qmax) == (0, 2**bits - 1)
    assert (signed.qmin, signed.qmax) == (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    narrow = Grid.from_bitwidth(bits, signed=True, narrow=True)
    assert (narrow.qmin, narrow.qmax) == (1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1)
    assert unsigned.bits == signed.bits == bits
    assert unsigned.num_steps == signed.num_steps == 2**bits - 1
    assert (str(unsigned), str(signed)) == (f"uint{bits}", f"int{bits}")


@pytest.mark.parametrize(
    ("steps", "ends"), [(1, (-1, 0)), (2, (-1, 1)), (14, (-7, 7)), (15, (-8, 7)), (254, (-127, 127))]
)
def test_num_steps(steps: int, ends: tuple[int, int]) -> None:
    assert Grid.from_num_steps(steps, signed=True) == Grid(*ends)
    assert Grid.from_num_steps(steps, signed=False) == Grid(0, steps)


@pytest.mark.parametrize(
    ("dtype", "ends"),
    [
        (np.int8, (-128, 127)),
        ("uint16", (0, 65535)),
        (ml_dtypes.int4, (-8, 7)),
        (ml_dtypes.uint4, (0, 15)),
        (ml_dtypes.int2, (-2, 1)),
        (ml_dtypes.uint2, (0, 3)),
        (np.uint32, (0, 2**32 - 1)),
    ],
)
def test_dtype(dtype: object, ends: tuple[int, int]) -> None:
    assert Grid.from_dtype(dtype) == Grid(*ends)


def test_membership_and_names_of_odd_grids() -> None:
    grid = Grid(-127, 127)
    assert str(grid) == "[-127,127]"
    assert -127 in grid
    assert -128 not in grid
    assert 1.0 not in grid
    assert (Grid(2, 9).bits, Grid(-5, -3).bits, Grid(0, 0).bits, Grid(-1, 200).bits) == (4, 4, 1, 9)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: Grid(5, 4), ValueError, r"qmin=5 is above qmax=4.*qmin <= qmax"),
        (lambda: Grid(0.0, 4), TypeError, r"qmin=0\.0 is not accepted: give an int"),
        (lambda: Grid(0, True), TypeError, r"qmax=True is not accepted: give an int"),
        (lambda: Grid(0, np.int64(4)), TypeError, r"qmax=np\.int64\(4\) is not accepted: give an int"),
        (lambda: Grid.from_bitwidth(0, signed=True), ValueError, r"bitwidth=0 is not accepted: give 1 to 32"),
        (lambda: Grid.from_bitwidth(33, signed=True), ValueError, r"bitwidth=33 is not accepted: give 1 to 32"),
        (lambda: Grid.from_bitwidth(8.0, signed=True), TypeError, r"bitwidth=8\.0 is not accepted: give an int"),
        (lambda: Grid.from_bitwidth(8, signed=False, narrow=True), ValueError, r"narrow=True.*signed=False"),
        (lambda: Grid.from_num_steps(0, signed=True), ValueError, r"num_steps=0 is not accepted: give 1 or more"),
        (lambda: Grid.from_num_steps("3", signed=True), TypeError, r"num_steps='3' is not accepted: give an int"),
        (lambda: Grid.from_dtype(np.float32), TypeError, r"dtype=float32 is not accepted: give an integer dtype"),
        (lambda: Grid.from_dtype(ml_dtypes.bfloat16), TypeError, r"dtype=bfloat16 is not accepted"),
        (lambda: Grid.from_dtype(bool), TypeError, r"dtype=bool is not accepted: give an integer dtype"),
    ],
)
def test_refusals(make: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()
