"""Explanations on demand: of one value, of a code, of a report's witness."""
