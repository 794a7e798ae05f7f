"""Code written for ``aimet_torch.quantization`` runs on ``halfeven.optimized.aimet`` once the import is changed.

``signatures.txt`` has the names and signatures of the library's documented modules, so that they bite without it too;
``python test_drop_in.py > signatures.txt`` writes it anew, where the library is installed.
"""

import importlib
import inspect
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from halfeven.conformance.backends.common import installed
from halfeven.conformance.backends.shim import shimmed_import

UPSTREAM, OURS = "aimet_torch.quantization", "halfeven.optimized.aimet"
TABLE = Path(__file__).with_name("signatures.txt")
# The modules that a user imports, and of each the names that are the library's own; None for those that it exports.
MODULES: dict[str, tuple[str, ...] | None] = {
    "": ("DequantizedTensor", "EncodingError", "QuantizedTensor", "QuantizedTensorBase", "get_backend", "set_backend"),
    ".tensor": None,
    ".base": ("EncodingBase", "QuantizerBase"),
    ".affine": (
        "AffineEncoding",
        "AffineQuantizerBase",
        "Dequantize",
        "GroupedBlockEncoding",
        "GroupedBlockQuantizeDequantize",
        "MinMaxQuantizer",
        "Quantize",
        "QuantizeDequantize",
        "ScaleOffsetQuantizer",
        "VectorEncoding",
        "dequantize",
        "get_backend",
        "quantize",
        "quantize_dequantize",
        "set_backend",
    ),
    ".float": ("FloatEncoding", "FloatQuantizeDequantize", "QuantizeDequantize"),
    ".encoding_analyzer": (
        "EncodingAnalyzer",
        "MinMaxEncodingAnalyzer",
        "PercentileEncodingAnalyzer",
        "SqnrEncodingAnalyzer",
        "TfEnhancedEncodingAnalyzer",
    ),
}
# What ours has otherwise, by the last word of the name, and why. A call with the library's arguments means the same.
_TORCH = "torch's own, which has these arguments"
DEPARTURES: dict[str, str] = {
    "clone": _TORCH,
    "detach": _TORCH,
    "state_dict": _TORCH,
    "load_state_dict": _TORCH,
    "new_empty": "torch's arguments, the sizes one by one too",
    "DequantizedTensor": "the encoding may be given at once",
    "QuantizedTensor": "the encoding may be given at once",
    "QuantizedTensorBase": "the encoding may be given at once",
}
needs_upstream = pytest.mark.skipif(installed("aimet-torch") is None, reason="aimet-torch is not installed")


def described(root: str) -> dict[str, str]:
    """Every public name of a library's modules with its arguments and their defaults; of classes, every method too."""
    found: dict[str, str] = {}
    seen: dict[Any, str] = {}
    for place, names in MODULES.items():
        module = importlib.import_module(root + place)
        for name in names if names is not None else module.__all__:
            full = f"{place}.{name}".removeprefix(".")
            thing = getattr(module, name, None)
            if thing in seen:
                found[full] = f"= {seen[thing]}"
            elif thing is not None:
                seen[thing] = full
                found |= dict(_members(full, thing, root.split(".", maxsplit=1)[0]))
    return found


def _members(full: str, thing: Any, package: str) -> Iterator[tuple[str, str]]:
    yield full, _arguments(thing)
    for name in dir(thing) if inspect.isclass(thing) else ():
        owner = next((c for c in thing.__mro__ if name in vars(c)), object)
        if name.startswith("_") or not owner.__module__.startswith(package):
            continue
        value = inspect.getattr_static(thing, name)
        if isinstance(value, property):
            yield f"{full}.{name}", "property"
        elif callable(getattr(thing, name)):
            kind = "" if not isinstance(value, classmethod | staticmethod) else f" {type(value).__name__}"
            yield f"{full}.{name}", _arguments(getattr(thing, name)) + kind


def _arguments(function: Any) -> str:
    """The names, kinds and defaults of a signature; no annotations."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # an exception's
        return "(...)"
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


def table() -> dict[str, str]:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line]
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}


@pytest.mark.library
@needs_upstream
def test_the_table_is_the_installed_library_s() -> None:
    shimmed_import(UPSTREAM)
    assert described(UPSTREAM) == table()


def test_every_public_name_has_the_documented_signature() -> None:
    ours, upstream = described(OURS), table()
    assert len(upstream) > 150
    other = {name: (ours.get(name), wanted) for name, wanted in upstream.items() if ours.get(name) != wanted}
    assert {name: both for name, both in other.items() if name.split(".")[-1] not in DEPARTURES} == {}
    assert {name.split(".")[-1] for name in other} == DEPARTURES.keys(), "a departure that is none"
    module = importlib.import_module(OURS)
    assert [name for name in upstream if not callable_or_property(module, name)] == []


def callable_or_property(module: Any, name: str) -> bool:
    """Whether there is something by a name of the table: inherited from torch, too."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return callable(found) or isinstance(found, property)


def bits(value: Any) -> Any:
    """A value in words that tell every bit of it; NaN are all the same."""
    match value:
        case Tensor():
            plain = value.detach().as_subclass(Tensor)
            shown = [float(v).hex() for v in plain.double().flatten()] if plain.is_floating_point() else plain.tolist()
            return type(value).__name__, str(value.dtype), tuple(value.shape), shown
        case float():
            return value.hex()
        case dict():
            return {key: bits(inner) for key, inner in value.items()}
        case list() | tuple():
            return [bits(inner) for inner in value]
    return value


SCRIPT = """
import copy, io, pickle
import torch
import aimet_torch.quantization as Q
from aimet_torch.quantization import DequantizedTensor
from aimet_torch.quantization.affine import Quantize, QuantizeDequantize
from aimet_torch.quantization.encoding_analyzer import PercentileEncodingAnalyzer


class Layer(torch.nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.quantizers = torch.nn.ModuleDict({
            "input": QuantizeDequantize(shape=(), bitwidth=8, symmetric=False),
            "weight": QuantizeDequantize((2, 1), 4, True),
            "output": QuantizeDequantize((), -100, 155, False, PercentileEncodingAnalyzer((), 64, percentile=99)),
        })

    def forward(self, x):
        x, weight = self.quantizers["input"](x), self.quantizers["weight"](self.weight)
        return self.quantizers["output"](torch.nn.functional.linear(x, weight, self.bias))


layer = Layer()
with torch.no_grad():
    layer.weight.copy_(torch.tensor([[0.31, -0.92], [0.57, 0.14]]))
    layer.bias.copy_(torch.tensor([0.05, -0.4]))
batches = [torch.tensor([1.3, -0.7]), torch.tensor([-2.1, 0.45]), torch.tensor([0.9, 3.2])]
kept = {"initialized": [q.is_initialized() for q in layer.quantizers.values()]}
for q in layer.quantizers.values():
    with q.compute_encodings():
        for x in batches:
            q(layer.weight if q.shape else x)
kept["calibrated"] = {name: p.detach().clone() for name, p in layer.named_parameters()}
kept["initialized then"] = [q.is_initialized() for q in layer.quantizers.values()]
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for x in batches[:2]:
    output = layer(x)
    kept.setdefault("outputs", []).append(output)
    output.square().sum().backward()
    kept.setdefault("gradients", []).append([p.grad.clone() for p in layer.parameters()])
    optimizer.step()
    optimizer.zero_grad()
kept["trained"] = {name: p.detach().clone() for name, p in layer.named_parameters()}
kept["exports"] = [
    q.get_encodings().to_qnn_encoding_dict(v) for q in (layer.quantizers["input"],) for v in ("0.6.1", "1.0.0", "2.0.0")
]
file = io.BytesIO()
torch.save(layer.state_dict(), file)
file.seek(0)
again = Layer()
again.load_state_dict(torch.load(file))
kept["loaded"] = {name: p.detach().clone() for name, p in again.named_parameters()}
kept["grids"] = [(int(q.qmin), int(q.qmax), bool(q.symmetric)) for q in again.quantizers.values()]
weight = copy.deepcopy(layer.quantizers["weight"])(layer.weight)
kept["kinds"] = [isinstance(weight, DequantizedTensor), isinstance(weight.quantize(), Q.QuantizedTensor)]
kept["codes"] = [weight.quantize(), weight.quantized_repr(), weight.quantize().dequantize()]
pickled = pickle.loads(pickle.dumps(weight.detach()))
kept["pickled"] = [pickled, pickled.encoding.scale, pickled.quantized_repr()]
kept["reshaped"] = [weight.t(), weight.encoding.granularity]
quantize = Quantize((), 8, False)
quantize.set_range(-1.0, 1.5)
kept["quantized"] = [quantize(x) for x in batches] + [quantize(batches[0]).dequantize() * 2]
try:
    Quantize((), 8, False)(batches[0])
except RuntimeError:
    kept["refused"] = True
kept["functions"] = [
    Q.affine.quantize(batches[2], torch.tensor(0.3), torch.tensor(2.0), 4, True),
    Q.affine.dequantize(torch.tensor([1.0, -3.0]), torch.tensor(0.3), torch.tensor(2.0)),
]
state = layer.quantizers["input"].state_dict()
QuantizeDequantize((), 8, True).load_state_dict(state)
kept["state kept"] = sorted(state["_extra_state"])
"""
# What ours keeps otherwise after the script, and why.
OTHERWISE = {"state kept": "the library takes the grid out of the state that it is given"}


def ran(module: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": f"drop_in_{module.split('.', maxsplit=1)[0]}"}
    sys.modules[scope["__name__"]] = types.ModuleType(scope["__name__"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SCRIPT.replace(UPSTREAM, module), scope)
    kept: dict[str, Any] = scope["kept"]
    return {name: bits(value) for name, value in kept.items()}


# Modules, and for each some names that a user imports from there; and what the package's docstring says is left out.
PLACES: dict[str, tuple[str, ...]] = {
    "": ("affine", "base", "float"),
    ".base": (),
    ".base.encoding": (),
    ".base.quantizer": (),
    ".affine": ("torch_builtins", "utils"),
    ".affine.encoding": ("AffineEncoding", "GroupedBlockEncoding", "VectorEncoding"),
    ".affine.quantizer": ("MinMaxQuantizer", "QuantizeDequantize"),
    ".affine.backends": ("get_backend", "quantize", "torch_builtins"),
    ".affine.backends.torch_builtins": ("quantize",),
    ".affine.backends.utils": ("set_backend",),
    ".float": (),
    ".float.encoding": (),
    ".float.quantizer": (),
    ".tensor": ("EncodingBase",),
    ".encoding_analyzer": (),
}
LEFT_OUT = {"add_backend", "triton", "QuantizeFunc", "DequantizeFunc", "QuantDequantFunc", "implements"}


@pytest.mark.parametrize("place", PLACES)
def test_names_are_where_a_user_imports_them_from(place: str) -> None:
    module = importlib.import_module(OURS + place)
    assert [name for name in PLACES[place] if not hasattr(module, name)] == []


@pytest.mark.library
@needs_upstream
def test_the_docstring_says_which_names_are_left_out() -> None:
    shimmed_import(UPSTREAM)
    missing = set()
    for place in PLACES:
        upstream, ours = (importlib.import_module(root + place) for root in (UPSTREAM, OURS))
        for name, value in vars(upstream).items():
            home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
            own = home.startswith(UPSTREAM) if hasattr(upstream, "__path__") else home == upstream.__name__
            if own and not name.startswith("_") and not hasattr(ours, name):
                missing.add(name)
    assert missing == LEFT_OUT
    assert [name for name in LEFT_OUT if name not in str(importlib.import_module(OURS).__doc__)] == []


@pytest.mark.library
@needs_upstream
def test_a_user_s_script_gives_the_same_bits_with_the_import_changed() -> None:
    shimmed_import(UPSTREAM)
    upstream, ours = ran(UPSTREAM), ran(OURS)
    assert len(upstream) == len(ours) > 15
    other = {name for name in upstream if upstream[name] != ours[name]}
    assert {name: (ours[name], upstream[name]) for name in other - OTHERWISE.keys()} == {}
    assert other == OTHERWISE.keys(), "a departure that is none"


def test_a_user_s_script_runs() -> None:
    kept = ran(OURS)
    assert (kept["initialized"], kept["initialized then"]) == ([False] * 3, [True] * 3)
    assert kept["loaded"] == kept["trained"]
    assert kept["trained"] != kept["calibrated"]
    assert kept["grids"] == [[0, 255, False], [-8, 7, True], [-100, 155, False]]
    assert kept["kinds"] == [True, True]
    assert kept["refused"] is True
    assert kept["state kept"] == ["block_size", "max", "min", "qmax", "qmin", "symmetric", "zero_point_shift"]


if __name__ == "__main__":
    shimmed_import(UPSTREAM)
    print("\n".join(f"{name} {text}" for name, text in described(UPSTREAM).items()))
