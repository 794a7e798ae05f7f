from collections.abc import Iterator

import pytest
import torch

from halfeven.optimized import kernels


@pytest.fixture(autouse=True)
def isa_and_threads() -> Iterator[None]:
    """A test may choose an instruction set and a number of threads: the next one has what was there before."""
    isa, threads = kernels.path().split()[-1], torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    if isa in kernels.available():
        kernels.choose(isa)
