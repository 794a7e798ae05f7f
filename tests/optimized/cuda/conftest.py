from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ptx.driver import Pretended, StandIn
from ptx.shares_mutants import few_blocks

from halfeven.optimized.kernels.cuda import driver, images, launcher, nvrtc, programs

_compiled = nvrtc.compiled  # bound before a test puts something in its place
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A driver whose launches are emulated, and a folder of its own for what is compiled."""
    found = StandIn()
    monkeypatch.setenv("HALFEVEN_CACHE", str(tmp_path / "images"))
    monkeypatch.setattr(nvrtc, "compiled", found.compiled)
    images.image.cache_clear()
    return found


@pytest.fixture
def pretended(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    """As if tensors were on a GPU."""
    torch_ = Pretended()
    found = launcher.Launcher(driver.Driver(stand_in.library), torch_)
    monkeypatch.setattr(launcher, "ready", lambda: found)
    return torch_


@pytest.fixture
def on_cuda(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Calls what torch runs for CUDA, by the operator's name, with tensors whose memory the launches may touch."""

    def called(name: str, *given: Any, out: torch.Tensor | None = None) -> Any:
        read = [t for t in given if isinstance(t, torch.Tensor)]
        written = [] if out is None else [out]
        stand_in.may_touch(read, written)

        def noting(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
            """What is allocated in a call may be written."""

            def made(*of: Any, **settings: Any) -> torch.Tensor:
                written.append(function(*of, **settings))
                stand_in.may_touch(read, written)
                return written[-1]

            return made

        with monkeypatch.context() as patch:
            patch.setattr(torch, "empty_like", noting(torch.empty_like))
            patch.setattr(torch.Tensor, "new_empty", noting(torch.Tensor.new_empty))
            return getattr(torch.ops.halfeven, name).default.redispatch(_CUDA, *given)

    return called


@pytest.fixture
def two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions in so few blocks that these go on from one share to the next."""
    few_blocks(monkeypatch)


@pytest.fixture
def mutated(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> Callable[[programs.Program, str, str, str], None]:
    """Has one line of one file of a program be another in what is launched from now on."""

    def mutate(program: programs.Program, file: str, old: str, new: str) -> None:
        texts = {**programs.headers(), program.name: program.text}
        assert texts[file].count(old) == 1
        texts[file] = texts[file].replace(old, new)
        monkeypatch.setattr(programs, "headers", lambda: texts)

        def compiled(given: programs.Program, _: str) -> Any:
            ptx, _ = _compiled(given, "compute_90", headers=texts)
            stand_in.images[ptx.encode()] = ptx
            return ptx, ptx.encode() + b"\0"

        monkeypatch.setattr(nvrtc, "compiled", compiled)

    return mutate
