"""``optimized.aimet``'s affine encodings: construction, what they represent, moves and copies."""

import copy
import io
import math
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet import affine
from halfeven.optimized.aimet.affine import AffineEncoding, GroupedBlockEncoding, VectorEncoding
from halfeven.optimized.aimet.base import EncodingBase

ONE, ZERO = torch.tensor(1.0), torch.tensor(0.0)
VECTORS = {"rows_per_block": 1, "cols_per_block": 4, "vector_dim": 4, "vector_stride": 1, "index_bw": 6}


def bits(t: Tensor) -> list[int]:
    carrier = {2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    found: list[int] = torch.where(t.isnan(), -1, t.detach().contiguous().view(carrier)).flatten().tolist()
    return found


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of 16-bit floats have the same bits, any NaN for any NaN."""
    return bool(((a.view(torch.int16) == b.view(torch.int16)) | (a.isnan() & b.isnan())).all())


def encodings() -> list[AffineEncoding]:
    scale, offset = torch.tensor([[0.5], [3.0]]), torch.tensor([[1.0], [-2.0]])
    grouped = {"block_size": (1, 4), "block_grouping": (-1, 1), "decompressed_bw": 8}
    vectors = {"symmetry": True, "block_size": (1, 4), "zero_point_shift": 0.5, **VECTORS}
    channels = torch.tensor([[0.5]])
    return [
        AffineEncoding(scale, offset, -8, 7, False, (1, 4), 0.5),
        GroupedBlockEncoding(scale, 0 * offset, 4, True, True, per_channel_scale=channels, **grouped),
        VectorEncoding(scale, 0 * offset, 4, True, **vectors),
    ]


@pytest.mark.parametrize(
    ("args", "kwargs", "grid"),
    [
        ((0, 15), {}, (0, 15)),
        ((4,), {}, (0, 15)),
        ((4, True), {}, (-8, 7)),
        ((4,), {"signed": True}, (-8, 7)),
        ((), {"bitwidth": 1, "signed": True}, (-1, 0)),
        ((), {"qmin": -3, "qmax": 5}, (-3, 5)),
        ((-3,), {"qmax": 5}, (-3, 5)),
        ((0, 1), {}, (0, 1)),
    ],
)
def test_grids(args: tuple[Any, ...], kwargs: dict[str, Any], grid: tuple[int, int]) -> None:
    encoding = AffineEncoding(ONE, ZERO, *args, **kwargs)
    assert (encoding.qmin, encoding.qmax, encoding.num_steps) == (*grid, grid[1] - grid[0])
    defaults = (encoding.symmetry, encoding.block_size, encoding.zero_point_shift, encoding.producer)
    assert defaults == (False, None, 0.0, None)
    assert encoding.mapping == "affine"
    assert isinstance(encoding, EncodingBase)
    assert encoding.scale is ONE
    assert encoding.offset is ZERO


def test_positions() -> None:
    producer = object()
    for args in ((-8, 7), (4, True)):
        encoding = AffineEncoding(torch.ones(2, 2), torch.zeros(2, 2), *args, True, [1, 3], 0.5, producer=producer)
        assert (encoding.qmin, encoding.qmax, encoding.symmetry) == (-8, 7, True)
        assert (encoding.block_size, encoding.zero_point_shift) == ((1, 3), 0.5)
        assert encoding.producer is producer


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "words"),
    [
        ((), {}, TypeError, "no grid"),
        ((), {"qmin": 0}, TypeError, "qmin=0"),
        ((), {"signed": True}, TypeError, "bitwidth"),
        ((4.0,), {}, TypeError, "bitwidth=4.0"),
        ((4,), {"bitwidth": 4}, TypeError, "bitwidth"),
        ((4,), {"num_steps": 15}, TypeError, "num_steps"),
        ((0, 15, False, None, None, 1), {}, TypeError, "6 arguments"),
        ((4,), {"symetry": True}, TypeError, "symetry"),
        ((3, 3), {}, ValueError, "qmin=3, qmax=3"),
        ((5, 4), {}, ValueError, "qmin=5"),
        ((0,), {}, ValueError, "qmin=0, qmax=0"),
        ((-1,), {}, ValueError, "bitwidth=-1"),
        ((4,), {"zero_point_shift": 0.25}, ValueError, r"zero_point_shift=0\.25"),
    ],
)
def test_refused(args: tuple[Any, ...], kwargs: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        AffineEncoding(ONE, ZERO, *args, **kwargs)
    with pytest.raises(KeyError, match="index_bw"):
        VectorEncoding(ONE, ZERO, 4, **{n: v for n, v in VECTORS.items() if n != "index_bw"})


def test_the_range_has_the_shift() -> None:
    for shift, ends in ((0.0, (-1.75, 2.0)), (0.5, (-1.625, 2.125))):
        encoding = AffineEncoding(torch.tensor(0.25), ONE, -8, 7, zero_point_shift=shift)
        assert (encoding.min.item(), encoding.max.item()) == ends
        far = torch.tensor([-99.0, 99.0])
        assert encoding.quantize_dequantize(far).tolist() == list(ends)


@pytest.mark.parametrize(
    ("qmin", "qmax", "dtype"),
    [
        (0, 255, torch.uint8),
        (0, 256, torch.int16),
        (-1, 127, torch.int8),
        (-1, 128, torch.int16),
        (-128, 0, torch.int8),
        (-129, 0, torch.int16),
        (0, 65535, torch.int32),
        (-32768, 32767, torch.int16),
        (-(2**31), 2**31 - 1, torch.int32),
    ],
)
def test_dtype_of_the_codes(qmin: int, qmax: int, dtype: torch.dtype) -> None:
    assert AffineEncoding(ONE, ZERO, qmin, qmax).dtype == dtype


@pytest.mark.parametrize(("qmin", "qmax"), [(0, 2**31), (-(2**31) - 1, 0)])
def test_codes_wider_than_int32(qmin: int, qmax: int) -> None:
    with pytest.raises(ValueError, match=f"qmin={qmin}"):
        _ = AffineEncoding(ONE, ZERO, qmin, qmax).dtype


def test_bitwidth_and_signed() -> None:
    for qmin, qmax, bitwidth, signed in ((0, 255, 8, False), (-128, 127, 8, True), (0, 1, 1, False), (-1, 0, 1, True)):
        encoding = AffineEncoding(ONE, ZERO, qmin, qmax)
        assert (encoding.bitwidth, encoding.signed) == (bitwidth, signed)
    encoding.bitwidth = 4
    assert (encoding.qmin, encoding.qmax) == (-8, 7)
    encoding.signed = False
    assert (encoding.qmin, encoding.qmax) == (0, 15)
    encoding.bitwidth = 2.0
    assert (encoding.qmin, encoding.qmax) == (0, 3)
    encoding.qmax = 5
    assert encoding.signed is False
    encoding.signed = True
    assert (encoding.qmin, encoding.qmax) == (-3, 2)
    for bad, error in ((0, ValueError), (2.5, TypeError), ("4", TypeError)):
        with pytest.raises(error, match="bitwidth="):
            encoding.bitwidth = bad
    strict = AffineEncoding(ONE, ZERO, -127, 127)
    for name, value in (("bitwidth", 8), ("signed", False)):
        with pytest.raises(RuntimeError, match=f"{name} of the grid qmin=-127"):
            getattr(strict, name)
        with pytest.raises(RuntimeError, match="qmin=-127"):
            setattr(strict, name, value)


def test_granularity() -> None:
    for shape, block_size, expected in (
        ((), None, "pertensor"),
        ((1,), None, "perchannel"),
        ((3, 1), None, "perchannel"),
        ((3, 2), None, "unknown"),
        ((3, 2), (1, 4), "blockwise"),
    ):
        encoding = AffineEncoding(torch.ones(shape), torch.zeros(shape), 8, block_size=block_size)
        assert encoding.granularity == expected


SCALES = (2.0**-10, 0.1, 0.32619979705530283, 1.9921875, 2.0**-24 * 1.3)
NARROW = ((-8, 7), (0, 31), (-128, 127), (0, 255), (-256, 255))
GRIDS = {torch.bfloat16: NARROW, torch.float16: (*NARROW, (0, 1023), (-1024, 1023), (0, 2047))}


@pytest.mark.parametrize(("dtype", "grid"), [(dtype, grid) for dtype, grids in GRIDS.items() for grid in grids])
def test_represented_values_stay(dtype: torch.dtype, grid: tuple[int, int]) -> None:
    """All inputs: the values stay always, and the codes where the values of two of them differ."""
    half = {torch.bfloat16: 2**7, torch.float16: 2**10}[dtype]
    qmin, qmax = grid
    rows = [(s, o) for s in SCALES for o in (-qmin, -qmax)]
    scale, offset = (torch.tensor(column, dtype=torch.float32)[:, None] for column in zip(*rows, strict=True))
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype).expand(len(rows), -1)
    encoding = AffineEncoding(scale, offset, qmin, qmax)
    codes, values = encoding.quantize(x), encoding.quantize_dequantize(x)
    again = encoding.quantize(values)
    assert same(encoding.dequantize(codes), values)
    assert same(encoding.dequantize(again), values)
    end = (codes == qmin) | (codes == qmax)
    clipped = end & (((codes.float() + offset).abs() > half) | (values.abs() < torch.finfo(dtype).tiny))
    kept = (again == codes) | codes.isnan() | clipped | values.isinf()
    assert kept.all(), (x[~kept], codes[~kept], again[~kept])


def test_two_codes_of_one_real() -> None:
    """Why a code may not come back: two inputs of different codes become the same real."""
    encoding = AffineEncoding(torch.tensor(0.32619979705530283), ZERO, 0, 255)
    x = torch.tensor([83.0, 83.5], dtype=torch.bfloat16)
    assert encoding.quantize(x).tolist() == [254, 255]
    assert encoding.quantize_dequantize(x).tolist() == [83, 83]


def test_scale_and_offset_keep_their_dtype() -> None:
    """Where rounding them to the input's dtype changes the code: 2.375 / (3.5305856 / 255) is 171.53..."""
    scale = torch.tensor(3.5305856) / 255
    x = torch.tensor([2.375], dtype=torch.bfloat16)
    encoding = AffineEncoding(scale, ZERO, 0, 255)
    assert encoding.quantize(x).item() == math.floor(2.375 / scale.item() + 0.5) == 172
    assert encoding.quantize(encoding.quantize_dequantize(x)).item() == 172
    wide = AffineEncoding(ONE, torch.tensor(-257.0), 250, 257)
    assert wide.dequantize(torch.tensor([256.0], dtype=torch.bfloat16)).item() == -1  # bfloat16 has no 257


def test_wide_grids_are_computed_in_float64() -> None:
    scale = torch.tensor(0.1, dtype=torch.float64)
    encoding = AffineEncoding(scale, ZERO, 0, 2**24 - 1)
    x = (torch.arange(2**24 - 64, 2**24) * 0.1).float()
    expected = torch.round(x.double() / scale).clamp(0, 2**24 - 1)
    assert encoding.quantize(x).tolist() == expected.tolist()
    assert bits(encoding.dequantize(encoding.quantize(x))) == bits((expected * scale).float())
    assert bits(encoding.quantize_dequantize(x)) == bits((expected * scale).float())
    for function in (encoding.quantize, encoding.dequantize, encoding.quantize_dequantize):
        encoding.qmax = 2**60
        with pytest.raises(RuntimeError, match="qmax=1152921504606846976"):
            function(x)


def test_a_shift_has_reals_only() -> None:
    encoding = AffineEncoding(ONE, ZERO, 2, True, zero_point_shift=0.5)
    assert encoding.quantize_dequantize(torch.tensor([0.0, 9.0])).tolist() == [0.5, 1.5]
    for function in (encoding.quantize, encoding.dequantize):
        with pytest.raises(RuntimeError, match=rf"zero_point_shift=0\.5 .* {function.__name__}"):
            function(ONE)


def test_errors_are_the_functions() -> None:
    encoding = AffineEncoding(torch.ones(2, 1), torch.zeros(2, 1), 8, block_size=(1, 4))
    for function in (encoding.quantize, encoding.dequantize, encoding.quantize_dequantize):
        with pytest.raises(RuntimeError, match=r"block_size=\(1, 4\)"):
            function(torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"torch\.int8"):
        encoding.quantize(torch.ones(2, 4, dtype=torch.int8))
    with pytest.raises(TypeError, match=r"torch\.int8"):
        encoding.dequantize(torch.ones(2, 4, dtype=torch.int8))


def test_gradients_pass_through_codes() -> None:
    x = torch.tensor([0.6, 9.0], requires_grad=True)
    scale, offset = torch.tensor(0.5, requires_grad=True), torch.tensor(0.0, requires_grad=True)
    encoding = AffineEncoding(scale, offset, -2, 1)
    found = encoding.dequantize(encoding.quantize(x))
    assert found.tolist() == [0.5, 0.5]
    d_x, d_scale, d_offset = torch.autograd.grad(found.sum(), (x, scale, offset))
    assert d_x.tolist() == [1, 0]
    assert d_scale.item() == (1 - torch.tensor(0.6) / 0.5 + 1).item()
    assert d_offset.item() == 0.5


@pytest.mark.parametrize("index", range(3))
def test_to(index: int) -> None:
    encoding = encodings()[index]._hint_input_shape((2, 4))
    for arguments in ((), (torch.float32,), ("cpu",), (torch.ones(1),), (torch.device("cpu"), torch.float32)):
        assert encoding.to(*arguments) is encoding
    moved = encoding.to(torch.float16)
    assert type(moved) is type(encoding)
    tensors = [name for name, value in vars(encoding).items() if isinstance(value, Tensor)]
    assert len(tensors) == (3 if index == 1 else 2)
    for name, value in vars(encoding).items():
        if name in tensors:
            assert getattr(moved, name).dtype == torch.float16
            assert value.dtype == torch.float32
        else:
            assert getattr(moved, name) == value
    assert encoding.to(dtype=torch.float64).scale.dtype == torch.float64
    assert encoding.to("meta").scale.device.type == "meta"
    for dtype in (torch.int8, torch.complex64):
        with pytest.raises(RuntimeError, match=str(dtype)):
            encoding.to(dtype)


@pytest.mark.parametrize("index", range(3))
def test_copies(index: int) -> None:
    encoding = encodings()[index]._hint_input_shape((2, 4))
    saved = io.BytesIO()
    torch.save(encoding, saved)
    saved.seek(0)
    made = [copy.deepcopy(encoding), pickle.loads(pickle.dumps(encoding)), encoding._clone()]
    for other in (*made, torch.load(saved, weights_only=False)):
        assert type(other) is type(encoding)
        assert vars(other).keys() == vars(encoding).keys()
        for name, value in vars(encoding).items():
            same = getattr(other, name)
            if isinstance(value, Tensor):
                assert bits(same) == bits(value)
                assert same.data_ptr() != value.data_ptr()
            else:
                assert same == value


def test_detached_and_cloned() -> None:
    scale = torch.tensor([0.5], requires_grad=True) * 2
    encoding = AffineEncoding(scale, scale - 1, 8)
    detached, cloned = encoding._detach(), encoding._clone()
    assert not detached.scale.requires_grad
    assert not detached.offset.requires_grad
    assert detached.scale.data_ptr() == scale.data_ptr()
    assert cloned.scale.requires_grad
    assert cloned.scale.data_ptr() != scale.data_ptr()
    assert encoding.scale is scale


def test_no_graph_breaks() -> None:
    def function(x: Tensor, scale: Tensor, offset: Tensor) -> tuple[Tensor, ...]:
        encoding = AffineEncoding(scale, offset, bitwidth=4, signed=True, block_size=(1, -1))
        codes = encoding.quantize(x)
        return codes, encoding.dequantize(codes), encoding.quantize_dequantize(x), encoding.min, encoding.max

    given = (torch.randn(4, 8), torch.rand(4, 2) + 0.1, torch.zeros(4, 2))
    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for found, expected in zip(compiled(*given), function(*given), strict=True):
        assert bits(found) == bits(expected)


def test_names() -> None:
    for name in ("AffineEncoding", "GroupedBlockEncoding", "VectorEncoding", "get_backend", "set_backend"):
        assert hasattr(affine, name)
