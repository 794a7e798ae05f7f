"""Mutants of the reference and of the code that compares, and the calls that must see them."""
