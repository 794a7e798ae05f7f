"""PTX text as kernels of instructions. What it does not know it refuses."""

import re
from dataclasses import dataclass, field

__all__ = ["Instruction", "Kernel", "RefusedError", "kernels"]

_ENTRY = re.compile(
    r"\.visible \.entry (\w+)\(\s*\.param \.align (\d+) \.b8 (\w+)\[(\d+)\]\s*\)([^{]*)\{\n(.*?)\n\}", re.DOTALL
)
_SHARED = re.compile(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]")
_LINE = re.compile(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)(?:\s+(.*))?")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^]]*\]|[^,\s]+")
_BITS = {"pred": 8, "b16": 16, "b32": 32, "f32": 32, "b64": 64, "f64": 64}


class RefusedError(Exception):
    """PTX that the translator does not know, or that a kernel may not have."""


@dataclass(frozen=True)
class Instruction:
    """One instruction; ``guard`` is the predicate that it depends on, with a ``!`` where that is negated."""

    opcode: str
    operands: tuple[str, ...]
    guard: str = ""


@dataclass(frozen=True)
class Kernel:
    """A kernel with one parameter of ``size`` bytes; its body, in which a string is a label."""

    name: str
    parameter: str
    size: int
    threads: int
    #: Width in bits by name.
    registers: dict[str, int]
    #: Where in the memory that a block shares each name is, and the size of it all.
    shared: dict[str, int]
    shared_size: int
    body: tuple[Instruction | str, ...] = field(repr=False)

    @property
    def opcodes(self) -> list[str]:
        """Of every instruction, in their order."""
        return [line.opcode for line in self.body if isinstance(line, Instruction)]


def kernels(text: str) -> dict[str, Kernel]:
    """The kernels of a module, by name."""
    text = re.sub(r"//[^\n]*", "", text)
    shared, size = _shared(text)
    found = {m[1]: _kernel(m, shared, size) for m in _ENTRY.finditer(text)}
    if len(found) != text.count(".entry"):
        msg = f"of {text.count('.entry')} kernels only {sorted(found)} have one parameter, a struct"
        raise RefusedError(msg)
    return found


def _shared(text: str) -> tuple[dict[str, int], int]:
    """Where each name is, one after the other, whatever kernels have it."""
    places, size = {}, 0
    for align, name, room in _SHARED.findall(text):
        places[name] = -(-size // int(align)) * int(align)
        size = places[name] + int(room)
    return places, size


def _kernel(found: re.Match[str], shared: dict[str, int], shared_size: int) -> Kernel:
    name, _, parameter, size, attributes, text = found.groups()
    threads = re.fullmatch(r"\s*\.maxntid (\d+)(?:, 1, 1)?\s*", attributes)
    if not threads:
        msg = f"{name}: attributes {attributes!r}"
        raise RefusedError(msg)
    registers: dict[str, int] = {}
    body: list[Instruction | str] = []
    for line in re.split(r"[;\n]", text):
        stripped = line.strip()
        if (
            not stripped
            or _SHARED.fullmatch(stripped)
            or re.fullmatch(r'\.pragma "(nounroll|used_bytes_mask (0x)?[0-9a-f]+)"', stripped)
        ):
            continue
        if declared := re.fullmatch(r"\.reg \.(\w+)\s+%(\w+)<(\d+)>", stripped):
            registers |= {f"%{declared[2]}{i}": _BITS[declared[1]] for i in range(int(declared[3]))}
        elif label := re.fullmatch(r"\$(\w+):", stripped):
            body.append(label[1])
        elif (line_ := _LINE.fullmatch(stripped)) and not stripped.startswith("."):
            operands = tuple(_OPERAND.findall(line_[4] or ""))
            body.append(Instruction(line_[3], operands, f"{line_[1] or ''}{line_[2] or ''}"))
        else:
            msg = f"{name}: {stripped}"
            raise RefusedError(msg)
    return Kernel(name, parameter, int(size), int(threads[1]), registers, shared, shared_size, tuple(body))
