"""Calls that Hypothesis draws beyond the table of call shapes: reproducibly by its seed, and what differs shrinks."""

from collections.abc import Callable, Sequence
from typing import Any, get_args

from hypothesis import strategies as st

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import Granularity
from halfeven.conformance.engine.call import MODES, CallShape
from halfeven.conformance.engine.function_calls import LARGEST, Own, grown_call, own_calls, shaped_call
from halfeven.conformance.engine.operation_calls import Asked, shaped
from halfeven.conformance.engine.shapes import AXES, Row, block_levels, function_rows, possible
from halfeven.conformance.engine.tables import Subject
from halfeven.conformance.requirement import CallSet
from halfeven.reference.catalogue import FORMULAS

__all__ = ["drawn", "drawn_call"]

_MOST = 1 << 17  # elements: larger calls are the table's


def _levels(axis: str) -> list[Any]:
    return [level for classes in AXES[axis] for level in classes]


def _fitting(row: Row, axis: str, *, partial: bool) -> Callable[[Any], bool]:
    return lambda level: possible({**row, axis: level}, partial=partial)


@st.composite
def drawn(
    draw: st.DrawFn, offer: Offer, of: Subject, granularities: Sequence[Granularity] = (), most: int = _MOST
) -> Asked:
    """A call of an operation: any size, rank, layout, offset, blocks, parameters, threads and mode that go together.

    Args:
        draw: Hypothesis' own.
        offer: the backend, as data.
        of: one of its operations, in one dtype and on one grid.
        granularities: by default those of the backend.
        most: elements.
    """
    partial = of.document.partial_blocks
    taken = [g for g in get_args(Granularity) if g in (granularities or offer.granularities)]
    blocks = [level for classes in block_levels(taken, partial=partial) for level in classes]
    row: dict[str, Any] = {"block": draw(st.sampled_from(blocks))}
    sizes = st.integers(0, 64) | st.integers(0, most) | st.sampled_from([s for s in _levels("size") if s <= most])
    choices = {
        "rank": st.sampled_from(sorted(_levels("rank"), key=lambda r: (r != 1, r))),
        "size": sizes,
        "layout": st.sampled_from([n for n in _levels("layout") if offer.array == "numpy" or n != "reversed"]),
        "parameters": st.sampled_from(_levels("parameters")),
    }
    for axis, strategy in choices.items():
        row[axis] = draw(strategy.filter(_fitting(dict(row), axis, partial=partial)))
    row |= {"offset": draw(st.integers(0, 15)), "threads": draw(st.sampled_from(["one", "all"]))}
    row |= {"mode": draw(st.sampled_from(MODES)), "repeats": draw(st.integers(1, 2))}
    return shaped(offer, of, CallShape(**row), draw(st.integers(0, 4000)))


def drawn_call(
    formula: str, sets: Sequence[CallSet], *, negative: bool = False, function: Callable[..., Any] | None = None
) -> st.SearchStrategy[Asked]:
    """A call of a documented function: one of its own, in any call shape, or with longer arrays.

    Arguments are those of ``function_calls``. It draws nothing where no own call has arrays.
    """
    reference = function or FORMULAS[formula].function
    own = own_calls(sets, reference)
    if not own:
        return st.nothing()
    rows = {o.rank: function_rows((o.rank,), negative=negative) for o in own}

    def in_a_shape(o: Own) -> st.SearchStrategy[Asked]:
        shapes = st.builds(
            CallShape,
            rank=st.just(o.rank),
            layout=st.sampled_from(sorted({s.layout for s in rows[o.rank]})),
            offset=st.integers(0, 15),
            parameters=st.sampled_from(sorted({s.parameters for s in rows[o.rank]})),
            threads=st.sampled_from(["one", "all"]),
            mode=st.sampled_from(MODES),
            repeats=st.integers(1, 2),
        )
        return shapes.map(lambda shape: shaped_call(formula, reference, o.arguments, shape))

    def longer(o: Own, size: int, axis: int) -> Asked:
        plain = shaped_call(formula, reference, o.arguments, CallShape(rank=o.rank))
        return grown_call(formula, reference, o.arguments, size, axis) or plain

    any_ = st.sampled_from(own)
    most = min(LARGEST.get(formula, _MOST), _MOST)
    return any_.flatmap(in_a_shape) | st.builds(longer, any_, st.integers(2, most), st.sampled_from([-1, 0]))
