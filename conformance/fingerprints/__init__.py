"""Which choices an implementation has made, with no claim: its fingerprint."""
