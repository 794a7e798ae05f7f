"""Casts and choices of scales as people write them, each with what its fingerprint has to say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16


@dataclass(frozen=True, eq=False)
class Kernel:
    """One function.

    Attributes:
        name: what it is, as people call it.
        function: of the data.
        fields: what has to be told; a value that is a set may be any of these.
        array: "numpy" or "torch".
        all: whether a known behaviour gives every answer.
    """

    name: str
    function: Callable[..., Any]
    fields: Mapping[str, Any] = field(default_factory=dict)
    array: str = "numpy"
    all: bool = True
