"""How many of a hundred drawn examples find each of a dozen wrong quantizers: these strategies against uniform floats.

``python benchmarks/strategies.py``: prints the table of docs/strategies.md. Uniform floats are what property tests
mostly draw: a vector of up to 4,096 uniform reals that fill the grid, one uniform scale, any zero point, contiguous.
"""

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tabulate import tabulate

from halfeven.conformance.strategies import Quantization, quantizations
from halfeven.reference import Grid

EXAMPLES = 100
GRID = Grid(-128, 127)
Codes = np.ndarray


def finish(rounded: Codes, q: Quantization) -> Codes:
    return np.clip(rounded + q.zero_point_of_each, q.grid.qmin, q.grid.qmax)


def right(q: Quantization) -> Codes:
    return finish(np.rint(q.x / q.scale_of_each), q)


def half_away(q: Quantization) -> Codes:
    v = q.x / q.scale_of_each
    return finish(np.copysign(np.floor(np.abs(v) + np.float32(0.5)), v), q)


def zero_point_first(q: Quantization) -> Codes:
    return np.clip(np.rint(q.x / q.scale_of_each + q.zero_point_of_each.astype(np.float32)), q.grid.qmin, q.grid.qmax)


def wrapping(q: Quantization) -> Codes:
    r = np.clip(np.rint(q.x / q.scale_of_each).astype(np.float64), -(2.0**63), 2.0**62).astype(np.int64)
    return np.clip(r.astype(np.int32) + q.zero_point_of_each, q.grid.qmin, q.grid.qmax)


def tail(q: Quantization) -> Codes:
    """The last n mod 8 elements are rounded half away."""
    in_order = np.arange(q.x.size).reshape(q.x.shape)
    return np.where(in_order < q.x.size // 8 * 8, right(q), half_away(q))


def strided_as_contiguous(q: Quantization) -> Codes:
    if q.x.flags.c_contiguous or 0 in q.x.strides:
        return right(q)
    memory = np.lib.stride_tricks.as_strided(q.x, q.x.shape, np.empty(q.x.shape, q.x.dtype).strides)
    return finish(np.rint(memory / q.scale_of_each), q)


def first_parameters(q: Quantization) -> Codes:
    """Every block has the parameters of the first."""
    if not q.scale.size:
        return right(q)
    return np.clip(np.rint(q.x / q.scale.flat[0]) + q.zero_point.flat[0], q.grid.qmin, q.grid.qmax)


WRONG: dict[str, Callable[[Quantization], Codes]] = {
    "multiplies by 1/s": lambda q: finish(np.rint(q.x * (np.float32(1) / q.scale_of_each)), q),
    "rounds ties away from zero": half_away,
    "rounds ties up": lambda q: finish(np.floor(q.x / q.scale_of_each + np.float32(0.5)), q),
    "truncates": lambda q: finish(np.trunc(q.x / q.scale_of_each), q),
    "divides in float64": lambda q: finish(np.rint(q.x.astype(np.float64) / q.scale_of_each), q),
    "adds the zero point before rounding": zero_point_first,
    "clamps before adding the zero point": lambda q: (
        np.clip(np.rint(q.x / q.scale_of_each), q.grid.qmin, q.grid.qmax) + q.zero_point_of_each
    ),
    "never gives the lowest code": lambda q: np.maximum(right(q), q.grid.qmin + 1),
    "converts to int32, which wraps": wrapping,
    "rounds the last n mod 8 away from zero": tail,
    "takes strided memory as contiguous": strided_as_contiguous,
    "uses the first block's parameters": first_parameters,
    "is right up to 1,024 elements, then multiplies by 1/s": lambda q: (
        WRONG["multiplies by 1/s"](q) if q.x.size > 1024 else right(q)
    ),
}


@st.composite
def uniform(draw: st.DrawFn) -> Quantization:
    """Uniform floats."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = np.float32(random.uniform(0.001, 0.1))
    reals = scale * 128
    x = random.uniform(-reals, reals, random.integers(1, 4097)).astype(np.float32)
    return Quantization(
        x, np.asarray(scale), np.asarray(random.integers(-128, 128), np.int32), GRID, None, "contiguous"
    )


def hits(strategy: st.SearchStrategy[Quantization]) -> dict[str, int]:
    """How many examples show each wrong quantizer."""
    found = dict.fromkeys(WRONG, 0)

    @seed(0)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def each(q: Quantization) -> None:
        with np.errstate(all="ignore"):
            expected = right(q)
            for name, wrong in WRONG.items():
                found[name] += not np.array_equal(expected, wrong(q), equal_nan=True)

    each()
    return found


def main() -> None:
    """Print the table."""
    ours, theirs = hits(quantizations(grid=GRID)), hits(uniform())
    rows = [(name, ours[name], theirs[name]) for name in WRONG]
    print(tabulate(rows, ["a quantizer that", "these strategies", "uniform floats"], tablefmt="github"))


if __name__ == "__main__":
    main()
