"""Models in boxes: choices with the values that each may have, one as well as another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from halfeven.reference.model import EvaluationModel

__all__ = ["Box", "Found", "common", "cost", "least", "like", "model_of"]

#: Choices and the values that each may have, one as well as another.
Box = Mapping[str, tuple[str, ...]]


def common(*boxes: Box) -> Box | None:
    """What all allow; None where a choice is left without a value."""
    found: dict[str, tuple[str, ...]] = {}
    for box in boxes:
        for name, values in box.items():
            left = tuple(v for v in found.get(name, values) if v in values)
            if not left:
                return None
            found[name] = left
    return found


def model_of(base: EvaluationModel, box: Box) -> EvaluationModel:
    """The model of a box that is nearest to ``base``."""
    return like(base, {n: values[0] for n, values in box.items() if getattr(base, n) not in values})


def like(base: EvaluationModel, chosen: Mapping[str, str]) -> EvaluationModel:
    """``replace`` without its checks: the values are the model's own, and there are thousands of models."""
    made = object.__new__(EvaluationModel)
    vars(made).update(vars(base), **chosen)
    return made


def cost(base: EvaluationModel, box: Box) -> int:
    """In how many choices the nearest model of a box differs from ``base``."""
    return sum(getattr(base, n) not in values for n, values in box.items())


@dataclass(frozen=True, eq=False)
class Found:
    """Boxes of models that give the answers, alternatives by stage; any one of each goes with any of the others."""

    stages: tuple[tuple[Box, ...], ...]

    def nearest(self, base: EvaluationModel) -> tuple[int, EvaluationModel]:
        """The fewest choices other than those of ``base``, and the model."""
        box = common(*(min(boxes, key=lambda b: cost(base, b)) for boxes in self.stages))
        assert box is not None, "stages read choices of their own"
        return cost(base, box), model_of(base, box)


def least(base: EvaluationModel, boxes: Sequence[Box]) -> int:
    """The cost of the cheapest of some boxes."""
    return min(cost(base, box) for box in boxes)
