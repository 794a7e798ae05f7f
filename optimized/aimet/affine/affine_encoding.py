"""The encoding of affine quantization."""

from typing import Any, Self, overload

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine import export
from halfeven.optimized.aimet.affine.functional import apply, undo
from halfeven.optimized.aimet.affine.grid import Grid, read_grid, second_is_end, shift_of
from halfeven.optimized.aimet.base import EncodingBase

__all__ = ["AffineEncoding"]

# The dtypes of codes, in the order in which they are tried.
_DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32)
# The names after (scale, offset), as positions: with the ends of the grid, and with a bitwidth.
_ENDS = ("qmin", "qmax", "symmetry", "block_size", "zero_point_shift")
_BITS = ("bitwidth", "signed", "symmetry", "block_size", "zero_point_shift")


class AffineEncoding(Grid, EncodingBase):
    """x̂ = (q + offset)·scale for codes q in [qmin, qmax]; with a shift of z, x̂ = (q + offset + z)·scale.

    Scale and offset keep their dtype, and are cast to that of the arithmetic only: the first of the input's, float32
    and float64 that holds the grid with an epsilon of a quarter step or less. All three functions compute in it and
    round once, so that ``dequantize(quantize(x))`` is ``quantize_dequantize(x)``, in further round trips too.

    The codes of ``quantize_dequantize(x)`` are those of ``x``, unless ``x`` was clipped at an end of the grid that
    lies more than 2^(p−1) steps from 0 (for p significant bits), or whose real is subnormal: two codes may have one
    real there. With bfloat16 (p = 8), codes 0 to 255, offset 0 and a scale of 0.3262, 83.0 has the code 254, 83.5 the
    code 255, and both become 83.0. Where a real overflows, or the scale is 0 in the arithmetic, no code comes back.

    Upstream: scale and offset are rounded to the input's dtype first, which changes the values that float16 and
    bfloat16 tensors represent; ``min`` and ``max`` lack the shift; float bitwidths make grids of floats, and of an
    argument that is given twice the latter counts.

    Attributes:
        scale: real per code.
        offset: minus the zero point, in codes, of the shape of ``scale``.
        qmin: the lowest code.
        qmax: the highest code.
        block_size: elements per block, one entry per dimension of ``scale``, -1 for the size over the number of scales.
        producer: the quantizer that gave the encoding, or None.
    """

    @overload
    def __init__(
        self,
        scale: Tensor,
        offset: Tensor,
        qmin: int,
        qmax: int,
        symmetry: bool = False,
        block_size: tuple[int, ...] | None = None,
        zero_point_shift: float | None = None,
        *,
        producer: Any = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        scale: Tensor,
        offset: Tensor,
        bitwidth: int,
        signed: bool = False,
        symmetry: bool = False,
        block_size: tuple[int, ...] | None = None,
        zero_point_shift: float | None = None,
        *,
        producer: Any = None,
    ) -> None: ...
    def __init__(self, scale: Tensor, offset: Tensor, *args: Any, **kwargs: Any) -> None:
        """An encoding of the grid ``qmin`` to ``qmax``, or of ``bitwidth`` and ``signed``.

        Raises:
            TypeError: not exactly one of the two ways to give the grid; another argument.
            ValueError: ``qmin`` is not below ``qmax``; a ``zero_point_shift`` other than 0.0, 0.5 and None.
        """
        super().__init__()
        given = _named(args, kwargs)
        self.scale = scale
        self.offset = offset
        self.producer = given.pop("producer", None)
        block_size = given.pop("block_size", None)
        self.block_size = None if block_size is None else tuple(block_size)
        self._symmetry = bool(given.pop("symmetry", False))
        zero_point_shift = given.pop("zero_point_shift", None)
        try:
            self.qmin, self.qmax = read_grid(**given)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
        if self.qmin == self.qmax:
            msg = f"qmin={self.qmin}, qmax={self.qmax} is not accepted: give qmin below qmax"
            raise ValueError(msg)
        self._zero_point_shift = shift_of(zero_point_shift)

    @property
    def mapping(self) -> str:
        """The kind of map."""
        return "affine"

    @property
    def min(self) -> Tensor:
        """The least real on the grid, (offset + qmin + zero_point_shift)·scale, of the shape of ``scale``."""
        return self._real(self.qmin)

    @property
    def max(self) -> Tensor:
        """The greatest real on the grid, (offset + qmax + zero_point_shift)·scale, of the shape of ``scale``."""
        return self._real(self.qmax)

    @property
    def symmetry(self) -> bool:
        """Whether the encoding was made symmetric."""
        return self._symmetry

    @property
    def zero_point_shift(self) -> float:
        """What moves every real of the grid, in codes: 0.0 or 0.5."""
        return self._zero_point_shift

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of integer codes: the first of uint8, int8, int16 and int32 that holds the grid.

        Upstream: int32 also where it does not hold the grid.

        Raises:
            ValueError: none holds it.
        """
        for dtype in _DTYPES:
            info = torch.iinfo(dtype)
            if info.min <= self.qmin and self.qmax <= info.max:
                return dtype
        msg = f"qmin={self.qmin}, qmax={self.qmax} is not accepted: give a grid that int32 holds"
        raise ValueError(msg)

    def quantize(self, input: Tensor) -> Tensor:  # noqa: A002 - the document's name
        """Codes of ``input``, as ``affine.quantize``; of one that ``quantize_dequantize`` returned, the same codes.

        Raises:
            RuntimeError: there is a shift, or as ``affine.quantize``.
            ValueError: as there.
        """
        self._refuse_shift("quantize")
        return apply(input, self.scale, self.offset, self.qmin, self.qmax, self.block_size, codes=True)

    def dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """Reals of the codes ``input``; of those of ``quantize(x)``, the values of ``quantize_dequantize(x)``.

        Raises:
            RuntimeError: there is a shift, or as ``affine.dequantize``.
            TypeError: as there.
        """
        self._refuse_shift("dequantize")
        return undo(input, self.scale, self.offset, self.block_size, (self.qmin, self.qmax))

    def quantize_dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """``input`` on the grid, as ``affine.quantize_dequantize``, errors too."""
        grid = (self.qmin, self.qmax)
        return apply(input, self.scale, self.offset, *grid, self.block_size, self._zero_point_shift)

    def to_qnn_encoding_dict(self, encoding_version: str | None = None) -> dict[str, Any] | list[dict[str, Any]]:
        """The encoding as QNN reads it; see ``export``."""
        return export.affine(self, encoding_version)

    @classmethod
    def _from_qnn_encoding_dict(cls, encoding_dict: dict[str, Any], version: str | None = None) -> "AffineEncoding":
        return AffineEncoding(**export.read_affine(encoding_dict, version))

    def _get_additional_properties(self) -> dict[str, Any]:
        return {}

    def _scaled(self, factor: float, *, divide: bool = False) -> Self | None:
        """As the base's; a negative factor mirrors the grid, and the code q becomes qmin + qmax − q.

        A symmetric encoding of an odd qmin + qmax would not be symmetric any more: None then.
        """
        if factor < 0 and self._symmetry and (self.qmin + self.qmax) % 2:
            return None
        scaled = super()._scaled(factor, divide=divide)
        if scaled is not None and factor < 0:
            scaled.offset = -(self.qmin + self.qmax) - 2 * self._zero_point_shift - self.offset
        return scaled

    def _real(self, code: int) -> Tensor:
        real = self.offset + code
        if self._zero_point_shift:
            real = real + self._zero_point_shift
        return real * self.scale

    def _refuse_shift(self, name: str) -> None:
        if self._zero_point_shift:
            msg = (
                f"zero_point_shift={self._zero_point_shift} is not accepted by {name}: only quantize_dequantize has one"
            )
            raise RuntimeError(msg)


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments after the offset by name."""
    names = _ENDS if second_is_end(args, kwargs) else _BITS
    positions = dict(zip(names, args, strict=False))
    unknown = [name for name in kwargs if name in positions or name not in {*_ENDS, *_BITS, "producer"}]
    if len(args) > len(names) or unknown:
        said = f"{len(args)} arguments after offset and the keywords {', '.join(kwargs) or 'none'}"
        msg = f"{said} are not accepted: give {', '.join(_BITS)}, or {', '.join(_ENDS)}; and producer"
        raise TypeError(msg)
    return positions | kwargs
