"""The kernels for vectors of 64 bytes, where no processor has them: what they are written in has no width of its own.

The few functions that are instructions of AVX-512 are loops here; those themselves need such a processor.
"""

from pathlib import Path

import pytest
from targets import expected, jobs
from targets.build import MACHINES, built, edited
from targets.driver import Driver

_PLAIN = Path(__file__).parents[2] / "targets/native_plain.h"
_DTYPES = ("F32", "BF16")
_COMBINATIONS = [
    *(("Quantize", t, "F32", out) for t in _DTYPES for out in ("I8", "U8", t)),
    *(("QuantizeDequantize", t, "F32", t) for t in _DTYPES),
    *(("Dequantize", q, t, t) for q in ("I8", "U8") for t in (*_DTYPES, "F16")),
]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """The driver, whose avx2 has vectors of 64 bytes and no instructions of its own."""
    header = "cpu/vector/avx2.h"
    kernels = edited(
        tmp_path_factory.mktemp("wide"),
        (header, "#define HALFEVEN_VECTOR 32", "#define HALFEVEN_VECTOR 64"),
        (header, "cpu/vector/native_x86.h", str(_PLAIN)),
    )
    machine = MACHINES["host"]
    if machine.missing or machine.kind != "x86_64":
        pytest.skip(machine.missing or "not run: the pragma of AVX2 is x86-64's")
    driver = Driver(machine, built(machine, kernels, only="avx2"))
    if "avx2" not in driver.targets():
        pytest.skip("not run: this processor has no avx2")
    return driver


@pytest.mark.parametrize("combination", _COMBINATIONS, ids="-".join)
def test_vectors_of_64_bytes(wide: Driver, combination: tuple[str, str, str, str]) -> None:
    given = [job for of in (jobs.elements, jobs.layouts) for job in of(jobs.combination(*combination))]
    for job, found in zip(given, wide.answers("avx2", given), strict=True):
        assert found is not None
        wrong = expected.differing(found[0], expected.forward(job).ravel())
        assert not len(wrong), f"{len(wrong)} differ, the first at {wrong[0]}: {job}"
