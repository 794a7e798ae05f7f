"""brevitas: IntQuant, its scale and zero point, and its gradients."""
