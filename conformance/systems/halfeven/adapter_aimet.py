"""This project's drop-in replacement of aimet-torch, by the code that calls aimet-torch."""

from functools import partial

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.systems.aimet.adapter import affine_backend
from halfeven.conformance.systems.halfeven.adapter import path
from halfeven.optimized import aimet

__all__ = ["load"]


def load(_name: str) -> partial[Backend]:
    """``halfeven.aimet``."""
    return affine_backend(aimet, trainable=False, path=path)
