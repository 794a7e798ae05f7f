"""What several adapters share: the storage type of a grid, the installed version, quiet imports, scripts."""

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.reference.blocks import BlockSize, Shape

__all__ = ["group_size", "installed", "no_blocks", "one_each", "quiet_import", "storage", "token_blocks"]

STORAGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
}


def storage(qmin: int, qmax: int, among: tuple[str, ...] = tuple(STORAGES), *, library: str = "this backend") -> str:
    """The name of the narrowest integer dtype ``among`` those given that holds [qmin, qmax].

    Raises:
        Unsupported: none does.
    """
    for name in among:
        low, high = STORAGES[name]
        if low <= qmin and qmax <= high:
            return name
    msg = f"qmin={qmin}, qmax={qmax} is not offered by {library}: its integer dtypes are {', '.join(among)}"
    raise Unsupported(msg)


def installed(distribution: str) -> str | None:
    """The version of a distribution, or None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def no_blocks(block_size: BlockSize | None, function: str) -> None:
    """For a function that takes one scale.

    Raises:
        Unsupported: there are blocks.
    """
    if block_size is not None:
        msg = f"block_size={block_size} is not offered by {function}: it takes one scale"
        raise Unsupported(msg)


def token_blocks(block_size: BlockSize | None, shape: Shape, function: str) -> None:
    """For a function that takes one scale per vector along the last dimension.

    Raises:
        Unsupported: the blocks are others.
    """
    if not block_size or block_size[-1] < shape[-1] or any(b > 1 for b in block_size[:-1]):
        msg = f"block_size={block_size} of shape {shape} is not offered by {function}: it takes one scale per token"
        raise Unsupported(msg)


def group_size(block_size: BlockSize | None, shape: Shape, function: str) -> int:
    """The group size, for a function that takes groups along the last dimension of a matrix.

    Raises:
        Unsupported: the blocks are others, or a short one is left over.
    """
    if block_size is None or len(shape) != 2 or block_size[0] != 1 or block_size[1] < 2 or shape[1] % block_size[1]:  # noqa: PLR2004 - a matrix
        msg = (
            f"block_size={block_size} of shape {shape} is not offered by {function}: "
            "it takes whole groups of 2 or more along the last dimension of a matrix"
        )
        raise Unsupported(msg)
    return block_size[1]


def one_each(parameters: int, blocks: int, function: str) -> None:
    """For a function that asks for one parameter per channel or token even where the tensor is empty.

    Raises:
        Unsupported: an empty dimension leaves fewer parameters than ``blocks``.
    """
    if parameters != blocks:
        msg = f"{parameters} parameters of an empty tensor are not offered by {function}: it asks for {blocks}"
        raise Unsupported(msg)


def quiet_import(name: str) -> Any:
    """Import a library without its warnings and log lines, and leave the root logger as it was."""
    with _quiet():
        return importlib.import_module(name)


@contextmanager
def _quiet() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, disabled = root.handlers[:], root.level, root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers
        root.setLevel(level)
