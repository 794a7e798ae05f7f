"""A plain function as a backend that claims nothing: words say its operation or formula, and torch or NumPy."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from halfeven.conformance.backends.documented import of_formula
from halfeven.conformance.backends.protocol import KINDS, ArrayKind, Backend, Unsupported, adapt, name_of
from halfeven.conformance.configuration import grid_of, is_grid
from halfeven.conformance.quote import Spelt, spelt
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.profile import OPERATIONS

__all__ = ["called", "plain", "word"]

_BLOCK = 32  # elements, of which a function of block scales that takes the largest magnitude gets it
_PLAIN = "onnx"  # whose parameters are a scale and a zero point
_AMAX = "pytorch-quantization"
_ARRAYS: tuple[ArrayKind, ...] = ("torch", "numpy")
_ENDS = {"qmin": ("qmin", "quant_min"), "qmax": ("qmax", "quant_max")}
_T = TypeVar("_T")
_NOT_PARAMETERS = frozenset({"qmin", "qmax", "quant_min", "quant_max", "block_size", "dtype", "axis"})


def word(text: str) -> bool:
    """Whether a word after a name says how the function is called.

    >>> [word(w) for w in ("numpy", "dequantize", "int8", "cuda")]
    [True, True, True, False]
    """
    return text in (*_ARRAYS, *OPERATIONS, *KINDS) or text in FORMULAS or is_grid(text)


def called(source: Any, words: Sequence[str], profile: str | None = None) -> Backend:
    """The backend that the words after a name mean, of a ``profile`` if one is claimed.

    Raises:
        TypeError: ``source`` is no function, or has not the operation.
        ValueError: ``profile`` does not fit.
    """
    array: ArrayKind | None = next((a for a in _ARRAYS if a in words), None)
    operation = next((o for o in (*OPERATIONS, *KINDS) if o in words), OPERATIONS[0])
    formula = next((w for w in words if w in FORMULAS), None)
    made = plain(source, operation, array) if formula is None else of_formula(source, formula, profile, array)
    if formula is None and profile is not None:
        takes_any = isinstance(made.operations.get(operation), _Called) and made.profile == _PLAIN  # type: ignore[call-overload]
        made = replace(made, profile=profile) if takes_any else adapt(made, profile=profile)
    return replace(made, grids=grids) if (grids := tuple(grid_of(w) for w in words if is_grid(w))) else made


def plain(source: Any, operation: str = "quantize", array: ArrayKind | None = None) -> Backend:
    """A backend of one operation, or of one of ``KINDS``.

    A function of a kind gets data in rows; one of two arguments the least and the greatest of each row, one of ``amax``
    the largest magnitudes. Any other gets as many of the arguments x, scale, zero_point, qmin and qmax as its
    signature has. One without a zero point refuses any but 0.

    Raises:
        TypeError: ``source`` is no function, or has not the operation.
    """
    if operation in KINDS:
        if not callable(source):
            msg = f"fn={source!r} is not accepted: give a function"
            raise TypeError(msg)
        of_data: Any = array or getattr(source, "array", "torch")
        return Backend(name_of(source), _PLAIN, functions={operation: _OfData(source, operation)}, array=of_data)
    made = source() if inspect.isclass(source) else source
    asked: Any = operation
    method = made.operations.get(asked) if isinstance(made, Backend) else getattr(made, operation, None)
    if method is not None:
        backend = adapt(made, profile=None if getattr(made, "profile", None) else _PLAIN, array=array)
        return Backend(backend.name, backend.profile, {asked: method}, array=backend.array)
    if not callable(made):
        msg = f"fn={source!r} is not accepted: give a function, or a class or object with {operation}"
        raise TypeError(msg)
    function = _Called(made)
    profile = _AMAX if function.takes_amax else _PLAIN
    kind: Any = array or getattr(made, "array", "torch")
    return Backend(name_of(source), profile, {asked: function}, array=kind)


class _Called:
    """A function that gets the arguments that it takes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        try:
            parameters = inspect.signature(getattr(function, "forward", function)).parameters
        except (TypeError, ValueError):  # a builtin that tells no signature takes them all
            parameters = inspect.signature(lambda *_, **__: None).parameters
        kinds = {p.kind for p in parameters.values()}
        self._any = inspect.Parameter.VAR_KEYWORD in kinds
        self._names = set(parameters)
        positional = [
            name
            for name, p in parameters.items()
            if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} and name not in _NOT_PARAMETERS
        ]
        self.takes_amax = positional[1:2] == ["amax"]
        self._takes_zero = inspect.Parameter.VAR_POSITIONAL in kinds or len(positional) > 2  # noqa: PLR2004 - x, scale

    def __call__(self, x: Any, *parameters: Any, **given: Any) -> Any:
        """Call it; raises Unsupported for a zero point that it does not take."""
        if not self._takes_zero and len(parameters) > 1:
            if float(parameters[1]) != 0:
                msg = "it takes no zero point"
                raise Unsupported(msg)
            parameters = parameters[:1]
        return self._function(x, *parameters, **self._taken(given))

    def spelt(self, passed: Mapping[str, str]) -> Spelt:
        """The call of the function itself, for a script."""
        positional = {key: text for key, text in passed.items() if key.isdigit() and (self._takes_zero or key != "2")}
        return spelt(self._function, positional | self._taken({k: t for k, t in passed.items() if not k.isdigit()}))

    def _taken(self, given: Mapping[str, _T]) -> dict[str, _T]:
        """Of arguments by name those that it takes, under its own names."""
        found = {}
        for key, value in given.items():
            taken = next((name for name in _ENDS.get(key, (key,)) if name in self._names), key if self._any else None)
            if taken is not None:
                found[taken] = value
        return found


class _OfData:
    """A function of data, or of the ends of their rows."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        self._function, self._kind = function, kind
        try:
            parameters = [*inspect.signature(getattr(function, "forward", function)).parameters.values()]
        except (TypeError, ValueError):  # a builtin that tells no signature takes the data
            parameters = []
        needed = [
            p.name
            for p in parameters
            if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} and p.default is p.empty
        ]
        self._takes_amax = bool(needed) and any(word in needed[0] for word in ("amax", "absmax", "max_abs"))
        self._takes_ends = kind == "scale" and len(needed) == 2  # noqa: PLR2004 - the least and the greatest

    def __call__(self, x: Any) -> Any:
        """Call it with what it takes of the data."""
        rows = x.reshape(-1, _BLOCK) if self._kind == "block scale" and self._takes_amax else x
        if self._takes_amax:
            return self._function(_greatest(abs(rows)))
        if self._takes_ends:
            return self._function(-_greatest(-rows), _greatest(rows))
        return self._function(x)


def _greatest(rows: Any) -> Any:
    return rows.amax(-1) if hasattr(rows, "amax") else rows.max(-1)
