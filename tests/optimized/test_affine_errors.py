"""Bad arguments of ``optimized.affine``: the exception a torch user expects, and what its message names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.optimized import affine

X = torch.ones(4, 6)
S = torch.ones(())
GRID = {"qmin": 0, "qmax": 15}


def quantize(**given: Any) -> Any:
    return affine.quantize(**{"x": X, "scale": S, "zero_point": 0, **GRID, **given})


def fake(**given: Any) -> Any:
    return affine.quantize_dequantize(**{"x": X, "scale": S, "zero_point": 0, **GRID, **given})


def dequantize(**given: Any) -> Any:
    return affine.dequantize(**{"q": X, "scale": S, "zero_point": 0, **given})


SHARED: list[tuple[type[Exception], dict[str, Any], list[str]]] = [
    (TypeError, {"scale": "1"}, ["scale='1'", "Tensor"]),
    (TypeError, {"scale": None}, ["scale=None"]),
    (TypeError, {"scale": True}, ["scale=True"]),
    (TypeError, {"scale": np.True_}, ["scale=np.True_", "bool"]),
    (TypeError, {"zero_point": np.float32(1)}, ["zero_point=np.float32(1.0)", "int"]),
    (TypeError, {"scale": torch.ones((), dtype=torch.int32)}, ["scale", "int32", "float32"]),
    (ValueError, {"scale": 2**2000}, [f"scale={2**2000}", "float32"]),
    (ValueError, {"scale": 1e300}, ["scale=1e+300", "float32"]),
    (ValueError, {"block_size": (2**70, 6), "scale": torch.ones(1, 1)}, [f"block_size=({2**70}, 6)", "int64"]),
    (TypeError, {"zero_point": 1.5}, ["zero_point=1.5", "int"]),
    (TypeError, {"zero_point": False}, ["zero_point=False", "int"]),
    (ValueError, {"zero_point": 2**63}, [f"zero_point={2**63}", "int64"]),
    (TypeError, {"zero_point": torch.tensor(True)}, ["zero_point", "bool", "int8"]),
    (TypeError, {"zero_point": torch.tensor(1j)}, ["zero_point", "complex64"]),
    (RuntimeError, {"scale": torch.ones(4)}, ["scale", "(4,)", "(4, 6)"]),
    (RuntimeError, {"scale": torch.ones(1, 4, 6)}, ["scale", "(1, 4, 6)", "(4, 6)"]),
    (RuntimeError, {"zero_point": torch.zeros(5, 1)}, ["zero_point", "(5, 1)", "(4, 6)"]),
    (TypeError, {"block_size": 2}, ["block_size=2", "sequence"]),
    (TypeError, {"block_size": (2, 1.5)}, ["block_size=(2, 1.5)", "ints"]),
    (TypeError, {"block_size": (4, True)}, ["block_size=(4, True)", "ints"]),
    (TypeError, {"block_size": (4, torch.tensor(6)), "zero_point": S}, ["block_size=(4, tensor(6))", "ints"]),
    (TypeError, {"block_size": {4, 6}, "zero_point": S}, ["block_size={", "sequence"]),
    (ValueError, {"block_size": (2,), "scale": torch.ones(2)}, ["block_size=(2,)", "(4, 6)", "2 entries"]),
    (ValueError, {"block_size": (0, 6), "scale": torch.ones(1, 1)}, ["block_size=(0, 6)", "1 or more"]),
    (ValueError, {"block_size": (-1, 6), "scale": torch.ones(1, 1)}, ["block_size=(-1, 6)"]),
    (RuntimeError, {"block_size": (2, 3)}, ["scale", "()", "(2, 3)", "(2, 2)"]),
    (RuntimeError, {"block_size": (2, 3), "scale": torch.ones(2, 1)}, ["scale", "(2, 1)", "(2, 2)"]),
    (RuntimeError, {"block_size": (2, 3), "scale": torch.ones(2, 2), "zero_point": S}, ["zero_point", "()", "(2, 2)"]),
    (TypeError, {"out": 3}, ["out=3"]),
    (TypeError, {"out": torch.ones(4, 6, dtype=torch.int64)}, ["out", "int64", "float32"]),
    (RuntimeError, {"out": torch.ones(6, 4)}, ["out", "(6, 4)", "(4, 6)"]),
    (RuntimeError, {"out": torch.ones(0)}, ["out", "(0,)", "(4, 6)"]),
    (RuntimeError, {"out": torch.ones(4, 1).expand(4, 6)}, ["out", "share memory"]),
    (RuntimeError, {"out": torch.ones(9).as_strided((4, 6), (1, 1))}, ["out", "share memory"]),
]


@pytest.mark.parametrize(("error", "given", "words"), SHARED)
@pytest.mark.parametrize("function", [quantize, dequantize, fake])
def test_shared_arguments(
    function: Callable[..., Any], error: type[Exception], given: dict[str, Any], words: list[str]
) -> None:
    function()  # the arguments not under test are accepted
    with pytest.raises(error) as raised:
        function(**given)
    assert type(raised.value) is error
    assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.parametrize("function", [quantize, fake])
@pytest.mark.parametrize(
    ("error", "given", "words"),
    [
        (TypeError, {"x": torch.ones(4, 6, dtype=torch.int64)}, ["x", "int64", "float32"]),
        (TypeError, {"x": torch.ones(4, 6, dtype=torch.bool)}, ["x", "bool"]),
        (TypeError, {"x": torch.ones(4, 6).to(torch.float8_e4m3fn)}, ["x", "float8_e4m3fn"]),
        (TypeError, {"x": torch.ones(4, 6).to_sparse()}, ["x", "sparse"]),
        (TypeError, {"x": [1.0]}, ["x=[1.0]", "list"]),
        (TypeError, {"qmin": 0.0}, ["qmin=0.0", "int"]),
        (TypeError, {"qmax": True}, ["qmax=True", "int"]),
        (TypeError, {"qmax": torch.tensor(3)}, ["qmax=tensor(3)", "int"]),
        (ValueError, {"qmin": 5, "qmax": 4}, ["qmin=5", "qmax=4"]),
        (TypeError, {"qmin": torch.tensor(0), "qmax": 15}, ["qmin=tensor(0)", "int"]),
        (ValueError, {"qmin": 0, "qmax": 2**60}, [f"qmax={2**60}", "the grid"]),
        (ValueError, {"qmin": 0, "qmax": 2**2000}, [f"qmax={2**2000}"]),
    ],
)
def test_input_and_grid(
    function: Callable[..., Any], error: type[Exception], given: dict[str, Any], words: list[str]
) -> None:
    for more in ({}, {"out": torch.empty(4, 6)}, {"zero_point": S, "out": torch.empty(4, 6)}):
        for gradients in (True, False):
            with pytest.raises(error) as raised, torch.set_grad_enabled(gradients):
                function(**given, **more)
            assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.parametrize(
    ("dtype", "qmin", "qmax"),
    [(torch.int8, 0, 255), (torch.uint8, -1, 5), (torch.int16, 0, 2**15), (torch.uint16, 0, 2**16)],
)
def test_an_integer_dtype_holds_the_grid(dtype: torch.dtype, qmin: int, qmax: int) -> None:
    with pytest.raises(ValueError, match=rf"qmin={qmin}, qmax={qmax} .*dtype {str(dtype)[6:]} do not hold"):
        quantize(dtype=dtype, qmin=qmin, qmax=qmax)
    quantize(dtype=torch.int32, qmin=qmin, qmax=qmax)


@pytest.mark.parametrize(
    ("x", "unsigned", "signed"),
    [(torch.bfloat16, 8, 9), (torch.float16, 11, 12), (torch.float32, 24, 25), (torch.float64, 53, 54)],
)
def test_float_codes_represent_the_grid(x: torch.dtype, unsigned: int, signed: int) -> None:
    given = torch.ones(3, dtype=x)
    affine.quantize(given, S, 0, qmin=0, qmax=2**unsigned - 1)
    affine.quantize(given, S, 0, qmin=-(2 ** (signed - 1)), qmax=2 ** (signed - 1) - 1)
    for qmin, qmax in ((0, 2 ** (unsigned + 1) - 1), (-(2**signed), 2**signed - 1)):
        with pytest.raises(ValueError, match=f"qmin={qmin}, qmax={qmax} .*dtype {str(x)[6:]} do not hold"):
            affine.quantize(given, S, 0, qmin=qmin, qmax=qmax)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.bool])
def test_dtype_of_codes(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=rf"dtype={dtype}.*int8"):
        quantize(dtype=dtype)


def test_dequantize_dtypes() -> None:
    with pytest.raises(TypeError, match=r"dtype=torch.int8.*float32"):
        dequantize(dtype=torch.int8)
    with pytest.raises(TypeError, match=r"q of dtype torch\.bool"):
        dequantize(q=torch.ones(4, 6, dtype=torch.bool))


@pytest.mark.parametrize("function", [quantize, dequantize])
@pytest.mark.parametrize("dtype", [0, 3, True, "int8", int])
def test_only_a_dtype_is_one(function: Callable[..., Any], dtype: Any) -> None:
    """Torch takes the number of a dtype for it, and an operator any number."""
    leaf = torch.ones((), requires_grad=True)
    for more in ({}, {"scale": leaf}, {"zero_point": S, "out": torch.empty(4, 6)}):
        with pytest.raises(TypeError, match=r"dtype=.* is not accepted: give None or"):
            function(dtype=dtype, **more)


@pytest.mark.parametrize("gradients", [True, False])
def test_out_alone_is_of_a_dtype_that_the_function_returns(gradients: bool) -> None:
    is_not = "is not accepted: give one of float32"
    with torch.set_grad_enabled(gradients):
        for dtype in (torch.float64, torch.float16, torch.int64, torch.bool):
            with pytest.raises(TypeError, match=rf"out of dtype {dtype} {is_not}, int8, .*int32"):
                quantize(out=torch.empty(4, 6, dtype=dtype))
        for dtype in (torch.int8, torch.int64):
            with pytest.raises(TypeError, match=rf"out of dtype {dtype} {is_not}, float64, "):
                dequantize(out=torch.empty(4, 6, dtype=dtype))
        for dtype in (torch.int8, torch.float64):
            with pytest.raises(TypeError, match=rf"out of dtype {dtype} is not accepted: the result is of dtype .*32"):
                fake(out=torch.empty(4, 6, dtype=dtype))
        with pytest.raises(TypeError, match=r"out of dtype .*int8 is not accepted: the result is of dtype .*uint8"):
            quantize(dtype=torch.uint8, out=torch.empty(4, 6, dtype=torch.int8))
        with pytest.raises(TypeError, match=r"out of dtype .*64 is not accepted: the result is of dtype .*float16"):
            dequantize(dtype=torch.float16, out=torch.empty(4, 6, dtype=torch.float64))
        with pytest.raises(ValueError, match=r"qmin=-1, qmax=5 .*dtype uint8 do not hold the grid, only 0 to 255"):
            quantize(qmin=-1, qmax=5, out=torch.empty(4, 6, dtype=torch.uint8))


@pytest.mark.parametrize("function", ["quantize", "dequantize", "quantize_dequantize"])
def test_out_overlaps_no_argument_but_the_input_itself(function: str) -> None:
    call = getattr(affine, function)
    grid = {} if function == "dequantize" else GRID
    memory = torch.ones(10)
    with pytest.raises(RuntimeError, match=r"out .* overlaps [xq], and is not"):
        call(memory[:9], S, 0, out=memory[1:], **grid)
    with pytest.raises(RuntimeError, match=r"overlaps [xq]"):
        call(memory[:9].view(3, 3), S, 0, out=memory[:9].view(3, 3).t(), **grid)
    with pytest.raises(RuntimeError, match="overlaps scale"):
        call(torch.ones(10), memory[3], 0, out=memory, **grid)
    with pytest.raises(RuntimeError, match="overlaps zero_point"):
        call(torch.ones(10), S, memory, out=memory, **grid)
    assert memory.tolist() == [1.0] * 10
    call(memory[:5], S, memory[5:], out=memory[:5], **grid)


def test_out_of_another_width_over_the_input() -> None:
    memory = torch.ones(8)
    with pytest.raises(RuntimeError, match="overlaps x"):
        affine.quantize(memory, S, 0, qmin=0, qmax=1, dtype=torch.int8, out=memory.view(torch.int8)[:8])
