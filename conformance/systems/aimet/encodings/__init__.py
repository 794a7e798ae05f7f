"""AIMET's grids, and scale and offset of a minimum and a maximum: requirements, calls, answers."""
