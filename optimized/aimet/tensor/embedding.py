"""The encoding of an embedding: of the rows that were looked up."""

from typing import Any

from torch import Tensor
from torch.nn import functional

from halfeven.optimized.aimet.affine.encoding import AffineEncoding
from halfeven.optimized.aimet.block_sizes import concretize

__all__ = ["encoding"]


def encoding(indices: Tensor, rows: int, width: int, weight: Any) -> Any:
    """The encoding of ``embedding(indices, w)`` where ``weight`` is that of w, of shape (rows, width); or None.

    Rows that have scales of their own, alone or in blocks, bring them along.
    """
    if weight is None or weight.granularity == "pertensor":
        return weight
    if not isinstance(weight, AffineEncoding):
        return None
    scale = weight.scale if weight.scale.dim() > 1 else weight.scale.unsqueeze(0)
    offset = weight.offset.expand(scale.shape)
    given = weight.block_size
    blocks = None if given is None else concretize((rows, width), weight.scale.shape, given)[-1:]
    if scale.shape[0] == 1:
        scale, offset = scale[0], offset[0]
    else:
        found = indices // (rows // scale.shape[0])
        scale, offset = functional.embedding(found, scale), functional.embedding(found, offset)
        blocks = None if blocks is None else (1,) * indices.dim() + blocks
    return AffineEncoding(
        scale,
        offset,
        qmin=weight.qmin,
        qmax=weight.qmax,
        symmetry=weight.symmetry,
        block_size=blocks,
        zero_point_shift=weight.zero_point_shift,
        producer=weight.producer,
    )
