"""Give numbers to causes that have none yet: ``python tools/codes.py``.

It writes ``conformance/codes/choices.toml`` and adds what is new to the ledger that a test compares with it. What has a
number keeps it; a value that is said in the same words as another of its family gets the same one.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from halfeven.conformance.codes import other, place, value_key
from halfeven.reference import FORMULAS
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.model import EvaluationModel

__all__ = ["FAMILIES", "declared", "family", "ledger", "main", "numbered", "written"]

_ROOT = Path(__file__).parents[1]
TABLE = _ROOT / "conformance/codes/choices.toml"
LEDGER = _ROOT / "tests/conformance/codes.txt"

Numbers = dict[str, dict[str, dict[str, int]]]

#: The first number of each family, and whose choices it has: the modules of the reference.
FAMILIES: Mapping[int, str] = {
    100: "model",
    2000: "aimet.encodings aimet.lpbq aimet.quantizers brevitas.int_grid brevitas.scaling compressed_tensors.qparams"
    " onnx.dynamic torch.choose_qparams torch.observers torchao.hqq torchao.qparams",
    2300: "aimet.analyzers aimet.histogram aimet.percentile aimet.sqnr pytorch_quantization.calibrators"
    " pytorch_quantization.histogram",
    2500: "aimet.gradients pytorch_quantization.gradients torch.learnable torchao.gradients",
    3300: "aimet.float compressed_tensors.floats number_formats.casts number_formats.conversions p3109"
    " pytorch_quantization.e4m3 torchao.float8 torchao.float8_tensor torchao.float8_training torchao.floatx"
    " torchao.floatx_tensor",
    3600: "bitsandbytes gguf torchao.mx torchao.nvfp4 torchao.storage",
    3800: "aimet.export aimet.propagation aimet.quantized_tensor pytorch_quantization.descriptor",
    3000: "",  # all others
}
_HEAD = """\
# The number of every value of every choice, by the place where the choice is declared; of those of the model
# affine.toml tells more. `python tools/codes.py` adds what is new at the end of its family; no number is ever changed,
# nor given to anything else. Values of a family that are said in the same words share a number.
"""


def declared() -> Iterator[tuple[str, str, str, str]]:
    """Every value of every choice: the place of the behaviour, the choice, the value's key, and its words."""
    behaviours = [EvaluationModel(), *(f.behaviour for _, f in sorted(FORMULAS.items()) if f.behaviour is not None)]
    for behaviour in behaviours:
        yield from _of(behaviour)


def _of(behaviour: Behaviour) -> Iterator[tuple[str, str, str, str]]:
    for choice, words in behaviour.choices().items():
        section = place(type(behaviour), choice)
        yield from ((section, choice, value_key(value), said) for value, said in words.items())


def family(section: str) -> int:
    """The family of a place: ``torchao.qparams.Choosing`` is of 2000."""
    module = section if section == "model" else section.rpartition(".")[0]
    return next((first for first, modules in FAMILIES.items() if module in modules.split()), 3000)


def numbered(table: Numbers) -> Numbers:
    """The table, with a number for every value declared."""
    found = {s: {c: dict(values) for c, values in fields.items()} for s, fields in table.items()}
    values = list(dict.fromkeys(declared()))
    said = {
        (family(section), words): found[section][choice][key]
        for section, choice, key, words in values
        if key in found.get(section, {}).get(choice, {})
    }
    numbers = [
        (family(section), number)
        for section, fields in found.items()
        for own in fields.values()
        for number in own.values()
        if number >= family(section)
    ]
    last = {first: max((n for of, n in numbers if of == first), default=first) for first in FAMILIES}
    taken = {n for _, n in numbers} | {int(code[2:]) for kind in other().values() for code, _ in kind.values()}
    for section, choice, key, words in values:
        own, first = found.setdefault(section, {}).setdefault(choice, {}), family(section)
        if key not in own:
            if (first, words) not in said:
                said[first, words] = last[first] = next(n for n in count(last[first] + 1) if n not in taken)
                taken.add(last[first])
            own[key] = said[first, words]
    return found


def written(table: Numbers) -> str:
    """The file."""
    lines = [_HEAD]
    for section, fields in table.items():
        lines.append(f"[{_key(section)}]")
        for choice, values in fields.items():
            lines.append(f"{choice} = {{ " + ", ".join(f"{_key(k)} = {n}" for k, n in values.items()) + " }")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def ledger(table: Numbers) -> list[str]:
    """A line for each value, by which a test knows that none was given another number."""
    return [
        f"HE{number} {section}.{choice}: {key}"
        for section, fields in table.items()
        for choice, values in fields.items()
        for key, number in values.items()
    ]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else '"' + name.replace('"', '\\"') + '"'


def main() -> None:
    """Write both files."""
    table = numbered(tomllib.loads(TABLE.read_text(encoding="utf-8")))
    TABLE.write_text(written(table), encoding="utf-8")
    had = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    LEDGER.write_text("\n".join([*had, *(line for line in ledger(table) if line not in set(had))]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
