"""A batch as a file of NumPy's: the same manifest and memories as in the safetensors form, each memory an ``.npy``."""

import io
import json
import zipfile
import zlib
from typing import Any

import numpy as np

from halfeven.conformance.engine.memory import Array
from halfeven.conformance.engine.sound import Damaged, refuse

__all__ = ["from_npz", "to_npz"]

_HEAD = 8
# Of the safetensors format; what NumPy has no dtype for is there as unsigned integers of its width.
_DTYPES = {
    **{f"F{bits}": f"<f{bits // 8}" for bits in (64, 32, 16)},
    **{f"I{bits}": f"<i{bits // 8}" for bits in (64, 32, 16, 8)},
    **{f"U{bits}": f"<u{bits // 8}" for bits in (64, 32, 16, 8)},
    "BF16": "<u2",
    "F8_E4M3": "<u1",
    "F8_E5M2": "<u1",
    "BOOL": "|b1",
}
_MANIFEST, _METADATA = "manifest", "__metadata__"


def to_npz(batch: bytes) -> bytes:
    """The batch, which this process wrote in the safetensors form, as an uncompressed ``.npz``."""
    length = int.from_bytes(batch[:_HEAD], "little")
    header = json.loads(batch[_HEAD : _HEAD + length])
    text = header.pop(_METADATA)["halfeven"]
    body = memoryview(batch)[_HEAD + length :]
    arrays: dict[str, Any] = {_MANIFEST: np.frombuffer(text.encode(), np.uint8)}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        arrays[name] = np.frombuffer(body[begin:end], np.dtype(_DTYPES[t["dtype"]]))
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()


def from_npz(data: bytes) -> bytes:
    """The other way, of a file that came from elsewhere: nothing in it is taken for more than its bytes hold.

    Raises:
        Damaged: it is no such file; the message has the reason.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as held:
            names = [entry.filename for entry in held.infolist()]
            if len({*names}) < len(names):
                refuse("an array is there twice")
            found = {e.filename.removesuffix(".npy"): _array(held, e, len(data)) for e in held.infolist()}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError) as error:
        msg = f"no file of NumPy's: {f'{error}'[:200]}"
        raise Damaged(msg) from None
    except (LookupError, TypeError, ValueError, OverflowError, SyntaxError, RecursionError, MemoryError) as error:
        msg = f"no array of NumPy's: {f'{error}'[:200]}"
        raise Damaged(msg) from None
    if _MANIFEST not in found:
        refuse("it has no manifest")
    return _batch(found)


def _array(held: zipfile.ZipFile, entry: zipfile.ZipInfo, size: int) -> Array:
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size or entry.flag_bits & 1:
        refuse(f"{entry.filename[:80]!r} is compressed: write it with numpy.savez")
    file = io.BytesIO(held.read(entry))
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        refuse(f"{entry.filename[:80]!r} is of the version {version}: write a vector of plain numbers")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    rest = file.read()
    if (
        len(shape) > 1
        or dtype.hasobject
        or dtype.kind not in "fiub"
        or int(np.prod(shape)) * dtype.itemsize != len(rest)
    ):
        refuse(f"{entry.filename[:80]!r} is no vector of plain numbers of its size")
    found = np.frombuffer(rest, dtype)
    return found.astype(dtype.newbyteorder("<"))


def _batch(found: dict[str, Array]) -> bytes:
    """The bytes of the safetensors form."""
    text = found.pop(_MANIFEST).tobytes().decode("utf-8", "replace")
    stored = {np.dtype(name): dtype for dtype, name in reversed(_DTYPES.items())}
    header: dict[str, object] = {_METADATA: {"halfeven": text}}
    position, parts = 0, []
    for name, a in found.items():
        if name == _METADATA or a.dtype not in stored:
            refuse(f"an array is named {name[:80]!r}, of {a.dtype}")
        header[name] = {"dtype": stored[a.dtype], "shape": [a.size], "data_offsets": [position, position + a.nbytes]}
        position += a.nbytes
        parts.append(a.tobytes())
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % _HEAD)
    return b"".join([len(head).to_bytes(_HEAD, "little"), head, *parts])
