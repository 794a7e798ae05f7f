"""Witnesses of wrong kernels of every class: each script, run alone, shows the difference."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import wrong_kernels

from halfeven.conformance import check
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.demonstrate import demonstrated, run_alone
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.literal import array_source
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.engine.witness import spoken
from halfeven.conformance.quote import Spelling, Spelt
from halfeven.conformance.report.model import Result, Witness
from halfeven.conformance.workers import Worker
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.inside import Inside
from halfeven.conformance.workers.server import Server
from halfeven.reference import Grid

GRID = Grid(-128, 127)
#: By kernel: what its script has to have, since without it there is nothing to be seen.
CLASSES: dict[str, str] = {
    "reciprocal": "expected = np.clip(",
    "strides_ignored": "as_strided(",
    "misaligned": "as_strided(",
    "neighbour_block": "block_size=(",
    "body_rounds_away": "np.full((64,), ",
    "last_lane": "actual[",
    "large": "np.full((",
    "scalar_grows": "tuple(actual.shape)",
    "nothing": "type(actual).__name__",
    "mutates": "before = x",
    "raises": "except IndexError as error:",
    "one_buffer": "earlier = one_buffer(",
    "first_zero_point": "earlier = first_zero_point(",
    "no_grad_is_fast": "with torch.",
    "nan_is_slow": "0x7fc00000], np.uint32)",
    "infinite_is_slow": "0x7f800000], np.uint32)",
    "descending_is_fast": "x = np.array([",
    "sparse_is_fast": ", 0x0, 0x0], ",
    "constant_is_fast": "x = np.full((",
    "threads_round_up": "torch.set_num_threads(2)",
    "random": "random(x, scale",
    "default_dtype": "torch.get_default_dtype()",
}
WHOLE = {
    "nan_is_slow": "calls with NaN",
    "descending_is_fast": "calls in descending order",
    "sparse_is_fast": "calls that are mostly zero",
    "constant_is_fast": "calls of equal elements",
}


def results(name: str, checks: tuple[str, ...] = ("call-shapes",), **changes: Any) -> list[Result]:
    kernel = getattr(wrong_kernels, name)
    given = {"operations": {"quantize": kernel}, "grids": (GRID,), **changes}
    worker = Inside(Backend(name, "onnx", **given))
    return asked(worker, [i for i in plan(worker.offer) if i.check in checks])


def asked(worker: Worker, items: list[Item]) -> list[Result]:
    """The results of ``items``, whatever the smoke probe says, with what they come to together."""
    found = [answered(i, worker, gate=False) for i in items]
    samples = [f.sample for f in found if f.sample is not None]
    return concluded([f.result for f in found], samples, {worker.offer.name: worker})[0]


def shown(found: list[Result]) -> Witness:
    [w] = [r.witness for r in demonstrated(found) if r.witness is not None]
    assert w.reproduced, w.unshown
    return w


@pytest.mark.parametrize("name", CLASSES)
def test_the_script_of_a_wrong_kernel_shows_the_difference_alone(name: str) -> None:
    blocks = ("tensor", "group") if name == "neighbour_block" else ("tensor",)
    found = results(name, granularities=blocks)
    if name in WHOLE:  # what the calls in which it is done have as a whole is said
        causes = {c for r in found for c in r.causes}
        assert {(c.code, WHOLE[name] in c.where) for c in causes} == {("HE101", True)}, causes
    w = shown(found)
    assert CLASSES[name] in w.script
    assert "from wrong_kernels import" in w.script
    assert len(w.script.splitlines()) < 32


def test_numpy_s_layouts_are_made_again() -> None:
    w = shown(results("reversed_twice", array="numpy"))
    assert "np.lib.stride_tricks.as_strided(" in w.script
    assert "torch" not in w.script


@pytest.mark.parametrize(
    ("name", "ending"), [("segfault", "signal 11 (SIGSEGV)"), ("exits", "exit status 3"), ("hangs", "timed out")]
)
def test_a_call_that_ends_its_process_does_so_in_the_script(name: str, ending: str, tmp_path: Any) -> None:
    class_ = f"from wrong_kernels import {name}\n"
    class_ += f"class Backend:\n    profile, name = 'onnx', '{name}'\n    quantize = staticmethod({name})\n"
    (tmp_path / f"ending_{name}.py").write_text(class_)
    with pytest.MonkeyPatch.context() as patch, Server() as server:
        patch.chdir(tmp_path)
        patch.syspath_prepend(str(tmp_path))
        worker = Child(server, f"ending_{name}:Backend", timeout=2.0)
        worker.stops = True
        item = next(i for i in plan(worker.offer) if i.check == "call-shapes")
        [result] = asked(worker, [item])
        worker.close()
        [found] = demonstrated([result], timeout=8.0)
    assert found.witness is not None
    assert ending in result.cause
    assert found.witness.reproduced, found.witness.unshown


def test_a_script_that_shows_nothing_is_not_kept() -> None:
    good = results("reciprocal", ("boundaries",))[0]
    assert good.witness is not None
    fixed = replace(good.witness, script='print("expected", 3)\nprint("actual  ", 3)', longer="")
    broken = replace(good.witness, script="import no_such_module\n", longer="")
    same, failed = demonstrated([replace(good, cause="a", witness=fixed), replace(good, cause="b", witness=broken)])
    assert same.witness is not None
    assert failed.witness is not None
    assert (same.witness.script, same.witness.reproduced, failed.witness.script) == ("", False, "")
    assert "printed '3' for both" in same.witness.unshown
    assert "no_such_module" in failed.witness.unshown


def test_one_script_for_each_cause_and_the_others_say_where_it_is() -> None:
    grids = (Grid(-128, 127), Grid(-8, 7), Grid(0, 255))
    found = [r for r in results("reciprocal", ("boundaries",), grids=grids) if r.witness is not None]
    assert len({r.cause for r in found}) < len(found)
    after = [r for r in demonstrated(found) if r.witness is not None]
    kept = [r for r in after if r.witness is not None and r.witness.script]
    assert {r.cause for r in kept} == {r.cause for r in after}
    assert len(kept) == len({r.cause for r in kept})
    others = [r.witness.unshown for r in after if r.witness is not None and not r.witness.script]
    assert all(said.endswith("shows the same cause") for said in others)


def test_of_the_points_that_differ_one_argues_for_the_document() -> None:
    for r in results("reciprocal", ("boundaries", "odd-zero-point")):
        assert r.witness is not None
        assert r.witness.nearer == ""
        assert r.witness.quotient


def test_where_the_implementation_is_nearer_to_the_equation_that_is_said() -> None:
    def exact(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return torch.clamp(torch.round(x.double() / scale.double()) + zero_point, qmin, qmax).int()

    worker = Inside(Backend("exact", "onnx", {"quantize": exact}, grids=(GRID,)))
    [found] = asked(worker, [i for i in plan(worker.offer) if i.check == "odd-zero-point"])
    assert found.witness is not None
    assert found.witness.nearer == "actual is nearer to the code that the exact x / scale has"


def test_a_closure_is_quoted_with_what_it_takes_from_around_it() -> None:
    half = 0.5

    def away(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        v = x / scale
        return torch.clamp(torch.trunc(v + torch.copysign(torch.tensor(half), v)) + zero_point, qmin, qmax).int()

    worker = Inside(Backend("away", "onnx", {"quantize": away}, grids=(GRID,)))
    [item] = [i for i in plan(worker.offer) if i.check == "odd-zero-point"]
    [found] = demonstrated(asked(worker, [item]))
    assert found.witness is not None
    assert found.witness.reproduced, found.witness.unshown
    assert "half = 0.5" in found.witness.script


def test_a_script_imports_what_stands_in_the_folder_in_which_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "company_npu.py").write_text("answer = 3\n")
    monkeypatch.chdir(tmp_path)
    [seen] = run_alone(["import company_npu\nprint('expected 2')\nprint('actual', company_npu.answer)"])
    assert seen.differs, seen


def test_scripts_are_run_apart_from_each_other() -> None:
    one = "import sys\nimport numpy as np\nnp.kept = 1\nprint('expected', 1)\nprint('actual', 'torch' in sys.argv)"
    two = "import sys\nimport numpy as np\nprint('expected', False)\nprint('actual', hasattr(np, 'kept'))"
    seen = run_alone([one, two, two])
    assert [s.actual for s in seen] == ["False", "False", "False"]
    assert not seen[1].differs


def test_a_script_that_an_error_with_an_empty_last_line_ends_shows_nothing() -> None:
    [seen] = run_alone(["print('expected', 'a result')\nraise OSError('it failed\\n\\n')"])
    assert "it failed" in seen.trouble
    assert not seen.differs


@pytest.mark.parametrize("dtype", ["uint8", "int32", "bool", "float32", "bfloat16"])
def test_an_empty_array_of_a_script_has_its_shape(dtype: str) -> None:
    for shape in ((0, 2), (3, 0), (0,)):
        a = np.empty(shape, dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
        made = eval(array_source(a), {"np": np, "ml_dtypes": ml_dtypes})
        assert (made.shape, made.dtype) == (a.shape, a.dtype)


def unpaired(uint8_data: torch.Tensor) -> torch.Tensor:
    """Without a size for the last axis it cannot be told from others that are empty."""
    u = uint8_data.reshape(-1)
    return (u[1::2] << 4 | u[::2]).reshape(*uint8_data.shape[:-1], -1)


def test_what_fails_of_empty_codes_alone_keeps_no_state() -> None:
    causes = {c.code for r in check(unpaired, formula="torchao/pack_uint4").results for c in r.causes}
    assert "HE403" in causes
    assert "HE505" not in causes


def test_a_property_s_script_that_shows_nothing_says_nothing_of_state() -> None:
    results = check(wrong_kernels.swaps_halves, formula="torchao/to_mx", array="numpy").results
    causes = {c.code for r in results for c in r.causes}
    assert "HE3642" in causes
    assert "HE505" not in causes
    assert any("both" in r.witness.unshown for r in results if r.witness is not None and r.check == "property-finite")


def translated(uint8_data: torch.Tensor) -> torch.Tensor:
    try:
        return wrong_kernels.refuses_rows(uint8_data)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def spelt(passed: Mapping[str, str]) -> Spelt:
    called = f"refuses_rows({passed['uint8_data']})"
    return Spelt("import zlib\nfrom wrong_kernels import refuses_rows", called, "", "zlib.error")


def test_a_script_catches_the_library_s_own_error_that_the_backend_translates() -> None:
    found = check(Spelling(translated, spelt), formula="torchao/pack_uint4").results
    [script] = [r.witness.script for r in found if r.witness is not None and r.witness.script]
    assert "except (ValueError, zlib.error) as error:" in script
    [seen] = run_alone([script])
    assert (seen.expected, seen.actual) == ("a result", "raises error")


def test_words_of_an_empty_array_have_its_shape() -> None:
    assert spoken({"a": np.empty((0, 2), np.uint8)}) == "a=[] uint8 of shape (0, 2)"
    assert spoken({"a": np.empty(0, np.uint8)}) == "a=[] uint8"


def test_numbers_of_a_witness_are_those_that_the_script_prints() -> None:
    w = shown(results("reciprocal"))
    [seen] = run_alone([w.script])
    assert (seen.expected, seen.actual) == (w.expected, w.actual)
    assert np.float32(float(w.x.partition("(")[2].rstrip(")"))) == float(w.x.partition("(")[2].rstrip(")"))
