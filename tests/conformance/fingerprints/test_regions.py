"""A region of which nothing is known is told where enough was seen of the rest, and chance does not make it."""

import numpy as np
import pytest

from halfeven.conformance.engine.explain import Explanation, Part
from halfeven.conformance.engine.region import Region
from halfeven.conformance.fingerprints.models import Asked, Given
from halfeven.conformance.fingerprints.regions import regional
from halfeven.conformance.fingerprints.search import Seen
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel

FAR = Region("quotients", (100.0, 100.0))


def seen(*codes: list[int]) -> list[Seen]:
    asked = Asked("quantize", np.dtype(np.float32), Grid(-128, 127), np.dtype(np.float32))
    return [Seen(Given(asked, np.array(q, np.float32), np.float32(1), 0), np.array(q)) for q in codes]


def told(calls: list[Seen], mask: list[bool], where: Region):
    model, own = EvaluationModel(), np.array(mask)
    rest = Part((), model, "onnx", {}, "", 1.0, mask=own)
    lost = Part((where,), None, "", {}, "does what no known model does", 0.0)
    return regional(Explanation((rest, lost), float(own.mean())), calls)


def test_what_is_right_for_most_is_the_rest() -> None:
    codes = [*range(12), 100, 101]
    assert told(seen(codes), [q < 100 for q in codes], FAR) is not None


@pytest.mark.parametrize(("right", "far"), [([0] * 12, 2), ([*range(12)], 60)], ids=["one code", "few answers"])
def test_what_is_right_by_chance_is_none(right: list[int], far: int) -> None:
    assert told(seen([*right, *[100] * far]), [*(True for _ in right), *(False for _ in range(far))], FAR) is None


@pytest.mark.parametrize(("calls", "believed"), [(3, False), (24, True)])
def test_of_few_calls_no_region_is_told(calls: int, believed: bool) -> None:
    every = [[*range(12)]] * calls
    mask = [call < calls // 2 for call in range(calls) for _ in range(12)]
    where = Region("size", (100, 200))
    assert where.is_of_calls
    assert (told(seen(*every), mask, where) is not None) == believed
