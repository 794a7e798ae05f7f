"""Number formats: a number to its code and back."""
