"""Regions are values: each has its code, its words and its elements, and every kind is told from what a kernel does."""

import numpy as np
import pytest
from wild_kernels import INT8, Kernel, answered, calls
from wild_kernels.quantizers import textbook

from halfeven.conformance.codes import other
from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.call import PLAIN, CallShape
from halfeven.conformance.engine.explain import explain
from halfeven.conformance.engine.fitting.elements import Observed, elements_of
from halfeven.conformance.engine.fitting.where import facts_of, wheres
from halfeven.conformance.engine.region import KINDS, Facts, Region, of_shapes, words_of
from halfeven.reference.systems import PROFILES

ONNX = PROFILES["onnx"]
X = np.array([0.0, 1.0, -1.0, np.inf, np.nan, 1e-40, 3.0, 200.0], np.float32)


def facts(x: np.ndarray = X, scale: float = 0.5, zero: int = 3, shape: CallShape = PLAIN) -> Facts:
    case = Case(Configuration("quantize", "float32", INT8, x.shape), x, np.float32(scale), np.int32(zero))
    answers = [Observed(case, np.zeros(x.shape), shape=shape)]
    return facts_of(elements_of(ONNX, answers), answers)


@pytest.mark.parametrize(
    ("region", "inside"),
    [
        (Region("tail", (3,)), [6, 7]),
        (Region("end", (1,)), [7]),
        (Region("lanes", (4, 1, 3)), [1, 3, 5, 7]),
        (Region("from", (5, 3)), [5, 6, 7]),
        (Region("nan"), [4]),
        (Region("infinite"), [3]),
        (Region("negative"), [2]),
        (Region("subnormal"), [5]),
        (Region("quotient", (8,)), [3, 7]),
        (Region("quotients", (2.0, 1.5)), [1, 2, 3, 6, 7]),
        (Region("scales", (0.5, 0.25)), [*range(8)]),
        (Region("scales", (0.75, 0.5)), []),
        (Region("reals", (2.0, 1.5)), [3, 6, 7]),
        (Region("powers"), [*range(8)]),
        (Region("odd"), [*range(8)]),
        (Region("negative zero points"), []),
        (Region("remainder", (3,)), [*range(8)]),
        (Region("remainder", (4,)), []),
        (Region("size", (9, 3)), []),
        (Region("unsigned"), []),
        (Region("last row"), []),
    ],
    ids=lambda v: v.words if isinstance(v, Region) else "",
)
def test_a_region_holds_its_elements(region: Region, inside: list[int]) -> None:
    assert np.flatnonzero(region.mask(facts())).tolist() == inside


def test_what_fails_with_several_granularities_is_one_region() -> None:
    def of(granularity: str) -> Observed:
        case = Case(Configuration("quantize", "float32", INT8, X.shape, granularity), X, np.float32(1), np.int32(0))
        return Observed(case, np.zeros(X.shape))

    answers = [of(g) for g in ("tensor", "channel", "group", "token")]
    seen = facts_of(elements_of(ONNX, answers), answers)
    failing = (seen.call == 1) | (seen.call == 3)
    [region] = [w.region for w in wheres(seen, failing) if np.array_equal(w.mask, failing)]
    assert region.words == "parameters per channel, token"


def test_places_in_rows_and_blocks() -> None:
    rows = facts(np.zeros((2, 8), np.float32), shape=CallShape(block="group 4"))
    held = {kind: np.flatnonzero(Region(kind).mask(rows)).tolist() for kind in ("last row", "last block")}
    assert held == {"last row": [*range(8, 16)], "last block": [*range(4, 8), *range(12, 16)]}
    assert np.array_equal(Region("later blocks").mask(rows), Region("last block").mask(rows))
    assert np.flatnonzero(Region("row tail", (3,)).mask(rows)).tolist() == [6, 7, 14, 15]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_subnormal_is_of_the_dtype(dtype: str) -> None:
    kernel = Kernel("", textbook, dtype=dtype, grids=(INT8,))
    seen = [answered(kernel, next(calls(kernel)))]
    least = facts_of(elements_of(ONNX, seen), seen).tiny
    assert np.unique(least).tolist() == [{"float16": 2.0**-14, "float64": 2.0**-1022}.get(dtype, 2.0**-126)]


def test_every_kind_has_a_code_of_its_level_and_words() -> None:
    examples = {
        "lanes": (8, 3),
        "size": (5, 3),
        "from": (5, 3),
        **dict.fromkeys(("quotients", "scales", "reals"), (5.5, 3.5)),
        "grids": (INT8,),
        "codes": (16,),
    }
    for kind, row in KINDS.items():
        region = Region(kind, examples.get(kind, (8,) if "{}" in str(row.words) or callable(row.words) else ()))
        assert region.code == other()["region"].get(row.level, other()["region"][""])[0]
        assert region.words
        assert "{" not in region.words
    said = {Region(kind).code for kind in KINDS}
    assert said >= {f"HE{n}" for n in range(601, 621)}


def test_regions_that_hold_together_are_said_together() -> None:
    assert words_of([Region("grids", (INT8,)), Region("odd")]) == "int8: odd zero points"
    assert words_of(()) == ""


def test_a_limit_is_said_as_far_as_it_is_known() -> None:
    f = facts()
    one, other_ = f.place >= 5, f.place <= 2
    region = Region("from", (4, -1)).within(f, one, other_)
    assert region == Region("from", (5, 2))
    assert region.words == "elements of an index above k, k from 2 to 4"
    assert np.flatnonzero(region.open(f)).tolist() == [3, 4]
    assert Region("size", (101, 100)).words == "tensors of more than k elements, k = 100"
    assert not Region("tail", (8,)).open(f).any()
    quotients = Region("quotients", (1.0, -1)).within(f, f.x >= 3, np.abs(f.x) <= 1)
    assert Region("scales", (2.0, 1.5)).outside == "s < k, k from 1.5 to 2"
    assert (quotients.words, quotients.outside) == ("|x/s| >= k, k from 2 to 6", "outside of |x/s| >= k, k from 2 to 6")


def test_regions_are_proper_and_each_comes_once() -> None:
    f = facts()
    found = list(wheres(f, f.x > 0))
    assert len({w.region for w in found}) == len(found) > 5
    assert all(w.mask.any() and not w.mask.all() for w in found)


def test_what_some_calls_lack_is_not_said_of_all() -> None:
    """Some blocks are read wrongly: others, and other calls with blocks, agree."""
    shapes = [CallShape(size=n, block="group 32") for n in range(64, 96)]
    found = of_shapes(shapes[::2], [*shapes[1::2], *(CallShape(size=n) for n in range(64, 96))])
    assert found is not None
    assert (found.code, found.words) == ("HE610", "blocks: group 32, in some calls")
    few = of_shapes(shapes[::2], [*shapes[1::2], CallShape(size=64)])
    assert few is not None
    assert few.words == "blocks: other than tensor, in some calls"
    alone = of_shapes(shapes, [CallShape(size=64)])
    assert alone == Region("block", ("group 32",))
    assert of_shapes([PLAIN], shapes) is None


def test_of_what_calls_have_that_differ_the_least_likely_is_said() -> None:
    """Blocks of two sizes are read wrongly, in layouts that take turns: most calls are not contiguous anyway."""
    layouts = ("contiguous", "transposed", "stepped", "padded rows", "reversed")
    every = [
        CallShape(size=n, layout=layouts[n % 5], block=f"group {(16, 32, 48, 64, 100)[n // 5 % 5]}") for n in range(400)
    ]
    bad = [s for s in every if s.block in {"group 48", "group 100"} and s.layout != "contiguous"][::3]
    found = of_shapes(bad, [*(s for s in every if s not in bad), *(CallShape(size=n) for n in range(50))])
    assert found is not None
    assert found.words == "blocks: group 100, group 48, in some calls"


def lost(where: Region) -> Kernel:
    """The textbook, and nonsense in a region."""

    def kernel(x, s, z, lo, hi):
        case = Case(Configuration("quantize", "float32", INT8, x.shape), x, np.asarray(s), np.asarray(z))
        seen = [Observed(case, np.zeros(x.shape))]
        inside = where.mask(facts_of(elements_of(ONNX, seen), seen))
        q = np.clip(np.rint(x / s) + np.float32(z), lo, hi)
        return np.where(inside, np.clip(lo + hi - q - 7, lo, hi), q)

    return Kernel(where.words, kernel, grids=(INT8,))


@pytest.mark.parametrize(
    "where",
    [Region("tail", (8,)), Region("negative")],
    ids=lambda w: w.words,
)
def test_where_nothing_known_is_done_the_region_is_said(where: Region) -> None:
    kernel = lost(where)
    found = explain(ONNX, [answered(kernel, c) for c in calls(kernel, scales=4)])
    assert found is not None
    rest, inside = found.parts
    assert (rest.words, inside.model) == ("", None)
    assert inside.where == (where,)
