"""The registry: which backends there are by name, and ``resolve``, which makes backends of what a user types."""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from halfeven.conformance import systems
from halfeven.conformance.backends import plain
from halfeven.conformance.backends.axes import along, split
from halfeven.conformance.backends.common import installed, quiet_import
from halfeven.conformance.backends.entry import Backends, Entry
from halfeven.conformance.backends.protocol import Backend, NotInstalled, adapt, canonical_profile
from halfeven.conformance.backends.shim import shim, shimmed_import
from halfeven.conformance.backends.swap import swapped
from halfeven.conformance.nearest import nearest
from halfeven.conformance.systems import answers
from halfeven.reference.systems import PROFILES

__all__ = [
    "ENTRY_POINTS",
    "GROUPS",
    "REGISTRY",
    "Entry",
    "NotInstalled",
    "UnknownBackend",
    "describe",
    "is_ours",
    "is_own",
    "members",
    "names",
    "resolve",
    "same_name",
    "split",
]

ENTRY_POINTS = "halfeven.backends"


class UnknownBackend(ValueError):  # noqa: N818 - named for what the user sees
    """No backend by this name; the message has the nearest names, or says which part of ``pkg.mod:attr`` failed."""


def _by_system() -> dict[str, Backends]:
    """The backends that each system has, this project's first, then torch's."""
    found = {
        m.name: importlib.import_module(f"{systems.__name__}.{m.name}") for m in pkgutil.iter_modules(systems.__path__)
    }
    order = sorted(found, key=lambda name: ({"halfeven": 0, "torch": 1}.get(name, 2), name))
    return {name.replace("_", "-"): getattr(found[name], "BACKENDS", {}) for name in order}


_SYSTEMS = _by_system()
REGISTRY: dict[str, Entry] = {name: entry for own in _SYSTEMS.values() for name, entry in own.items()}

#: A system without a backend of its name stands for all of its backends.
GROUPS: dict[str, tuple[str, ...]] = {
    **{system: tuple(own) for system, own in _SYSTEMS.items() if own and system not in REGISTRY},
    "default": (*_SYSTEMS["halfeven"], *_SYSTEMS["torch"]),
    "all": tuple(REGISTRY),
}


def names() -> list[str]:
    """Every registered name, then the entry points of group ``halfeven.backends``."""
    return [*REGISTRY, *_entry_points()]


def describe() -> list[dict[str, str]]:
    """One row per name: backend, profile, library, version (or how to install it), description. Imports nothing."""
    rows = [
        {
            "backend": name,
            "profile": entry.profile,
            "library": entry.library,
            "version": installed(entry.library) or f"not installed: pip install halfeven[{entry.extra}]",
            "description": entry.description,
        }
        for name, entry in REGISTRY.items()
    ]
    rows += [
        {
            "backend": name,
            "profile": "",
            "library": point.dist.name if point.dist else "",
            "version": point.dist.version if point.dist else "",
            "description": point.value,
        }
        for name, point in _entry_points().items()
    ]
    return rows


def is_own(spec: str) -> bool:
    """Whether ``spec`` names code that is not this project's: ``pkg.mod:attr`` or an entry point."""
    name, _ = split(spec)
    return name not in REGISTRY and name not in GROUPS and (":" in name or name in _entry_points())


def members(spec: str) -> list[str]:
    """The names that ``spec`` stands for, each with the words that follow a group's; itself where it is no group."""
    name, at, words = spec.partition("@")
    return [f"{member}{at}{words}" for member in GROUPS.get(name, (name,))]


def same_name(name: str, one: str, other: str) -> str:
    """Why two backends of one name are refused."""
    return (
        f"backends {one!r} and {other!r} are not accepted: they have the same name, {name!r}; give one of them another"
    )


def is_ours(spec: str) -> bool:
    """Whether ``spec`` is a name of this project's: what it imports is decided here."""
    name, _ = split(spec)
    return name in REGISTRY or name in GROUPS


def resolve(spec: str, profile: str | None = None) -> list[Backend]:
    """The backends that ``spec`` names: a registered name, a group, an entry point, or ``pkg.mod:attr``.

    Words may follow it, such as ``@cuda,compiled`` (see ``axes``) or, of a plain function with no claim, ``@numpy``,
    ``@dequantize`` or ``@int8`` (see ``plain``). ``profile`` replaces the profile claimed, where it
    fits (see ``protocol.adapt``). For ``pkg.mod:attr`` the current directory is importable.

    Raises:
        UnknownBackend: nothing has this name.
        NotInstalled: the library is not installed, or does not import; or the device is not there.
        ValueError: a word is unknown; or ``profile`` is unknown or does not fit; the message has the nearest names.
        TypeError: the object named is no backend.
    """
    profile = None if profile is None else canonical_profile(profile)
    if profile is not None and profile not in PROFILES:
        msg = f"profile={profile!r} is not accepted{nearest(profile, [*PROFILES])}"
        raise ValueError(msg)
    name, words = split(spec)
    if is_own(spec) and ":" in name and (how := [w for w in words if plain.word(w)]):
        own = (TypeError, ValueError)
        made = _attempt(lambda: plain.called(_import(name), how, profile), f"backend {spec!r} cannot be used", own)
        return [along(made, [w for w in words if w not in how])]
    return [along(backend, words) for backend in _named(name, profile)]


def _named(spec: str, profile: str | None) -> list[Backend]:
    if spec in REGISTRY:
        return [_registered(spec, profile)]
    if spec in GROUPS:
        return [_registered(name, profile) for name in GROUPS[spec]]
    if (point := _entry_points().get(spec)) is not None:
        loaded = _attempt(point.load, f"entry point {spec!r} ({point.value}) does not import")
        return [_adapted(loaded, spec, profile)]
    if ":" in spec:
        return [_adapted(_import(spec), spec, profile)]
    msg = f"backend={spec!r} is not known{nearest(spec, [*names(), *GROUPS])}; or give pkg.mod:attr"
    raise UnknownBackend(msg)


def _registered(name: str, profile: str | None) -> Backend:
    entry = REGISTRY[name]
    version = installed(entry.library)
    if version is None:
        msg = f"backend={name!r} needs {entry.library}, which is not installed: pip install halfeven[{entry.extra}]"
        raise NotInstalled(msg)
    from halfeven.conformance.view import offered  # it imports torch, which a list of the backends does without

    functions = answers(entry.answers or name)
    try:
        parts = _loaded(name, entry)
        if entry.swap:
            functions = {f: swapped(function, *entry.swap) for f, function in functions.items()} | answers(name)
        if not entry.adapter:
            parts = partial(parts, **offered(functions, entry.profile))
        if entry.path:
            parts = partial(parts, path=_import(entry.path))
    except (ImportError, OSError) as error:
        msg = f"backend={name!r}: {entry.library} {version} is installed, but does not import: {error}"
        raise NotInstalled(msg) from error
    said = {"profile": entry.profile, "library": entry.library, "version": version, "lacks": entry.lacks}
    backend = parts(name=name, functions=functions, **said)
    return adapt(backend, profile=profile)


def _loaded(name: str, entry: Entry) -> Callable[..., Backend]:
    if entry.adapter:
        module = importlib.import_module(f"{systems.__name__}.{entry.adapter}")
        return cast("Callable[..., Backend]", module.load(name))
    if entry.imports:
        (shimmed_import if entry.torchvision else quiet_import)(entry.imports)
    return partial(Backend, prelude=shim() if entry.torchvision else "")


def _import(spec: str) -> Any:
    module_name, _, attribute = spec.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    found = _attempt(
        lambda: importlib.import_module(module_name), f"module {module_name!r} of backend {spec!r} does not import"
    )
    for part in attribute.split("."):
        if not hasattr(found, part):
            msg = f"backend={spec!r} has no {part!r} in {module_name!r}{nearest(part, _public(found))}"
            raise UnknownBackend(msg)
        found = getattr(found, part)
    return found


def _adapted(source: Any, spec: str, profile: str | None) -> Backend:
    made = _attempt(source, f"the constructor of backend {spec!r} fails") if inspect.isclass(source) else source
    own = (TypeError, ValueError)  # what adapt itself says, with the value and what is accepted
    return cast("Backend", _attempt(lambda: adapt(made, profile=profile), f"backend {spec!r} cannot be used", own))


def _attempt(load: Callable[[], Any], what: str, own: tuple[type[Exception], ...] = ()) -> Any:
    """A user's module may raise anything, SystemExit too, which would end the run; the cause stays attached."""
    try:
        return load()
    except own:
        raise
    except BaseException as error:
        try:
            said = f"{error}"
        except BaseException:  # noqa: BLE001 - an error that cannot say what it is
            said = ""
        msg = f"{what}: {' '.join(f'{type(error).__name__}: {said}'.split()).removesuffix(':')}"
        raise UnknownBackend(msg) from error


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def _public(module: Any) -> list[str]:
    return [name for name in dir(module) if not name.startswith("_")]
