"""Exact NumPy reference of the formulas that quantization systems document. Never imports torch."""

from halfeven.reference import blocks, minifloat, model, profiles, rounding
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel

__all__ = ["EvaluationModel", "Grid", "blocks", "minifloat", "model", "profiles", "rounding"]
