"""What several adapters share: the storage type of a grid, the installed version, quiet imports, scripts."""

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.configuration import code_dtype
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape

__all__ = ["group_size", "installed", "no_blocks", "one_each", "quiet_import", "storage", "token_blocks"]

# Integer dtypes of torch that operators return codes in; uint32 has next to none.
_TORCH = ("int8", "uint8", "int16", "uint16", "int32")


@cache
def storage(grid: Grid, among: tuple[str, ...] = _TORCH, *, library: str = "this backend") -> str:
    """The dtype of a grid's codes: ``configuration.code_dtype`` if ``among`` those given, else the first that fits.

    Raises:
        Unsupported: none does.
    """
    fitting = [n for n in among if np.iinfo(n).min <= grid.qmin and grid.qmax <= np.iinfo(n).max]
    if not fitting:
        msg = (
            f"qmin={grid.qmin}, qmax={grid.qmax} is not offered by {library}: its integer dtypes are {', '.join(among)}"
        )
        raise Unsupported(msg)
    own = code_dtype(grid).name
    return own if own in fitting else fitting[0]


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
