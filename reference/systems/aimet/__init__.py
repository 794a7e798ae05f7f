"""AIMET: the affine functions, and what its documents say around them."""
