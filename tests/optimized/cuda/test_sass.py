"""How many instructions of a GPU's machine code a thread executes for an element: a budget per kernel.

NVRTC makes the machine code and nvdisasm shows it, and neither needs a GPU. Counted is what stands between the loads of
a pack and the last of its stores, on the way without a division where there is one. On 132 processors at 1.755 GHz that
move 3.0 TB/s, 20 instructions for an element of 3 bytes are two thirds of what they can issue.
"""

from collections.abc import Callable

import pytest
from ptx import sass

from halfeven.optimized.kernels.cuda import nvrtc, programs

_WHY_NOT = nvrtc.why_missing() or ("" if sass.disassembler() else "there is no nvdisasm (nvidia-cuda-nvdisasm)")
pytestmark = pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}")

_QUANTIZE = programs.forward("Quantize", "F32", "F32", "I8")
# A program, a kernel of it, elements of a pack, its stores of 16 bytes, whether it divides, and instructions at most.
BUDGET = (
    (_QUANTIZE, "rows", 16, 1, False, 20.0),
    (_QUANTIZE, "columns", 16, 1, False, 28.0),
    (programs.forward("Quantize", "BF16", "F32", "I8"), "rows", 16, 1, False, 22.0),
    (programs.forward("QuantizeDequantize", "F32", "F32", "F32"), "rows", 4, 1, False, 21.0),
    (programs.forward("QuantizeDequantize", "BF16", "F32", "BF16"), "rows", 8, 1, False, 28.0),
    (programs.forward("Dequantize", "I8", "F32", "F32"), "rows", 16, 4, False, 6.0),
    (programs.backward("QuantizeDequantize", "F32", "F32", "F32"), "rows", 4, 1, True, 35.0),
)

_ONCE, _TWICE = "to[k] = c.multiplied(from[k], ends);", "to[k] = c.multiplied(c.multiplied(from[k], ends), ends);"
_DIVIDED = "\n  else\n#pragma unroll\n    for (int k = 0; k < kWidth"


def per_element(of: tuple[programs.Program, str, int, int, bool, float], architecture: str) -> float:
    program, kernel, elements, stores, divides, _ = of
    lines = sass.listing(nvrtc.compiled(program, architecture)[1], kernel)
    return len(sass.executed(lines, stores=stores, divides=divides)) / elements


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("of", BUDGET, ids=lambda of: f"{of[0]}, {of[1]}")
def test_within_the_budget(
    of: tuple[programs.Program, str, int, int, bool, float], architecture: str, record_property: Callable[..., None]
) -> None:
    n = per_element(of, architecture)
    record_property("instructions", n)
    # As in test_budget.py: where a kernel got better the table is to say so.
    assert of[-1] * 0.7 < n <= of[-1]


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "cuda/forward.cu",
            "fast = scale_qualifies(s) && offset_qualifies(o, ends.low, ends.high);",
            "fast = false;",
            "no way",
        ),
        ("cuda/device.h", "both ? Cut{head, (len - head) / n} : Cut{len, 0}", "Cut{len, 0}", "of 0 loads"),
        (
            "cuda/forward.cu",
            _ONCE + _DIVIDED,
            _TWICE + _DIVIDED,
            "",
        ),
    ],
    ids=["divides", "single elements", "computes twice"],
)
def test_a_slower_kernel_is_caught(file: str, old: str, new: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {**programs.headers(), _QUANTIZE.name: _QUANTIZE.text}
    assert texts[file].count(old) == 1
    texts[file] = texts[file].replace(old, new)
    compiled = nvrtc.compiled
    monkeypatch.setattr(nvrtc, "compiled", lambda program, to: compiled(program, to, headers=texts))
    if words:
        with pytest.raises(ValueError, match=words):
            per_element(BUDGET[0], "sm_90")
    else:
        assert per_element(BUDGET[0], "sm_90") > BUDGET[0][-1]
