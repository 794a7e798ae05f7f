from fractions import Fraction

import numpy as np
import pytest

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.inputs import parameters
from halfeven.conformance.inputs.boundaries import ULPS, boundaries, boundary_codes, edges, huge
from halfeven.reference import Grid

INT8 = Grid(-128, 127)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("zero", [0, 3, -128])
def test_both_sides_of_every_boundary_are_there(name: str, zero: int) -> None:
    dtype = DTYPES[name]
    scale = np.asarray(0.1, dtype)
    x = boundaries(scale[None].astype(np.float64), np.array([zero]), INT8, dtype)[0]
    assert x.dtype == dtype
    assert x.size == 257 * (len(ULPS) + 1)
    values = sorted({Fraction(float(v)) for v in x})
    for code in range(INT8.qmin, INT8.qmax + 2):
        tie = (Fraction(code - zero) - Fraction(1, 2)) * Fraction(float(scale))
        below, above = [v for v in values if v <= tie], [v for v in values if v >= tie]
        width = Fraction(float(np.spacing(np.abs(np.asarray(float(tie), np.float32))))) * 2**16
        assert below, code
        assert above, code
        assert tie - below[-1] <= width
        assert above[0] - tie <= width


def test_a_power_of_two_gives_true_ties() -> None:
    x = boundaries(np.array([0.5]), np.array([0]), INT8, DTYPES["float32"])[0]
    quotient = x.astype(np.float64) / 0.5
    assert np.sum(quotient % 1 == 0.5) == 257


def test_wide_grids_are_covered_by_choice() -> None:
    codes = boundary_codes(Grid(-32768, 32767), 5)
    assert {-32768, -32767, 32767, 32768, 0, 1, 5, 6, 5 + 4096, 5 - 4096} <= set(codes.tolist())
    assert 60 < codes.size < 400
    assert codes.min() >= -32768


def test_edges_lie_outside_and_huge_reach_the_infinities() -> None:
    e = edges(np.array([1.0]), np.array([0]), INT8, DTYPES["float32"])[0]
    assert {-128.0, 127.0, 127.5, 128.0, 255.0 + 127.0} <= set(e.tolist())
    h = huge(np.array([0.5]), DTYPES["float32"])[0]
    assert {2.0**31, 2.0**30, -(2.0**63), np.inf, -np.inf, float(np.finfo(np.float32).max)} <= set(h.tolist())


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("grid", [INT8, Grid(0, 65535), Grid(0, 1)])
def test_scales_are_normal_distinct_and_keep_the_grid_finite(name: str, grid: Grid) -> None:
    dtype = DTYPES[name]
    s = parameters.scales(dtype, dtype, grid, 64, seed=0)
    assert s.size == 64
    assert np.unique(s.astype(np.float64)).size > 32
    assert (s > 0).all()
    assert np.isfinite((s.astype(np.float64) * grid.num_steps * 2).astype(dtype).astype(np.float64)).all()
    assert not np.array_equal(s, parameters.scales(dtype, dtype, grid, 64, seed=1))


def test_zero_points_have_the_asked_parity_and_lie_in_the_grid() -> None:
    for parity, rest in (("even", 0), ("odd", 1)):
        found = parameters.zero_points(INT8, parity)
        assert len(found) > 3
        assert all(z % 2 == rest and z in INT8 for z in found)
    assert parameters.zero_points(Grid(0, 1), "odd") == [1]
