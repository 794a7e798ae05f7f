"""A kernel as C: one function of a thread, up to its next barrier, and one that runs all threads of a grid."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ptx.instructions import OPERATIONS, SPECIAL, memory
from ptx.parse import Instruction, Kernel, RefusedError

__all__ = ["WEIGHTS", "prelude", "translated"]

#: Instructions of a GPU that one of PTX stands for, where it is not about one.
WEIGHTS = {"div.rn.f32": 16}

_LAUNCH = """
void launch_{name}(const u32* grid, const u32* ntid, const u8* given, u32 size, const struct Buffer* all, int count,
                   u64* found) {{
  buffers = all, buffer_count = count, parameters = given, parameters_size = size;
  run({name}, sizeof(struct {name}_at), {shared}, grid, ntid);
  memcpy(found, faults, sizeof faults);
}}
"""


def translated(kernel: Kernel, *, counted: bool = False) -> str:
    """C that computes what the kernel does; ``counted``: and counts what it executes, by weights.

    Raises:
        RefusedError: it has an instruction, or a form of one, that stands in no table.
    """
    names = {
        bits: [r for r, width in kernel.registers.items() if width == bits] for bits in set(kernel.registers.values())
    }
    declared = [f"  u{bits} " + ", ".join(map(_register, found)) + ";" for bits, found in names.items()]
    barriers = count(1)
    lines = [
        f"{line}:;"
        if isinstance(line, str)
        else f"  {_counted(line) if counted else ''}{_barrier(kernel, line, barriers) or _statement(kernel, line)}"
        for line in kernel.body
    ]
    went = [f"    case {i}: goto barrier_{i};" for i in range(1, next(barriers))]
    return "\n".join(
        [
            # Where a thread waits, and its registers there.
            f"struct {kernel.name}_at {{\n  int barrier;",
            *declared,
            "};",
            f"static int {kernel.name}(void* kept, const u32* tid, const u32* ntid, const u32* ctaid,",
            "    const u32* nctaid) {",
            *declared,
            f"  struct {kernel.name}_at* at_ = kept;",
            *(f"  {_register(r)} = at_->{_register(r)};" for r in kernel.registers),
            "  switch (at_->barrier) {\n    case 0: break;",
            *went,
            "  }",
            *lines,
            "  return 0;\n}",
            _LAUNCH.format(name=kernel.name, shared=kernel.shared_size),
        ]
    )


def prelude() -> str:
    """What comes before all kernels."""
    return Path(__file__).with_name("prelude.h").read_text(encoding="utf-8")


def _barrier(kernel: Kernel, line: Instruction, numbers: Iterator[int]) -> str:
    """The thread goes away, and comes back here when all others of its block have been here."""
    if line.opcode != "bar.sync" or line.operands != ("0",) or line.guard:
        return ""
    i = next(numbers)
    kept = " ".join(f"at_->{_register(r)} = {_register(r)};" for r in kernel.registers)
    return f"at_->barrier = {i}; {kept} return 1; barrier_{i}:;"


def _counted(line: Instruction) -> str:
    return f"executed += {WEIGHTS.get(line.opcode, 1)}; "


def _register(name: str) -> str:
    return name.replace("%", "v_")


def _statement(kernel: Kernel, line: Instruction) -> str:
    try:
        done = _jump(line) or _access(kernel, line) or _packing(kernel, line) or _computed(kernel, line)
    except (KeyError, IndexError, ValueError) as error:
        raise _refused(kernel, line) from error
    if not line.guard:
        return done
    return f"if ({'!' if line.guard[0] == '!' else ''}{_register(line.guard.lstrip('!'))}) {done}"


def _refused(kernel: Kernel, line: Instruction) -> RefusedError:
    return RefusedError(f"{kernel.name}: {line.opcode} {', '.join(line.operands)}")


def _jump(line: Instruction) -> str:
    match line.opcode, line.operands:
        case "ret", ():
            return "return 0;"
        case (("bra" | "bra.uni"), (label,)):
            return f"goto {label.removeprefix('$')};"
    return ""


def _access(kernel: Kernel, line: Instruction) -> str:
    found = memory(line.opcode)
    if found is None:
        return ""
    what, space, n, kind = found
    place, other = (line.operands[1], line.operands[0]) if what == "ld" else line.operands
    # Of shared memory addresses have 32 bits.
    register = "%r" if space == "shared" else "%rd"
    address = re.fullmatch(rf"\[({register}\d+|\w+)(?:\+(-?\d+))?\]", place)
    registers = [r.strip() for r in other.strip("{}").split(",")]
    if address is None or len(registers) != n or (what, space) == ("st", "param"):
        raise _refused(kernel, line)
    at = f"{_value(kernel, address[1], 'u64')} + (s64){address[2] or 0}"
    size = int(kind[1:]) // 8
    checked = "shared_at" if space == "shared" else "checked"
    if what == "st":
        # A register is as wide as what is stored, or wider; a number has no width.
        given = [_value(kernel, r, _unsigned(kernel, r) if r.startswith("%") else kind) for r in registers]
        moves = [f"(({kind}*)at)[{i}] = ({kind}){value};" for i, value in enumerate(given)]
        return f"{{ u8* at = {checked}({at}, {size * n}, 1); {' '.join(moves)} }}"
    reach = f"{checked}({at}, {size * n}, 0)" if space != "param" else f"parameter_at({at}, {size * n})"
    moves = [
        f"{_register(r)} = ((const {kind}*)at)[{i}];"
        for i, r in enumerate(registers)
        if kernel.registers[r] >= 8 * size
    ]
    if len(moves) != n:
        raise _refused(kernel, line)
    return f"{{ const u8* at = {reach}; {' '.join(moves)} }}"


def _unsigned(kernel: Kernel, register: str) -> str:
    return f"u{kernel.registers[register]}"


def _packing(kernel: Kernel, line: Instruction) -> str:
    """``mov`` between one register and several of a part of its width; a cast of a generic address to a global one."""
    to, *of = line.operands
    if line.opcode == "cvta.to.global.u64":
        return f"{_register(to)} = {_value(kernel, of[0], 'u64')};" if kernel.registers[to] == 64 else ""
    if not line.opcode.startswith("mov.b") or "{" not in "".join(line.operands):
        return ""
    bits = int(line.opcode.removeprefix("mov.b"))
    parts = [r.strip() for r in next(o for o in line.operands if "{" in o).strip("{}").split(",")]
    width = bits // len(parts)
    if any(part != "_" and kernel.registers[part] != width for part in parts):
        raise _refused(kernel, line)
    if "{" in to:
        whole = _value(kernel, of[0], f"u{bits}")
        return "".join(f"{_register(p)} = {whole} >> {i * width}; " for i, p in enumerate(parts) if p != "_").join("{}")
    if kernel.registers[to] != bits:
        raise _refused(kernel, line)
    joined = " | ".join(f"(u{bits}){_value(kernel, p, f'u{width}')} << {i * width}" for i, p in enumerate(parts))
    return f"{_register(to)} = {joined};"


def _computed(kernel: Kernel, line: Instruction) -> str:
    operation = OPERATIONS[line.opcode]
    to, *of = line.operands
    if len(of) != len(operation.sources):
        raise _refused(kernel, line)
    given = [_value(kernel, o, t) for o, t in zip(of, operation.sources, strict=True)]
    width = 8 if operation.result == "pred" else int(operation.result[1:])
    if kernel.registers[to] < width:
        raise _refused(kernel, line)
    value = operation.value.format("", *given)
    if operation.result.startswith("f"):
        value = f"{operation.result}_bits({value})"
    elif operation.result != "pred":
        value = f"({operation.result})({value})"
    return f"{_register(to)} = {value};"


def _value(kernel: Kernel, operand: str, kind: str) -> str:
    """An operand as a value of a type."""
    if operand in SPECIAL:
        plain = SPECIAL[operand]
    elif operand == kernel.parameter:
        plain = "(u64)parameters"
    elif operand in kernel.shared:
        plain = f"{kernel.shared[operand]}u"
    elif operand.startswith("%"):
        kernel.registers[operand]  # or it is refused
        plain = _register(operand)
    elif found := re.fullmatch(r"0[fd]([0-9A-F]{8}|[0-9A-F]{16})", operand):
        plain = f"0x{found[1]}u"
    elif re.fullmatch(r"-?(\d+|0x[0-9A-Fa-f]+)U?", operand):
        plain = f"(u64){int(operand.rstrip('U'), 0) % 2**64}u"
    else:
        raise KeyError(operand)
    if kind == "pred":
        return f"({plain} != 0)"
    return f"{kind}_from({plain})" if kind.startswith("f") else f"(({kind}){plain})"
