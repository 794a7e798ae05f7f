"""What a command prints on standard output."""

import os
import sys

__all__ = ["say"]


def say(text: str) -> None:
    """Print ``text``. Who reads, such as ``head``, may have seen enough: that changes no exit status."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
