"""QuantizeLinear and DequantizeLinear: requirements, their calls, and the answers of both libraries."""
