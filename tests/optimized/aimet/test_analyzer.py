"""The analyzers: exact against the formulas on every documented call, in any layout, and in pieces of any size."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from asking import ask
from torch import Tensor

from halfeven.conformance.backends.registry import resolve
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.systems import call_sets
from halfeven.optimized.aimet import DequantizedTensor
from halfeven.optimized.aimet import encoding_analyzer as analyzers
from halfeven.optimized.aimet.encoding_analyzer import base, binning, histogram, sqnr
from halfeven.reference.catalogue import FORMULAS

CALLS = call_sets()


OURS = resolve("halfeven.aimet")[0].functions
ANSWERED = {f"aimet/{name}" for name in ("minmax_encodings", "histogram", "percentile_encodings", "sqnr_encodings")}
SETS = [key for key in CALLS if key[0] in ANSWERED]


@pytest.mark.parametrize(("formula", "name"), SETS, ids=lambda part: part)
def test_every_documented_call_is_exact(formula: str, name: str) -> None:
    tried = 0
    for call in CALLS[formula, name].build():
        found = differences(answer_of(FORMULAS[formula].function, call), ask(OURS[formula], call))
        assert not found.differing, found.words
        tried += found.points
    assert tried


def observed(analyzer: Any, *batches: Tensor) -> Any:
    for x in batches:
        analyzer.update_stats(x)
    return analyzer


def batches(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    made = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=made) * 3**i for i, shape in enumerate(shapes)]


KINDS = {
    "minmax": lambda shape, blocks=None: analyzers.MinMaxEncodingAnalyzer(shape, blocks),
    "percentile": lambda shape, blocks=None: analyzers.PercentileEncodingAnalyzer(shape, 33, 90, blocks),
    "sqnr": lambda shape, blocks=None: analyzers.SqnrEncodingAnalyzer(shape, 20, block_size=blocks),
    "tf": lambda shape, blocks=None: analyzers.TfEnhancedEncodingAnalyzer(shape, blocks),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_channel_is_what_it_is_alone(kind: str, symmetric: bool, axis: int, dtype: torch.dtype) -> None:
    made = [x.to(dtype) for x in batches((2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4, 5))]
    made[1] = made[1].to(memory_format=torch.channels_last)
    n = made[0].shape[axis]
    low, high = observed(KINDS[kind]((n, *(1,) * (3 - axis))), *made).compute_encodings(15, symmetric)
    alone = [
        observed(KINDS[kind](()), *(x.select(axis, i) for x in made)).compute_encodings(15, symmetric) for i in range(n)
    ]
    assert torch.equal(low.flatten(), torch.stack([a[0] for a in alone]))
    assert torch.equal(high.flatten(), torch.stack([a[1] for a in alone]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_what_it_is_alone(kind: str) -> None:
    made = batches((4, 6), (2, 4, 6), seed=1)
    low, _ = observed(KINDS[kind]((2, 3), (2, -1)), *made).compute_encodings(255, is_symmetric=False)
    for i in range(2):
        for j in range(3):
            own = (x[..., 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] for x in made)
            assert low[i, j] == observed(KINDS[kind](()), *own).compute_encodings(255, is_symmetric=False)[0]


@pytest.mark.parametrize("piece", [1, 7, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch, piece: int, dtype: Any) -> None:
    monkeypatch.setattr(binning, "_PIECE", piece)
    monkeypatch.setattr(sqnr, "_PIECE", piece)
    rng = np.random.default_rng(piece)
    given = tuple((rng.standard_normal((3, 5, 11)) * s).astype(dtype) for s in (1, 4))
    given[1][0, 0, :3] = np.nan, np.inf, -np.inf
    call: dict[str, Any] = {"batches": given, "shape": (5, 1), "num_bins": 9}
    encodings = call | {"num_steps": 15, "symmetric": False}
    for formula, arguments in (
        ("aimet/histogram", call),
        ("aimet/percentile_encodings", encodings | {"percentile": 80.0}),
        ("aimet/sqnr_encodings", encodings),
    ):
        found = differences(answer_of(FORMULAS[formula].function, arguments), ask(OURS[formula], arguments))
        assert not found.differing, (formula, found.words)


def test_sqnr_is_the_same_however_many_at_once() -> None:
    x = batches((70, 40), seed=2)[0]
    found = [
        observed(analyzers.SqnrEncodingAnalyzer((70, 1), 30, max_parallelism=n), x).compute_encodings(15, False)
        for n in (1, 64)
    ]
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


def test_sqnr_sums_errors_in_float64() -> None:
    counts, edges, end = torch.tensor([[2.0**24, 1.0]]), torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([2.0])
    seen = histogram.Histograms(counts, edges, 0 * end, end)
    one = torch.ones(1, 1)
    assert sqnr._costs(seen, one, 0 * one, 1, 1.0, 1).item() == 2.0**22 + 0.25


@pytest.mark.parametrize("num_steps", [53, 250])  # whose last offset is just below zero
def test_sqnr_s_least_zero_is_positive(num_steps: int) -> None:
    x = torch.linspace(0, 1, 100)
    low, _ = observed(analyzers.SqnrEncodingAnalyzer((), 20), x).compute_encodings(num_steps, is_symmetric=False)
    assert low == 0
    assert not low.signbit()


def test_blocks_that_do_not_fit_are_named() -> None:
    for kind in KINDS.values():
        with pytest.raises(RuntimeError, match=r"shape=\(2, 3\) with block_size=\(4, 1\).*\(4, 6\)"):
            kind((2, 3), (4, 1)).update_stats(torch.ones(4, 6))
        with pytest.raises(RuntimeError, match=r"shape=\(5,\)"):
            kind((5,)).update_stats(torch.ones(4, 6))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", [(-1.0, 2.0), (0.5, 1.0), (0.0, 0.0), (-3.0, -1.0)])
def test_one_symmetric_bit_is_finite(kind: str, values: tuple[float, float]) -> None:
    low, high = observed(KINDS[kind](()), torch.tensor(values)).compute_encodings(1, is_symmetric=True)
    assert low.isfinite()
    assert high == 0 or kind in {"sqnr", "tf"}
    assert low <= 0


def test_a_second_batch_of_float64_is_taken() -> None:
    analyzer = observed(KINDS["percentile"](()), *(x.double() for x in batches((9,), (9,))))
    assert sum(int(h.histogram.sum()) for h in analyzer.observer.get_stats()) == 18


@pytest.mark.parametrize(("value", "spread"), [(-30.0, 1e-5), (1e8, 0.0), (-30.0, 2e-6)])
def test_no_count_is_lost_where_bins_have_no_width(value: float, spread: float) -> None:
    first = torch.tensor([value, value + spread, value + spread])
    analyzer = observed(analyzers.PercentileEncodingAnalyzer((), 100, 90), first, batches((50,))[0] * 100)
    (kept,) = analyzer.observer.get_stats()
    assert kept.histogram.sum() == 53
    assert kept.bin_edges.isfinite().all()
    assert all(end.isfinite() for end in analyzer.compute_encodings(255, is_symmetric=False))


def test_counts_grow_beyond_2_to_the_24() -> None:
    (kept,) = histogram.HistogramObserver((), num_bins=2).collect_stats(torch.zeros(()).expand(2**24 + 4))
    assert kept.histogram.tolist() == [0, 2**24 + 4]


def test_tf_enhanced_clamps_what_is_beyond_the_first_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzers.TfEnhancedEncodingAnalyzer, "_growth_limit", 3.0)
    x = torch.tensor([-1.0, 1.0])
    (kept,) = observed(analyzers.TfEnhancedEncodingAnalyzer(()), x, 100 * x).observer.get_stats()
    assert (kept.min, kept.max, len(kept.histogram)) == (-4, 4, 512)
    assert kept.histogram[[0, -1]].tolist() == [1, 1]
    analyzers.TfEnhancedEncodingAnalyzer.set_growth_limit(1)
    (kept,) = observed(analyzers.TfEnhancedEncodingAnalyzer(()), x, 100 * x).observer.get_stats()
    assert (kept.min, kept.max) == (-2, 2)
    with pytest.raises(RuntimeError, match=r"growth_limit=0\.5"):
        analyzers.TfEnhancedEncodingAnalyzer.set_growth_limit(0.5)


def test_adjust_min_max_takes_several_parameters() -> None:
    low, high = torch.tensor([1.0, -2.0, math.nan, 0.0, -math.inf]), torch.tensor([2.0, -1.0, 1.0, 0.0, 1.0])
    before = low.clone()
    for symmetric in (False, True):
        found = analyzers.adjust_min_max(low, high, 255, symmetric)
        each = [analyzers.adjust_min_max(a, b, 255, symmetric) for a, b in zip(low, high, strict=True)]
        for i in range(2):
            assert torch.equal(found[i].nan_to_num(7), torch.stack([e[i] for e in each]).nan_to_num(7))
    assert torch.equal(low[:2], before[:2])
    low, high = analyzers.adjust_min_max(torch.tensor([-1.0, -0.0]), torch.tensor([3.0, -0.0]), 15, is_symmetric=False)
    assert low.tolist() == [-1, 0]
    assert high.tolist() == [3, float(torch.tensor(2.0**-23 * 15))]
    assert not low.signbit()[1]


def test_statistics_come_and_go() -> None:
    assert issubclass(analyzers.StatisticsNotFoundError, RuntimeError)
    for kind in KINDS.values():
        analyzer = kind((2, 1))
        for _ in range(2):
            with pytest.raises(analyzers.StatisticsNotFoundError):
                analyzer.compute_encodings(15, is_symmetric=False)
            x, y = batches((2, 8), (2, 8))
            analyzer.update_stats(x)
            alone = analyzer.compute_encodings(15, is_symmetric=False)
            analyzer.compute_dynamic_encodings(y, 15, is_symmetric=False)
            assert torch.equal(analyzer.compute_encodings(15, is_symmetric=False)[1], alone[1])
            assert torch.equal(kind((2, 1)).compute_dynamic_encodings(x, 15, is_symmetric=False)[0], alone[0])
            analyzer.update_stats(y)
            assert not torch.equal(analyzer.compute_encodings(15, is_symmetric=False)[1], alone[1])
            analyzer.reset_stats()
        with pytest.raises(ValueError, match="num_steps=0"):
            observed(analyzer, x).compute_encodings(0, is_symmetric=False)


def test_statistics_of_a_batch_print_and_index_one_by_one() -> None:
    x = torch.tensor([0.0, 1.0, 2.0])
    assert repr(analyzers.MinMaxEncodingAnalyzer((1,)).update_stats(x)) == (
        "_MinMaxRange(min=tensor([0.]), max=tensor([2.]))"
    )
    found = analyzers.PercentileEncodingAnalyzer((1,), num_bins=2).update_stats(x)
    assert repr(found) == (
        "[Histogram(histogram=tensor([1., 2.]), bin_edges=tensor([0., 1., 2.]), min=tensor(0.), max=tensor(2.))]"
    )
    assert len(found) == 1
    assert [h.max for h in found[:1]] == [2]
    merged = observed(analyzers.PercentileEncodingAnalyzer((1,), 2), x)
    stats = list(merged.observer.get_stats())
    assert merged.compute_encodings_from_stats(stats, 3, is_symmetric=False)[1] == 2
    with pytest.raises(IndexError):
        found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_that_know_more_than_their_values(kind: str) -> None:
    x = batches((3, 7))[0]
    expected = observed(KINDS[kind](()), x).compute_encodings(15, is_symmetric=True)
    for same in (x.clone().requires_grad_(), x.as_subclass(DequantizedTensor), x.T, torch.nn.Parameter(x)):
        found = observed(KINDS[kind](()), same).compute_encodings(15, is_symmetric=True)
        assert [type(end) for end in found] == [Tensor, Tensor]
        assert torch.equal(found[1], expected[1])
        assert not found[1].requires_grad


def test_refusals_name_the_argument() -> None:
    with pytest.raises(ValueError, match="num_bins=0"):
        analyzers.PercentileEncodingAnalyzer((), 0)
    with pytest.raises(ValueError, match=r"percentile=49\.9"):
        analyzers.PercentileEncodingAnalyzer(()).set_percentile(49.9)
    with pytest.raises(ValueError, match="offset_candidates=2"):
        analyzers.SqnrEncodingAnalyzer((), offset_candidates=2)
    with pytest.raises(TypeError, match=r"torch\.int64"):
        analyzers.MinMaxEncodingAnalyzer(()).update_stats(torch.arange(3))
    with pytest.raises(IndexError, match=r"\(0, 3\)"):
        analyzers.MinMaxEncodingAnalyzer(()).update_stats(torch.ones(0, 3))
    with pytest.raises(RuntimeError, match="finite"):
        analyzers.SqnrEncodingAnalyzer((2, 1)).update_stats(torch.tensor([[1.0], [math.inf]]))
    with pytest.raises(RuntimeError, match=r"from -3\.\d*e\+38"):
        analyzers.SqnrEncodingAnalyzer(()).update_stats(torch.tensor([-3e38, 3e38]))
    observer = histogram.HistogramObserver((), num_bins=2)
    stats = observer.collect_stats(torch.ones(2))
    observer.merge_stats(stats)
    with pytest.raises(TypeError, match="input_tensor=None"):
        observer.merge_stats(stats)


@pytest.mark.parametrize(
    ("low", "high", "dtype", "words"),
    [
        (-1.0, math.inf, torch.float32, "Infinite or NaN"),
        (math.nan, 1.0, torch.float32, "Infinite or NaN"),
        (-3.3e38, 1.0, torch.float32, "Extreme"),
        (-1.0, 63000.0, torch.float16, "Extreme"),
        (-3.2e38, 1.0, torch.float32, None),
        (-1.0, 62000.0, torch.float16, None),
    ],
)
def test_ranges_of_no_use_are_flagged(low: float, high: float, dtype: torch.dtype, words: str | None) -> None:
    ends = torch.tensor(low, dtype=dtype), torch.tensor(high, dtype=dtype)
    if words is None:
        analyzers.flag_extreme_min_max(*ends)
        return
    with pytest.warns(UserWarning, match=words):
        analyzers.flag_extreme_min_max(*ends)


def test_constants_are_tensors_so_that_no_device_multiplies_by_a_reciprocal() -> None:
    assert base.constant(7, torch.ones(2)).shape == ()
    assert base.constant(7, torch.ones(2, dtype=torch.float64)).dtype == torch.float64
