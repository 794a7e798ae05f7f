"""torchao: MX blocks, small floats that share a power of two, and the layout of their codes."""
