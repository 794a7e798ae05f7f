"""The memory of tensors as a kernel of the GPU needs it: there, whole, and at places that it can access."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from halfeven.optimized.arguments.memory import extent

__all__ = ["DTYPES", "NONE", "Dtype", "check_places"]


@dataclass(frozen=True)
class Dtype:
    """A dtype as the kernels have it: its name and its number in ``core/dtype.h``."""

    name: str
    number: int


_ORDER = (
    ("F32", torch.float32),
    ("F64", torch.float64),
    ("F16", torch.float16),
    ("BF16", torch.bfloat16),
    ("I8", torch.int8),
    ("U8", torch.uint8),
    ("I16", torch.int16),
    ("U16", torch.uint16),
    ("I32", torch.int32),
    ("U32", torch.uint32),
    ("I64", torch.int64),
)
DTYPES = {dtype: Dtype(name, number) for number, (name, dtype) in enumerate(_ORDER)}
#: The number of no dtype.
NONE = len(_ORDER)


def check_places(tensors: Mapping[str, Tensor]) -> None:
    """Refuse what would make a kernel touch memory that is not there, or that the GPU cannot access at its place.

    Raises:
        RuntimeError: a storage ends before its tensor does, or elements are at no multiples of their size.
    """
    for name, t in tensors.items():
        if t.numel() == 0:
            continue
        item, held = t.element_size(), t.untyped_storage().nbytes()
        if t.storage_offset() * item + extent(t) > held:
            msg = f"{name} of shape {tuple(t.shape)} is not accepted: its storage of {held} bytes ends before it does"
            raise RuntimeError(msg)
        if t.data_ptr() % item:
            msg = f"{name} is not accepted: its memory is at no multiple of {item} bytes; give {name}.clone()"
            raise RuntimeError(msg)
