"""torchao: MX casts of ``torchao.prototype.mx_formats``."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.systems.torchao.by_release import absent, by_release

__all__ = ["ANSWERS"]


def _to_mx(data_hp: Any, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> Any:
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_mx

    element = elem_dtype if elem_dtype.startswith("fp6") else getattr(torch, elem_dtype)
    mode = ScaleCalculationMode.__members__.get(scaling_mode, scaling_mode)
    scale, data = to_mx(data_hp, element, block_size, mode)
    return scale.view(torch.uint8), data


def _mx_dequantize(
    data_lp: Any, scale_e8m0: Any, elem_dtype: str, block_size: int, target_dtype: str = "float32"
) -> Any:
    import torch
    from torchao.prototype.mx_formats.mx_tensor import to_dtype

    element = elem_dtype if elem_dtype.startswith("fp6") else getattr(torch, elem_dtype)
    data = data_lp.view(element) if elem_dtype.startswith("float8") else data_lp
    return to_dtype(data, scale_e8m0, element, block_size, getattr(torch, target_dtype))


def _pack_uint4(uint8_data: Any) -> Any:
    from torchao.prototype.mx_formats.kernels import pack_uint4

    return pack_uint4(uint8_data)


def _unpack_uint4(uint8_data: Any) -> Any:
    from torchao.prototype.mx_formats.kernels import unpack_uint4

    return unpack_uint4(uint8_data)


def _to_blocked(input_matrix: Any) -> Any:
    from torchao.prototype.mx_formats.utils import to_blocked

    return to_blocked(input_matrix)


def _from_blocked(blocked_tensor: Any, original_rows: int, original_cols: int) -> Any:
    from torchao.prototype.mx_formats.utils import from_blocked

    return from_blocked(blocked_tensor, original_rows, original_cols)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/to_mx": _to_mx,
            "torchao/mx_dequantize": _mx_dequantize,
            "torchao/pack_uint4": _pack_uint4,
            "torchao/unpack_uint4": _unpack_uint4,
            "torchao/to_blocked": _to_blocked,
            "torchao/from_blocked": _from_blocked,
        },
        v0_11={
            "torchao/to_mx": absent,
            "torchao/mx_dequantize": absent,
            "torchao/pack_uint4": absent,
            "torchao/unpack_uint4": absent,
            "torchao/from_blocked": absent,
        },
    ),
}
