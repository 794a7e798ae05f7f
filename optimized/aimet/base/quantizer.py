"""What quantizers of every kind share: parameters that have to be given a value, and what is kept of that."""

import abc
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self, overload

import torch
from torch import Tensor, nn

from halfeven.optimized.aimet.arguments import plain
from halfeven.optimized.aimet.base.encoding import EncodingBase
from halfeven.optimized.aimet.encoding_analyzer import StatisticsNotFoundError, flag_extreme_min_max

__all__ = ["QuantizerBase"]


class QuantizerBase(abc.ABC, nn.Module):
    """A module that quantizes, with parameters that are placeholders until they are given a value.

    A parameter has a value once it was replaced or changed in place, or set by a function of the quantizer. Moving,
    casting, copying and pickling change nothing of that, and ``state_dict`` keeps it under ``_extra_state``.

    Upstream: a placeholder counts as a value where it was moved to the meta device, and then ``to_empty`` makes it
    memory as it is; or where ``torch.__future__`` has it that casts make new parameters.

    Attributes:
        encoding_analyzer: what finds a range from inputs.
        shape: of the parameters.
    """

    encoding_analyzer: Any
    shape: tuple[int, ...]

    def __init__(self) -> None:
        """A quantizer without parameters."""
        super().__init__()
        # Placeholders: the parameter by its name, and the version that it had as one.
        self._placeholders: dict[str, tuple[nn.Parameter, int]] = {}
        self._is_overwrite_allowed: dict[str, bool] = {}

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the document's name
        """The quantized ``input``.

        Raises:
            NotImplementedError: this kind of quantizer has not said how.
        """
        msg = f"{type(self).__qualname__} has no forward (input of shape {tuple(input.shape)})"
        raise NotImplementedError(msg)

    @abc.abstractmethod
    def compute_encodings(self) -> AbstractContextManager[None]:
        """A context that observes the inputs, and sets the parameters by them at its end."""

    @abc.abstractmethod
    def get_legacy_encodings(self) -> list[dict[str, Any]] | None:
        """The encodings as a list of dictionaries, or None without a value."""

    @abc.abstractmethod
    def set_legacy_encodings(self, encodings: list[dict[str, Any]]) -> None:
        """Take what ``get_legacy_encodings`` gives."""

    @abc.abstractmethod
    def get_encodings(self) -> EncodingBase | None:
        """The map that ``forward`` applies, or None without a value."""

    def get_encoding(self) -> EncodingBase | None:
        """``get_encodings``, by an older name."""
        warnings.warn("get_encoding is deprecated: use get_encodings", DeprecationWarning, stacklevel=2)
        return self.get_encodings()

    def set_encodings(self, encodings: Any) -> None:
        """Take an encoding.

        Raises:
            NotImplementedError: this kind of quantizer takes none.
        """
        msg = f"{type(self).__qualname__} takes no encodings (encodings={type(encodings).__name__})"
        raise NotImplementedError(msg)

    @classmethod
    @abc.abstractmethod
    def from_encodings(cls, encodings: Any) -> "QuantizerBase":
        """A quantizer with the given encoding."""

    def register_quantization_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Register ``param`` as a placeholder: the quantizer does not run before it has another value."""
        self.register_parameter(name, param)
        self._has_value(name)
        if param is not None:
            self._placeholders[name] = (param, _version(param))

    def is_initialized(self) -> bool:
        """Whether every parameter has a value."""
        # The dictionary holds what was not yet seen to have a value. A compiled function is guarded by its length.
        return len(self._placeholders) == 0 or not self._without_value()

    @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
    def _without_value(self) -> tuple[str, ...]:
        """The names of the placeholders that are still what they were; the others are none any more."""
        names = tuple(self._placeholders)
        without = tuple(name for name in names if not self._is_initialized(name))
        self._has_value(*(name for name in names if name not in without))
        return without

    def _is_initialized(self, name: str) -> bool:
        noted = self._placeholders.get(name)
        param = self._parameters.get(name)
        return noted is None or param is not noted[0] or _version(param) != noted[1]

    def _has_value(self, *names: str) -> None:
        # A new dictionary: the old one may be shared by copies of the module.
        self._placeholders = {name: noted for name, noted in self._placeholders.items() if name not in names}

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """As torch does; what is loaded into this module itself, without ``_extra_state``, counts as a value.

        Upstream: adds to and takes from the ``state_dict`` that was given, so that it cannot be loaded a second time.
        """
        if not prefix and "_extra_state" not in state_dict:
            given = {name: torch.tensor(True) for name in state_dict if name in self._parameters}
            state_dict = {**state_dict, "_extra_state": given}
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def get_extra_state(self) -> Any:
        """Which parameters have a value, by name."""
        if torch.onnx.is_in_onnx_export():
            return torch.tensor([])  # the tracer takes tensors alone
        without = self._without_value()
        return {name: torch.tensor(name not in without) for name, _ in self.named_parameters()}

    def set_extra_state(self, state: Any) -> None:
        """Take what ``get_extra_state`` gave, without changing it."""
        given = state if isinstance(state, Mapping) else {}
        for name, param in self._parameters.items():
            if name in given and param is not None:
                self._has_value(name)
                if not given[name]:
                    self._placeholders[name] = (param, _version(param))

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: names instead of the placeholders themselves."""
        state = self.__dict__.copy()
        del state["_placeholders"]
        state["_without_value"] = self._without_value()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what ``__getstate__`` gave."""
        names = state["_without_value"]
        super().__setstate__({name: value for name, value in state.items() if name != "_without_value"})  # type: ignore[no-untyped-call]
        held = {name: self._parameters[name] for name in names}
        self._placeholders = {name: (param, _version(param)) for name, param in held.items() if param is not None}

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        without = self._without_value()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        # A cast may make new parameters: what was a placeholder stays one.
        held = {name: self._parameters[name] for name in without}
        self._placeholders = {name: (param, _version(param)) for name, param in held.items() if param is not None}
        return self

    @overload
    def allow_overwrite(self, mode: bool) -> None: ...
    @overload
    def allow_overwrite(self, **kwargs: bool) -> None: ...
    def allow_overwrite(self, *args: Any, **kwargs: Any) -> None:
        """Say whether ``compute_encodings`` may set the range: ``mode`` for all of it, or its ends by name.

        Raises:
            RuntimeError: a name that the quantizer does not have.
            TypeError: several modes.
        """
        if len(args) > 1:
            msg = f"{len(args)} modes are not accepted: give one, or names"
            raise TypeError(msg)
        mode = kwargs.get("mode", args[0] if args else None)
        given = kwargs if mode is None else dict.fromkeys(self._is_overwrite_allowed, mode)
        unknown = sorted(given.keys() - self._is_overwrite_allowed.keys())
        if unknown:
            msg = f"{', '.join(unknown)} is not accepted: give {', '.join(sorted(self._is_overwrite_allowed))}"
            raise RuntimeError(msg)
        self._is_overwrite_allowed.update(given)

    def is_overwrite_allowed(self, name: str | None = None) -> bool:
        """Whether ``compute_encodings`` may set ``name``, or any of the range.

        Raises:
            KeyError: a name that the quantizer does not have.
        """
        if name is None:
            return any(self._is_overwrite_allowed.values())
        return self._is_overwrite_allowed[name]

    @contextmanager
    def _observing(
        self,
        steps: int,
        symmetric: bool,
        of_batch: Callable[[Tensor, Tensor], AbstractContextManager[None]],
        of_all: Callable[[Tensor, Tensor], None],
        *,
        integers: bool = True,
    ) -> Iterator[None]:
        """Observe the inputs, quantize each batch by its own range, and set that of all at the end.

        Nothing is set after an error, nor where no element was seen.

        Args:
            steps: codes less one, for the analyzer, which forgets what it observed before; and so is ``symmetric``.
            symmetric: the range is that of a grid around zero.
            of_batch: the context in which ``forward`` uses the range (minimum, maximum) that it is given.
            of_all: sets the range.
            integers: whether tensors of integers are observed, which analyzers refuse.
        """
        original, replaced = self.forward, self.__dict__.get("forward")
        analyzer = self.encoding_analyzer

        @functools.wraps(original)
        def forward(input: Tensor) -> Any:  # noqa: A002 - the document's name
            x = plain("input", input)
            if not x.numel() or not (integers or x.is_floating_point()):
                return original(x)
            stats = analyzer.update_stats(x)
            with of_batch(*analyzer.compute_encodings_from_stats(stats, steps, symmetric)):
                return original(x)

        analyzer.reset_stats()
        self.__dict__["forward"] = forward
        try:
            yield
        finally:
            if replaced is None:
                del self.__dict__["forward"]
            else:
                self.__dict__["forward"] = replaced
        try:
            low, high = analyzer.compute_encodings(steps, symmetric)
        except StatisticsNotFoundError:
            return
        flag_extreme_min_max(low, high)
        of_all(low, high)

    def _check_analyzer(self) -> None:
        """Refuse an analyzer whose shape does not expand to that of the parameters.

        Raises:
            RuntimeError: it does not.
        """
        own = tuple(self.encoding_analyzer.observer.shape)
        pairs = zip(reversed(own), reversed(self.shape), strict=False)
        if len(own) > len(self.shape) or any(n not in {1, m} for n, m in pairs):
            msg = f"encoding_analyzer of shape {own} is not accepted: it does not expand to shape={self.shape}"
            raise RuntimeError(msg)


def _version(param: Tensor | None) -> int:
    # Tensors made in inference mode count no versions.
    return 0 if param is None or param.is_inference() else param._version  # noqa: SLF001
