"""One explanation for all answers: no two causes contradict each other, and none is refuted by an answer."""

import base64
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import Backend
from halfeven.conformance.concluding import conclusions, unexplained
from halfeven.conformance.engine import batch
from halfeven.conformance.engine.call import Answer, Call, CallShape
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.kept import Sample, decoded, encoded
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.report import codec
from halfeven.conformance.report.causes import UNKNOWN, by_cause
from halfeven.conformance.report.journal import Journal, Kept
from halfeven.conformance.report.model import CONFORMING, Result
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid

Kernel = Callable[..., Any]
INT8 = Grid(-128, 127)
VALUES = ("smoke", "boundaries", "odd-zero-point", "edges", "nan")


def kernel(rounded: Callable[[Any], Any], quotient: Callable[[Any, Any], Any] = np.divide) -> Kernel:
    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        with np.errstate(all="ignore"):
            codes = rounded(quotient(x, scale)) + zero_point
            return np.clip(np.nan_to_num(codes), qmin, qmax).astype(np.int8)

    return quantize


def half_away(v: Any) -> Any:
    return np.trunc(np.where(np.isfinite(v), v + np.copysign(np.nextafter(v.dtype.type(0.5), v.dtype.type(0)), v), v))


def tail(v: Any) -> Any:
    """In whole vectors of eight as documented, away from zero in the elements left over."""
    flat, body = np.ravel(v), np.size(v) // 8 * 8
    return np.concatenate([np.rint(flat[:body]), half_away(flat[body:])]).reshape(np.shape(v))


def times(x: Any, scale: Any) -> Any:
    return x * (np.ones((), scale.dtype) / scale)


RIGHT = kernel(np.rint)
AWAY = kernel(half_away)
RECIPROCAL = kernel(np.rint, times)
BY_HALF = kernel(lambda v: np.trunc(v + v.dtype.type(0.5)))


def backend(quantize: Kernel, name: str = "mine") -> Backend:
    return Backend(name, "onnx", {"quantize": quantize}, grids=(INT8,), dtypes=("float32",), array="numpy")


def asked(quantize: Kernel, *checks: str) -> tuple[Inside, list[Result], list[Sample]]:
    worker = Inside(backend(quantize))
    found = [answered(i, worker) for i in plan(worker.offer) if not checks or i.check in checks]
    return worker, [a.result for a in found], [a.sample for a in found if a.sample is not None]


def told(quantize: Kernel, *checks: str) -> list[Result]:
    worker, results, samples = asked(quantize, *checks)
    return concluded(results, samples, {"mine": worker})[0]


def wrong(results: list[Result]) -> Iterator[Result]:
    return (r for r in results if r.outcome not in {*CONFORMING, "not run"})


def test_one_cause_whatever_checks_it_fails() -> None:
    found = told(RECIPROCAL, *VALUES)
    assert len(list(wrong(found))) > 1
    assert {c.code for r in found for c in r.causes} == {"HE101"}
    [entry] = by_cause(found)
    assert entry.key[1] == "multiplies by 1/s where the document divides by s"


def from_one_on(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    """Truncates where the scale is above 1."""
    with np.errstate(all="ignore"):
        v = x / scale
        codes = np.where(scale > 1, np.trunc(v), np.rint(v)) + zero_point
        return np.clip(np.nan_to_num(codes), qmin, qmax).astype(np.int8)


def limited(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    """Takes no more than 6 of x."""
    return RIGHT(np.clip(x, -6, 6), scale, zero_point, qmin=qmin, qmax=qmax)


@pytest.mark.parametrize(
    ("quantize", "code", "where", "least"), [(from_one_on, "HE115", "s", 1.0), (limited, "HE624", "|x|", 6.0)]
)
def test_a_limit_of_the_scale_or_of_x_is_told(quantize: Kernel, code: str, where: str, least: float) -> None:
    causes = {c for r in told(quantize, *VALUES) for c in r.causes}
    assert {c.code for c in causes} == {code}
    [said] = {c.where for c in causes}
    start, _, limits = said.partition(" >= k, k from ")
    low, high = map(float, limits.split(" to "))
    assert start == where
    assert least <= high
    assert low <= high < 1.1 * least


def test_what_becomes_of_nan_is_told_where_the_reals_hide_its_code() -> None:
    """A scale of infinity or 0 in 16 bits makes NaN of numbers, and an infinity or 0 of whatever code that gets."""

    def halved(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        with np.errstate(all="ignore"):
            s = np.asarray(scale).astype(np.float16).astype(x.dtype)
            codes = np.nan_to_num(np.clip(np.rint(x / s) + zero_point, qmin, qmax), nan=float(qmin))
            return ((codes - zero_point) * s).astype(x.dtype)

    worker = Inside(replace(backend(RIGHT), operations={"fake_quantize": halved}, grids=(INT8, Grid(0, 255))))
    found = [answered(i, worker) for i in plan(worker.offer) if i.check in {*VALUES, CALL_SHAPES}]
    samples = [a.sample for a in found if a.sample is not None]
    told_ = concluded([a.result for a in found], samples, {"mine": worker})[0]
    assert {(c.code, c.where) for r in told_ for c in r.causes} == {("HE137", ""), ("HE143", "")}


def test_each_check_has_the_causes_that_its_own_answers_need() -> None:
    both = kernel(half_away, times)
    found = {r.check: {c.code for c in r.causes} for r in wrong(told(both, *VALUES))}
    assert found["boundaries"] == {"HE101", "HE111"}
    assert all(codes <= {"HE101", "HE111"} for codes in found.values())


def test_an_error_in_some_calls_is_a_cause_beside_what_the_others_do() -> None:
    def raises(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        if x.size > 60_000:
            msg = "out of memory"
            raise RuntimeError(msg)
        return RECIPROCAL(x, scale, zero_point, qmin=qmin, qmax=qmax)

    found = {r.check: r for r in wrong(told(raises, "boundaries", "call-shapes"))}
    assert [c.code for c in found["boundaries"].causes] == ["HE101"]
    shapes = found["call-shapes"]
    assert shapes.outcome == "differs"
    assert [c.code for c in shapes.causes] == ["HE101", "HE403"]
    assert shapes.cause.endswith("raises RuntimeError: out of memory")


def test_the_nearest_is_the_model_that_gives_most_of_all_answers() -> None:
    """Not a piece of it that is true of some granularities alone."""

    def off(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        found = RECIPROCAL(x, scale, zero_point, qmin=qmin, qmax=qmax)
        if x.size > 60_000:
            found.reshape(-1)[-1] ^= 1
        return found

    shares = {(c.sentence, c.share) for r in wrong(told(off)) for c in r.causes if c.code == "HE998"}
    assert {(s.partition("nearest ")[2][:19], share) for s, share in shares} == {
        ("multiplies by 1/s w", ">99% of the answers")
    }


def test_a_probe_that_differs_is_evidence_and_the_run_goes_on() -> None:
    found = told(BY_HALF, *VALUES)
    assert {r.outcome for r in found} & {"not run"} == set()
    assert next(r for r in found if r.check == "smoke").outcome == "differs"
    assert not any("broken adapter" in r.cause for r in found)


@pytest.mark.parametrize("value", [0, 7, np.nan])
def test_an_adapter_that_answers_one_constant_is_broken(value: float) -> None:
    def constant(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return np.full(np.shape(x), value, np.float32 if value != value else np.int8)  # noqa: PLR0124 - NaN

    found = told(constant, *VALUES)
    probes, rest = ([r for r in found if (r.check == "smoke") is is_probe] for is_probe in (True, False))
    assert {c.code for r in probes for c in r.causes} == {"HE512"}
    assert {r.outcome for r in rest} == {"not run"}


def test_an_adapter_that_gives_the_answer_before_is_broken() -> None:
    kept: list[Any] = []

    def stale(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        kept.append(RECIPROCAL(x, scale, zero_point, qmin=qmin, qmax=qmax))
        before = kept[-2] if len(kept) > 1 else kept[-1]
        return before if before.shape == kept[-1].shape else kept[-1]

    found = told(stale, "smoke")
    assert {c.code for r in found for c in r.causes} == {"HE504"}


def test_an_adapter_that_keeps_an_answer_for_a_shape_is_broken() -> None:
    kept: dict[Any, Any] = {}

    def first(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return kept.setdefault(x.shape, RIGHT(x, scale, zero_point, qmin=qmin, qmax=qmax))

    found = told(first, "smoke")
    assert {c.code for r in found for c in r.causes} == {"HE504"}


def test_a_kernel_that_gives_one_code_for_two_inputs_is_not_stale() -> None:
    def magnitudes(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return RIGHT(np.abs(x), scale, zero_point, qmin=qmin, qmax=qmax)

    def wrong_for_one(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return RIGHT(np.where(x == -3, x.dtype.type(3), x), scale, zero_point, qmin=qmin, qmax=qmax)

    for kernel_ in (magnitudes, wrong_for_one):
        found = told(kernel_, "smoke", "boundaries")
        assert not {c.code for r in found for c in r.causes} & {"HE504", "HE512"}
        assert list(wrong(found))


def test_faults_and_errors_have_codes() -> None:
    def misshapen(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return RECIPROCAL(x, scale, zero_point, qmin=qmin, qmax=qmax)[None]

    def raises(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        msg = "no kernel"
        raise NotImplementedError(msg)

    for broken, code in ((misshapen, "HE501"), (raises, "HE404")):
        assert {c.code for r in told(broken, "smoke", "boundaries") for c in r.causes} == {code}


def test_an_explanation_that_fresh_answers_refute_is_not_said() -> None:
    worker, results, samples = asked(RECIPROCAL, *VALUES)
    other = Inside(backend(kernel(lambda v: np.rint(v * v.dtype.type(1.01)))))
    found, trials = concluded(results, samples, {"mine": other})
    assert any(t.open for t in trials)
    assert not any("HE101" in {c.code for c in r.causes} for r in found)
    assert {c.code for r in concluded(results, samples, {"mine": worker})[0] for c in r.causes} == {"HE101"}


def test_a_cause_that_an_answer_of_another_check_refutes_is_not_said() -> None:
    """Below one code it multiplies by 1/s, and beyond it divides by 1.01 s."""

    def two(x: Any, scale: Any) -> Any:
        return np.where(np.abs(x / scale) < 100, times(x, scale), x / (scale * scale.dtype.type(1.01)))

    found = list(wrong(told(kernel(np.rint, two), "boundaries", "edges", "odd-zero-point")))
    assert len(found) > 1
    sentences = {c.sentence for r in found for c in r.causes if not c.where and not c.share}
    assert len(sentences) <= 1
    assert "multiplies by 1/s where the document divides by s" not in sentences


def test_the_same_is_concluded_from_the_journal(tmp_path: Path) -> None:
    worker, results, samples = asked(RECIPROCAL, *VALUES)
    path = tmp_path / "journal.jsonl"
    for entry in (*(Kept(s.name, encoded(s)) for s in samples), *results):
        codec.append(path, entry)
    journal = codec.read_journal(path)
    assert unexplained(journal) == {"mine"}
    for entry in conclusions(journal, {"mine": worker}):
        journal.add(entry)
        codec.append(path, entry)
    here = {r.name: r for r in concluded(results, samples, {"mine": worker})[0]}
    assert journal.results == here
    assert unexplained(journal) == set()
    assert list(conclusions(journal)) == []
    again = codec.read_journal(path)
    assert again.results == here
    assert any("/trial/" in name for name in again.kept), "the answers to fresh calls are evidence too"
    forgotten = Journal({r.name: r for r in results}, kept=again.kept)
    for entry in conclusions(forgotten):  # no backend is asked
        forgotten.add(entry)
    assert forgotten.results == here


@pytest.mark.parametrize(("exact", "outcome", "codes"), [(RIGHT, "crashed", []), (RECIPROCAL, "differs", ["HE101"])])
def test_errors_of_several_kinds_are_all_told(exact: Kernel, outcome: str, codes: list[str]) -> None:
    def picky(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        if x.ndim > 2:
            msg = f"rank {x.ndim} at most 2"
            raise ValueError(msg)
        if x.ndim == 2 and x.strides[-1] != x.itemsize:
            msg = "not contiguous"
            raise ValueError(msg)
        return exact(x, scale, zero_point, qmin=qmin, qmax=qmax)

    [found] = [r for r in told(picky, "boundaries", CALL_SHAPES) if r.check == CALL_SHAPES]
    assert found.outcome == outcome
    assert [c.code for c in found.causes] == [*codes, "HE402", "HE402"]
    assert {c.sentence.partition(": ")[2].split()[0] for c in found.causes[-2:]} == {"rank", "not"}


def test_samples_are_bounded_and_survive_being_written() -> None:
    _, _, samples = asked(kernel(tail))
    assert len(samples) > 5
    for plain in samples:
        sample = replace(plain, raised=("RuntimeError: no kernel",), refuted=("onnx/some@1.0",))
        text = encoded(sample)
        assert len(text) < 40_000
        again = decoded(sample.name, text)
        assert encoded(again) == text
        assert (again.open, again.differing, again.agreeing) == (sample.open, sample.differing, sample.agreeing)
    [shapes] = [s for s in samples if s.open and "any-call-shape" in s.name]
    [of] = shapes.subjects
    seen = shapes.observed(of)
    differing = sum(0 if a.where is None else len(a.where) for a in seen)
    assert 0 < differing < sum(a.value.size for a in seen), "of both kinds there are some"
    for a in seen:
        if a.where is not None and len(a.where):
            assert a.place is not None
            assert (a.place[a.where] >= a.size // 8 * 8).all()


def written(sample: Sample, said: dict[str, Any]) -> str:
    """What a journal has of it, with other words beside."""
    data = zlib.decompress(base64.b85decode(encoded(sample)))
    length = int.from_bytes(data[:8], "little")
    calls, known = batch.opened(data[8 : 8 + length], Call)
    made = batch.dump(calls, known | said)
    packed = zlib.compress(len(made).to_bytes(8, "little") + made + data[8 + length :])
    return base64.b85encode(packed).decode("ascii")


def test_a_journal_of_a_version_before_has_one_error_or_none() -> None:
    sample = Sample("mine::some", raised=("RuntimeError: no kernel", "TypeError: no"))
    assert decoded(sample.name, written(sample, {})).raised == sample.raised
    assert decoded(sample.name, written(sample, {"raised": "RuntimeError: no kernel"})).raised == sample.raised[:1]
    assert decoded(sample.name, written(sample, {"raised": ""})).raised == ()


def test_damaged_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="kept of mine::some are damaged"):
        decoded("mine::some", "none")
    with pytest.raises(ValueError, match="7 is no list of texts"):
        decoded("mine::some", written(Sample("mine::some"), {"raised": 7}))


def test_what_a_backend_says_at_any_length_is_not_kept() -> None:
    long = Answer("raised", error=("RuntimeError",), message="A" * 3_000_000, traceback="A" * 3_000_000)
    worker, _, samples = asked(RECIPROCAL, "boundaries")
    assert worker.offer.name == "mine"
    from halfeven.conformance.engine.kept import _shortened  # noqa: PLC0415 - what is written is what counts

    kept = replace(samples[0], calls=samples[0].calls[:1], answers=(_shortened(long),))
    assert len(encoded(kept)) < 40_000


def test_only_what_differs_and_nothing_else_is_a_region() -> None:
    """A kernel without a layout in it is not said to depend on one."""
    found = list(wrong(told(BY_HALF)))
    assert found
    assert not any(c.code.startswith("HE6") or "layout" in c.where for r in found for c in r.causes)


def test_nothing_known_is_said_as_that() -> None:
    odd = kernel(lambda v: np.rint(v * v.dtype.type(1.01)))
    found = list(wrong(told(odd, "boundaries", "edges")))
    assert found
    assert all(UNKNOWN in r.cause for r in found)
    assert {c.code for r in found for c in r.causes} <= {"HE998", "HE999"}


def test_shapes_are_kept_in_full() -> None:
    _, _, samples = asked(kernel(tail))
    [shapes] = [s for s in samples if s.open and "any-call-shape" in s.name]
    assert len(shapes.differing) > 10
    assert all(isinstance(s, CallShape) for s in (*shapes.differing, *shapes.agreeing))


def test_a_kernel_that_scrambles_what_is_not_contiguous_is_told_by_the_layout() -> None:
    def scrambled(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        q = RIGHT(x, scale, zero_point, qmin=qmin, qmax=qmax)
        return q if x.flags.c_contiguous or x.size < 3 else np.ravel(q)[::-1].reshape(q.shape)

    found = list(wrong(told(scrambled)))
    assert {r.check for r in found} == {"call-shapes"}
    assert {c.code for r in found for c in r.causes} == {"HE603"}
    assert all(c.where.startswith("layout") for r in found for c in r.causes)


def test_a_tail_is_said_as_that() -> None:
    found = list(wrong(told(kernel(tail))))
    assert found
    assert {c.where for r in found for c in r.causes} == {"the last n mod 8 elements"}
    assert "rounds ties away from zero where the document rounds ties to even" in {
        c.sentence for r in found for c in r.causes
    }


def test_on_some_grids_what_is_done_is_said_though_nothing_is_known_of_others() -> None:
    """On int8 ties of negative x go away from zero, on uint8 all is as documented, on int4 as nothing known."""

    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        with np.errstate(all="ignore"):
            r = np.where((x < 0) & (qmin < 0), half_away(x / scale), np.rint(x / scale))
            q = np.clip(np.nan_to_num(r) + zero_point, qmin, qmax).astype(np.int64)
            return np.where(x.view(np.uint32) % 7 == 0, qmin, q) if qmax == 7 else q

    grids = (INT8, Grid(0, 255), Grid(-8, 7))
    worker = Inside(Backend("mine", "onnx", {"quantize": quantize}, grids=grids, dtypes=("float32",), array="numpy"))
    found = [answered(i, worker) for i in plan(worker.offer) if i.check in VALUES]
    results, _ = concluded(
        [a.result for a in found], [a.sample for a in found if a.sample is not None], {"mine": worker}
    )
    said = {(r.id.split("/")[3], c.code, c.where) for r in wrong(results) for c in r.causes}
    assert said == {
        ("int8", "HE111", "int8: x is negative"),
        ("int4", "HE998", ""),
    }


def test_what_is_done_with_one_granularity_is_said_though_nothing_is_known_of_another() -> None:
    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int, block_size: Any = None) -> Any:
        away = block_size is None  # a channel's parameters broadcast
        with np.errstate(all="ignore"):
            r = half_away(x / scale) if away else np.rint(x / scale)
            q = np.clip(np.nan_to_num(r) + zero_point, qmin, qmax).astype(np.int8)
            return q if away else np.where(x.view(np.uint32) % 7 == 0, q - (q > qmin), q)

    offered = backend(quantize)
    worker = Inside(replace(offered, granularities=("tensor", "channel")))
    found = [answered(i, worker) for i in plan(worker.offer) if i.check in VALUES]
    results, _ = concluded(
        [a.result for a in found], [a.sample for a in found if a.sample is not None], {"mine": worker}
    )
    said = {(r.id.split("/")[-1], c.code, c.where) for r in wrong(results) for c in r.causes}
    assert ("per-tensor", "HE111", "parameters per tensor") in said
    assert {code for of, code, _ in said if of == "per-channel"} <= {"HE998", "HE999"}


def test_a_choice_by_the_scale_is_of_no_grid() -> None:
    """On some grids only small scales were seen to differ: fresh calls of each grid have large ones too."""

    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        by = RECIPROCAL if scale < 0.5 else RIGHT
        return by(x, scale, zero_point, qmin=qmin, qmax=qmax)

    found = list(wrong(told(quantize)))
    assert found
    assert all("int" not in c.where for r in found for c in r.causes)


def test_of_one_lane_the_lane_is_said() -> None:
    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        q = np.ravel(RIGHT(x, scale, zero_point, qmin=qmin, qmax=qmax)).copy()
        q[5::8] = np.ravel(AWAY(x, scale, zero_point, qmin=qmin, qmax=qmax))[5::8]
        return q.reshape(np.shape(x))

    found = list(wrong(told(quantize)))
    assert {c.where for r in found for c in r.causes} == {"elements 5 of every 8"}


def test_a_shortcut_for_the_scale_1_is_said_as_that() -> None:
    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return RIGHT(x, scale, 0 if scale == 1 else zero_point, qmin=qmin, qmax=qmax)

    found = list(wrong(told(quantize)))
    assert {(c.code, c.where) for r in found for c in r.causes} == {("HE618", "scales that are 1")}


def test_a_path_for_the_least_zero_point_is_said_as_that() -> None:
    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        by = RECIPROCAL if zero_point == qmin else RIGHT
        return by(x, scale, zero_point, qmin=qmin, qmax=qmax)

    found = list(wrong(told(quantize)))
    assert {(c.code, c.where) for r in found for c in r.causes} == {("HE101", "the least zero point, qmin")}
