"""Affine quantization of vectors: the arithmetic of one number, and what an export says of the vectors."""

from typing import Any

from torch import Tensor

from halfeven.optimized.aimet.affine.affine_encoding import AffineEncoding

__all__ = ["VectorEncoding"]

_PROPERTIES = ("rows_per_block", "cols_per_block", "vector_dim", "vector_stride", "index_bw")


class VectorEncoding(AffineEncoding):
    """An ``AffineEncoding`` with the shape of its vectors, which versions 0.6.1 and 1.0.0 export.

    Upstream: a shift and a producer are dropped.

    Attributes:
        rows_per_block: rows of a block.
        cols_per_block: columns of a block.
        vector_dim: elements of a vector.
        vector_stride: distance between the elements of a vector.
        index_bw: width of an index in bits.
    """

    rows_per_block: int
    cols_per_block: int
    vector_dim: int
    vector_stride: int
    index_bw: int

    def __init__(
        self,
        scale: Tensor,
        offset: Tensor,
        bitwidth: int,
        signed: bool = False,
        symmetry: bool = False,
        block_size: tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> None:
        """An encoding of vectors; all five attributes are keywords.

        Raises:
            KeyError: one of them is missing.
        """
        for name in _PROPERTIES:
            setattr(self, name, kwargs.pop(name))
        given: dict[str, Any] = {"signed": signed, "symmetry": symmetry, "block_size": block_size}
        super().__init__(scale, offset, bitwidth=bitwidth, **given, **kwargs)

    def to_qnn_encoding_dict(self, encoding_version: str | None = None) -> dict[str, Any] | list[dict[str, Any]]:
        """The encoding as QNN reads it, and its vectors in 0.6.1 and 1.0.0; errors as ``AffineEncoding``'s."""
        found = super().to_qnn_encoding_dict(encoding_version)
        if isinstance(found, list):
            return [row | self._get_additional_properties() for row in found]
        if encoding_version == "1.0.0":
            found |= {**self._get_additional_properties(), "enc_type": "VECTOR"}
        return found

    def _get_additional_properties(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _PROPERTIES}
