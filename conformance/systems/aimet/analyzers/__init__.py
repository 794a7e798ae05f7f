"""AIMET's calibration by the least and the greatest value: requirements, calls, answers."""
