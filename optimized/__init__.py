"""Fast torch implementations of the documented formulas, written apart from the references that judge them.

``affine`` quantizes, ``calibration`` finds ranges, ``kernels`` says which path runs; ``aimet``, imported by its own
name, offers the documented API of ``aimet_torch.quantization``.
"""

from halfeven.optimized import affine, calibration, kernels

__all__ = ["affine", "calibration", "kernels"]
