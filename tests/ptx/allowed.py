"""What the PTX of a forward kernel may have: so many of each operation that counts, and no other form of it."""

from collections import Counter

from core_dtypes import DTYPES

from ptx.instructions import memory
from ptx.parse import Kernel, kernels
from ptx.translate import translated

__all__ = ["violations"]


def violations(program: tuple[str, str, str, str], text: str) -> list[str]:
    """What a module has that it may not have, in words; of several copies of a loop each must have its share.

    Raises:
        RefusedError: an instruction is none of those known, all of which round to nearest and keep subnormals.
    """
    found = kernels(text)
    if sorted(found) != ["columns", "rows", "strided"]:
        return [f"kernels {sorted(found)}"]
    for kernel in found.values():
        translated(kernel)
    return [f"{kernel.name}: {words}" for kernel in found.values() for words in _of_kernel(program, kernel)]


def _of_kernel(program: tuple[str, str, str, str], kernel: Kernel) -> list[str]:
    operation, x, compute, out = program
    of_x, of_out = DTYPES[x].itemsize, DTYPES[out].itemsize
    pack = 16 // min(of_x, of_out) if kernel.name != "strided" else 0
    accesses, counts = _accesses(kernel), Counter(kernel.opcodes)
    # The one store of a single element says how many copies there are.
    copies = accesses["st", of_out]
    divided = pack + 1 if operation != "Dequantize" else 0
    # A product of two parts for each element, and the correction for each scale.
    fused = divided + (divided if kernel.name == "columns" else 1) if _multiplies(operation, compute) else 0
    wanted = {
        "16-byte loads": (accesses["ld", 16], pack * of_x // 16),
        "16-byte stores": (accesses["st", 16], pack * of_out // 16),
        "divisions": (counts["div.rn.f32"] + counts["div.rn.f64"], divided),
        "fused operations": (counts["fma.rn.f32"] + counts["fma.rn.f64"], fused),
        "stores of other sizes": (
            sum(n for (what, size), n in accesses.items() if what == "st" and size not in {16, of_out}),
            0,
        ),
    }
    return [
        f"{n} {what}, written are {copies} times {each}" for what, (n, each) in wanted.items() if n != copies * each
    ]


def _multiplies(operation: str, compute: str) -> bool:
    return operation in {"Quantize", "QuantizeDequantize"} and compute == "F32"


def _accesses(kernel: Kernel) -> Counter[tuple[str, int]]:
    found = filter(None, map(memory, kernel.opcodes))
    return Counter((what, count * int(kind[1:]) // 8) for what, space, count, kind in found if space != "param")
