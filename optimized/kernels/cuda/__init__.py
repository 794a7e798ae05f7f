"""The kernels of the GPU: CUDA C++ on the scalars of ``core``, compiled when they are first used by NVRTC."""

from collections.abc import Callable
from typing import Any

from halfeven.optimized.kernels import chunked
from halfeven.optimized.kernels.cuda import launcher
from halfeven.optimized.kernels.cuda.backward import BACKWARD
from halfeven.optimized.kernels.cuda.forward import FORWARD
from halfeven.optimized.kernels.cuda.reduce import REDUCE

__all__ = ["IMPLEMENTATIONS"]


def _or_torch(name: str, launched: Callable[..., Any]) -> Callable[..., Any]:
    """What is launched, or torch operations where nothing can be."""
    own = chunked.IMPLEMENTATIONS[name]

    def run(*given: Any) -> Any:
        to = launcher.ready()
        return own(*given) if to is None else launched(to, *given)

    return run


#: What runs on CUDA, by the operators' names; the others run in torch operations there.
IMPLEMENTATIONS = {name: _or_torch(name, launched) for name, launched in (FORWARD | BACKWARD | REDUCE).items()}
