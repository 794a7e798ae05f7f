"""Kernels with one thing changed, each of which the comparisons with the reference see."""

from pathlib import Path

import pytest
from targets import expected, jobs
from targets.build import MACHINES, built, edited
from targets.driver import Driver

_BYTES, _REALS = ("Quantize", "F32", "F32", "I8"), ("QuantizeDequantize", "BF16", "BF16", "BF16")
# The target, the dtypes, the file, and what is something else in it.
MUTANTS = {
    "truncated": ("baseline", _REALS, "core/element.h", "half_even(v) - o", "__builtin_truncf(v) - o"),
    "NaN as the lowest code": ("baseline", _BYTES, "core/element.h", "q = r == r ? q : nan", "q = r == r ? q : low"),
    "one element too many": ("baseline", _BYTES, "cpu/forward/kernels.h", "i < job.len; ++i) y[i] = E::of(x[i], s_r",
                             "i < job.len + 1; ++i) y[i] = E::of(x[i], s_r"),
    "to 16 bits without ties": ("baseline", _REALS, "core/arith.h", "u + 0x7fff + (u >> 16 & 1)) & 0xffff0000",
                                "u + 0x8000) & 0xffff0000"),
    "nothing": ("avx2", _BYTES, "core/reciprocal.h", "{0x6e7ffe, 0x74fffe, 0x7fffff}",
                "{0x6e7ffe, 0x74fffe, 0x7fffff}"),
    "an excepted scale": ("avx2", _BYTES, "core/reciprocal.h", "{0x6e7ffe, 0x74fffe, 0x7fffff}",
                          "{0x6e7ffe, 0x74fffe, 0x74fffe}"),
}  # fmt: skip


@pytest.mark.skipif(bool(MACHINES["host"].missing), reason=MACHINES["host"].missing)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_seen(name: str, tmp_path: Path) -> None:
    isa, combination, file, old, new = MUTANTS[name]
    driver = Driver(
        MACHINES["host"], built(MACHINES["host"], edited(tmp_path, (file, old, new)), only=f"forward/{isa}")
    )
    if isa not in driver.targets():
        pytest.skip(f"not run: this processor has no {isa}")
    given = [job for of in (jobs.elements, jobs.layouts) for job in of(jobs.combination(*combination))]
    try:
        found = driver.answers(isa, given)
    except AssertionError as error:
        if name == "one element too many" and ("written at byte" in str(error) or "ended with" in str(error)):
            return
        raise
    pairs = zip(given, found, strict=True)
    wrong = sum(len(expected.differing(f[0], expected.forward(job).ravel())) for job, f in pairs if f)
    assert bool(wrong) == (old != new)
