"""torchao: the affine primitives, and what its documents say around them, one file per part."""

from halfeven.reference.profiles.torchao import (
    domains,
    fake,
    float8,
    float8_releases,
    float8_training,
    floatx,
    gradients,
    granularity,
    hqq,
    intx,
    intx_releases,
    mx,
    nvfp4,
    qparams,
    qparams_releases,
)
from halfeven.reference.profiles.torchao.affine import TORCHAO, TORCHAO_0_18
from halfeven.reference.profiles.torchao.fake import fake_quantize_affine
from halfeven.reference.profiles.torchao.primitives import dequantize_affine, quantize_affine

__all__ = [
    "TORCHAO",
    "TORCHAO_0_18",
    "dequantize_affine",
    "domains",
    "fake",
    "fake_quantize_affine",
    "float8",
    "float8_releases",
    "float8_training",
    "floatx",
    "gradients",
    "granularity",
    "hqq",
    "intx",
    "intx_releases",
    "mx",
    "nvfp4",
    "qparams",
    "qparams_releases",
    "quantize_affine",
]
