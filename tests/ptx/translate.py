"""A kernel as C: one function of a thread, and one that runs all threads of a grid after each other."""

import re
from pathlib import Path

from ptx.instructions import OPERATIONS, SPECIAL, memory
from ptx.parse import Instruction, Kernel, RefusedError

__all__ = ["WEIGHTS", "prelude", "translated"]

#: Instructions of a GPU that one of PTX stands for, where it is not about one.
WEIGHTS = {"div.rn.f32": 16}

_LAUNCH = """
void launch_{name}(const u32* grid, const u32* ntid, const u8* given, u32 size, const struct Buffer* all, int count,
                   u64* found) {{
  u32 tid[3], ctaid[3];
  buffers = all, buffer_count = count, parameters = given, parameters_size = size, thread = 0;
  memset(faults, 0, sizeof faults);
  for (ctaid[2] = 0; ctaid[2] < grid[2]; ++ctaid[2])
    for (ctaid[1] = 0; ctaid[1] < grid[1]; ++ctaid[1])
      for (ctaid[0] = 0; ctaid[0] < grid[0]; ++ctaid[0])
        for (tid[2] = 0; tid[2] < ntid[2]; ++tid[2])
          for (tid[1] = 0; tid[1] < ntid[1]; ++tid[1])
            for (tid[0] = 0; tid[0] < ntid[0]; ++tid[0]) {{
              ++thread;
              {name}(tid, ntid, ctaid, grid);
            }}
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
    declared = [f"  u{bits} " + ", ".join(f"{_register(r)} = 0" for r in found) + ";" for bits, found in names.items()]
    lines = [
        f"{line}:;" if isinstance(line, str) else f"  {_count(line) if counted else ''}{_statement(kernel, line)}"
        for line in kernel.body
    ]
    head = f"static void {kernel.name}(const u32* tid, const u32* ntid, const u32* ctaid, const u32* nctaid) {{"
    return "\n".join([head, *declared, *lines, "}", _LAUNCH.format(name=kernel.name)])


def prelude() -> str:
    """What comes before all kernels."""
    return Path(__file__).with_name("prelude.h").read_text(encoding="utf-8")


def _count(line: Instruction) -> str:
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
            return "return;"
        case (("bra" | "bra.uni"), (label,)):
            return f"goto {label.removeprefix('$')};"
    return ""


def _access(kernel: Kernel, line: Instruction) -> str:
    found = memory(line.opcode)
    if found is None:
        return ""
    what, space, count, kind = found
    place, other = (line.operands[1], line.operands[0]) if what == "ld" else line.operands
    address = re.fullmatch(r"\[(%rd\d+|\w+)(?:\+(-?\d+))?\]", place)
    registers = [r.strip() for r in other.strip("{}").split(",")]
    if address is None or len(registers) != count or (what, space) == ("st", "param"):
        raise _refused(kernel, line)
    at = f"{_value(kernel, address[1], 'u64')} + (s64){address[2] or 0}"
    size = int(kind[1:]) // 8
    if what == "st":
        # A register is as wide as what is stored, or wider.
        moves = [
            f"(({kind}*)at)[{i}] = ({kind}){_value(kernel, r, _unsigned(kernel, r))};" for i, r in enumerate(registers)
        ]
        return f"{{ u8* at = checked({at}, {size * count}, 1); {' '.join(moves)} }}"
    reach = f"checked({at}, {size * count}, 0)" if space != "param" else f"parameter_at({at}, {size * count})"
    moves = [
        f"{_register(r)} = ((const {kind}*)at)[{i}];"
        for i, r in enumerate(registers)
        if kernel.registers[r] >= 8 * size
    ]
    if len(moves) != count:
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
