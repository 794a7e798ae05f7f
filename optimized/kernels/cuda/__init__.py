"""The kernels of the GPU: CUDA C++ on the scalars of ``core``, compiled when they are first used by NVRTC."""

from halfeven.optimized.kernels.cuda.forward import FORWARD

__all__ = ["IMPLEMENTATIONS"]

#: What runs on CUDA, by the operators' names; the others run in torch operations there.
IMPLEMENTATIONS = FORWARD
