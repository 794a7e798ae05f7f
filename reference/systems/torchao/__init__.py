"""torchao: the affine primitives, and what its documents say around them."""
