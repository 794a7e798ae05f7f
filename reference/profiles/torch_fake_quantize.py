"""torch: ``fake_quantize_per_tensor_affine`` and ``fake_quantize_per_channel_affine``."""

from dataclasses import replace

import numpy as np

from halfeven.reference.blocks import BlockSize, per_channel, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile, along_axis

__all__ = [
    "TORCH_FAKE_QUANTIZE",
    "TORCH_FAKE_QUANTIZE_2_13",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
]

MODEL = EvaluationModel()

_EQUATION = r"\hat x = (\min(q_{max}, \max(q_{min}, \mathrm{nearby\_int}(x / s) + z)) - z) \times s"
_BASIS = AsComputed(dtype="the input's")


@formula(
    "torch.fake_quantize",
    equation=_EQUATION,
    basis=_BASIS,
    source="torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine",
)
def fake_quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """``x`` on the grid, in ``x.dtype``. Arguments and errors as in ``Profile.quantize``."""
    t = x.dtype
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        z = per_element(zero_point, x.shape, block_size).astype(t)
        quant_min, quant_max = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        output: Array = (np.minimum(quant_max, np.maximum(quant_min, np.rint(x / s) + z)) - z) * s
    return output


TORCH_FAKE_QUANTIZE = Profile(
    name="torch.fake_quantize",
    title="(min(qmax, max(qmin, nearby_int(x / s) + zero_point)) - zero_point) * s",
    source="torch: torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine",
    model=MODEL,
    numpy={
        "fake_quantize": (
            "(np.minimum(qmax, np.maximum(qmin, np.rint(x / scale) + np.float32(zero_point)))"
            " - np.float32(zero_point)) * scale"
        ),
    },
    transcriptions={"fake_quantize": fake_quantize},
)

TORCH_FAKE_QUANTIZE_2_13 = replace(
    TORCH_FAKE_QUANTIZE,
    name="torch.fake_quantize@2.13",
    title="(clamp(round(x * (1 / s)) + zero_point, qmin, qmax) - zero_point) * s, and the code of NaN is qmin",
    source="torch 2.13.0, fake_quantize_per_tensor_affine measured on the CPU",
    model=replace(MODEL, division="reciprocal", nan="qmin"),
    numpy={
        "fake_quantize": (
            "(np.clip(np.nan_to_num(np.rint(x * (1 / scale)), nan=-np.inf, posinf=np.inf, neginf=-np.inf)"
            " + np.float32(zero_point), qmin, qmax) - np.float32(zero_point)) * scale"
        ),
    },
    transcriptions={},
)


# The documented signatures.


def fake_quantize_per_tensor_affine(
    input: Array,  # noqa: A002 - the document's own word
    scale: float | Array,
    zero_point: int | Array,
    quant_min: int,
    quant_max: int,
) -> Array:
    """``input`` on the grid with one scale and one zero point; they are held in float32 and int32."""
    s, z = np.asarray(scale, np.float32).reshape(()), np.asarray(zero_point, np.int32).reshape(())
    return fake_quantize(input, s, z, Grid(quant_min, quant_max))


def fake_quantize_per_channel_affine(
    input: Array,  # noqa: A002 - the document's own word
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Array:
    """``input`` on the grid with one scale and one zero point per index along ``axis``.

    Raises:
        ValueError: ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    blocks = per_channel(input.shape, axis)
    s, z = (along_axis(p, input.shape, axis) for p in (scale, zero_point))
    return fake_quantize(input, s, z, Grid(quant_min, quant_max), blocks)
