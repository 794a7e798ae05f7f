"""``QuantizedTensor`` and ``DequantizedTensor``: floats that know which codes, and which reals, they stand for."""

import copy
from collections.abc import Callable
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from halfeven.optimized.aimet.base.encoding import EncodingBase

__all__ = [
    "OPERATIONS",
    "DequantizedTensor",
    "EncodingError",
    "QuantizedTensor",
    "QuantizedTensorBase",
    "Rule",
    "plain",
    "rebuild",
    "shared",
]

F = TypeVar("F", bound=Callable[..., Any])
Rule = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

# How each operation is done; ``rules`` fills it in. Others give plain tensors.
OPERATIONS: dict[Callable[..., Any], Rule] = {}
# The types of tensors with encodings, for torch.compile.
_SUBCLASSES: list[type[Tensor]] = []

_version = torch.Tensor._version.__get__  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other name for it
_NoOverride = torch._C.DisableTorchFunctionSubclass  # noqa: SLF001 - as torch's documents do


def _eager(function: F) -> F:
    """Never compile a call of ``function`` by itself, nor what it calls; where a caller is traced, it is, too.

    A compiled ``__torch_function__`` would call itself without end: the graph knows no DisableTorchFunctionSubclass.
    """
    frames = torch._C._dynamo.eval_frame  # noqa: SLF001 - torch.compiler.disable would forbid the tracing as well
    never = frames._FrameAction.SKIP  # noqa: SLF001
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(never, never))  # noqa: SLF001
    return function


def _accept_subclasses() -> bool:
    """Let compiled functions be given tensors of ``_SUBCLASSES``; runs while one is traced that is.

    At its first run, torch looks whether operators of others return memory of their inputs (2.13). That check refuses
    every subclass of ``Tensor`` that is not on its list, so these are added to that list. It stays on, for them too.
    """
    from torch._functorch._aot_autograd import runtime_wrappers  # noqa: PLC0415 - not needed otherwise

    names = vars(runtime_wrappers)
    known = names.get("HANDLED_TYPES")
    if known is not None:
        names["HANDLED_TYPES"] = (*known, *(kind for kind in _SUBCLASSES if kind not in known))
    return True


_accept_subclasses._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001 - torch.compiler.assume_constant_result


class EncodingError(RuntimeError):
    """An encoding is missing, or does not offer what is asked."""


class QuantizedTensorBase(Tensor):
    """A float tensor with the encoding that belongs to its values: their codes, or their reals.

    ``quantize`` and ``dequantize`` go from the one to the other and change no value that is represented. Operations
    keep the encoding, or give plain tensors, as ``table`` says; ``clone`` and ``detach`` clone and detach it too.

    A write into the values, through whatever tensor shares their memory, ends the encoding: ``encoding`` is None then.
    Tensors made in inference mode notice only what is written through themselves, and so do all where ``.data`` of
    another tensor is written to.

    A deep copy of a tensor in the midst of a graph is detached. A pickled encoding has no producer.

    Upstream: an element assignment, ``resize_`` and a write through a view leave an encoding that does not fit;
    ``torch.transpose(x, 0, 1)`` and ``x.bfloat16()`` drop what ``x.transpose(0, 1)`` and ``x.half()`` keep; calls with
    keywords only, and such with tensors of both kinds, fail; a tensor in the midst of a graph is not deeply copied.
    """

    _encoding: EncodingBase | None
    _encoded_at: int  # the version of the values that the encoding belongs to

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Note the type for compiled functions."""
        super().__init_subclass__(**kwargs)
        _SUBCLASSES.append(cls)

    def __new__(cls, *args: Any, encoding: EncodingBase | None = None, **kwargs: Any) -> Self:
        """A tensor of the data that ``torch.Tensor`` takes.

        Raises:
            RuntimeError: they are no floats.
        """
        if len(args) == 1 and isinstance(args[0], Tensor) and not kwargs:
            tensor = plain(args[0]).as_subclass(cls)  # as torch does, but torch.compile keeps the gradient of it
        else:
            tensor = super().__new__(cls, *args, **kwargs)
        if not tensor.is_floating_point():
            msg = f"data of {tensor.dtype} is not accepted for {cls.__name__}: give a floating point dtype"
            raise RuntimeError(msg)
        tensor.encoding = encoding
        return tensor

    @property
    @_eager
    def encoding(self) -> EncodingBase | None:
        """The encoding of the values; None if there is none, or the values were written to since."""
        encoding = getattr(self, "_encoding", None)
        if encoding is None or torch.compiler.is_dynamo_compiling():
            return encoding
        with _NoOverride():
            current = self.is_inference() or _version(self) == self._encoded_at
        return encoding if current else None

    @encoding.setter
    @_eager
    def encoding(self, encoding: EncodingBase | None) -> None:
        """Set, it belongs to the values of now."""
        self._encoding = encoding
        if encoding is not None:
            with _NoOverride():
                self._encoded_at = 0 if self.is_inference() else _version(self)

    @classmethod
    @_eager
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """``func`` by its rule, or of plain tensors."""
        if len(types) > 1 and not all(issubclass(t, QuantizedTensorBase) or t is Tensor for t in types):
            return NotImplemented
        if torch.compiler.is_dynamo_compiling():
            _accept_subclasses()
        kwargs = kwargs or {}
        rule = OPERATIONS.get(func)
        with _NoOverride():
            if rule is not None:
                return rule(func, args, kwargs)
            result = func(*args, **kwargs)
        if isinstance(result, QuantizedTensorBase) or "out" in kwargs:
            _own(result, kwargs)
        return result

    def new_empty(  # type: ignore[override]
        self, size: Any, *sizes: int, encoding: EncodingBase | None = None, **kwargs: Any
    ) -> Self:
        """An uninitialized tensor of this kind, arguments as in ``torch.Tensor.new_empty``, with no encoding.

        Of a dtype that is no float, a plain one.
        """
        result = plain(self).new_empty(size, *sizes, **kwargs)
        if not result.is_floating_point():
            return result  # type: ignore[return-value]
        made = result.as_subclass(type(self))
        made.encoding = encoding
        return made

    def quantize(self) -> "QuantizedTensor":
        """The codes; itself if it holds them. Differentiable.

        Raises:
            EncodingError: there is no encoding.
        """
        raise NotImplementedError

    def dequantize(self) -> "DequantizedTensor":
        """The reals; itself if it holds them. Differentiable.

        Raises:
            EncodingError: there is no encoding.
        """
        raise NotImplementedError

    def quantized_repr(self) -> Tensor:
        """The codes in the encoding's integer dtype, a plain tensor without gradient. NaN has no code: any may come.

        Raises:
            EncodingError: there is no encoding, or one without integers.
            ValueError: no dtype of the encodings holds its grid.
        """
        encoding = _needed(self)
        if not hasattr(encoding, "dtype"):
            msg = f"{type(encoding).__name__} has no integer dtype: quantized_repr is of affine encodings"
            raise EncodingError(msg)
        return plain(self.quantize()).detach().to(encoding.dtype)

    def __copy__(self) -> Self:
        """The same memory and the same encoding, outside of the graph."""
        alias = plain(self).detach().requires_grad_(self.requires_grad)
        return rebuild(type(self), alias, self.encoding, _attributes(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy of memory and encoding."""
        if id(self) in memo:
            known: Self = memo[id(self)]
            return known
        values = copy.deepcopy(plain(self).detach(), memo)
        encoding = copy.deepcopy(_off_graph(self.encoding), memo)
        copied = rebuild(type(self), values, encoding, copy.deepcopy(_attributes(self), memo))
        memo[id(self)] = copied
        if self.is_leaf:
            copied.requires_grad_(self.requires_grad)
            copied.grad = copy.deepcopy(self.grad, memo)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """A plain tensor, the encoding without its producer, and the other attributes."""
        encoding = _off_graph(self.encoding)
        if encoding is not None and getattr(encoding, "producer", None) is not None:
            encoding = copy.copy(encoding)
            encoding.producer = None
        values = plain(self).detach().requires_grad_(self.requires_grad)
        return rebuild, (type(self), values, encoding, _attributes(self))


_SUBCLASSES.append(QuantizedTensorBase)


class QuantizedTensor(QuantizedTensorBase):
    """Codes, held in floats."""

    def quantize(self) -> "QuantizedTensor":
        """Itself."""
        return self

    def dequantize(self) -> "DequantizedTensor":
        """The reals of the codes, with the same encoding.

        Raises:
            EncodingError: there is no encoding.
        """
        encoding = _needed(self)
        reals: DequantizedTensor = encoding.dequantize(plain(self)).as_subclass(DequantizedTensor)
        reals.encoding = shared(encoding)
        return reals


class DequantizedTensor(QuantizedTensorBase):
    """Reals on the grid of codes."""

    def quantize(self) -> QuantizedTensor:
        """The codes of the reals, with the same encoding.

        Raises:
            EncodingError: there is no encoding.
        """
        encoding = _needed(self)
        codes: QuantizedTensor = encoding.quantize(plain(self)).as_subclass(QuantizedTensor)
        codes.encoding = shared(encoding)
        return codes

    def dequantize(self) -> "DequantizedTensor":
        """Itself."""
        return self


T = TypeVar("T", bound=QuantizedTensorBase)


def plain(tensor: Tensor) -> Tensor:
    """The same memory, gradient included, without a subclass."""
    if torch.compiler.is_dynamo_compiling():  # which does not know as_subclass(Tensor)
        _accept_subclasses()
        with _NoOverride():
            alias: Tensor = torch.ops.aten.alias.default(tensor)
            return alias
    return tensor.as_subclass(Tensor)


def shared(encoding: Any) -> Any:
    """An encoding of its own with the same tensors: to set an attribute of it leaves the first one as it was.

    In a compiled function, the first one itself.
    """
    if encoding is None or torch.compiler.is_dynamo_compiling():
        return encoding
    copied = object.__new__(type(encoding))
    copied.__dict__.update(encoding.__dict__)
    return copied


def rebuild(kind: type[T], values: Tensor, encoding: EncodingBase | None, attributes: dict[str, Any]) -> T:
    """A tensor of its parts; pickles name this function."""
    tensor = values.detach().as_subclass(kind)
    tensor.requires_grad_(values.requires_grad)
    tensor.__dict__.update(attributes)
    tensor.encoding = encoding
    return tensor


def _attributes(tensor: QuantizedTensorBase) -> dict[str, Any]:
    return {name: value for name, value in vars(tensor).items() if name not in {"_encoding", "_encoded_at"}}


def _needed(tensor: QuantizedTensorBase) -> Any:
    encoding = tensor.encoding
    if encoding is None:
        msg = f"encoding=None is not accepted: this {type(tensor).__name__} has none, or was written to since"
        raise EncodingError(msg)
    return encoding


def _off_graph(encoding: EncodingBase | None) -> EncodingBase | None:
    """The encoding, detached if it cannot be copied otherwise."""
    if encoding is None or all(t.is_leaf for t in vars(encoding).values() if isinstance(t, Tensor)):
        return encoding
    return encoding._detach()  # noqa: SLF001 - of this package


def _own(result: Any, kwargs: dict[str, Any]) -> None:
    """End the encodings of tensors that were written to, where no version tells so."""
    for written in (result, kwargs.get("out")):
        if not isinstance(written, QuantizedTensorBase):
            continue
        if torch.compiler.is_dynamo_compiling() or written.is_inference():
            written.encoding = None
