"""Jobs for the driver, and its answers."""

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from core_dtypes import DTYPES

from targets.build import ISAS, Machine

__all__ = ["END", "GRADIENTS", "NO_KERNEL", "OPERATIONS", "START", "Driver", "Job"]

Array = npt.NDArray[Any]

# By the names and in the order of core/operation.h.
OPERATIONS = ("Quantize", "QuantizeDequantize", "QuantizeDequantizeShifted", "Dequantize")
GRADIENTS = ("Quantize", "Dequantize", "QuantizeDequantize")
_PARTS = ("targets", "forward", "backward", "reduce", "load", "save", "save_sums", "copy")

#: Places in memory: just before a page that is not to be touched, and just after one. Others are bytes after 64.
END, START = -1, -2
#: Of a combination of dtypes that no kernel computes.
NO_KERNEL = 1


@dataclass(frozen=True, eq=False)
class Job:
    """A rectangle of elements, its parameters rounded to the arithmetic's dtype in float32 or float64.

    ``made`` are the dtypes of what the kernel makes, and how many of each. ``first`` are sums or keys so far.
    """

    part: str
    x: Array
    op: str = "Quantize"
    into: str = "F32"
    compute: str = "F32"
    out: str = "F32"
    g: Array | tuple[()] = ()
    s: Array | tuple[()] = ()
    o: Array | tuple[()] = ()
    first: Array | tuple[()] = ()
    made: tuple[tuple["np.dtype[Any]", int], ...] = ()
    columns: bool = False
    sums: bool = False
    magnitudes: bool = False
    far: bool = False
    stream: bool = False
    in_place: bool = False
    grid: tuple[float, float] = (-128, 127)
    shift: float = 0.0
    gaps: tuple[int, int, int] = (0, 0, 0)
    places: tuple[int, int, int] = field(default=(END, END, END))

    def packed(self, target: int) -> bytes:
        """As driver.cpp reads it."""
        operations = GRADIENTS if self.part == "backward" else OPERATIONS
        number = list(DTYPES).index
        given = [np.ascontiguousarray(a).tobytes() for a in (self.x, self.g, self.s, self.o, self.first)]
        flags = (self.columns, self.sums, self.magnitudes, self.far, self.stream, self.in_place)
        dtypes = (number(self.into), number(self.compute), number(self.out))
        head = (_PARTS.index(self.part), target, operations.index(self.op), *dtypes, *flags)
        rows, length = self.x.shape
        out_item = self.made[0][0].itemsize if self.made else 1
        shape = (rows, length, self.x.dtype.itemsize, out_item, *self.gaps, *self.places)
        sizes = [len(each) for each in given]
        return struct.pack("<22q3d5q", *head, *shape, *self.grid, self.shift, *sizes) + b"".join(given)

    def __str__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self)}
        return ", ".join(f"{name}={value}" for name, value in shown.items() if not isinstance(value, np.ndarray))


@dataclass(frozen=True)
class Driver:
    """The compiled program, and what runs it."""

    machine: Machine
    program: Path

    def targets(self) -> tuple[str, ...]:
        """Those that the processor has."""
        ((_, names),) = self._asked([Job("targets", np.empty((0, 0), np.uint8)).packed(0)])
        return tuple(names.decode().split())

    def answers(self, target: str, jobs: Sequence[Job]) -> list[list[Array] | None]:
        """What the kernels of a target make of each job; None where it has no such kernel.

        Raises:
            AssertionError: the program ended in a job, or a kernel wrote where it may not.
        """
        found: list[list[Array] | None] = []
        number = ISAS.index(target)
        for job, (status, data) in zip(jobs, self._asked([job.packed(number) for job in jobs], jobs), strict=True):
            assert status in {0, NO_KERNEL}, f"{data.decode()}: {job}"
            found.append(None if status else _split(data, job))
        return found

    def _asked(self, requests: Sequence[bytes], jobs: Sequence[Job] = ()) -> list[tuple[int, bytes]]:
        command = [*self.machine.runner, str(self.program)]
        done = subprocess.run(command, input=b"".join(requests), capture_output=True, check=False)
        found, at = [], 0
        while at + 16 <= len(done.stdout):
            status, size = struct.unpack_from("<2q", done.stdout, at)
            found.append((status, done.stdout[at + 16 : at + 16 + size]))
            at += 16 + size
        last = jobs[len(found)] if len(found) < len(jobs) else "none"
        assert done.returncode == 0, f"ended with {done.returncode} in the job: {last}; {done.stderr.decode()[-500:]}"
        return found


def _split(data: bytes, job: Job) -> list[Array]:
    found, at = [], 0
    for dtype, count in job.made:
        found.append(np.frombuffer(data, dtype, count, at))
        at += count * dtype.itemsize
    assert at == len(data), (at, len(data), str(job))
    return found
