from collections.abc import Iterator

import pytest
import torch

from halfeven.optimized import kernels


@pytest.fixture(autouse=True)
def isa_and_threads() -> Iterator[None]:
    """A test may choose an instruction set, threads, and the size of caches: the next one has what was there before."""
    isa, threads, caches = kernels.path().split()[-1], torch.get_num_threads(), kernels.past_caches()
    yield
    torch.set_num_threads(threads)
    kernels.past_caches(caches)
    if isa in kernels.available():
        kernels.choose(isa)
