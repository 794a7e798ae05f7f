"""Sweeping: the chunks of a line of inputs are asked, judged run by run, and written down, one after the other."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.offer import keywords
from halfeven.conformance.configuration import DTYPES, Array, Case
from halfeven.conformance.engine.call import Answer, Call, CallShape, breaches
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault
from halfeven.conformance.engine.exhaustive.journal import Done, Journal
from halfeven.conformance.engine.exhaustive.patterns import Patterns, bits_of
from halfeven.conformance.engine.exhaustive.runs import Runs, differing, runs_of
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.engine.setting import evaluation_of

__all__ = ["Chunk", "Swept", "call_of", "case_of", "sample", "sweep", "swept_words"]

_FINDINGS = 64  # inputs that differ and are kept; the others are counted
_NOT_HERE = "all inputs are asked only of a backend in Python, in this process or in one of its own"


@dataclass(frozen=True, eq=False)
class Chunk:
    """One call of a sweep.

    Attributes:
        name: its parameters and its first input, in words; no other chunk of the sweep has it.
        count: the inputs that it stands for.
        call: as the worker is asked it; made when it is needed, as what is expected is.
        expected: the runs of the answer to it.
        line: which of its scales some places have.
        case: the inputs at some places of one scale, and that.
    """

    name: str
    count: int
    call: Callable[[], Call]
    expected: Callable[[], Runs]
    line: Callable[[Array], Array]
    case: Callable[[Array], Case]


@dataclass(frozen=True)
class Swept:
    """What a sweep came to, in numbers as ``Done`` has them; and, where they were to be kept, the runs that came."""

    count: int
    differing: int
    own: float
    wall: float
    above: float
    actual: tuple[Runs, ...] = ()


def case_of(e: Evidence, x: Array, scale: Array, zero: int) -> Case:
    """Some inputs with one scale, as one call of the plainest blocks of the granularity."""
    if e.setting.configuration.granularity == "tensor":
        return e.setting.case(x, scale, np.asarray(zero))
    return e.setting.case(x[None], scale.reshape(1, 1), np.full((1, 1), zero), block_size=(1, len(x)))


def call_of(e: Evidence, x: Patterns | Array, scale: Array, zero: int) -> Call:
    """The call of patterns with a scale or with each of a vector of scales, or of rows with a scale for each."""
    c, offer = e.setting.configuration, e.item.offer
    width = x.piece if isinstance(x, Patterns) else x.shape[1]
    alone = e.setting.case(np.zeros(scale.shape, e.setting.dtype), scale, np.full(scale.shape, zero))
    parameters = [alone.scale, alone.zero][: len(e.setting.profile.parameters)]
    block = None
    if c.granularity != "tensor":
        block = (1, width)
        parameters = [p[..., None, None] for p in parameters]
        x = replace(x, rank=2) if isinstance(x, Patterns) else x[:, None]
    named = keywords(offer, replace(c, block_size=block))
    given = [x if isinstance(x, Patterns) else plain(x), *map(plain, parameters)]
    shape = CallShape(each=scale.ndim > 0)
    return Call(f"{offer.profile}:{c.operation}", tuple(given), named, shape, e.item.requirement.text)


def sweep(e: Evidence, inputs: int, chunks: Iterator[Chunk], *, keep: bool = False) -> Swept | None:
    """Ask chunk after chunk; what differs becomes evidence. None where the backend does not take it.

    Args:
        e: of the item; its folder has the journal.
        inputs: how many the chunks have in all.
        chunks: in the order in which they are asked; a name decides what is in it.
        keep: whether the runs of the answers are wanted.

    Raises:
        Crash, Fault, Ended: what came of a chunk is no answer.
    """
    if not e.worker.sweeps:
        e.refused.append(_NOT_HERE)
        return None
    journal = Journal(e.folder, f"{e.item.offer.name}::{e.item.id}", _about(e, inputs))
    total = Swept(0, 0, 0.0, 0.0, 0.0)
    shown = 0
    for chunk in chunks:
        begun = time.perf_counter()
        actual: tuple[Runs, ...] = ()
        done = None if keep else journal.done.get(chunk.name)
        if done is None:
            found = _asked(e, chunk, begun)
            if found is None:
                return None
            done, runs = found
            actual = (runs,) if keep else ()
            journal.add(done)
        e.points += done.points
        e.differing += done.differing
        if done.shown and shown < _FINDINGS:
            shown += len(done.shown)
            _show(e, chunk, done)
        total = Swept(
            total.count + done.count,
            total.differing + done.differing,
            total.own + done.own,
            total.wall + done.wall,
            total.above + done.above,
            total.actual + actual,
        )
    return total


def swept_words(what: str, swept: Swept) -> str:
    """What was covered, for the report."""
    said = f"{what}: {swept.count:,} inputs, {swept.differing:,} differ; {swept.wall:.1f} s"
    said += f", the backend's own {swept.own:.1f} s"
    per = f", above it {swept.above / swept.count * 2**32:.2f} s of a processor for 2^32" if swept.count else ""
    return said + per


def _about(e: Evidence, inputs: int) -> dict[str, object]:
    offer = e.item.offer
    facts = {"library": offer.library, "version": offer.version, "device": offer.device, "shard": e.item.shard}
    return {"item": e.item.id, "backend": offer.name, **facts, "inputs": inputs, "seed": e.item.seed}


def _asked(e: Evidence, chunk: Chunk, begun: float) -> tuple[Done, Runs] | None:
    before = time.process_time()
    [answer] = e.answers([chunk.call()])
    e.history.pop()  # thousands of large calls, of which no witness is made
    runs = _runs(e, chunk, answer)
    if runs is None:
        return None
    found = differing(chunk.expected(), runs, codes=e.setting.configuration.operation == "quantize")
    bits = found.values.view(bits_of(found.values.dtype)).tolist()
    digest = hashlib.blake2b(runs.values.tobytes(), digest_size=8)
    digest.update(runs.ends.tobytes())
    shown = tuple(zip(map(int, found.places), map(int, bits), strict=True))
    made = Done(
        chunk.name,
        chunk.count,
        found.points,
        found.count,
        digest.hexdigest(),
        own=round(answer.seconds, 6),
        wall=round(time.perf_counter() - begun, 6),
        above=round(_above(answer, time.process_time() - before), 6),
        dtype=runs.values.dtype.name,
        shown=shown,
    )
    return made, runs


def _above(answer: Answer, here: float) -> float:
    """Seconds of processor time for all but the function: those spent ``here``, and where the function was called."""
    if "spent" not in answer.value:
        return here
    busy, rest, process = answer.value["spent"]
    return float(here - busy if process == os.getpid() else here + rest)


def _runs(e: Evidence, chunk: Chunk, answer: Answer) -> Runs | None:
    """The runs of an answer; None where the backend does not take the call."""
    match answer.kind:
        case "unsupported":
            e.refused.append(answer.message)
            return None
        case "ended":
            raise Ended(answer.message)
        case "raised":
            raise Crash(answer.traceback or ": ".join([answer.error[0], answer.message]))
    if spoilt := breaches(answer):
        raise Fault(spoilt[0])
    runs, c = runs_of(answer.value, chunk.count), e.setting.configuration
    if runs is None:
        msg = f"wrong result: no answer to {chunk.count} inputs"
        raise Fault(msg)
    if c.operation != "quantize" and runs.values.dtype != DTYPES[c.dtype]:
        msg = f"wrong dtype: {runs.values.dtype} for the result of {c.operation} in {c.dtype}"
        raise Fault(msg)
    if runs.values.dtype.kind not in "iuf" and runs.values.dtype not in DTYPES.values():
        msg = f"wrong dtype: {runs.values.dtype} for codes, which are integers or floats"
        raise Fault(msg)
    return runs


def _show(e: Evidence, chunk: Chunk, done: Done) -> None:
    """The inputs that were kept, as findings: one for each scale. They were counted before."""
    places = np.array([place for place, _ in done.shown])
    bits = np.array([bit for _, bit in done.shown])
    dtype = np.dtype(getattr(ml_dtypes, done.dtype, done.dtype))
    values = bits.astype(bits_of(dtype)).view(dtype)
    lines = chunk.line(places)
    points, differing_ = e.points, e.differing
    for line in np.unique(lines):
        case = chunk.case(places[lines == line])
        e.compare(case, evaluation_of(e.setting.profile, case), values[lines == line].reshape(case.x.shape))
    e.points, e.differing = points, differing_


def sample(e: Evidence, cases: Sequence[Case]) -> None:
    """Ask around what was seen to differ, so that a cause is held against what does not differ too."""
    points, differing_ = e.points, e.differing
    e.expect(cases)
    e.points, e.differing = points, differing_
