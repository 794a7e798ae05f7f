"""The kernels of the GPU: CUDA C++ on the scalars of ``core``, compiled when they are first used by NVRTC."""
