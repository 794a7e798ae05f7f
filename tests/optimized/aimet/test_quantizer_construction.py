"""How affine quantizers are made: both lists of arguments, what they refuse, and the properties of the grid."""

from typing import Any

import pytest
import torch

from halfeven.optimized.aimet import affine
from halfeven.optimized.aimet.affine import QuantizeDequantize
from halfeven.optimized.aimet.base import QuantizerBase
from halfeven.optimized.aimet.encoding_analyzer import MinMaxEncodingAnalyzer

KINDS = (affine.Quantize, affine.QuantizeDequantize, affine.Dequantize)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("args", "kwargs", "made"),
    [
        ((8, True), {}, (-128, 127, True)),
        ((8, False), {}, (0, 255, False)),
        ((), {"bitwidth": 4, "symmetric": True}, (-8, 7, True)),
        ((4,), {"symmetric": False}, (0, 15, False)),
        ((1, True), {}, (-1, 0, True)),
        ((-8, 7, False), {}, (-8, 7, False)),
        ((-7, 7), {"symmetric": True}, (-7, 7, True)),
        ((0,), {"qmax": 15, "symmetric": False}, (0, 15, False)),
        ((), {"qmin": -1, "qmax": 4, "symmetric": True}, (-1, 4, True)),
        ((0, 1, True), {}, (0, 1, True)),
    ],
)
def test_grids(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any], made: tuple[int, int, bool]) -> None:
    q = kind((2, 1), *args, **kwargs)
    assert (q.qmin, q.qmax, q.symmetric) == made
    assert (q.shape, q.block_size, q.zero_point_shift) == ((2, 1), None, 0.0)
    assert q.min.shape == q.max.shape == (2, 1)
    assert (q.min.dtype, q.min.requires_grad, q.max.requires_grad) == (torch.float32, True, True)
    assert type(q.encoding_analyzer) is MinMaxEncodingAnalyzer
    assert not q.is_initialized()
    assert isinstance(q, affine.MinMaxQuantizer)
    assert not isinstance(q, affine.ScaleOffsetQuantizer)


def test_options_by_position_and_by_name() -> None:
    analyzer = MinMaxEncodingAnalyzer((1, 2))
    by_position = [
        QuantizeDequantize((3, 2), 4, True, analyzer, (1, 5), 0.5),
        QuantizeDequantize((3, 2), -8, 7, True, analyzer, [1, 5], 0.5),
    ]
    by_name = QuantizeDequantize(
        shape=(3, 2), bitwidth=4, symmetric=True, encoding_analyzer=analyzer, block_size=(1, 5), zero_point_shift=0.5
    )
    for q in (*by_position, by_name):
        assert (q.qmin, q.qmax, q.block_size, q.zero_point_shift) == (-8, 7, (1, 5), 0.5)
        assert type(q.block_size) is tuple
        assert q.encoding_analyzer is analyzer
    assert QuantizeDequantize(3, 8, True).shape == (3,)
    assert QuantizeDequantize((), 8, True, block_size=()).block_size is None
    assert str(by_name) == (
        "QuantizeDequantize(shape=(3, 2), block_size=(1, 5), qmin=-8, qmax=7, symmetric=True, zero_point_shift=0.5)"
    )
    assert str(QuantizeDequantize((), 8, False)) == "QuantizeDequantize(shape=(), qmin=0, qmax=255, symmetric=False)"


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "words"),
    [
        ((), {}, TypeError, "bitwidth, symmetric"),
        ((8,), {}, TypeError, "bitwidth, symmetric"),
        ((8, None), {}, TypeError, "bitwidth, symmetric"),
        ((0, 255), {}, TypeError, "qmin, qmax, symmetric"),
        ((8, 1), {}, TypeError, "qmin, qmax, symmetric"),
        ((8, True), {"wide": 1}, TypeError, "wide=1"),
        ((8, True), {"symmetric": True}, TypeError, "symmetric=True"),
        ((8, True, None, None, None, None), {}, TypeError, "None"),
        ((8.0, True), {}, TypeError, "bitwidth=8.0"),
        ((4.5, False), {}, TypeError, "bitwidth=4.5"),
        ((True, False), {}, TypeError, "bitwidth=True"),
        ((0.0, 15, False), {}, TypeError, "qmin=0.0"),
        ((0, False), {}, ValueError, "bitwidth=0"),
        ((-1, True), {}, ValueError, "bitwidth=-1"),
        ((4, 4, True), {}, ValueError, "qmin=4, qmax=4"),
        ((5, 4, True), {}, ValueError, "qmin=5, qmax=4"),
        ((8, True), {"zero_point_shift": 0.25}, ValueError, "zero_point_shift=0.25"),
        ((8, True), {"block_size": (1, 2.5)}, TypeError, "block_size=2.5"),
        ((8, True, MinMaxEncodingAnalyzer((3,))), {}, RuntimeError, "of shape (3,)"),
        ((8, True, MinMaxEncodingAnalyzer((1, 2, 1))), {}, RuntimeError, "of shape (1, 2, 1)"),
    ],
)
def test_refused(args: tuple[Any, ...], kwargs: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        QuantizeDequantize((2, 1), *args, **kwargs)
    assert words in str(raised.value)


def test_quantize_has_no_shift() -> None:
    with pytest.raises(RuntimeError, match=r"zero_point_shift=0\.5"):
        affine.Quantize((), 8, True, zero_point_shift=0.5)
    made = affine.Dequantize((), 8, True, zero_point_shift=0.5)
    made.set_range(-1.0, 1.0)
    with pytest.raises(RuntimeError, match=r"zero_point_shift=0\.5"):
        made(torch.ones(2))


def test_bitwidth_and_signedness() -> None:
    q = QuantizeDequantize((), 8, True)
    assert (q.bitwidth, q.signed) == (8, True)
    q.bitwidth = 4
    assert (q.qmin, q.qmax) == (-8, 7)
    q.signed = False
    assert (q.qmin, q.qmax, q.symmetric) == (0, 15, True)
    q.symmetric = False
    assert q.symmetric is False
    strict = QuantizeDequantize((), -127, 127, True)
    for name in ("bitwidth", "signed"):
        with pytest.raises(RuntimeError, match="qmin=-127, qmax=127"):
            getattr(strict, name)
    with pytest.raises(ValueError, match="bitwidth=0"):
        q.bitwidth = 0


def test_base() -> None:
    base = affine.AffineQuantizerBase((), 8, True)
    with pytest.raises(NotImplementedError, match="AffineQuantizerBase"):
        base(torch.ones(1))
    with pytest.raises(TypeError, match="abstract"):
        QuantizerBase()  # type: ignore[abstract]


def test_parameters_of_the_other_kind() -> None:
    q = QuantizeDequantize((), 8, False)
    with pytest.raises(AttributeError, match="parameters are min and max; read it by get_scale"):
        _ = q.scale
    q._reparametrize_to_scale_offset()
    with pytest.raises(AttributeError, match="parameters are scale and offset; read it by get_max"):
        _ = q.max
    with pytest.raises(AttributeError, match="nothing"):
        _ = q.nothing
    assert isinstance(q, affine.ScaleOffsetQuantizer)
    assert not isinstance(q, affine.MinMaxQuantizer)
