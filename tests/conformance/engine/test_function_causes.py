"""Why functions differ where no behaviour gives all answers: what gives most of them, and what tells the rest apart."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance.engine.argument import Argument
from halfeven.conformance.engine.call import PLAIN, Answer, Call, CallShape
from halfeven.conformance.engine.evidence import Judged
from halfeven.conformance.engine.function_causes import FunctionWhy
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.engine.kept import Sample
from halfeven.conformance.engine.region import Region, of_shapes
from halfeven.conformance.engine.told import Told
from halfeven.reference import FORMULAS

ID = "torchao/choose_qparams_affine"
RELEASE = ("torchao", "torchao", "0.18.0")
DOCUMENT, MEASURED = FORMULAS[ID], FORMULAS[f"{ID}@0.18"]
TRANSPOSED = CallShape(layout="transposed")
KINDS = (np.float32, np.float16, ml_dtypes.bfloat16)
Given = dict[str, Any]
Does = Callable[[Given, CallShape, int], Answer]


def calls(dtype: Any = np.float32, times: float = 1) -> list[Given]:
    """Blocks that are larger than any least scale, and blocks that are not, with each mapping."""
    x = np.asarray([[1, -3], [0.5, 7], [0, 0]], np.float64) * times
    kinds = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")
    return [
        {"input": (x * by).astype(dtype), "mapping_type": kind, "block_size": (1, 2), "target_dtype": "int8"}
        for kind in kinds
        for by in (1, 1e-30 if dtype is np.float32 else 1e-6)
    ]


def doubled(answer: Answer) -> Answer:
    scale, zero = answer.value
    return Answer("returned", (scale * scale.dtype.type(2), zero))


def as_measured(given: Given) -> Answer:
    return answer_of(MEASURED.function, given)


def as_documented(given: Given) -> Answer:
    return answer_of(DOCUMENT.function, given)


def why(does: Does, checks: Sequence[Sequence[tuple[Given, CallShape]]]) -> tuple[FunctionWhy, list[Told]]:
    """The explanation of so many checks, and what it says of each."""
    samples, turn = [], 0
    for number, some in enumerate(checks):
        answers = []
        for given, shape in some:
            answers.append(does(given, shape, turn))
            turn += 1
        asked = tuple(Call(ID, (), given, shape, "") for given, shape in some)
        wrong = [bool(differences(as_documented(g), a).differing) for (g, _), a in zip(some, answers, strict=True)]
        bad, good = (tuple(s for (_, s), w in zip(some, wrong, strict=True) if w is side) for side in (True, False))
        samples.append(Sample(f"torchao::{ID}/{number}", asked, tuple(answers), True, bad, good))
    found = FunctionWhy(DOCUMENT, samples, RELEASE)
    return found, [found.told(s, "differs", "result[0] is another") for s in samples]


def judged(given: Given, answer: Answer) -> Judged:
    return Judged(as_documented(given), answer, None, Call(ID, (), given, PLAIN, ""))


PLAINLY = [(g, PLAIN) for g in calls()]


def test_a_release_in_all_calls_but_those_of_a_layout() -> None:
    shaped = [(g, s) for g in calls() for s in (PLAIN, TRANSPOSED)]

    def does(given: Given, shape: CallShape, _: int) -> Answer:
        return doubled(as_documented(given)) if shape == TRANSPOSED else as_measured(given)

    found, [plain, both] = why(does, [PLAINLY, shaped])
    assert found.mostly is not None
    assert found.mostly.where == Region("layout", ("transposed",))
    assert found.key is not None
    assert {c.where for c in plain.causes} == {"outside of layout transposed"}
    assert {c.code for c in plain.causes} == {"HE2157", "HE2177"}
    assert {c.code for c in both.causes} == {"HE2157", "HE2177", "HE603"}
    assert (plain.outcome, both.outcome) == ("differs", "differs")
    given = calls()[0]
    assert not found.refuted([judged(given, as_measured(given))])
    assert found.refuted([judged(given, doubled(as_documented(given)))])
    [near] = found.doubted().told(found.samples[0], "differs", "").causes
    assert near.code == "HE998"


def test_a_release_in_all_calls_but_one_is_the_nearest() -> None:
    def does(given: Given, _: CallShape, turn: int) -> Answer:
        return doubled(as_documented(given)) if turn == 3 else as_measured(given)

    found, [one, other] = why(does, [PLAINLY, PLAINLY * 4])
    assert found.key is None, "one call has nothing in common with others"
    assert {(c.code, c.share) for t in (one, other) for c in t.causes} == {("HE998", "97% of the answers")}
    assert "takes the least normal number" in one.cause


@pytest.mark.parametrize("sure", [True, False])
def test_calls_of_a_dtype(sure: bool) -> None:
    """Where every call of a dtype differs, and where some of several checks do."""
    checks = [[(g, PLAIN) for kind in KINDS for k in some for g in calls(kind, 1 + k / 8)] for some in ((0, 1), (2, 3))]

    def does(given: Given, _: CallShape, __: int) -> Answer:
        wrong = given["input"].dtype == np.float16 and (sure or given["mapping_type"] != "SYMMETRIC")
        return doubled(as_documented(given)) if wrong else as_documented(given)

    found, told = why(does, checks)
    assert found.where == Argument("input", "dtype", ("float16",), is_sure=sure)
    for one in told:
        [cause] = one.causes
        assert (cause.code, cause.where) == ("HE623", "input of float16" + ("" if sure else ", in some calls"))
    single, half = calls()[0], calls(np.float16)[0]
    assert not found.refuted([judged(single, as_documented(single)), judged(half, doubled(as_documented(half)))])
    assert found.refuted([judged(single, doubled(as_documented(single)))])
    assert bool(found.refuted([judged(half, as_documented(half))])) is sure
    assert found.doubted().where is None


def test_a_fault_is_placed_where_it_is_and_an_error_is_told_beside_a_place() -> None:
    checks = [[(g, PLAIN) for kind in KINDS for k in some for g in calls(kind, 1 + k / 8)] for some in ((0, 1), (2, 3))]

    def does(given: Given, _: CallShape, turn: int) -> Answer:
        answer = as_documented(given)
        if turn == 0:
            return Answer("returned", answer.value, faults=("mutated input: argument 0",))
        if turn == 1:
            return Answer("raised", error=("RuntimeError",), message="no kernel")
        return doubled(answer) if given["input"].dtype == np.float16 else answer

    found, [told, _] = why(does, checks)
    assert found.where == Argument("input", "dtype", ("float16",))
    assert {c.code: c.where for c in told.causes} == {"HE623": "input of float16", "HE503": "", "HE403": ""}
    assert told.cause.startswith("differs only with input of float16: ")
    assert told.cause.endswith("raises RuntimeError where the document gives a result: no kernel")


def test_what_calls_of_one_check_have_in_common_is_not_said() -> None:
    """All of a check are of float16: that some of them differ tells nothing of the dtype."""

    def does(given: Given, _: CallShape, turn: int) -> Answer:
        return doubled(as_documented(given)) if turn % 2 and turn < 12 else as_documented(given)

    halves = [(g, PLAIN) for g in calls(np.float16)] * 2
    found, [told, _] = why(does, [halves, PLAINLY * 8])
    assert found.where is None
    assert [c.code for c in told.causes] == ["HE999"]


def test_a_shape_of_calls_is_said_and_may_be_refuted() -> None:
    shaped = [(g, s) for g in calls() for s in (PLAIN, TRANSPOSED)]

    def does(given: Given, shape: CallShape, _: int) -> Answer:
        return doubled(as_documented(given)) if shape == TRANSPOSED else as_documented(given)

    found, [told] = why(does, [shaped])
    assert (found.where, found.mostly) == (Region("layout", ("transposed",)), None)
    assert found.key is not None
    assert [(c.code, c.where) for c in told.causes] == [("HE603", "layout transposed")]
    given = calls()[0]
    assert not found.refuted([judged(given, as_documented(given))])
    assert found.refuted([judged(given, doubled(as_documented(given)))])
    assert found.refuted([judged(given, Answer("raised", error=("RuntimeError",)))]), "no plain call was to differ"


def test_a_fault_has_its_own_code_and_takes_no_release_away() -> None:
    stale = "stale output: this call wrote into the result that an earlier call had returned"

    def does(given: Given, _: CallShape, turn: int) -> Answer:
        answer = as_measured(given)
        return Answer("returned", answer.value, faults=(stale,)) if turn == 1 else answer

    found, [_, other] = why(does, [PLAINLY, PLAINLY])
    told = found.told(found.samples[0], "differs", stale)
    assert told.outcome == "differs"
    assert told.causes[-1].code == "HE504"
    assert told.cause.startswith("stale output")
    assert "takes the least normal number" in told.cause
    assert other.outcome == "explained"


def test_an_error_that_a_release_does_not_make_is_a_cause_beside_it() -> None:
    """Also where the call that is shown differs in a value."""

    def does(given: Given, _: CallShape, turn: int) -> Answer:
        return Answer("raised", error=("RuntimeError",), message="no view") if turn == 1 else as_measured(given)

    found, [told, other] = why(does, [PLAINLY, PLAINLY])
    assert found.version is MEASURED
    assert told.outcome == "differs"
    assert [c.code for c in told.causes] == [*(c.code for c in other.causes), "HE403"]
    assert "raises RuntimeError where the document gives a result: no view" in told.cause
    assert other.outcome == "explained"


def test_a_release_explains_no_check_of_which_no_wrong_answer_was_kept() -> None:
    found, _ = why(lambda g, *_: as_measured(g), [PLAINLY])
    asked = tuple(Call(ID, (), given, PLAIN, "") for given in calls())
    sample = Sample(f"torchao::{ID}/large", asked, tuple(map(as_documented, calls())), open=True)
    assert found.version is MEASURED
    assert [c.code for c in found.told(sample, "differs", "result[0] is another").causes] == ["HE999"]


def test_another_error_than_the_document_s_is_a_cause_by_itself() -> None:
    refused = [({**calls()[0], "block_size": (1, 3)}, PLAIN), ({**calls()[0], "mapping_type": "NONE"}, PLAIN)]
    assert all(as_documented(given).kind == "raised" for given, _ in refused)

    def does(given: Given, _: CallShape, __: int) -> Answer:
        document = as_documented(given)
        return Answer("raised", error=("KeyError",), message="no") if document.kind == "raised" else as_measured(given)

    _, [told, plain] = why(does, [refused, PLAINLY])
    assert plain.outcome == "explained"
    assert [c.code for c in told.causes] == ["HE406"]


def test_a_release_that_answers_as_another_reading_would_explains_it() -> None:
    """That one answer alone would be right by a reading takes nothing from what gives them all."""
    document = FORMULAS["onnx/DequantizeLinear"]
    version = FORMULAS["onnx/DequantizeLinear@reference-1.23"]
    given = {"x": np.int32([16777217]), "x_scale": np.float32(0.1)}
    answer = answer_of(version.function, given)
    assert document.readings is not None
    assert any(not differences(answer_of(document.at(p), given), answer).differing for p in document.readings.points)
    sample = Sample("onnx::a", (Call(document.id, (), given, PLAIN, ""),), (answer,), open=True)
    told = FunctionWhy(document, [sample], ("onnx", "onnx", "1.23.2")).told(sample, "differs", "result[0] is another")
    assert told.outcome == "explained"
    assert told.cause.startswith("as onnx ")


def test_a_release_that_a_call_refutes_which_was_not_kept_explains_nothing() -> None:
    found, [told] = why(lambda g, *_: as_measured(g), [PLAINLY])
    assert told.outcome == "explained"
    some = [replace(s, refuted=(MEASURED.id,)) for s in found.samples]
    told = replace(found, samples=some).told(some[0], "differs", "result[0] is another")
    assert told.outcome == "differs"
    assert [(c.code, c.share) for c in told.causes] == [("HE998", ">99% of the answers")]


def test_a_release_that_raises_wherever_it_was_asked_is_refuted_by_an_answer_or_another_error() -> None:
    given = {**calls()[0], "input": np.zeros((0, 2), np.float32), "block_size": (1, 1)}
    expected = as_measured(given)
    assert (as_documented(given).kind, expected.kind, expected.error[0]) == ("returned", "raised", "RuntimeError")
    found, [told] = why(lambda g, *_: as_measured(g), [[(given, PLAIN)] * 2])
    assert told.outcome == "explained"
    plain = calls()[0]
    assert found.refuted([judged(plain, Answer("raised", error=("RuntimeError",)))])
    assert not found.refuted([judged(plain, as_measured(plain))])


def test_a_layout_that_all_calls_have_that_differ_and_few_others() -> None:
    plain = [PLAIN] * 60
    some = Region("some layout", ("transposed",))
    assert of_shapes([TRANSPOSED] * 4, [*plain, TRANSPOSED]) == some
    assert (some.words, some.outside) == ("layout transposed, in some calls", "outside of layout transposed")
    assert of_shapes([TRANSPOSED] * 4, [*plain, TRANSPOSED], alone=True) is None
    assert of_shapes([TRANSPOSED] * 4, [*plain, *[TRANSPOSED] * 40]) is None
    assert of_shapes([TRANSPOSED] * 2, [*plain, *[PLAIN] * 900, TRANSPOSED]) is None
    both = CallShape(layout="transposed", threads="all")
    others = [*plain, *[CallShape(threads="all")] * 8, TRANSPOSED]
    assert of_shapes([both] * 8, others) == some, "fewer others have the layout"
    assert of_shapes([CallShape(size=9), PLAIN], [CallShape(size=1)]) is None


@pytest.mark.parametrize(
    ("region", "inside", "outside"),
    [
        (Region("layout", ("transposed",)), TRANSPOSED, PLAIN),
        (Region("some layout", ("transposed",)), TRANSPOSED, PLAIN),
        (Region("other layout", ("contiguous",)), TRANSPOSED, PLAIN),
        (Region("size", (100, 50)), CallShape(size=100), CallShape(size=99)),
        (Region("sizes", (100, 50)), CallShape(size=50), CallShape(size=99)),
        (Region("threads", ("all",)), CallShape(threads="all"), PLAIN),
    ],
)
def test_which_calls_are_in_a_region(region: Region, inside: CallShape, outside: CallShape) -> None:
    assert region.holds(inside)
    assert not region.holds(outside)


@pytest.mark.parametrize("others_raise", [False, True])
def test_a_release_is_known_by_what_it_refuses_alone(others_raise: bool) -> None:
    """Where the document gives all that is answered; other errors have causes of their own."""
    document, measured = FORMULAS["gguf/Q4_0.quantize"], FORMULAS["gguf/Q4_0.quantize@0.19"]
    rows = np.linspace(-3, 4, 64, dtype=np.float32).reshape(2, 32)
    empty, plain = [{"tensor": rows[:0]}, {"tensor": rows[0, :0]}], [{"tensor": rows}, {"tensor": rows[:1]}]

    def sample(name: str, some: Sequence[Given], answers: Sequence[Answer]) -> Sample:
        asked = tuple(Call(document.id, (), g, PLAIN, "") for g in some)
        return Sample(name, asked, tuple(answers), True, (PLAIN,) * len(some), ())

    refused, answered = ([answer_of(measured.function, g) for g in some] for some in (empty, plain))
    error = Answer("raised", error=("RuntimeError",), message="no such view")
    samples = [
        sample("empty", empty, refused),
        sample("any", plain, [answered[0], error if others_raise else answered[1]]),
    ]
    found = FunctionWhy(document, samples, ("gguf", "gguf", "0.19.0"))
    told = found.told(samples[0], "crashed", "raises ValueError")
    assert told.outcome == "explained"
    assert told.cause.startswith("as gguf 0.19 was measured to do: refuses rows of no elements")
    assert {c.code for c in found.told(samples[1], "differs", "").causes} == ({"HE403"} if others_raise else {"HE999"})
