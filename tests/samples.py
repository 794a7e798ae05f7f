"""Calls and answers with everything in them that a file has to hold."""

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.engine.call import Answer, Call, CallShape, Dtype
from halfeven.conformance.engine.memory import Strided, plain

__all__ = ["ANSWERS", "CALLS", "OFFER"]

OFFER = Offer("device", "onnx", {"quantize": ("qmin", "qmax")}, array="numpy")
MEMORY = np.arange(24, dtype=np.float32)
CALLS = [
    Call("onnx:quantize", (plain(MEMORY), plain(np.float32(0.5)), plain(np.int32(3))), {"qmin": -128, "qmax": 127}),
    Call(
        "onnx:quantize",
        (Strided(MEMORY, (3, 2), (-4, 1), 20), Strided(MEMORY, (3, 1), (1, 1), 2), plain(np.zeros((3, 1), np.int32))),
        {"qmin": 0, "qmax": 255, "block_size": (1, 2)},
        CallShape(6, 2, "reversed", mode="inference", threads="all", repeats=2),
        "rows\tapart",
    ),
    Call(
        "onnx/QuantizeLinear",
        (),
        {
            "x": plain(MEMORY.astype(ml_dtypes.bfloat16)),
            "to": Dtype("int4"),
            "precise": 0.1,
            "inf": float("inf"),
            "words": "a b\n%",
            "empty": "",
            "bytes": b"\0\xff",
            "none": None,
            "flag": True,
            "scalar": np.float16(-0.0),
            "listed": [plain(np.zeros((0, 3), np.uint8)), 2**70],
            "mapped": {"a": (1, (2,))},
        },
    ),
]
ANSWERS = [
    Answer("returned", MEMORY.astype(np.int8)),
    Answer("raised", error=("TypeError", "Exception"), message="no, not\nthis: 100 %"),
    Answer(
        "returned",
        {"codes": (MEMORY.reshape(2, 3, 4).astype(ml_dtypes.int4), np.float32(0.1)), "n": [1, "x", None, True, 0.5]},
        faults=("mutated input: it did",),
    ),
]
