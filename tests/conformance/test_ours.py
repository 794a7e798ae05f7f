"""This project's own functions go through the engine like anybody's, and conform."""

from dataclasses import replace

import pytest

from halfeven.conformance import check
from halfeven.conformance.backends.registry import resolve
from halfeven.conformance.report.model import CONFORMING

CLAIMS = [(name, dtype) for name in ("halfeven", "halfeven.integer") for dtype in resolve(name)[0].dtypes]


@pytest.mark.parametrize(("name", "dtype"), CLAIMS)
def test_our_backends_conform(name: str, dtype: str) -> None:
    verdict = check(replace(resolve(name)[0], dtypes=(dtype,)))
    assert {r.outcome for r in verdict.results} <= CONFORMING, str(verdict)
    assert verdict.points > 1_000_000
