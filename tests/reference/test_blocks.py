"""Blocks: the parameter of element j is the one at floor(j / B), looked up here element by element."""

from itertools import product

import numpy as np
import pytest

from halfeven.reference import blocks

CASES = [
    ((), ()),
    ((5,), (5,)),
    ((5,), (2,)),
    ((7, 3), (3, 2)),
    ((4, 6), (1, 6)),
    ((4, 6), (4, 1)),
    ((4, 6), (2, 3)),
    ((4, 6), (9, 9)),
    ((2, 3, 5), (1, 2, 4)),
    ((0, 3), (1, 2)),
    ((3, 0), (2, 1)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize(("shape", "block_size"), CASES)
def test_every_element_sees_its_block_s_parameter(shape: tuple[int, ...], block_size: tuple[int, ...]) -> None:
    expected = blocks.parameter_shape(shape, block_size)
    assert expected == tuple(-(-n // b) for n, b in zip(shape, block_size, strict=True))
    parameter = np.arange(np.prod(expected, dtype=int), dtype=np.float32).reshape(expected)
    seen = np.broadcast_to(blocks.per_element(parameter, shape, block_size), shape)
    assert seen.shape == shape
    for j in product(*map(range, shape)):
        assert seen[j] == parameter[tuple(a // b for a, b in zip(j, block_size, strict=True))]


def test_granularities() -> None:
    shape = (2, 3, 4)
    assert blocks.per_tensor(shape) == shape
    assert blocks.per_channel(shape, 1) == blocks.per_channel(shape, -2) == (2, 1, 4)
    assert blocks.per_channel(shape, -3) == (1, 3, 4)
    assert blocks.per_token(shape) == (1, 1, 4)
    assert blocks.per_group(shape, 3) == (1, 1, 3)
    assert blocks.per_group(shape, 2, axis=0) == (2, 1, 1)
    assert blocks.per_tensor(()) == ()
    assert blocks.per_tensor((0, 3)) == (1, 3)
    assert blocks.per_channel((0, 3), 1) == (1, 1)


def test_a_single_parameter_serves_a_single_block() -> None:
    one = np.asarray(2.0)
    assert blocks.per_element(one, (2, 3), (2, 3)) == one
    assert blocks.per_element(one, (), ()) == one
    assert blocks.per_element(one, (0, 3), (1, 3)) == one


def test_without_blocks_a_parameter_broadcasts() -> None:
    p = np.ones((3, 1))
    assert blocks.per_element(p, (2, 3, 4), None) is p


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: blocks.parameter_shape((2, 3), (2,)), r"block_size=\(2,\) is not accepted for shape \(2, 3\): give 2"),
        (lambda: blocks.parameter_shape((2,), (0,)), r"block_size=\(0,\).*1 or more"),
        (lambda: blocks.parameter_shape((2,), (-1,)), r"block_size=\(-1,\).*1 or more"),
        (lambda: blocks.per_channel((2, 3), 2), r"axis=2 is not accepted: give one in \[-2, 2\)"),
        (lambda: blocks.per_channel((2, 3), -3), r"axis=-3 is not accepted"),
        (lambda: blocks.per_token(()), r"axis=-1 is not accepted"),
        (lambda: blocks.per_group((4,), 0), r"block_size=\(0,\) is not accepted"),
        (lambda: blocks.per_element(np.ones(2), (4,), (4,)), r"shape \(2,\) are not accepted.*needs \(1,\)"),
        (lambda: blocks.per_element(np.ones((4, 1)), (4,), (1,)), r"shape \(4, 1\) are not accepted"),
        (lambda: blocks.per_element(np.asarray(1.0), (4,), (2,)), r"single parameter is not accepted.*needs \(2,\)"),
        (lambda: blocks.per_element(np.ones(3), (4,), None), r"shape \(3,\) are not accepted.*broadcast to \(4,\)"),
        (lambda: blocks.per_element(np.ones((2, 1)), (4,), None), r"shape \(2, 1\) are not accepted"),
    ],
)
def test_refusals(call: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
