import numpy as np
import pytest
import torch

from halfeven.conformance.arrays import arrange, from_backend, layouts, to_torch
from halfeven.conformance.bits import ordered, step, unordered
from halfeven.conformance.configuration import DTYPES, code_dtype
from halfeven.reference import Grid

EVERY_16_BITS = np.arange(2**16, dtype=np.uint16)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_order_of_every_16_bit_float(name: str) -> None:
    every = EVERY_16_BITS.view(DTYPES[name])
    with np.errstate(invalid="ignore"):
        numbers = every[~np.isnan(every)]
    index = ordered(numbers)
    assert np.array_equal(np.argsort(numbers.astype(np.float64), kind="stable"), np.argsort(index, kind="stable"))
    back = unordered(index, DTYPES[name])
    assert np.array_equal(back[numbers != 0].view(np.uint16), numbers[numbers != 0].view(np.uint16))


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_a_step_is_the_next_float(name: str) -> None:
    dtype = DTYPES[name]
    x = np.array([0.0, -0.0, 1.0, -1.0, 0.1, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)
    with np.errstate(all="ignore"):
        up, down = (np.nextafter(x, np.asarray(end, dtype)) for end in (np.inf, -np.inf))
    assert np.array_equal(step(x, np.asarray(1)), up)
    assert np.array_equal(step(x, np.asarray(-1)), down)


def test_steps_end_at_the_infinities() -> None:
    top = np.array([np.inf, -np.inf], np.float32)
    assert np.array_equal(step(top, np.array([3, -3])), top)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_layout_keeps_the_values_and_reaches_torch(shape: tuple[int, ...], name: str) -> None:
    a = np.arange(np.prod(shape)).reshape(shape).astype(DTYPES[name])
    for layout in layouts(shape):
        arranged = arrange(a, layout)
        tensor = to_torch(arranged)
        assert tuple(s * a.itemsize for s in tensor.stride()) == arranged.strides
        assert np.array_equal(from_backend(tensor), arranged)
        if layout == "expanded":
            assert 0 in arranged.strides
        else:
            assert np.array_equal(arranged, a)
            assert layout == "offset" or not arranged.flags.c_contiguous or 1 in shape
        assert not np.shares_memory(arranged, a)


def test_channels_last_is_what_torch_calls_so() -> None:
    tensor = to_torch(arrange(np.zeros((2, 3, 4, 5), np.float32), "channels-last"))
    assert tensor.is_contiguous(memory_format=torch.channels_last)


def test_code_dtypes() -> None:
    assert code_dtype(Grid(-128, 127)) == np.int8
    assert code_dtype(Grid(0, 15)) == np.uint8
    assert code_dtype(Grid(-129, 0)) == np.int16
    assert code_dtype(Grid(0, 65535)) == np.uint16
    with pytest.raises(ValueError, match="no 32-bit type"):
        code_dtype(Grid(-1, 2**32))


def test_a_list_is_no_result() -> None:
    with pytest.raises(TypeError, match="list"):
        from_backend([1, 2])
