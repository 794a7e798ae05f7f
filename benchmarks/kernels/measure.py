"""The clock: rounds in which all calls run in random order beside the copy, and so meet the same disturbances."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from kernels.implementations import Call

__all__ = ["Budget", "Rounds", "measure"]

#: Short calls are repeated for so long in a round; the mean of a batch counts.
_BATCH_SECONDS = 0.004
_MOST_CALLS = 4000


@dataclass(frozen=True)
class Budget:
    """When to stop: after ``seconds``, but not before ``least`` rounds and not after ``most``.

    What takes more than ``slow`` copies sits out the rounds after ``few``: its number needs less precision.
    """

    seconds: float = 8.0
    least: int = 9
    most: int = 25
    slow: float = 20.0
    few: int = 5


@dataclass(frozen=True)
class Rounds:
    """Seconds per call, one entry per round, in step: entry i of all lists was measured in round i.

    A slow call's list is shorter.
    """

    limit: list[float]
    calls: dict[str, list[float]]
    interrupted: bool


def measure(
    calls: dict[str, Call],
    limit: Call,
    budget: Budget,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.perf_counter,
) -> Rounds:
    """Times of ``calls`` and of ``limit``, the copy. Ctrl-C keeps the rounds that are complete, and says so."""
    timed: dict[str | None, Call] = {None: limit, **calls}
    names, rounds, interrupted = list(timed), [], False
    start = clock()
    try:
        each = {name: _batch(call, clock) for name, call in timed.items()}
        while len(rounds) < budget.most and (len(rounds) < budget.least or clock() - start < budget.seconds):
            rounds.append({name: _mean(timed[name], each[name], clock) for name in random.sample(names, len(names))})
            if len(rounds) == budget.few:
                names = [n for n in names if min(r[n] / r[None] for r in rounds) <= budget.slow]
            say(f"round {len(rounds)}, {clock() - start:.1f} s")
    except KeyboardInterrupt:
        interrupted = True
    each_call = {name: [r[name] for r in rounds if name in r] for name in calls}
    return Rounds([r[None] for r in rounds], each_call, interrupted)


def _batch(call: Call, clock: Callable[[], float]) -> int:
    """How many calls fill a batch; these first calls also warm up."""
    call()
    number = 1
    while (seconds := _mean(call, number, clock) * number) < _BATCH_SECONDS / 4 and number < _MOST_CALLS:
        number *= 4
    return max(1, min(_MOST_CALLS, round(_BATCH_SECONDS * number / seconds) if seconds else _MOST_CALLS))


def _mean(call: Call, number: int, clock: Callable[[], float]) -> float:
    if number > 1:  # a call as long as a whole batch finds nothing of its own in the cache anyway
        call()
    start = clock()
    for _ in range(number):
        call()
    return (clock() - start) / number
