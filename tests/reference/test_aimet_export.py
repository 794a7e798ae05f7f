"""An exported encoding dequantizes as the encoding does, in every version."""

import numpy as np
import pytest

from halfeven.reference import FORMULAS

F32 = np.float32
to_qnn_encoding_dict = FORMULAS["aimet/to_qnn_encoding_dict"].function
measured = FORMULAS["aimet/to_qnn_encoding_dict@2.42"].function
GRIDS = ((0, 255, -3), (-128, 127, 0), (-128, 127, 125), (0, 15, -15), (-8, 7, 3), (0, 1, 0))


def values(found: dict[str, object] | list[dict[str, object]], count: int, *, signed: bool) -> list[float]:
    """The grid's values as a reader of the export has them, for its ``count`` codes."""
    if isinstance(found, list):
        return [(found[0]["offset"] + k) * F32(found[0]["scale"]) for k in range(count)]
    if "bw" in found:
        return [(found["offset"][0] + k) * F32(found["scale"][0]) for k in range(count)]
    lowest = -count // 2 if signed else 0
    return [(lowest + k - found.get("y_zero_point", 0)) * F32(found["y_scale"]) for k in range(count)]


@pytest.mark.parametrize(("qmin", "qmax", "offset"), GRIDS)
@pytest.mark.parametrize("version", ["0.6.1", "1.0.0", "2.0.0", "2.1.0"])
def test_all_codes_mean_the_same(version: str, qmin: int, qmax: int, offset: int) -> None:
    scale = np.asarray(0.1, F32)
    found = to_qnn_encoding_dict(version, scale, np.asarray(offset, F32), qmin, qmax)
    expected = [(q + offset) * scale for q in range(qmin, qmax + 1)]
    assert values(found, qmax - qmin + 1, signed=qmin < 0) == expected


def test_where_the_library_exports_another_zero_point() -> None:
    scale = np.asarray(0.1, F32)
    for qmin, qmax, offset, theirs in ((0, 5, -2, 3), (-4, 1, 2, -1)):
        given = ("2.0.0", scale, np.asarray(offset, F32), qmin, qmax, True)
        assert to_qnn_encoding_dict(*given)["y_zero_point"] == -offset
        assert measured(*given)["y_zero_point"] == theirs
    given = ("2.0.0", scale, np.asarray(-(2**31), F32), 0, 2**32 - 1)
    assert to_qnn_encoding_dict(*given)["y_zero_point"] == 2**31
    assert measured(*given)["y_zero_point"] == -(2**31)
