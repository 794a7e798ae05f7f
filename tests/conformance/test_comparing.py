"""Two implementations on the same calls: the same is the same, and a difference has its cause and an input."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from halfeven.conformance import Backend, compare
from halfeven.conformance.cli import main
from halfeven.conformance.engine import pair
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.report.pair import Compared, Comparison
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid

_GRID = (Grid(-128, 127),)
_ODD, _CODE = 37, 41
_SYMMETRIC = "torch/quantized_decomposed.choose_qparams_symmetric"


def _right(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    return (torch.round(x / scale) + zero_point).clamp(qmin, qmax).to(torch.int32)


def _one_code_off(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = _right(x, scale, zero_point, qmin=qmin, qmax=qmax)
    return torch.where(q == _CODE, q + 1, q) if int(zero_point) == _ODD else q


def _with_reciprocal(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    return (torch.round(x * (1 / scale)) + zero_point).clamp(qmin, qmax).to(torch.int32)


def _into_its_input(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = _right(x, scale, zero_point, qmin=qmin, qmax=qmax)
    x.detach().zero_()
    return q


def _transposed_wrongly(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = _right(x, scale, zero_point, qmin=qmin, qmax=qmax)
    return q if x.is_contiguous() or x.numel() < 2 else q.flatten().flip(0).reshape(q.shape)


def _raising(*_: Tensor, **__: int) -> Tensor:
    msg = "no kernel"
    raise RuntimeError(msg)


def _backend(function: object, name: str = "other") -> Backend:
    return Backend(name, "onnx", {"quantize": function}, grids=_GRID)  # type: ignore[dict-item]


def _compared(function: object) -> Comparison:
    return compare(_backend(_right, "right"), _backend(function))


def test_a_backend_is_the_same_as_itself() -> None:
    found = _compared(_right)
    assert found.same
    assert found.differences == ()
    assert sum(p.values for p in found.parts) > 1_000_000
    assert "give the same" in str(found)


def test_one_code_of_one_zero_point_is_found() -> None:
    found = _compared(_one_code_off)
    [part] = found.differences
    assert part.shown is not None
    assert (part.shown.a, part.shown.b, part.shown.zero) == (str(_CODE), str(_CODE + 1), str(_ODD))
    assert "right computes as onnx" in part.cause


def test_the_cause_is_what_one_does_where_the_other_does_something_else() -> None:
    [part] = _compared(_with_reciprocal).differences
    assert part.cause == "other multiplies by 1/s where right divides by s"
    assert part.shown is not None
    assert part.shown.a == part.shown.document != part.shown.b


def test_a_fault_of_one_is_a_difference() -> None:
    [part] = _compared(_into_its_input).differences
    assert part.cause.startswith("other: mutated input") or "other: mutated input" in part.cause


def test_a_difference_in_some_call_shapes_has_its_region() -> None:
    [part] = _compared(_transposed_wrongly).differences
    assert "differs only with layout other than contiguous" in part.cause


def test_one_that_raises_differs() -> None:
    [part] = _compared(_raising).differences
    assert "other raises RuntimeError where right gives a result" in part.cause


class _Spent(Inside):
    """Answers one batch; then its time is over."""

    asked = 0

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        self.asked += 1
        if self.asked == 1:
            return super().answers(calls)
        spent = "the budget of 1 s is spent"
        said = [f"timed out: {spent}", *[f"not asked: {spent}"] * (len(calls) - 1)]
        return [Answer("ended", message=words) for words in said]


def test_a_spent_budget_is_no_difference() -> None:
    found = pair.compare(Inside(_backend(_right, "right")), _Spent(_backend(_right)))
    assert found.ended == "other: timed out: the budget of 1 s is spent"
    assert sum(p.values for p in found.parts)
    assert not any(p.differing for p in found.parts)
    assert not found.same


def test_what_one_does_not_offer_is_said_and_is_no_difference() -> None:
    found = compare(_backend(_right, "right"), Backend("other", "onnx", {"fake_quantize": _right}))
    assert not found.same
    assert not found.known
    assert found.differences == ()
    assert found.left == (
        "quantize: right alone offers it",
        "fake_quantize: other alone offers it",
    )
    assert "nothing was compared" in str(found)


def test_what_was_not_compared_is_one_line_where_only_a_shape_is_another() -> None:
    found = compare(_backend(_right, "right"), Backend("other", "onnx", {"fake_quantize": _right}))
    empty = [f"not offered by both: scale of shape ({n}, 0) is not accepted" for n in range(3)]
    parts = [Compared(name, left=dict.fromkeys(empty, 2) | {"end both: signal": 1}) for name in ("int8", "uint8")]
    said = str(replace(found, parts=tuple(parts), left=())).splitlines()
    assert said[said.index("Not compared:") + 1 :] == [
        "  int8 and 1 more: 12 calls not offered by both: scale of shape (...) is not accepted",
        "  int8 and 1 more: 2 calls end both: signal",
    ]


def test_eager_and_compiled_are_two_backends() -> None:
    found = compare("torch.observers", "torch.observers@compiled", formulas=[_SYMMETRIC])
    assert found.b.name == "torch.observers@compiled"
    assert "graphs" in found.b.path
    assert not found.b.path.endswith(" 0 graphs")
    assert found.known


_PACKAGE = "def rounded(v):\n    return {}\n"
_ADAPTER = """
import torch
import vendor
from halfeven.reference import Grid

class Vendor:
    profile, library, version, grids = "onnx", "vendor", vendor.VERSION, (Grid(-128, 127),)

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        return (vendor.rounded(x / scale) + zero_point).clamp(qmin, qmax).to(torch.int32)
"""


@pytest.mark.skipif(os.name != "posix", reason="an interpreter is a shell script here")
def test_two_releases_of_a_library_by_two_interpreters(tmp_path: Path) -> None:
    pythons = []
    for version, rounding in (("1.0", "torch.round(v)"), ("2.0", "torch.floor(v)")):
        folder = tmp_path / version
        folder.mkdir()
        source = f"import torch\nVERSION = {version!r}\n{_PACKAGE.format(rounding)}"
        (folder / "vendor.py").write_text(source, encoding="utf-8")
        (folder / "adapter.py").write_text(_ADAPTER, encoding="utf-8")
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        pythons.append(str(python))
    command = "import sys; from halfeven.conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["compare", "adapter:Vendor", "adapter:Vendor", "--python-a", pythons[0], "--python-b", pythons[1]]
    done = subprocess.run(
        [sys.executable, "-c", command, *words, "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    record = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert record["schema"] == "halfeven-comparison"
    assert [record[side]["name"] for side in "ab"] == ["Vendor 1.0", "Vendor 2.0"]
    [part] = record["parts"]
    assert part["cause"] == "Vendor 2.0 rounds down where Vendor 1.0 rounds ties to even"
    assert part["cause"] in done.stdout
    page = (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")
    assert "multiplies" not in page
    assert str(tmp_path) not in page + json.dumps(record)  # the releases name the two


def test_the_command_does_not_know_of_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "torch.observers", "torch.observer"]) == 2
    assert "torch.observers" in capsys.readouterr().err
