"""All affine encodings, in one place."""

from halfeven.optimized.aimet.affine.affine_encoding import AffineEncoding
from halfeven.optimized.aimet.affine.grouped import GroupedBlockEncoding
from halfeven.optimized.aimet.affine.vector import VectorEncoding

__all__ = ["AffineEncoding", "GroupedBlockEncoding", "VectorEncoding"]
