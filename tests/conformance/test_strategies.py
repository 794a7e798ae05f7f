"""The public strategies: what they draw is accepted, shrinks to the plain case, and finds what is wrong."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from halfeven.conformance import strategies
from halfeven.conformance.backends.offer import offer
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.engine.drawn import drawn, drawn_call
from halfeven.conformance.engine.operation_calls import subject
from halfeven.conformance.strategies import blocks, boundary_values, grids, layouts, quantizations, scales, shapes
from halfeven.conformance.systems import call_sets
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS, PROFILES, Grid
from halfeven.reference.blocks import parameter_shape

from .engine.right import backend, differs, quantize

ROOT = Path(__file__).parents[2]
INT8 = Grid(-128, 127)
BRIEF: Any = settings(
    max_examples=60, database=None, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@BRIEF
@given(quantizations())
def test_what_is_drawn_is_accepted_by_the_formula(q):
    found = PROFILES["onnx"].quantize(q.x, q.scale, q.zero_point, q.grid, q.block_size)
    assert found.shape == q.x.shape


@BRIEF
@given(grids(), scales("float16"), hypothesis.strategies.data())
def test_parameters_are_those_of_the_dtype(grid, scale, data):
    assert float(np.float16(scale)) == scale > 0
    assert data.draw(strategies.zero_points(grid)) in grid
    x = data.draw(boundary_values(scale, 0, grid, "float16", 100))
    assert x.dtype == np.float16
    assert x.shape == (100,)


@BRIEF
@given(shapes(1), hypothesis.strategies.data())
def test_blocks_fit_their_shape(shape, data):
    found = data.draw(blocks(shape))
    assert found is None or all(n % b == 0 for n, b in zip(shape, found, strict=True))
    assert found is None or parameter_shape(shape, found)
    assert np.prod(shape) <= 1 << 14


def test_layouts_are_those_of_the_rank():
    assert find(layouts(4), lambda name: name == "channels last") == "channels last"
    with pytest.raises(hypothesis.errors.NoSuchExample):
        find(layouts(4), lambda name: name == "reversed", settings=settings(database=None))


def test_what_differs_shrinks_to_a_few_elements():
    def wrong(q: Any) -> bool:
        with np.errstate(all="ignore"):
            v = q.x / q.scale_of_each
            return bool((np.floor(v + 0.5) != np.rint(v)).any())

    hypothesis_settings = settings(BRIEF, max_examples=500, phases=[Phase.generate, Phase.shrink])
    least = find(quantizations(grid=INT8), wrong, settings=hypothesis_settings)
    assert least.x.size == 1
    assert least.layout == "contiguous"
    assert least.scale == 1


def test_the_page_has_the_measured_table_and_examples_that_run():
    page = (ROOT / "docs/strategies.md").read_text(encoding="utf-8")
    spec = importlib.util.spec_from_file_location("measured", ROOT / "benchmarks/strategies.py")
    assert spec
    assert spec.loader
    measured = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(measured)
    rows = dict(re.findall(r"^\| ([^|]*?) +\| +(\d+) \|", page, re.MULTILINE))
    assert rows.keys() == measured.WRONG.keys()
    # Another release of Hypothesis draws others.
    for name, found in measured.hits(quantizations(grid=INT8)).items():
        assert found >= 5, name
        assert found >= int(rows[name]) // 2, name
    examples = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, "docs/strategies.md", "exec"), {})


def test_a_drawn_call_of_an_operation_has_the_answer_of_a_right_implementation():
    tried = backend(quantize)
    worker, of = Inside(tried), subject("onnx", "quantize", "float32", INT8)

    @settings(BRIEF, max_examples=40)
    @given(drawn(offer(tried), of, most=4096))
    def each(asked: Any) -> None:
        assert not differs(asked, worker.answer(asked.call))

    each()


def test_a_wrong_implementation_is_found_and_its_call_shrinks():
    def wrong(x: Any, scale: Any, zero_point: Any, **named: Any) -> Any:
        return quantize(x, scale, zero_point, **named) ^ (x.ndim > 1 and x.stride()[-1] == 2)

    worker, of = Inside(backend(wrong)), subject("onnx", "quantize", "float32", INT8)
    call = find(
        drawn(offer(backend(wrong)), of, most=4096),
        lambda asked: differs(asked, worker.answer(asked.call)),
        settings=settings(BRIEF, max_examples=400, phases=[Phase.generate, Phase.shrink]),
    ).call
    assert call.shape.layout == "stepped"
    assert (call.shape.rank, call.shape.threads, call.shape.mode, call.shape.offset) == (2, "one", "grad", 0)
    assert call.shape.size <= 4


def test_a_drawn_call_of_a_function_has_the_formulas_own_answer():
    formula = "onnx/DynamicQuantizeLinear"
    sets = [s for (name, _), s in call_sets().items() if name == formula]
    worker = Inside(Backend("tried", "onnx", functions={formula: FORMULAS[formula].function}, array="numpy"))
    seen = set()

    @settings(BRIEF, max_examples=60)
    @given(drawn_call(formula, sets))
    def each(asked: Any) -> None:
        seen.add(asked.call.reason)
        assert not differs(asked, worker.answer(asked.call))

    each()
    assert len(seen) == 2
