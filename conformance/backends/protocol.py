"""The protocol of a backend, and ``adapt``, which makes one from a class, an instance or a plain function.

Inputs are torch tensors (NumPy arrays with ``array="numpy"``). ``scale`` and ``zero_point`` are 0-d per tensor;
with a ``block_size`` they have one entry per block along each dimension. The second parameter follows the
profile claimed: ``offset`` in AIMET's own sign, absent for a profile that has none.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from halfeven.conformance.configuration import DTYPES, Granularity
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.profiles import OPERATIONS, PROFILES, Operation

ArrayKind = Literal["torch", "numpy"]

__all__ = ["ArrayKind", "Backend", "Unsupported", "adapt", "channel_axis"]


class Unsupported(Exception):  # noqa: N818 - it is no error: the configuration is reported as not run
    """Raised by a backend for a configuration that its library does not offer; the message is the reason."""


@dataclass(frozen=True)
class Backend:
    """An implementation on trial, as the engine sees it.

    Attributes:
        name: what the report calls it.
        profile: the profile that it claims.
        operations: for each operation its callable.
        granularities: what may share a scale.
        dtypes: the float dtypes it takes.
        grids: the grids it takes; None for all that the profile allows.
        array: whether it speaks torch or NumPy.
        library: the distribution it adapts, and ``version``, that one's version.
        device: where it computes.
        path: says which path (kernel, fallback) really ran; asked after the run.
        script: for an operation, the Python expression that calls the library on ``x``, ``scale``, ``zero_point``
            (or ``offset``), with literal ``qmin`` and ``qmax``; and the imports it needs.
        waivers: requirement id to the code steps that are allowed there, at ties only.
    """

    name: str
    profile: str
    operations: Mapping[Operation, Callable[..., Any]]
    granularities: tuple[Granularity, ...] = ("tensor",)
    dtypes: tuple[str, ...] = ("float32",)
    grids: tuple[Grid, ...] | None = None
    array: ArrayKind = "torch"
    library: str = ""
    version: str = ""
    device: str = "cpu"
    path: Callable[[], str] = lambda: ""
    script: Callable[..., tuple[str, str]] | None = None
    waivers: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:  # noqa: D105 - the attributes are described above
        _known("profile", self.profile, PROFILES)
        if not self.operations:
            msg = f"operations={{}} of backend {self.name!r} is not accepted: give one of {', '.join(OPERATIONS)}"
            raise ValueError(msg)
        for operation in self.operations:
            _known("operation", operation, OPERATIONS)
        for dtype in self.dtypes:
            _known("dtypes", dtype, DTYPES)
        for granularity in self.granularities:
            _known("granularities", granularity, get_args(Granularity))
        _known("array", self.array, get_args(ArrayKind))


def adapt(
    source: Any,
    *,
    profile: str | None = None,
    operation: Operation = "quantize",
    array: ArrayKind | None = None,
    name: str | None = None,
) -> Backend:
    """A backend from a ``Backend``, a class, an instance, or a plain function (then ``operation`` says which).

    A class or instance gives its profile as the attribute ``profile``, its operations as methods named after
    them, and may have any other attribute of ``Backend``. A function without a ``block_size`` keyword is
    called per tensor only.

    Raises:
        TypeError: ``source`` is none of these, or has no operation.
        ValueError: an attribute has a value that is not accepted.
    """
    if isinstance(source, Backend):
        return source
    instance = source() if inspect.isclass(source) else source
    methods = {o: m for o in OPERATIONS if callable(m := getattr(instance, o, None))}
    if not methods:
        if not callable(instance):
            msg = (
                f"backend={source!r} is not accepted: give a function, or a class or object "
                f"with one of the methods {', '.join(OPERATIONS)}"
            )
            raise TypeError(msg)
        _known("operation", operation, OPERATIONS)
        methods = {operation: instance}
    claimed: str | None = profile or getattr(instance, "profile", None)
    if claimed is None:
        msg = f"profile=None is not accepted for {source!r}: name the profile it claims ({', '.join(PROFILES)})"
        raise ValueError(msg)
    everywhere: tuple[Granularity, ...] = get_args(Granularity)
    optional = ("grids", "library", "version", "device", "path", "script", "waivers")
    given: dict[str, Any] = {key: getattr(instance, key) for key in optional if hasattr(instance, key)}
    given["array"] = array or getattr(instance, "array", "torch")
    given["name"] = name or getattr(instance, "name", "") or getattr(source, "__name__", type(instance).__name__)
    default = everywhere if _takes_blocks(methods.values()) else everywhere[:1]
    given["granularities"] = tuple(getattr(instance, "granularities", default))
    given["dtypes"] = tuple(getattr(instance, "dtypes", ("float32",)))
    return Backend(profile=claimed, operations=methods, **given)


def channel_axis(block_size: BlockSize, shape: Shape) -> int:
    """The axis of a per-channel ``block_size``; for backends whose library takes an axis.

    Raises:
        Unsupported: the blocks are not the slices along one axis.
    """
    parts = [-(-n // b) for n, b in zip(shape, block_size, strict=True)]
    axes = [d for d, b in enumerate(block_size) if b == 1 and all(p <= 1 for e, p in enumerate(parts) if e != d)]
    if not axes:
        msg = f"block_size={block_size} of shape {shape} is not per channel"
        raise Unsupported(msg)
    return max(axes, key=lambda d: (parts[d], d))


def _takes_blocks(functions: Any) -> bool:
    return any("block_size" in inspect.signature(function).parameters for function in functions)


def _known(name: str, value: object, accepted: Sequence[str] | Mapping[str, object]) -> None:
    if value not in accepted:
        msg = f"{name}={value!r} is not accepted: give one of {', '.join(accepted)}"
        raise ValueError(msg)
