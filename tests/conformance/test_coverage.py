"""The documents' sentences: each is tried by requirements that exist, or says why not; and the catalogue of both."""

import importlib.util
import re
from pathlib import Path

import pytest

from halfeven.conformance.documents import Document, documents, parsed
from halfeven.conformance.requirements import every_requirement
from halfeven.reference.systems import SYSTEMS

ROOT = Path(__file__).parents[2]
NAMES = [
    "aimet_affine_quantize",
    "aimet_affine_quantize_dequantize",
    "aimet_quantized_tensor_base",
    "pytorch_quantization_tensor_quant",
    "torchao_affine_quantized_tensor",
]
DOCUMENTS = pytest.mark.parametrize("document", documents(), ids=lambda d: d.name)


def ids() -> set[str]:
    return set(every_requirement())


def tool() -> object:
    spec = importlib.util.spec_from_file_location("requirements_tool", ROOT / "tools/requirements.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_five_documents_are_covered() -> None:
    assert [d.name for d in documents()] == NAMES
    assert sum(len(d.sentences) for d in documents()) > 150


@DOCUMENTS
def test_every_requirement_that_a_sentence_names_exists(document: Document) -> None:
    known = ids()
    assert [(s.place, i) for s in document.sentences for i in s.requirements if i not in known] == []


@DOCUMENTS
def test_every_sentence_has_requirements_or_a_reason_and_not_both(document: Document) -> None:
    assert document.sentences
    for sentence in document.sentences:
        assert bool(sentence.requirements) != bool(sentence.not_testable), sentence.place
        assert len(sentence.requirements) == len(set(sentence.requirements)), sentence.place
        assert sentence.says.endswith("."), sentence.place
        assert len(sentence.not_testable) > 20 or not sentence.not_testable, sentence.place


@DOCUMENTS
def test_most_of_a_document_is_tested(document: Document) -> None:
    tested = sum(bool(s.requirements) for s in document.sentences)
    assert 2 * tested > len(document.sentences)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["first"]\nsays = "It."\nnot_testable = "why"', "source=None is not accepted"),
        ('source = "a"\nfirst = 3', "first: 3 is not accepted: give a table of not_testable, requirements, says"),
        ('source = "a"\n[first]\nsays = "It."\ntext = "no"', "first: text is not accepted"),
        ('source = "a"\n[first]\nrequirements = ["a"]', "first: says=None is not accepted"),
        ('source = "a"\n[first]\nsays = "It."', "give either requirements or not_testable"),
        ('source = "a"\n[first]\nsays = "It."\nrequirements = []', "give either requirements or not_testable"),
        ('source = "a"\n[first]\nsays = "It."\nrequirements = ["a"]\nnot_testable = "b"', "give either requirements"),
    ],
)
def test_a_table_that_says_too_little_or_too_much_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parsed("document", text)


def test_a_sentence_is_read_as_it_stands() -> None:
    read = parsed("document", 'source = "a"\n["b: c"]\nsays = "It."\nrequirements = ["x/y/z"]')
    assert (read.name, read.source) == ("document", "a")
    assert [(s.place, s.says, s.requirements, s.not_testable) for s in read.sentences] == [
        ("b: c", "It.", ("x/y/z",), "")
    ]


def test_the_catalogue_in_docs_is_what_the_tool_makes() -> None:
    made = tool().catalogue()
    assert (ROOT / "docs/requirements.md").read_text(encoding="utf-8") == made, "run make docs"


def test_the_catalogue_names_every_sentence_and_every_requirement() -> None:
    made = tool().catalogue()
    for name in NAMES:
        assert f"\n### {name}\n" in made
    for name in SYSTEMS:
        assert f"\n### {name}\n" in made
    rows = {line.split("`")[1] for line in made.splitlines() if line.startswith("| `")}
    assert rows == set(every_requirement())
    cells = {len(re.findall(r"(?<!\\)\|", line)) for line in made.splitlines() if line.startswith("|")}
    assert cells == {4, 5, 6, 7}
