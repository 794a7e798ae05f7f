"""All inputs of a dtype: bit patterns that are generated where they are needed, and answers as runs of equal values."""
