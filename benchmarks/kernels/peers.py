"""Every implementation that is measured, in one table. What is missing or fails is listed with the reason."""

from kernels import ours, peers_compiled, peers_libraries, peers_onnxruntime, peers_torch
from kernels.implementations import Implementation

__all__ = ["IMPLEMENTATIONS"]

IMPLEMENTATIONS: tuple[Implementation, ...] = (
    *ours.OURS,
    *peers_torch.PEERS,
    *peers_compiled.PEERS,
    *peers_onnxruntime.PEERS,
    *peers_libraries.PEERS,
)
