"""Number formats: encode and decode of float formats up to 16 bits, one rounding (OCP FP8 and MX, IEEE 754)."""
