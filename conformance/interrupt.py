"""What SIGTERM does in a process of ours: it ends the run as Ctrl-C does, once."""

import os
import signal
import threading
from types import FrameType

__all__ = ["interrupt"]

_SOON = 0.01  # seconds


def interrupt(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt: a handler for ``signal.signal``.

    Where Python is at an instruction that belongs to no line, it is raised a moment later: pytest cannot print a
    traceback that ends there, and would lose the report.
    """
    if frame is not None and frame.f_lineno is None:
        signal.signal(signal.SIGTERM, _interrupt_now)
        threading.Timer(_SOON, os.kill, (os.getpid(), signal.SIGTERM)).start()
    else:
        _interrupt_now()


def _interrupt_now(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not cut the report short
    raise KeyboardInterrupt
