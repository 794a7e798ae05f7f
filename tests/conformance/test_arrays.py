import ml_dtypes
import numpy as np
import pytest
import torch

from halfeven.conformance.arrays import from_backend, to_torch
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


@pytest.mark.parametrize("name", [*DTYPES, "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "int8", "bool"])
def test_an_array_goes_to_torch_and_comes_back_over_the_same_memory(name: str) -> None:
    a = np.arange(48).reshape(4, 12).astype(DTYPES.get(name) or getattr(ml_dtypes, name, name))
    for view in (a, a.T, a[:, ::3], a[1:, 2:], a[:1, :1], a[:0]):
        tensor = to_torch(view)
        assert tuple(s * a.itemsize for s in tensor.stride()) == view.strides or not view.size
        back = from_backend(tensor)
        assert (back.dtype, back.shape, back.tobytes()) == (view.dtype, view.shape, view.tobytes())
        assert np.shares_memory(back, a) or not view.size


def test_what_torch_shows_otherwise_than_it_stores_is_resolved() -> None:
    assert from_backend(torch.complex(torch.ones(2), torch.ones(2)).conj().imag).tolist() == [-1, -1]
    assert from_backend(torch.ones(2, requires_grad=True) * 2).tolist() == [2, 2]


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
