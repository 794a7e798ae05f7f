"""Exports of ``optimized.aimet``'s encodings: what they dequantize to, their refusals, groups and vectors."""

from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet.affine import AffineEncoding, GroupedBlockEncoding, VectorEncoding
from halfeven.optimized.aimet.base import EncodingBase

VERSIONS = ("0.6.1", "1.0.0", "2.0.0", "2.1.0")
VECTORS = {"rows_per_block": 1, "cols_per_block": 4, "vector_dim": 4, "vector_stride": 1, "index_bw": 6}


def reals(found: Any, version: str, codes: Tensor, qmin: int) -> Tensor:
    """What a reader of an export makes of codes: in 0.6.1 and 1.0.0 they are counted from the lowest one."""
    if version == "0.6.1":
        found = {name: [row.get(name, 0.0) for row in found] for name in ("scale", "offset", "zero_point_shift")}
    if version in {"0.6.1", "1.0.0"}:
        column = (len(found["scale"]), *(1 for _ in codes.shape[1:])) if len(found["scale"]) > 1 else ()
        scale = torch.tensor(found["scale"]).reshape(column)
        offset = torch.tensor(found["offset"], dtype=torch.float64).reshape(column)
        shift = max(found.get("zero_point_shift", [0.0]))
        return ((codes.double() - qmin + offset + shift) * scale.double()).float()
    scale, zero = torch.tensor(found["y_scale"]), torch.tensor(found.get("y_zero_point", 0), dtype=torch.float64)
    if "axis" in found:
        scale, zero = (t.reshape(-1, *(1 for _ in range(-1 - found["axis"]))) if t.dim() else t for t in (scale, zero))
    return ((codes.double() - zero) * scale.double()).float()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("qmin", "qmax", "offset", "symmetry", "shift"),
    [
        (-128, 127, 0.0, True, 0.0),
        (0, 255, -3.0, False, 0.0),
        (-128, 127, 125.0, False, 0.0),
        (-2, 1, 0.0, True, 0.5),
        (0, 2**32 - 1, -(2.0**31), False, 0.0),
        (-(2**31), 2**31 - 1, 0.0, True, 0.0),
        (0, 5, -2.0, True, 0.0),
        (-4, 1, 2.0, True, 0.0),
        (2, 9, 0.0, False, 0.0),
    ],
)
def test_an_export_dequantizes_as_the_encoding(
    version: str, qmin: int, qmax: int, offset: float, symmetry: bool, shift: float
) -> None:
    for shape in ((), (3, 1)):
        scale = torch.tensor([[0.1], [0.3], [2.0]])[: 3 if shape else 1].reshape(shape)
        encoding = AffineEncoding(scale, torch.full(shape, offset), qmin, qmax, symmetry, zero_point_shift=shift)
        encoding._hint_input_shape((3, 4))
        if version in {"0.6.1", "1.0.0"} and (qmin, qmax) in {(0, 5), (-4, 1), (2, 9)}:
            with pytest.raises(RuntimeError, match=f"bitwidth of the grid qmin={qmin}"):
                encoding.to_qnn_encoding_dict(version)
            continue
        found = encoding.to_qnn_encoding_dict(version)
        codes = torch.tensor([qmin, qmin + 1, (qmin + qmax) // 2, qmax], dtype=torch.float64).expand(3, 4)
        expected = ((codes + offset + shift) * scale.double()).float()
        assert torch.equal(reals(found, version, codes, qmin), expected)
        if version == "0.6.1":
            assert [(row["min"], row["max"]) for row in found] == [
                (low.item(), high.item())
                for low, high in zip(encoding.min.flatten(), encoding.max.flatten(), strict=True)
            ]


def test_zero_points_that_the_library_exports_otherwise() -> None:
    def exported(offset: float, qmin: int, qmax: int, symmetry: bool) -> Any:
        encoding = AffineEncoding(torch.tensor(0.5), torch.tensor(offset), qmin, qmax, symmetry)
        return encoding.to_qnn_encoding_dict("2.0.0")

    assert exported(-2.0, 0, 5, True) == {"output_dtype": "uint3", "y_scale": 0.5, "y_zero_point": 2}
    assert exported(2.0, -4, 1, True) == {"output_dtype": "int3", "y_scale": 0.5, "y_zero_point": -2}
    wide = {"output_dtype": "uint32", "y_scale": 0.5, "y_zero_point": 2**31}
    assert exported(-(2.0**31), 0, 2**32 - 1, False) == wide
    assert exported(0.0, 2, 9, False) == {"output_dtype": "uint4", "y_scale": 0.5}
    assert exported(0.0, -127, 127, True) == {"output_dtype": "int8", "y_scale": 0.5}


def test_the_shift_is_in_the_range() -> None:
    encoding = AffineEncoding(torch.tensor(0.5), torch.tensor(0.0), 4, True, True, zero_point_shift=0.5)
    assert encoding.to_qnn_encoding_dict("0.6.1") == [
        {
            "min": -3.75,
            "max": 3.75,
            "scale": 0.5,
            "offset": -8,
            "bitwidth": 4,
            "dtype": "int",
            "is_symmetric": "True",
            "zero_point_shift": 0.5,
        }
    ]
    encoding._symmetry = False
    with pytest.raises(AssertionError, match=r"zero_point_shift=0\.5"):
        encoding.to_qnn_encoding_dict("1.0.0")


@pytest.mark.parametrize("version", [None, "2.2.0", "1"])
def test_other_versions(version: str | None) -> None:
    with pytest.raises(AssertionError, match=r"encoding_version=.* give one of 0\.6\.1"):
        AffineEncoding(torch.tensor(1.0), torch.tensor(0.0), 8).to_qnn_encoding_dict(version)


@pytest.mark.parametrize(
    ("scales", "block_size", "hint", "version", "error", "words"),
    [
        ((2, 1), None, None, "2.0.0", RuntimeError, "input_shape=None"),
        ((2, 3), None, (2, 3), "2.0.0", RuntimeError, r"\(2, 3\)"),
        ((2, 3), None, (2, 3), "1.0.0", AssertionError, r"\(2, 3\)"),
        ((1, 3), (2, 2), (2, 6), "2.0.0", RuntimeError, r"\(2, 2\)"),
        ((2, 3), (2, 2), (4, 6), "2.0.0", RuntimeError, r"\(2, 2\)"),
        ((2, 3), (1, -1), (2, 6), "1.0.0", NotImplementedError, r"\(1, -1\)"),
        ((2, 3, 1), (1, 2, 1), (2, 6), "2.0.0", ValueError, r"\(2, 3, 1\)"),
    ],
)
def test_axes_that_cannot_be_named(
    scales: tuple[int, ...],
    block_size: tuple[int, ...] | None,
    hint: tuple[int, ...] | None,
    version: str,
    error: type,
    words: str,
) -> None:
    encoding = AffineEncoding(torch.ones(scales), torch.zeros(scales), 8, block_size=block_size)
    if hint is not None:
        encoding._hint_input_shape(hint)
    with pytest.raises(error, match=words):
        encoding.to_qnn_encoding_dict(version)


def test_read_back() -> None:
    for qmin, qmax, offset, symmetry, shift in (
        (-128, 127, 0.0, True, 0.0),
        (0, 255, -3.0, False, 0.0),
        (-2, 1, 1.0, False, 0.5),
    ):
        encoding = AffineEncoding(torch.tensor(0.1), torch.tensor(offset), qmin, qmax, symmetry, None, shift)
        read = AffineEncoding._from_qnn_encoding_dict(encoding.to_qnn_encoding_dict("2.1.0"))
        assert isinstance(read, AffineEncoding)
        assert {**vars(read), "scale": read.scale.item(), "offset": read.offset.item()} == {
            **vars(encoding),
            "scale": encoding.scale.item(),
            "offset": encoding.offset.item(),
        }
    for found, version in (
        ({"y_scale": [1.0], "axis": 0}, None),
        ({"scale": [1.0]}, None),
        ({"y_scale": 1.0}, "1.0.0"),
    ):
        with pytest.raises(NotImplementedError, match="not accepted"):
            AffineEncoding._from_qnn_encoding_dict(found, version)
    with pytest.raises(NotImplementedError, match="EncodingBase"):
        EncodingBase._from_qnn_encoding_dict({})


def grouped(shape: tuple[int, ...] = (2, 4), grouping: tuple[int, ...] = (1, -1)) -> GroupedBlockEncoding:
    integers = torch.tensor([[16.0, 3.0, 1.0, 8.0], [5.0, 16.0, 9.0, 16.0]])
    channels = torch.tensor([[0.01], [0.3]])
    scale = (integers * channels).reshape(shape)
    groups = {"block_size": (1, 3), "block_grouping": grouping, "decompressed_bw": 8}
    encoding = GroupedBlockEncoding(scale, 0 * scale, 4, True, True, per_channel_scale=channels, **groups)
    return encoding._hint_input_shape((2, 12))


INTEGERS = [[16, 3, 1, 8], [5, 16, 9, 16]]


def test_groups() -> None:
    encoding = grouped()
    channels = encoding.per_channel_scale.tolist()
    assert encoding.per_block_int_scale.tolist() == INTEGERS
    common = {"axis": -1, "block_size": 3, "output_dtype": "int4"}
    assert encoding.to_qnn_encoding_dict("2.0.0") == {
        **common,
        "per_block_int_scale": INTEGERS,
        "per_channel_float_scale": channels,
    }
    flat = [scale for (scale,) in channels]
    assert encoding.to_qnn_encoding_dict("2.1.0") == {**common, "y_scale": {"x": INTEGERS, "x_scale": flat, "axis": -2}}
    found = encoding.to_qnn_encoding_dict("1.0.0")
    assert (found["bw"], found["compressed_bw"], found["enc_type"]) == (8, 4, "LPBQ")
    assert (found["scale"], found["offset"], found["block_size"]) == (flat, [-128, -128], 3)
    assert found["per_block_int_scale"] == [k for row in INTEGERS for k in row]
    assert len(encoding.to_qnn_encoding_dict("0.6.1")) == 8
    encoding.block_grouping = (1, 1)
    encoding.per_channel_scale = encoding.scale / 16
    assert encoding.to_qnn_encoding_dict("2.0.0")["y_scale"] == encoding.scale.tolist()


@pytest.mark.parametrize("factor", [2, 3.7, -0.3])
@pytest.mark.parametrize("divide", [False, True])
def test_a_scaled_group_still_has_its_integers(factor: float, divide: bool) -> None:
    encoding = grouped()
    if factor < 0:  # the codes -8 to 7 have no symmetric mirror image
        assert encoding._scaled(factor, divide=divide) is None
        encoding._symmetry = False
    scaled = encoding._scaled(factor, divide=divide)
    assert isinstance(scaled, GroupedBlockEncoding)
    found = scaled.per_channel_scale
    wanted = encoding.per_channel_scale / abs(factor) if divide else encoding.per_channel_scale * abs(factor)
    assert found.tolist() == wanted.tolist()
    assert scaled.per_block_int_scale.tolist() == INTEGERS
    assert scaled.scale.tolist() == (torch.tensor(INTEGERS) * found).tolist()
    assert encoding.per_block_int_scale.tolist() == INTEGERS


def test_scaled_mirrors_the_grid() -> None:
    encoding = AffineEncoding(torch.tensor(0.5), torch.tensor(3.0), -8, 7, zero_point_shift=0.5)
    for factor in (-1, -4.0, 2):
        scaled = encoding._scaled(factor)
        assert scaled is not None
        ends = sorted((factor * encoding.min.item(), factor * encoding.max.item()))
        assert [scaled.min.item(), scaled.max.item()] == ends
    assert encoding.offset.item() == 3
    for factor in (0, 0.0, float("inf"), float("nan")):
        assert encoding._scaled(factor) is None
    odd = AffineEncoding(torch.tensor(0.5), torch.tensor(0.0), -8, 7, True)
    assert odd._scaled(-1) is None
    assert odd._scaled(-1, divide=True) is None
    strict = AffineEncoding(torch.tensor(0.5), torch.tensor(0.0), -7, 7, True)._scaled(-1)
    assert strict is not None
    assert strict.offset.item() == 0


def test_groups_that_cannot_be_exported() -> None:
    for bad in (0.0, -1.0, float("inf"), float("nan")):
        encoding = grouped()
        encoding.scale = encoding.scale.clone()
        encoding.scale[0, 1] = bad
        for version in VERSIONS:
            with pytest.raises(ValueError, match="scale="):
                encoding.to_qnn_encoding_dict(version)
    encoding = grouped()
    encoding.offset = encoding.offset + 1
    for version in ("2.0.0", "2.1.0"):
        with pytest.raises(RuntimeError, match="offset="):
            encoding.to_qnn_encoding_dict(version)
    with pytest.raises(RuntimeError, match=r"block_size|block_grouping"):
        _ = grouped(grouping=(1, 3)).per_block_int_scale
    for name in ("per_channel_scale", "decompressed_bw"):
        encoding = grouped()
        setattr(encoding, name, None)
        with pytest.raises(TypeError, match=f"{name}=None"):
            encoding.to_qnn_encoding_dict("2.0.0")


def test_vectors() -> None:
    scale = torch.tensor([[0.5], [0.25]])
    encoding = VectorEncoding(scale, 0 * scale, 4, True, True, zero_point_shift=0.5, **VECTORS)
    encoding._hint_input_shape((2, 8))
    plain = AffineEncoding(scale, 0 * scale, 4, True, True, zero_point_shift=0.5)._hint_input_shape((2, 8))
    assert encoding.to_qnn_encoding_dict("0.6.1") == [row | VECTORS for row in plain.to_qnn_encoding_dict("0.6.1")]
    expected = {**plain.to_qnn_encoding_dict("1.0.0"), **VECTORS, "enc_type": "VECTOR"}
    assert encoding.to_qnn_encoding_dict("1.0.0") == expected
    assert encoding.to_qnn_encoding_dict("2.0.0") == plain.to_qnn_encoding_dict("2.0.0")
    x = torch.tensor([[0.3], [0.3]])
    assert encoding.quantize_dequantize(x).tolist() == [[0.25], [0.375]]
