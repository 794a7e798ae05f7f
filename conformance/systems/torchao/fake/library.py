"""torchao: how its releases fake quantize."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.systems.torchao.by_release import by_release, primitive

__all__ = ["ANSWERS"]

ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/fake_quantize_affine": primitive("_fake_quantize_affine"),
            "torchao/fake_quantize_affine_cachemask": primitive("_fake_quantize_affine_cachemask"),
        },
        v0_11={
            "torchao/fake_quantize_affine": primitive("fake_quantize_affine"),
            "torchao/fake_quantize_affine_cachemask": primitive("fake_quantize_affine_cachemask"),
        },
    )
}
