"""Inputs: values built from code boundaries, parameters, and the public Hypothesis strategies of configurations."""

from halfeven.conformance.inputs.strategies import Placement, placements, shapes

__all__ = ["Placement", "placements", "shapes"]
