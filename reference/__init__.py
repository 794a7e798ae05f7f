"""Exact NumPy reference of the formulas that quantization systems document. Never imports torch."""

from halfeven.reference import blocks, minifloat, model, rounding, sums
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.systems import PROFILES

__all__ = ["FORMULAS", "PROFILES", "EvaluationModel", "Grid", "blocks", "minifloat", "model", "rounding", "sums"]
