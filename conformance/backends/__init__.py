"""The backends: the protocol, the registry, and one short adapter for each real library."""
