"""The operators in torch operations: where no kernel was compiled, and on devices that have none.

The results have the bits that the compiled kernels give; sums of gradients may differ in the last bit of float64.
"""

from typing import Any

from halfeven.optimized.kernels.chunked.backward import BACKWARD
from halfeven.optimized.kernels.chunked.forward import FORWARD
from halfeven.optimized.kernels.chunked.reduce import REDUCE

__all__ = ["IMPLEMENTATIONS"]

IMPLEMENTATIONS: dict[str, Any] = FORWARD | BACKWARD | REDUCE
