"""Machine code of a GPU, as its disassembler shows it: what a thread executes from a load to the store of its pack.

A way is looked for in the branches, since what is executed only where a row has a scale of a certain kind stands
between the two as well.
"""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

__all__ = ["disassembler", "executed", "listing"]

_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*);")
_LABEL = re.compile(r"^(\.L_\w+):")
# Its name, where it jumps to, and whether a predicate guards it.
_Instruction = tuple[str, str | None, bool]
_TARGET = re.compile(r"`\((\.L_\w+)\)")


@functools.cache
def disassembler() -> str | None:
    """Where nvdisasm is: of its own package, or where the system looks."""
    try:
        files = metadata.files("nvidia-cuda-nvdisasm") or []
    except metadata.PackageNotFoundError:
        return shutil.which("nvdisasm")
    (found,) = (Path(str(f.locate())) for f in files if f.name in {"nvdisasm", "nvdisasm.exe"})
    if not os.access(found, os.X_OK):  # as some installers leave it
        copy = Path(tempfile.mkdtemp(prefix="halfeven-nvdisasm-")) / found.name
        shutil.copy(found, copy)
        copy.chmod(0o755)
        return str(copy)
    return str(found)


def listing(code: bytes, kernel: str) -> list[str]:
    """The lines of one kernel."""
    tool = disassembler()
    assert tool is not None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        command = [tool, "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    _, _, rest = text.partition(f"\n.text.{kernel}:\n")
    return rest.partition("\n.text.")[0].splitlines()


def executed(lines: list[str], *, stores: int = 1, divides: bool = False) -> list[str]:
    """Opcodes of the shortest way from the loads of a pack to the last of its stores.

    Args:
        lines: of a kernel.
        stores: of 16 bytes, that a pack has.
        divides: whether it may divide on the way.

    Raises:
        ValueError: there is no such way.
    """
    code: list[_Instruction] = []
    labels: dict[str, int] = {}
    for line in lines:
        if label := _LABEL.match(line.strip()):
            labels[label[1]] = len(code)
        elif found := _LINE.search(line):
            target = _TARGET.search(found[3])
            code.append((found[2], target[1] if target else None, bool(found[1])))
    loads = {i for i, (opcode, *_) in enumerate(code) if opcode.startswith("LDG.E.128")}
    ways = [_shortest(code, labels, start, stores, divides=divides) for start in loads if start - 1 not in loads]
    if found_ways := [way for way in ways if way]:
        return min(found_ways, key=len)
    msg = f"no way from a load of 16 bytes to {stores} stores of 16, of {len(loads)} loads"
    raise ValueError(msg)


def _shortest(code: list[_Instruction], labels: dict[str, int], start: int, stores: int, *, divides: bool) -> list[str]:
    """Breadth first, since instructions cost one each; of a loop that begins anew nothing is counted twice."""
    came: dict[tuple[int, int], tuple[int, int] | None] = {(start, 0): None}
    waiting = [(start, 0)]
    for at in waiting:
        (i, stored), (opcode, target, guarded) = at, code[at[0]]
        if opcode.startswith("MUFU.RCP") and not divides:
            continue
        stored += opcode.startswith("STG.E.128")
        if stored == stores:
            way, back = [], at
            while back is not None:
                way.append(code[back[0]][0])
                back = came[back]
            return way[::-1]
        leaves = opcode.startswith(("BRA", "EXIT", "RET"))
        follow = [labels[target]] if opcode.startswith("BRA") and target else []
        follow += [i + 1] if guarded or not leaves else []
        for to in follow:
            if to < len(code) and (to, stored) not in came:
                came[to, stored] = at
                waiting.append((to, stored))
    return []
