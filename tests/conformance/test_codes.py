"""Codes of causes: each choice has one, none was ever given anew, and they cost no library."""

import importlib.util
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from halfeven.conformance import codes
from halfeven.reference import FORMULAS
from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.model import EvaluationModel
from halfeven.reference.systems import PROFILES
from halfeven.reference.systems.torchao.qparams import ChoosingByBlock

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "tests/conformance/codes.txt"


def tool() -> object:
    """The script that gives numbers."""
    spec = importlib.util.spec_from_file_location("tools_codes", ROOT / "tools/codes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()


def broken(ledger: list[str], table: list[str]) -> list[str]:
    """What was given another number, or lost its own, and what the ledger does not know yet."""
    return sorted(set(ledger) ^ set(table))


def test_every_value_of_every_choice_has_a_code() -> None:
    without = [row for row in TOOL.declared() if row[2] not in codes.choices().get(row[0], {}).get(row[1], {})]
    assert not without, "run python tools/codes.py"
    behaviours = [f.behaviour for f in FORMULAS.values() if f.behaviour is not None]
    assert len(behaviours) > 200
    for b in behaviours:
        for name, words in b.choices().items():
            found = [codes.code_of(name, value, b) for value in words]
            assert codes.UNLISTED not in found, (type(b), name)
            assert len(set(found)) == len(words), f"two values of {name} in {type(b)} share a code"


def test_no_number_was_ever_changed_or_given_twice() -> None:
    table = TOOL.ledger(tomllib.loads(TOOL.TABLE.read_text()))
    ledger = LEDGER.read_text().splitlines()
    assert not broken(ledger, table), "numbers are kept for ever: python tools/codes.py adds, and changes none"
    assert broken(ledger, [table[0].replace("HE1", "HE9"), *table[1:]])
    meanings = {code for entries in codes.other().values() for code, _ in entries.values()}
    assert not meanings & {line.split()[0] for line in ledger}
    said = Counter(sentence for entries in codes.other().values() for sentence in {s for _, s in entries.values()})
    assert max(said.values()) == 1
    for kind, entries in codes.other().items():
        by = {code: {s for c, s in entries.values() if c == code} for code, _ in entries.values()}
        assert all(len(sentences) == 1 for sentences in by.values()), kind


def test_new_values_get_the_next_numbers_of_their_family_and_the_others_stay() -> None:
    table = tomllib.loads(TOOL.TABLE.read_text())
    section = "torchao.qparams.Choosing"
    last = max(n for s, fields in table.items() if TOOL.family(s) == 2000 for v in fields.values() for n in v.values())
    taken = table[section].pop("eps")
    again = TOOL.numbered(table)
    assert [*again[section]["eps"].values()] == [*range(last + 1 - (last in taken.values()), last + 5)][: len(taken)]
    assert {k: v for k, v in again[section].items() if k != "eps"} == table[section]


def test_a_number_that_means_something_else_is_left_out() -> None:
    """HE196 is no choice's, and where a family is full the next one's numbers are not taken."""
    table = tomllib.loads(TOOL.TABLE.read_text())
    before = {line.split()[0] for line in TOOL.ledger(table)}
    late = {n for values in table["model"].values() for n in values.values() if n >= 190}
    assert late == {*range(190, max(late) + 1)} - {196}
    table["model"] = {c: {v: n for v, n in values.items() if n not in late} for c, values in table["model"].items()}
    full = {f"full.{i}": 2203 + i for i in range(97)}  # up to 2299
    table["torchao.qparams.Choosing"]["full"] = full
    table["torchao.qparams.Choosing"].pop("eps")
    again = TOOL.numbered(table)
    assert late <= {n for values in again["model"].values() for n in values.values()}
    assert 196 not in {n for values in again["model"].values() for n in values.values()}
    assert not {f"HE{n}" for n in again["torchao.qparams.Choosing"]["eps"].values()} & before - {
        f"HE{n}" for n in full.values()
    }


def test_the_codes_of_a_difference() -> None:
    document, found = PROFILES["onnx"].model, PROFILES["torch.quantize@2.13"].model
    assert "HE101" in codes.codes_between(document, found)
    assert codes.code_of("division", "reciprocal") == "HE101"
    assert codes.code_of("eps", "none", ChoosingByBlock()) == codes.code_of("eps", "none", ChoosingByBlock)
    for own in ("torchao/quantize_affine", "onnx/QuantizeLinear", "brevitas/IntQuant.to_int"):
        assert codes.code_of("division", "reciprocal", FORMULAS[own].behaviour) == "HE101", own


def test_a_choice_of_nobodys_formula_has_no_code_of_its_own() -> None:
    class Own(Behaviour):
        odd: str = choice({"down": "rounds halves down", "up": "rounds halves up"})

    assert codes.code_of("odd", "up", Own) == codes.UNLISTED
    assert codes.code_of("division", "by hand") == codes.UNLISTED
    assert codes.code_of("division", "another factor") == "HE196", "no model has it: every scale has its own"
    assert codes.code_of("nothing", "up", EvaluationModel) == codes.UNLISTED


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("wrong shape: (1,) for an input of ()", "HE501"),
        ("with integer input: wrong dtype: float64 for codes", "HE502"),
        ("mutated input: the call changed an argument in place, or the memory around it", "HE503"),
        ("stale output: 3 of 8 elements were never written", "HE504"),
        ("not deterministic: the same call differed once and not again", "HE505"),
        ("changed the process: the number of threads", "HE506"),
        ("timed out after 30 s", "HE507"),
        ("signal 11, SIGSEGV", "HE508"),
        ("the process ended early (exit status 3)", "HE508"),
        ("not asked: the process ended in a call before", "HE509"),
        ("wrong device: the result is on cpu", "HE510"),
        ("wrong result: a str", "HE511"),
        ("something new", "HE500"),
    ],
)
def test_faults(message: str, code: str) -> None:
    assert codes.fault_code(message) == code


def test_errors_regions_readings_and_properties() -> None:
    assert codes.error_code("ValueError") == "HE402"
    assert codes.error_code("builtins.ValueError") == "HE402"
    assert codes.error_code("SomethingElse") == "HE400"
    assert codes.region_code("layout") == "HE603"
    assert codes.region_code("the weather") == "HE600"
    assert codes.reading_code("narrow grid") == "HE701"
    assert codes.property_code("monotone") == "HE805"
    known = {code for entries in codes.other().values() for code, _ in entries.values()}
    assert {codes.UNKNOWN, codes.NEAREST, codes.UNLISTED} <= known


def test_codes_need_no_library() -> None:
    script = (
        "import sys; from halfeven.conformance.codes import code_of; assert code_of('nan', 'zero') == 'HE141';"
        "print([m for m in ('numpy', 'ml_dtypes', 'torch') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
