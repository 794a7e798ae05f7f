"""What libraries answer to the calls of documented functions: as the document says, or as a version that is named."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from halfeven.conformance.backends.registry import REGISTRY, NotInstalled, resolve
from halfeven.conformance.engine.demonstrate import Seen, run_alone
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import run
from halfeven.conformance.properties import CHECK
from halfeven.conformance.report.model import Result
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.conformance.requirements import requirements
from halfeven.conformance.systems import answers, rooms
from halfeven.conformance.workers.inside import Inside

OFFERING = [name for name, entry in REGISTRY.items() if answers(entry.answers or name)]
#: Differences that no version reproduces, with the reason.
FINDINGS: dict[tuple[str, str], str] = {
    ("gfloat", "p3109/Project/any-call-shape"): "negative numbers get codes beyond the width of an unsigned format",
    **{
        ("torchao", f"torchao/{what}"): "it asserts that arrays are contiguous, or counts on it"
        for what in (
            *("mx_dequantize/any-call-shape", "nvfp4_dequantize/any-call-shape"),
            *("nvfp4_quantize/any-call-shape", "nvfp4_quantize/one-level"),
        )
    },
    **{
        ("modelopt.qtensor", f"modelopt/{kind}_quantize/any-call-shape"): "view() raises for what is not contiguous"
        for kind in ("int4", "mxfp4", "nf4")
    },
    **{
        (
            "bitsandbytes",
            f"bitsandbytes/{what}",
        ): "its kernels take every array for contiguous, as fresh calls show"
        for what in (
            *("dequantize_4bit/any-call-shape", "dequantize_4bit/shapes", "dequantize_blockwise/any-call-shape"),
            # With AVX-512 it has one zero, as documented.
            *(["dequantize_4bit/products"] if torch.backends.cpu.get_cpu_capability() != "AVX512" else []),
            *(f"quantize_blockwise/{of}" for of in ("any-call-shape", "blocks", "dtypes", "nearest", "tiny", "zeros")),
        )
    },
    **{
        ("pytorch-quantization", f"pytorch-quantization/{what}"): "2.1.3 has no e4m3: num_bits is an integer"
        for what in (
            *("described/any-call-shape", "described/modes", "descriptor/fields", "descriptor_dict/fields"),
            *("descriptor_round_trip/fields", "descriptor_yaml_round_trip/fields"),
        )
    },
    **{
        ("pytorch-quantization", f"pytorch-quantization/{what}"): "no integer axis and no empty text goes through YAML"
        for what in ("descriptor_from_yaml/texts", "descriptor_yaml_round_trip/amax")
    },
    **{
        ("gguf", f"gguf/{kind}.dequantize/any-call-shape"): "view() raises for rows that are not contiguous"
        for kind in ("Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q6_K", "Q8_0")
    },
}
PAGE = Path(__file__).parents[3] / "docs/findings.md"


def broken() -> set[str]:
    """The properties, as requirements, that the formula or one of its versions breaks; another test holds the page."""
    sections = re.findall(r"^### (\S+)\n\n((?:- .*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        f"{formula.partition('@')[0]}/{name}"
        for formula, lines in sections
        for name in re.findall(r"^- \*\*(.*?)\*\*:", lines, re.MULTILINE)
    }


def load(name: str) -> Inside:
    try:
        return Inside(resolve(name)[0])
    except NotInstalled as error:
        assert REGISTRY[name].extra, "torch and the base dependencies are never skipped"
        pytest.skip(str(error))


def called(worker: Inside) -> list[Item]:
    return [item for item in plan(worker.offer) if item.requirement.called]


def marked(name: str) -> Any:
    return pytest.param(name, marks=[pytest.mark.library] if REGISTRY[name].extra else [])


def test_every_answer_is_a_backend_s_and_of_a_formula_that_is_required() -> None:
    given = {name for room in rooms() for name in getattr(room, "ANSWERS", {})}
    assert given == {entry.answers or name for name, entry in REGISTRY.items() if answers(entry.answers or name)} | {
        name for name, entry in REGISTRY.items() if entry.swap
    }
    for name in OFFERING:
        spoken = {r.formula for r in requirements(REGISTRY[name].profile) if r.called}
        offered = answers(REGISTRY[name].answers or name)
        assert offered.keys() <= spoken, f"{name}'s profile has no requirement of them"


# Of our own each outcome is asserted in test_ours.py.
@pytest.mark.parametrize("name", [marked(name) for name in OFFERING if REGISTRY[name].library != "halfeven"])
def test_a_library_computes_the_formula_or_a_version_that_is_named(name: str) -> None:
    """And every difference has a witness whose script shows it: of one run, which of some libraries takes a minute."""
    worker = load(name)
    items = called(worker)
    assert len(items) >= len(worker.offer.functions)
    results = [run(item, worker) for item in items]
    ran = [r for r in results if r.outcome != "not run"]
    assert ran
    assert sum(r.points for r in ran) > 0
    parting = {
        (name, r.requirement): r.cause
        for r in ran
        if r.outcome in {"differs", "crashed"}
        and not (r.outcome == "differs" and r.check.startswith(CHECK) and r.requirement in broken())
    }
    known = {key for key in FINDINGS if key[0] == name}
    assert {key: cause for key, cause in parting.items() if key not in known} == {}
    assert known <= parting.keys(), "a finding that no longer bites"
    assert unseen(results) == {}


def unseen(results: Sequence[Result]) -> dict[str, Seen]:
    """The differences that no script shows, short or after other calls, with what the script showed."""
    found = {r.id: r.witness for r in results if r.witness is not None}
    assert {r.id for r in results if r.outcome in {"differs", "explained", "crashed"}} <= found.keys()
    bare = {r.id: r.check for r in results if r.id in found and not found[r.id].script}
    assert {key for key, check in bare.items() if check != CALL_SHAPES or "numbers" not in found[key].unshown} == set()
    left = {key: Seen() for key in found.keys() - bare.keys()}
    for script in ("script", "longer"):  # the longer one where other calls play a part
        asked = {key: getattr(found[key], script) for key in left}
        assert {key for key, text in asked.items() if "halfeven" in text.replace("halfeven.optimized", "")} == set()
        seen = zip(asked, run_alone([*asked.values()]), strict=True)
        left = {key: came for key, came in seen if not came.differs}
    return left
