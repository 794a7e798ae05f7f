"""AIMET's gradients of the affine functions and of a range: requirements, calls, answers."""
