"""The rules of ``table``: how an operation is done, and what becomes of the encoding.

A rule takes the operation, its arguments and its keywords, while all tensors count as plain ones. The input is the
first argument, or the keyword ``input`` or ``self``; where that has no encoding or place for one, the operation is one
of plain tensors.

torch.compile traces the rules: they read and set ``encoding``, and make tensors of known classes.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from halfeven.optimized.aimet.affine.encoding import AffineEncoding
from halfeven.optimized.aimet.arguments import concretize
from halfeven.optimized.aimet.tensor import table
from halfeven.optimized.aimet.tensor.types import (
    OPERATIONS,
    DequantizedTensor,
    QuantizedTensor,
    QuantizedTensorBase,
    Rule,
    shared,
)

__all__ = ["RULES"]

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


def _input(args: Args, kwargs: Kwargs) -> Any:
    found = args[0] if args else kwargs.get("input", kwargs.get("self"))
    return found if isinstance(found, QuantizedTensorBase) else None


def _wrapped(tensor: Any, like: QuantizedTensorBase, encoding: Any) -> Any:
    """``tensor``, of the kind of ``like`` if it is a float tensor that is not ``like`` itself."""
    if tensor is like:
        return like  # which torch.compile tells apart
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
        return tensor
    if torch.compiler.is_dynamo_compiling():  # which knows neither type(like) nor a subclass of an attribute
        alias = torch.ops.aten.alias.default(tensor)
        wrapped = alias.as_subclass(QuantizedTensor if isinstance(like, QuantizedTensor) else DequantizedTensor)
    else:
        wrapped = tensor.as_subclass(type(like))
    wrapped.encoding = encoding
    return wrapped


def _copies(result: Any, like: QuantizedTensorBase, encoding: Any) -> Any:
    """Each tensor of ``result`` that has the dtype of ``like`` (a view of another one is no copy), of its kind."""
    if isinstance(result, (tuple, list)):
        return type(result)([_copies(one, like, encoding) for one in result])
    if isinstance(result, Tensor) and result.dtype != like.dtype:
        return result
    return _wrapped(result, like, shared(encoding))


def _of_all(x: QuantizedTensorBase) -> Any:
    """The encoding if all elements share a scale."""
    encoding = x.encoding
    return encoding if encoding is not None and encoding.granularity == "pertensor" else None


def _same(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    return result if x is None else _wrapped(result, x, shared(x.encoding))


def _clone(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    if x is None:
        return result
    encoding = x.encoding
    return _wrapped(result, x, None if encoding is None else encoding._clone())  # noqa: SLF001 - of this package


def _detach(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    if x is None:
        return result
    encoding = x.encoding
    encoding = None if encoding is None else encoding._detach()  # noqa: SLF001
    if result is x:
        x.encoding = encoding
    return _wrapped(result, x, encoding)


def _cast(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    if x is None or not isinstance(result, Tensor):
        return result
    encoding = x.encoding
    if encoding is not None and result.device != x.device:
        encoding = encoding.to(device=result.device)
    return _wrapped(result, x, shared(encoding))


def _reshape(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    if x is None:
        return result
    unmoved = isinstance(result, Tensor) and result.shape == x.shape
    return _copies(result, x, x.encoding if unmoved else _of_all(x))


def _copy(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    return result if x is None else _copies(result, x, _of_all(x))


def _extreme(func: Function, args: Args, kwargs: Kwargs) -> Any:
    if any(isinstance(other, Tensor) for other in (*args[1:], kwargs.get("other"))):
        return func(*args, **kwargs)
    return _copy(func, args, kwargs)


def _reshape_in_place(func: Function, args: Args, kwargs: Kwargs) -> Any:
    x = _input(args, kwargs)
    if x is None:
        return func(*args, **kwargs)
    encoding, of_all, shape = x.encoding, _of_all(x), x.shape
    result = func(*args, **kwargs)
    x.encoding = encoding if x.shape == shape else of_all
    return result


def _copy_in_place(func: Function, args: Args, kwargs: Kwargs) -> Any:
    x = _input(args, kwargs)
    if x is None:
        return func(*args, **kwargs)
    encoding = _of_all(x)
    result = func(*args, **kwargs)
    x.encoding = encoding
    return result


def _multiply(func: Function, args: Args, kwargs: Kwargs) -> Any:
    return _scale(func, args, kwargs, divide=False)


def _divide(func: Function, args: Args, kwargs: Kwargs) -> Any:
    return _scale(func, args, kwargs, divide=True)


def _scale(func: Function, args: Args, kwargs: Kwargs, *, divide: bool) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    factor = args[1] if len(args) > 1 else kwargs.get("other")
    if not divide and not isinstance(x, DequantizedTensor):
        x, factor = factor, args[0] if args else kwargs.get("input")  # a number times a tensor
    if kwargs.get("rounding_mode") is not None or kwargs.get("out") is not None:
        return result
    if not isinstance(x, DequantizedTensor) or not isinstance(factor, (int, float)):
        return result
    encoding = x.encoding
    scaled = getattr(encoding, "_scaled", None)
    encoding = None if scaled is None else scaled(factor, divide=divide)
    return result if encoding is None else _wrapped(result, x, encoding)


def _lose(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    return result if x is None else _wrapped(result, x, None)


def _embedding(func: Function, args: Args, kwargs: Kwargs) -> Any:
    """``embedding(input, weight, ...)`` as in torch.nn.functional; in torch the weight comes first."""
    result = func(*args, **kwargs)
    first, second = (*args, None, None)[:2]
    input_, weight = (first, second) if func is functional.embedding else (second, first)
    input_, weight = kwargs.get("input", kwargs.get("indices", input_)), kwargs.get("weight", weight)
    if not isinstance(weight, QuantizedTensorBase):
        return result
    if kwargs.get("max_norm") is not None:
        weight.encoding = None
    return _wrapped(result, weight, _of_rows(input_, weight.shape[0], weight.shape[1], weight.encoding))


def _of_rows(indices: Tensor, rows: int, width: int, weight: Any) -> Any:
    """The encoding of ``embedding(indices, w)`` where ``weight`` is that of w, of shape (rows, width); or None.

    Rows that have scales of their own, alone or in blocks, bring them along.
    """
    if weight is None or weight.granularity == "pertensor":
        return weight
    if not isinstance(weight, AffineEncoding):
        return None
    scale = weight.scale if weight.scale.dim() > 1 else weight.scale.unsqueeze(0)
    offset = weight.offset.expand(scale.shape)
    given = weight.block_size
    blocks = None if given is None else concretize((rows, width), weight.scale.shape, given)[-1:]
    if scale.shape[0] == 1:
        scale, offset = scale[0], offset[0]
    else:
        found = indices // (rows // scale.shape[0])
        scale, offset = functional.embedding(found, scale), functional.embedding(found, offset)
        blocks = None if blocks is None else (1,) * indices.dim() + blocks
    return AffineEncoding(
        scale,
        offset,
        qmin=weight.qmin,
        qmax=weight.qmax,
        symmetry=weight.symmetry,
        block_size=blocks,
        zero_point_shift=weight.zero_point_shift,
        producer=weight.producer,
    )


def _returned(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    idle = result is x or (args[2] if len(args) > 2 else kwargs.get("training")) is False  # noqa: PLR2004 - training
    return result if x is None or not idle else x  # which torch.compile tells apart


def _replace(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result = func(*args, **kwargs)
    x, data = args
    if isinstance(x, QuantizedTensorBase):
        x.encoding = data.encoding if type(data) is type(x) else None
    return result


def _write(func: Function, args: Args, kwargs: Kwargs) -> Any:
    result, x = func(*args, **kwargs), _input(args, kwargs)
    if x is None:
        return result
    x.encoding = None
    return x if isinstance(result, Tensor) else result  # the same, but while torch.compile traces


RULES: dict[str, Rule] = {
    "same": _same,
    "clone": _clone,
    "detach": _detach,
    "cast": _cast,
    "reshape": _reshape,
    "copy": _copy,
    "extreme": _extreme,
    "embedding": _embedding,
    "reshape_in_place": _reshape_in_place,
    "copy_in_place": _copy_in_place,
    "multiply": _multiply,
    "divide": _divide,
    "lose": _lose,
    "returned": _returned,
    "replace": _replace,
    "write": _write,
}

OPERATIONS.update({operation: RULES[rule] for operation, rule in table.operations().items()})
