"""Inputs: values built from code boundaries, and parameters."""
