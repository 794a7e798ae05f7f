"""Quantization libraries as peers. Each is imported when its first case is made."""

from typing import Any

import torch
from torch import Tensor

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.shim import shimmed_import
from kernels.cases import QMAX, QMIN, Case
from kernels.implementations import Call, Implementation, NotOffered, backward

__all__ = ["PEERS"]


def _aimet() -> Any:
    return shimmed_import("aimet_torch.quantization").affine


def _aimet_parameters(case: Case) -> tuple[Tensor, Tensor]:
    return case.scale, -case.zero_point.float()


def _aimet_quantize(case: Case) -> Call:
    f, (s, o), blocks = _aimet().quantize, _aimet_parameters(case), case.block_size
    return lambda: f(case.x, s, o, qmin=QMIN, qmax=QMAX, block_size=blocks)


def _aimet_fake_quantize(case: Case) -> Call:
    f, (s, o), blocks = _aimet().quantize_dequantize, _aimet_parameters(case), case.block_size
    return lambda: f(case.x, s, o, qmin=QMIN, qmax=QMAX, block_size=blocks)


def _aimet_dequantize(case: Case) -> Call:
    f, (s, o), blocks = _aimet().dequantize, _aimet_parameters(case), case.block_size
    q = case.codes.float()  # it takes codes in floats only
    return lambda: f(q, s, o, block_size=blocks)


def _aimet_backward(case: Case) -> Call:
    x, s, o = (t.detach().requires_grad_() for t in (case.x, *_aimet_parameters(case)))
    result = _aimet().quantize_dequantize(x, s, o, qmin=QMIN, qmax=QMAX, block_size=case.block_size)
    return backward(result, case.grad, x, s, o)


def _torchao() -> Any:
    return quiet_import("torchao.quantization.quant_primitives")


def _torchao_blocks(case: Case) -> tuple[int, int]:
    if case.axis is None:
        return case.block_size or case.shape
    return (1, case.shape[1]) if case.axis == 0 else (case.shape[0], 1)


def _torchao_quantize(case: Case) -> Call:
    f, given = _torchao().quantize_affine, (_torchao_blocks(case), case.scale, case.zero_point, torch.int8, QMIN, QMAX)
    return lambda: f(case.x, *given)


def _torchao_dequantize(case: Case) -> Call:
    f, given = (
        _torchao().dequantize_affine,
        (_torchao_blocks(case), case.scale, case.zero_point, torch.int8, QMIN, QMAX),
    )
    return lambda: f(case.codes, *given, output_dtype=case.dtype)


def _torchao_fake_quantize(case: Case) -> Call:
    f = _torchao()._fake_quantize_affine  # noqa: SLF001 - the name it has
    given = (_torchao_blocks(case), case.scale, case.zero_point, torch.int8, QMIN, QMAX)
    return lambda: f(case.x, *given)


def _ct(case: Case) -> tuple[Any, Any]:
    """The module, and the arguments of the case."""
    shimmed_import("compressed_tensors")
    module = shimmed_import("compressed_tensors.quantization")
    strategy: dict[str, Any] = {"strategy": "tensor" if case.per_tensor else "channel"}
    if case.block:
        strategy = {"strategy": "group", "group_size": case.block}
    return module, module.QuantizationArgs(num_bits=8, symmetric=False, **strategy)


def _ct_quantize(case: Case) -> Call:
    module, args = _ct(case)
    return lambda: module.quantize(case.x, case.scale, case.zero_point, args, dtype=torch.int8)


def _ct_fake_quantize(case: Case) -> Call:
    module, args = _ct(case)
    return lambda: module.fake_quantize(case.x, case.scale, case.zero_point, args)


def _ct_dequantize(case: Case) -> Call:
    module, args = _ct(case)
    return lambda: module.dequantize(case.codes, case.scale, case.zero_point, args)


def _modelopt(case: Case, x: Tensor) -> Tensor:
    if case.block:
        msg = "no blocks on a CPU"
        raise NotOffered(msg)
    from modelopt.torch.quantization.tensor_quant import fake_tensor_quant

    result: Tensor = fake_tensor_quant(x, case.scale * QMAX)
    return result


def _modelopt_fake_quantize(case: Case) -> Call:
    _modelopt(case, case.x)  # the import, before the clock
    from modelopt.torch.quantization.tensor_quant import fake_tensor_quant

    x, amax = case.x, case.scale * QMAX
    return lambda: fake_tensor_quant(x, amax)


def _modelopt_backward(case: Case) -> Call:
    x = case.x.detach().requires_grad_()
    return backward(_modelopt(case, x), case.grad, x)


PEERS = (
    Implementation(
        "AIMET",
        "aimet-torch",
        {
            "quantize": _aimet_quantize,
            "fake quantize": _aimet_fake_quantize,
            "dequantize": _aimet_dequantize,
            "backward, x and parameters": _aimet_backward,
        },
        note="codes in floats; fake quantize of one scale or one per channel is torch's",
        offset=True,
    ),
    Implementation(
        "torchao",
        "torchao",
        {"quantize": _torchao_quantize, "fake quantize": _torchao_fake_quantize, "dequantize": _torchao_dequantize},
        note="multiplies by 1/s",
    ),
    Implementation(
        "compressed-tensors",
        "compressed-tensors",
        {"quantize": _ct_quantize, "fake quantize": _ct_fake_quantize, "dequantize": _ct_dequantize},
        note="rounds after adding z",
    ),
    Implementation(
        "ModelOpt",
        "nvidia-modelopt",
        {"fake quantize": _modelopt_fake_quantize, "backward, x": _modelopt_backward},
        note="multiplies by 127/amax; has no zero point, compared on its symmetric grid",
        zero_point=False,
    ),
)
