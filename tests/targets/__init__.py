"""The kernels of the CPU compiled for any target without torch, driven, and what the reference gives for their jobs."""
