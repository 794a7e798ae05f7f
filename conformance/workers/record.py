"""Workers without a backend: one keeps the calls, and one has answers that a device gave elsewhere."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import DTYPES, Configuration, code_dtype
from halfeven.conformance.engine.batch import pieces
from halfeven.conformance.engine.call import Answer, Call, arguments_of
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.judge import answer_of, reference_answer
from halfeven.conformance.quote import NoScript, Spelt
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES

__all__ = ["ABSENT", "Recorder", "Replay", "key", "reference"]

ABSENT = "not in the bundle"
_KEPT = 1 << 14  # calls that a second bundle would ask


def key(call: Call) -> str:
    """The hash of a call's content: all of it but the reason.

    >>> key(Call("onnx:quantize", (1,))) == key(Call("onnx:quantize", (1,), reason="every code"))
    True
    """
    found = hashlib.blake2b(digest_size=16)
    for piece in pieces([replace(call, reason="")]):
        found.update(piece)
    return found.hexdigest()


def reference(call: Call, profile: str) -> Answer:
    """What the reference answers, for a profile's operation or a formula in the version that the profile claims."""
    if ":" in call.formula:
        return answer_of(partial(_operation, call.formula, arguments_of(call.positional), arguments_of(call.named)), {})
    return reference_answer(formula_of(call.formula, profile).function, call)


def _operation(formula: str, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
    name, _, operation = formula.rpartition(":")
    profile = PROFILES[name]
    x, scale, *rest = positional
    zero = rest[0] if rest else np.zeros(np.shape(scale), np.int32)
    blocks = named.get("block_size")
    grid = Grid(named.get("qmin", -128), named.get("qmax", 127))  # to dequantize needs none, but where it has an amax
    match operation:
        case "quantize":
            codes = profile.quantize(x, scale, zero, grid, blocks)
            if profile.codes == "input":
                return codes.astype(x.dtype)
            return np.where(np.isnan(codes), 0, codes).astype(code_dtype(grid))  # no document has a code for NaN
        case "dequantize":
            dtype = DTYPES[named["dtype"].name] if "dtype" in named else scale.dtype
            return profile.dequantize(x, scale, zero, grid, dtype, blocks)
        case _:
            return profile.fake_quantize(x, scale, zero, grid, blocks)


class _Absent:
    """What is asked of a worker whose backend is not here."""

    sweeps = False

    def __init__(self, offer: Offer) -> None:
        self._offer = offer

    @property
    def offer(self) -> Offer:
        """What the device is asked for."""
        return self._offer

    def script(self, formula: str, passed: Mapping[str, str], configuration: Configuration | None = None) -> Spelt:
        """None: the device is not this process's to call."""
        del formula, passed, configuration
        msg = "a device answered elsewhere: a script cannot ask it"
        raise NoScript(msg)

    def path(self) -> str:
        """Nothing is known of it."""
        return ""

    def close(self) -> None:
        """Nothing is held."""


class Recorder(_Absent):
    """Answers as the reference does, and keeps what it was asked: so a plan's calls are had without a backend.

    Attributes:
        calls: in the order in which they were asked.
        given: the answers.
    """

    def __init__(self, offer: Offer) -> None:  # noqa: D107 - of what the plan is made for
        super().__init__(offer)
        self.calls: list[Call] = []
        self.given: list[Answer] = []

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        """The reference's own."""
        found = [reference(call, self.offer.profile) for call in calls]
        self.calls += calls
        self.given += found
        return found


class Replay(_Absent):
    """Answers with what a device has answered, found by the call's content.

    A call that was asked several times has its answers in that order, and after them the last one again.

    Attributes:
        missing: the calls that were asked and that nobody has answered, each once.
    """

    def __init__(
        self, offer: Offer, answered: Sequence[tuple[Sequence[str], Sequence[Answer]]], *, guessing: bool = False
    ) -> None:
        """``answered`` has, for each bundle, the keys of its calls, and the answers to them.

        ``guessing`` answers what is missing as the reference does, to learn which calls would follow.
        """
        super().__init__(offer)
        self._guessing = guessing
        self.missing: dict[str, Call] = {}
        self._answers: dict[str, list[Answer]] = {}
        for keys, answers in answered:
            for name, answer in zip(keys, answers, strict=True):
                self._answers.setdefault(name, []).append(answer)

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        """Those of the bundle; ``unsupported`` for a call that is not in it."""
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> Answer:
        name = key(call)
        if (found := self._answers.get(name)) is None:
            if len(self.missing) < _KEPT:
                self.missing.setdefault(name, call)
            if self._guessing:
                return reference(call, self.offer.profile)
            return Answer("unsupported", message=ABSENT)
        return found.pop(0) if len(found) > 1 else found[0]
