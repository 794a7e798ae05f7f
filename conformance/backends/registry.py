"""The registry: which backends there are by name, and ``resolve``, which makes backends of what a user types."""

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from halfeven.conformance.backends.common import installed
from halfeven.conformance.backends.functions import functions
from halfeven.conformance.backends.protocol import Backend, adapt
from halfeven.reference.profiles import PROFILES

__all__ = [
    "ENTRY_POINTS",
    "GROUPS",
    "REGISTRY",
    "Entry",
    "NotInstalled",
    "UnknownBackend",
    "describe",
    "is_own",
    "names",
    "resolve",
]

ENTRY_POINTS = "halfeven.backends"


class UnknownBackend(ValueError):  # noqa: N818 - named for what the user sees
    """No backend by this name; the message has the nearest names, or says which part of ``pkg.mod:attr`` failed."""


class NotInstalled(ValueError):  # noqa: N818 - named for what the user sees
    """The library of a registered backend is not installed, or does not import; the message says what to install."""


@dataclass(frozen=True)
class Entry:
    """A registered backend: the adapter's module, and what the backend is said to be.

    The module's ``load(name)`` imports the library and gives ``partial(Backend, ...)``, all but name, profile,
    library and version, which stand here and in the distribution, and the functions, which the modules
    ``functions`` of ``backends/functions`` have. ``swap`` names the module that these call, and its drop-in
    replacement, which is called in its place.
    """

    module: str
    profile: str
    library: str
    extra: str
    description: str
    functions: tuple[str, ...] = ()
    swap: tuple[str, str] | None = None


_AIMET = (
    "aimet_affine",
    "aimet_encodings",
    "aimet_quantizers",
    "aimet_analyzers",
    "aimet_histograms",
    "aimet_gradients",
    "aimet_lpbq",
    "aimet_quantized_tensor",
    "aimet_propagation",
    "aimet_export",
    "aimet_float",
)

REGISTRY: dict[str, Entry] = {
    "halfeven": Entry("ours", "aimet", "halfeven", "", "halfeven.optimized.affine, float codes"),
    "halfeven.integer": Entry("ours", "onnx", "halfeven", "", "halfeven.optimized.affine, integer codes"),
    "halfeven.aimet": Entry(
        "aimet",
        "aimet",
        "halfeven",
        "",
        "halfeven.optimized.aimet, by the code that calls aimet_torch.quantization",
        (*_AIMET, "halfeven_aimet"),
        ("aimet_torch.quantization", "halfeven.optimized.aimet"),
    ),
    "torch.fake_quantize_per_tensor_affine": Entry(
        "torch_fake_quantize", "torch.fake_quantize", "torch", "", "the native operator, one scale"
    ),
    "torch.fake_quantize_per_channel_affine": Entry(
        "torch_fake_quantize", "torch.fake_quantize", "torch", "", "the native operator, one scale per channel"
    ),
    "torch.quantize_per_tensor": Entry("torch_quantize", "torch.quantize", "torch", "", "quantized tensors, one scale"),
    "torch.quantize_per_channel": Entry(
        "torch_quantize", "torch.quantize", "torch", "", "quantized tensors, one scale per channel"
    ),
    "torch.quantized_decomposed.per_tensor": Entry(
        "torch_quantized_decomposed", "torch.quantized_decomposed", "torch", "", "export's operators, one scale"
    ),
    "torch.quantized_decomposed.per_channel": Entry(
        "torch_quantized_decomposed", "torch.quantized_decomposed", "torch", "", "one scale per channel"
    ),
    "torch.quantized_decomposed.per_token": Entry(
        "torch_quantized_decomposed", "torch.quantized_decomposed", "torch", "", "one scale per token"
    ),
    "torch.quantized_decomposed.per_channel_group": Entry(
        "torch_quantized_decomposed", "torch.quantized_decomposed", "torch", "", "groups along the last dimension"
    ),
    "torch.float8": Entry(
        "functions_only", "number-formats", "torch", "", "casts to the float8 dtypes", ("torch_float8",)
    ),
    "torch.observers": Entry(
        "functions_only", "torch.observers", "torch", "", "observers and choose_qparams", ("torch_observers",)
    ),
    "torch.learnable": Entry(
        "functions_only", "torch.learnable", "torch", "", "learnable fake quantize", ("torch_learnable",)
    ),
    "ml_dtypes": Entry("functions_only", "number-formats", "ml_dtypes", "", "casts of NumPy arrays", ("ml_dtypes",)),
    "torchao": Entry(
        "torchao",
        "torchao",
        "torchao",
        "torchao",
        "quant_primitives, mx_formats",
        (
            "torchao_qparams",
            "torchao_domains",
            "torchao_gradients",
            "torchao_hqq",
            "torchao_float8",
            "torchao_float8_training",
            "torchao_floatx",
            "torchao_mx",
            "torchao_nvfp4",
            "torchao_releases",
        ),
    ),
    "torchao.pt2e": Entry(
        "functions_only", "torchao", "torchao", "torchao", "quantization.pt2e, a copy of 0.11", ("torchao_pt2e",)
    ),
    "modelopt": Entry(
        "functions_only",
        "pytorch-quantization",
        "nvidia-modelopt",
        "modelopt",
        "pytorch-quantization's successor",
        ("modelopt", "modelopt_calibrators"),
    ),
    "compressed-tensors": Entry(
        "compressed_tensors",
        "compressed-tensors",
        "compressed-tensors",
        "compressed-tensors",
        "forward and its helpers, integer codes",
        ("compressed_tensors",),
    ),
    "brevitas": Entry("brevitas", "brevitas", "brevitas", "brevitas", "IntQuant", ("brevitas",)),
    "onnxruntime": Entry(
        "onnxruntime", "onnx", "onnxruntime", "onnx", "QuantizeLinear, DequantizeLinear sessions", ("onnxruntime",)
    ),
    "onnx.reference": Entry("onnx_reference", "onnx", "onnx", "onnx", "ReferenceEvaluator", ("onnx_reference",)),
    "aimet.functional": Entry(
        "aimet",
        "aimet",
        "aimet-torch",
        "aimet",
        "quantization.affine with a scale that requires grad; quantizers, analyzers, exports",
        _AIMET,
    ),
    "aimet.frozen": Entry("aimet", "aimet", "aimet-torch", "aimet", "quantization.affine without grad"),
}

GROUPS: dict[str, tuple[str, ...]] = {
    "torch": tuple(n for n in REGISTRY if n.startswith("torch.")),
    "onnx": ("onnxruntime", "onnx.reference"),
    "aimet": tuple(n for n in REGISTRY if n.startswith("aimet.")),
    "default": tuple(n for n in REGISTRY if n.startswith(("halfeven", "torch."))),
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
    return spec not in REGISTRY and spec not in GROUPS and (":" in spec or spec in _entry_points())


def resolve(spec: str, profile: str | None = None) -> list[Backend]:
    """The backends that ``spec`` names: a registered name, a group, an entry point, or ``pkg.mod:attr``.

    ``profile`` replaces the profile claimed, where it fits (see ``protocol.adapt``). For ``pkg.mod:attr`` the
    current directory is importable.

    Raises:
        UnknownBackend: nothing has this name.
        NotInstalled: the library is not installed, or does not import.
        ValueError: ``profile`` is unknown or does not fit; the message has the nearest names.
        TypeError: the object named is no backend.
    """
    if profile is not None and profile not in PROFILES:
        msg = f"profile={profile!r} is not accepted{_nearest(profile, [*PROFILES])}"
        raise ValueError(msg)
    if spec in REGISTRY:
        return [_registered(spec, profile)]
    if spec in GROUPS:
        return [_registered(name, profile) for name in GROUPS[spec]]
    if (point := _entry_points().get(spec)) is not None:
        loaded = _attempt(point.load, f"entry point {spec!r} ({point.value}) does not import")
        return [_adapted(loaded, spec, profile)]
    if ":" in spec:
        return [_adapted(_import(spec), spec, profile)]
    msg = f"backend={spec!r} is not known{_nearest(spec, [*names(), *GROUPS])}; or give pkg.mod:attr"
    raise UnknownBackend(msg)


def _registered(name: str, profile: str | None) -> Backend:
    entry = REGISTRY[name]
    version = installed(entry.library)
    if version is None:
        msg = f"backend={name!r} needs {entry.library}, which is not installed: pip install halfeven[{entry.extra}]"
        raise NotInstalled(msg)
    try:
        module = importlib.import_module(f"halfeven.conformance.backends.{entry.module}")
        parts = module.load(name)
    except (ImportError, OSError) as error:
        msg = f"backend={name!r}: {entry.library} {version} is installed, but does not import: {error}"
        raise NotInstalled(msg) from error
    offered = functions(*entry.functions, swap=entry.swap)
    backend = parts(name=name, profile=entry.profile, library=entry.library, version=version, functions=offered)
    return adapt(backend, profile=profile)


def _import(spec: str) -> Any:
    module_name, _, attribute = spec.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    found = _attempt(
        lambda: importlib.import_module(module_name), f"module {module_name!r} of backend {spec!r} does not import"
    )
    for part in attribute.split("."):
        if not hasattr(found, part):
            msg = f"backend={spec!r} has no {part!r} in {module_name!r}{_nearest(part, _public(found))}"
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
        msg = f"{what}: {' '.join(f'{type(error).__name__}: {error}'.split()).removesuffix(':')}"
        raise UnknownBackend(msg) from error


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def _public(module: Any) -> list[str]:
    return [name for name in dir(module) if not name.startswith("_")]


def _nearest(word: str, among: list[str]) -> str:
    near = difflib.get_close_matches(word, among, n=4, cutoff=0.5)
    near += [n for n in among if word and word in n and n not in near][:4]
    if not near and not among:
        return ""
    return f": did you mean {', '.join(near)}?" if near else f": give one of {', '.join(sorted(among))}"
