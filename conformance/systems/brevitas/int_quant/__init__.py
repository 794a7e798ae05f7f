"""brevitas: ``IntQuant`` and its gradients: requirements, their calls, and the library's answers."""
