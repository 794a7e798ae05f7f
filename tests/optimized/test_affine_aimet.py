"""``optimized.affine`` against the installed AIMET, bit for bit, on its documented division path."""

import importlib.util
import logging
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized import affine

pytestmark = pytest.mark.library

# Lives as long as the process: operators defined by a Library vanish with it.
_TORCHVISION: list[torch.library.Library] = []


@pytest.fixture(scope="module")
def aimet() -> Any:
    if importlib.util.find_spec("aimet_torch") is None:
        pytest.skip("aimet_torch is not installed: pip install 'halfeven[aimet]'")
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not hasattr(torch.ops.torchvision, "nms"):
            # torchvision's compiled operators do not load beside a CPU build of torch; its Python side needs the names.
            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            _TORCHVISION.append(library)
        from aimet_torch.quantization import affine as module  # noqa: PLC0415
    logging.disable(logging.NOTSET)
    return module


def same_bits(a: Tensor, b: Tensor) -> bool:
    carrier = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    ours, theirs = (torch.where(t.isnan(), -1, t.contiguous().view(carrier)) for t in (a, b))
    return a.dtype == b.dtype and torch.equal(ours, theirs)


def around_ties(dtype: torch.dtype, scale: Tensor, offset: Tensor, qmin: int, qmax: int) -> Tensor:
    """Code boundaries of each element's own scale and offset, moved by up to 3 ulp, and some specials."""
    shape = (8, 40)
    codes = torch.randint(2 * qmin - 4, 2 * qmax + 5, shape) / 2
    x = ((codes + offset) * scale).to(dtype)
    for _ in range(3):
        target = torch.where(torch.rand(shape) < 0.5, torch.inf, -torch.inf).to(dtype)
        x = torch.where(torch.rand(shape) < 0.3, torch.nextafter(x, target), x)
    specials = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 3e38, -1e-45]).to(dtype)
    x.view(-1)[: len(specials)] = specials
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("shape", "block"), [((), None), ((8, 1), None), ((1, 40), None), ((4, 5), (2, 8)), ((8, 10), (1, 4))]
)
@pytest.mark.parametrize(("qmin", "qmax"), [(-128, 127), (0, 255), (0, 15), (-127, 127)])
def test_same_bits_as_aimet(
    aimet: Any, dtype: torch.dtype, shape: tuple[int, ...], block: tuple[int, int] | None, qmin: int, qmax: int
) -> None:
    torch.manual_seed(0)
    scale = (torch.rand(shape) + 0.01) * 0.1
    offset = torch.randint(-20, 20, shape).float() - (0.0 if qmin < 0 else qmax // 2)
    whole = [p.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1) if block else p for p in (scale, offset)]
    x = around_ties(dtype, whole[0], whole[1], qmin, qmax)
    grid: dict[str, Any] = {"qmin": qmin, "qmax": qmax, "block_size": block}
    theirs = scale.clone().requires_grad_()  # a trainable scale takes the division path
    q = aimet.quantize(x, theirs, offset, **grid)
    assert same_bits(affine.quantize(x, scale, -offset, **grid), q)
    assert same_bits(
        affine.quantize_dequantize(x, scale, -offset, **grid), aimet.quantize_dequantize(x, theirs, offset, **grid)
    )
    assert same_bits(
        affine.dequantize(q, scale, -offset, block_size=block), aimet.dequantize(q, theirs, offset, block_size=block)
    )
    assert len(q.unique()) > 10


@pytest.mark.parametrize("offset", [0.0, -0.0])
def test_sign_of_zero(aimet: Any, offset: float) -> None:
    x = torch.full((33,), -0.03)
    theirs = aimet.quantize(x, torch.ones((), requires_grad=True), torch.tensor(offset), qmin=0, qmax=15)
    assert theirs.signbit().any() == (str(offset) == "0.0")
    assert same_bits(affine.quantize(x, torch.ones(()), -torch.tensor(offset), qmin=0, qmax=15), theirs)
