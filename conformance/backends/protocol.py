"""The protocol of a backend, and ``adapt``, which makes one from a class, an instance or a plain function.

Inputs are torch tensors (NumPy arrays with ``array="numpy"``). ``scale`` and ``zero_point`` are 0-d per tensor;
with a ``block_size`` they have one entry per block along each dimension. The second parameter follows the
profile claimed: ``offset`` in AIMET's own sign, absent for a profile that has none.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from halfeven.conformance.configuration import DTYPES, Configuration, Granularity, grid_of
from halfeven.conformance.nearest import nearest
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.profile import OPERATIONS, Operation
from halfeven.reference.systems import PROFILES

ArrayKind = Literal["torch", "numpy"]
#: What a function may be without a formula that says how it is called: one of data alone.
KINDS = ("cast", "scale", "block scale")

__all__ = [
    "KINDS",
    "ArrayKind",
    "Backend",
    "NotInstalled",
    "Unsupported",
    "adapt",
    "canonical_profile",
    "channel_axis",
    "name_of",
    "names",
]

_FORMER = {"torch.observers": "torch", "torch.learnable": "torch"}


class Unsupported(Exception):  # noqa: N818 - it is no error: the configuration is reported as not run
    """Raised by a backend for a configuration that its library does not offer; the message is the reason."""


class NotInstalled(ValueError):  # noqa: N818 - named for what the user sees
    """What a backend needs is not here, its library or its device; the message says what, and how to get it."""


@dataclass(frozen=True)
class Backend:
    """An implementation on trial, as the engine sees it.

    Attributes:
        name: what the report calls it.
        profile: the profile that it claims.
        operations: for each operation its callable; may be empty where there are ``functions``.
        granularities: what may share a scale.
        dtypes: the float dtypes it takes.
        grids: the grids it takes, words such as ``int8`` too; None for all that the profile allows.
        array: whether it speaks torch or NumPy.
        library: the distribution it adapts, and ``version``, that one's version.
        device: where it computes; a device of torch's is where it gets its tensors, and where its results must be.
        path: says which path (kernel, fallback) really ran; asked after the run, with the ``device`` if it takes one.
        script: for a call's configuration, the lines of Python that import the library, and the expression that
            calls it on ``x`` (or ``q``), ``scale`` and ``zero_point`` (or ``offset``), all else in it literal.
        prelude: lines of Python that a script begins with, before the library is imported.
        waivers: requirement id to the code steps that are allowed there, at ties only.
        lacks: the requirements whose checks the library does not offer: those refused do not keep it from conforming.
        functions: for each formula's id the callable that stands for the documented function, called by keyword; for
            one of ``KINDS`` a function of data.
        axes: what of these is another when words follow its name, ``name@cuda,default-options``; it raises ValueError
            for a word that it does not know, NotInstalled for what is not there. Without, the words are torch's.
    """

    name: str
    profile: str
    operations: Mapping[Operation, Callable[..., Any]] = field(default_factory=dict)
    granularities: tuple[Granularity, ...] = ("tensor",)
    dtypes: tuple[str, ...] = ("float32",)
    grids: tuple[Grid, ...] | None = None
    array: ArrayKind = "torch"
    library: str = ""
    version: str = ""
    device: str = "cpu"
    path: Callable[[], str] = lambda: ""
    script: Callable[[Configuration], tuple[str, str]] | None = None
    prelude: str = ""
    waivers: Mapping[str, int] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    axes: Callable[[tuple[str, ...]], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:  # noqa: D105 - the attributes are described above
        # Ids of the first edition are users'; everything here speaks of today's.
        object.__setattr__(self, "profile", canonical_profile(self.profile))
        object.__setattr__(self, "functions", {FORMULAS.canonical(f): v for f, v in self.functions.items()})
        _known("profile", self.profile, PROFILES)
        if not self.operations and not self.functions:
            msg = f"operations={{}} of backend {self.name!r} is not accepted: give one of {', '.join(OPERATIONS)}"
            raise ValueError(msg)
        for formula in self.functions:
            if formula not in FORMULAS and formula not in KINDS:
                msg = f"functions={formula!r} is not accepted{nearest(formula, FORMULAS)}"
                raise ValueError(msg)
        for operation in self.operations:
            _known("operation", operation, OPERATIONS)
        for dtype in self.dtypes:
            _known("dtypes", dtype, DTYPES)
        for granularity in self.granularities:
            _known("granularities", granularity, get_args(Granularity))
        _known("array", self.array, get_args(ArrayKind))
        if self.grids is not None:
            object.__setattr__(self, "grids", tuple(g if isinstance(g, Grid) else grid_of(str(g)) for g in self.grids))


def adapt(
    source: Any,
    *,
    profile: str | None = None,
    operation: Operation = "quantize",
    array: ArrayKind | None = None,
) -> Backend:
    """A backend from a ``Backend``, a class, an instance, or a plain function (then ``operation`` says which).

    A class or instance gives its profile as the attribute ``profile``, its operations as methods named after
    them, its documented functions in the attribute ``functions``, and may have any other attribute of ``Backend``.
    A function without a ``block_size`` keyword is called per tensor only. ``profile`` and ``array`` replace what
    ``source`` says of itself; a function takes any profile, all else only one with the parameters and codes of its
    own, which its functions are written for.

    Raises:
        TypeError: ``source`` is none of these, or has no operation.
        ValueError: an attribute has a value that is not accepted, or ``profile`` is unknown or does not fit.
    """
    if profile is not None:
        profile = canonical_profile(profile)
        _known("profile", profile, PROFILES)
    if isinstance(source, Backend):
        return _claim(replace(source, array=array or source.array), profile)
    instance = source() if inspect.isclass(source) else source
    methods = {o: m for o in OPERATIONS if callable(m := getattr(instance, o, None))}
    own: str | None = getattr(instance, "profile", None)
    functions: Mapping[str, Callable[..., Any]] = getattr(instance, "functions", {})
    if not methods and not functions:
        if not callable(instance):
            msg = (
                f"backend={source!r} is not accepted: give a function, or a class or object "
                f"with one of the methods {', '.join(OPERATIONS)}"
            )
            raise TypeError(msg)
        _known("operation", operation, OPERATIONS)
        methods = {operation: instance}
        own = profile or own
    own = None if own is None else canonical_profile(own)
    if (first := own or profile) is None:
        name = getattr(source, "__name__", type(source).__name__)
        documents = ", ".join(p for p in PROFILES if "@" not in p)
        msg = f"profile=None is not accepted for {name}: give it, or --profile: {documents}, or a version"
        raise ValueError(msg)
    everywhere: tuple[Granularity, ...] = get_args(Granularity)
    words = ("functions", "grids", "library", "version", "device", "path", "script", "prelude", "waivers", "lacks")
    optional = (*words, "axes")
    given: dict[str, Any] = {key: getattr(instance, key) for key in optional if hasattr(instance, key)}
    given["array"] = array or getattr(instance, "array", "torch")
    given["name"] = getattr(instance, "name", "") or getattr(source, "__name__", type(instance).__name__)
    default = everywhere if any(names(f, "block_size") for f in methods.values()) else everywhere[:1]
    given["granularities"] = tuple(getattr(instance, "granularities", default))
    given["dtypes"] = tuple(getattr(instance, "dtypes", ("float32",)))
    return _claim(Backend(profile=first, operations=methods, **given), profile)


def canonical_profile(profile: str) -> str:
    """Today's name of a profile, for one of the first edition; any other as it is."""
    name, at, version = profile.partition("@")
    return f"{_FORMER.get(name, name)}{at}{version}"


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


def _claim(backend: Backend, profile: str | None) -> Backend:
    """The backend with another profile claimed: its functions turn no offset into a zero point."""
    if profile is None or profile == backend.profile:
        return backend
    old, new = PROFILES[backend.profile], PROFILES[profile]
    kind = (old.parameters, old.codes, bool(old.operations))
    fitting = [n for n, p in PROFILES.items() if (p.parameters, p.codes, bool(p.operations)) == kind]
    if profile not in fitting:
        msg = (
            f"profile={profile!r} is not accepted for {backend.name}: it hands over {', '.join(new.parameters)} with "
            f"{new.codes} codes, the backend takes {', '.join(old.parameters)} with {old.codes} codes; "
            f"give one of {', '.join(fitting)}"
        )
        raise ValueError(msg)
    return replace(backend, profile=profile)


def name_of(source: Any) -> str:
    """What a report calls ``source``, a function, class or object, unless that has a ``name``."""
    return str(getattr(source, "name", "") or getattr(source, "__name__", type(source).__name__))


def names(function: Callable[..., Any], key: str) -> bool:
    """Whether a function's signature names a keyword; a builtin, or one that only has ``**kwargs``, names none."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters
    except (TypeError, ValueError):
        return False
    return key in parameters


def _known(name: str, value: object, accepted: Sequence[str] | Mapping[str, object]) -> None:
    if value not in accepted:
        msg = f"{name}={value!r} is not accepted: give one of {', '.join(accepted)}"
        raise ValueError(msg)
