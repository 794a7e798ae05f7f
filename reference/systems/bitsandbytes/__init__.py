"""bitsandbytes: blocks by their largest magnitude, with codes of a book of 256 levels, of NF4, or of FP4."""
