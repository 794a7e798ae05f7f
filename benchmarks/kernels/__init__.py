"""How fast the kernels are: every installed implementation side by side, as multiples of a copy of the same bytes."""
