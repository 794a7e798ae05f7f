"""A library that imports torchvision, where torchvision's Python side does not find its compiled side."""

from typing import Any

from halfeven.conformance.backends.common import quiet_import

__all__ = ["SHIM", "shim", "shimmed_import"]

# torchvision's Python side registers fakes for two operators, and fails where its compiled side does not load.
SHIM = """import torch
shim = torch.library.Library("torchvision", "FRAGMENT")
if not hasattr(torch.ops.torchvision, "nms"):
    shim.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    shim.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
_kept: dict[str, Any] = {}  # a library's operators live as long as it does


def shimmed_import(name: str) -> Any:
    """``quiet_import(name)``, the shim first where torchvision does not import without."""
    try:
        quiet_import("torchvision")
    except RuntimeError:
        exec(SHIM, _kept)  # noqa: S102 - the same lines that a witness's script begins with
    except ImportError:  # then the library must do without it
        pass
    return quiet_import(name)


def shim() -> str:
    """The lines that a script needs first; none where torchvision imports by itself."""
    return SHIM if _kept else ""
