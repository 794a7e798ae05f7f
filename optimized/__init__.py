"""Fast torch implementations of the documented formulas, written apart from the references that judge them."""

from halfeven.optimized import affine

__all__ = ["affine"]
