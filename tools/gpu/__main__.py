"""What only a GPU shows: ``make gpu``, or ``python -m gpu STEP [FOLDER [SECONDS]]``, a step of ten minutes at most.

Steps are ``correct`` (the same bits as on the CPU), ``fast`` and ``libraries`` (what other libraries do there). A step
ends with status 0 if all of it passed, 1 if something failed, 75 if its time was over and it goes on when it is called
again, 77 if it was NOT RUN, as where there is no GPU, 130 if it was interrupted.
"""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

os.environ["HALFEVEN_KERNELS"] = "cuda"  # before anything looks at it: also of the runs that are started

from gpu import behaviour, page, parity, places, speed, steps, suite

__all__ = ["main"]

_OUT = Path(__file__).parents[2] / "reports/gpu"
_SECONDS = 570.0
_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run one step: its name, then the folder and the seconds that it may take."""
    step, out, seconds = [*arguments, *("", f"{_OUT}", f"{_SECONDS}")[len(arguments) :]][:3]
    if step not in page.STEPS:
        print(f"STEP={step!r} is not accepted: give one of {', '.join(page.STEPS)}", file=sys.stderr)
        return 2
    if why := places.why_no_gpu():
        print(f"{step}: {steps.NOT_RUN}: {why}; this is no pass", flush=True)
        return steps.STATUS[steps.NOT_RUN]
    folder = Path(out)
    try:
        status = steps.run(
            step,
            _parts(step, folder),
            folder / f"{step}.jsonl",
            places.words(),
            float(seconds),
            lambda text: print(text, flush=True),
            lambda: page.write(folder),
        )
    except KeyboardInterrupt:
        print(f"{step}: interrupted; call it again, and it goes on", flush=True)
        return _INTERRUPTED
    finally:
        if folder.exists():
            page.write(folder)
    return status


def _parts(step: str, folder: Path) -> list[steps.Part]:
    match step:
        case "fast":
            return [*speed.parts("cuda", places.why_no_kernels)]
        case "libraries":
            return suite.libraries(folder, "cuda")
    found = []
    for name, place in (("kernels", places.Gpu()), ("torch operations", places.Gpu(torch_path=True))):
        own = [(f"{name}, {called}", run) for called, run in parity.calls(place)]
        if name == "kernels":
            own += [
                (f"kernels, all 2^32 of {of[0]}, scale {of[1]:.9g}", partial(parity.sweep, place, of))
                for of in parity.SWEEPS
            ]
            found += [steps.Part(called, _launched(run)) for called, run in own]
            found += [steps.Part(called, _launched(run), extra) for called, run, extra in behaviour.PARTS]
        else:
            found += [steps.Part(called, run) for called, run in own]
    return [*found, *suite.ours(folder, "cuda")]


def _launched(run: behaviour.Run) -> behaviour.Run:
    """What needs the kernels, which torch operations would stand in for unseen."""

    def needing(left: steps.Left) -> tuple[str, object]:
        if why := places.why_no_kernels():
            raise steps.NotRunError(why)
        return run(left)

    return needing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
