"""What encodings and quantizers of every kind share."""

from halfeven.optimized.aimet.base.encoding import EncodingBase
from halfeven.optimized.aimet.base.quantizer import QuantizerBase

__all__ = ["EncodingBase", "QuantizerBase"]
