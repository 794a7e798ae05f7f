"""onnxruntime: sessions of ``QuantizeLinear``, ``DequantizeLinear``, and of the pair.

By itself on the CPU, without graph optimisation; ``onnxruntime@default-options`` has sessions as they come, and the
name of a provider, ``onnxruntime@cuda``, has that one alone: what it has no kernel for is refused, not left to the CPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.protocol import Backend, NotInstalled, Unsupported
from halfeven.conformance.configuration import Array
from halfeven.conformance.systems.onnx.adapter_model import Model, backend

__all__ = ["load"]

DEFAULT = "default-options"
_IMPORTS = """import numpy as np
import onnx.parser
import onnxruntime
options = onnxruntime.SessionOptions()"""
_PLAIN = "options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL"
_ALONE = "options.add_session_config_entry('session.disable_cpu_ep_fallback', '1')"
_SUFFIX, _CPU = "ExecutionProvider", "CPUExecutionProvider"


@dataclass(frozen=True)
class _Sessions:
    """How sessions are made: on which provider, and whether as they come."""

    provider: str = _CPU
    default: bool = False

    @lru_cache(maxsize=256)  # noqa: B019 - a backend has one of these
    def of(self, model: Model) -> Any:
        """The session of a model."""
        import onnxruntime
        from onnx.parser import parse_model

        options = onnxruntime.SessionOptions()
        if not self.default:
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if self.provider != _CPU:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        options.log_severity_level = 4  # what fails is raised too; a model without shapes is warned about
        serialized = parse_model(model.text()).SerializeToString()
        try:
            made = onnxruntime.InferenceSession(serialized, options, providers=[self.provider])
        except Exception as error:
            if self.provider == _CPU:
                raise
            msg = f"{self.provider} does not take the model: {' '.join(str(error).split()):.200}"
            raise Unsupported(msg) from error
        if made.get_providers()[0] != self.provider:
            msg = f"{self.provider} was asked for, the session is on {made.get_providers()[0]}"
            raise Unsupported(msg)
        return made

    def run(self, model: Model, inputs: dict[str, Array]) -> Array:
        """The output of a model."""
        result: Array = self.of(model).run(None, inputs)[0]
        return result

    def backend(self) -> partial[Backend]:
        """The backend with such sessions."""
        how = "sessions as they come" if self.default else "no graph optimisation, 1 thread"
        more = [] if self.default else [_PLAIN]
        more += [] if self.provider == _CPU else [_ALONE]
        return backend(
            self.run,
            cast=True,
            dtypes=("float32", "float16"),  # it has no kernel for bfloat16
            path=lambda: f"{self.provider}, opset 21 (25 for 2 bits), {how}",
            imports="\n".join([_IMPORTS, *more]),
            runner="onnxruntime.InferenceSession("
            f"parse(scale).SerializeToString(), options, providers=[{self.provider!r}])",
        )


def _along(words: tuple[str, ...]) -> Mapping[str, Any]:
    """The backend's ``axes``: a provider, and ``default-options``."""
    import onnxruntime

    named = [w for w in words if w != DEFAULT]
    known = {p.removesuffix(_SUFFIX).lower(): p for p in onnxruntime.get_all_providers()}
    there = onnxruntime.get_available_providers()
    if len(named) > 1 or words.count(DEFAULT) > 1 or not {*named} <= known.keys():
        msg = (
            f"{','.join(words)!r} of onnxruntime is not accepted: give {DEFAULT}, or one of {', '.join(sorted(known))}"
        )
        raise ValueError(msg)
    provider = known[named[0]] if named else _CPU
    if provider not in there:
        msg = f"onnxruntime {onnxruntime.__version__} as it is installed has no {provider}; it has {', '.join(there)}"
        raise NotInstalled(msg)
    made = _Sessions(provider, DEFAULT in words).backend().keywords
    return {**{key: made[key] for key in ("operations", "path", "script")}, "device": named[0] if named else "cpu"}


def load(_name: str) -> partial[Backend]:
    """The one backend of onnxruntime, on its CPU provider."""
    quiet_import("onnx")
    quiet_import("onnxruntime")
    return partial(_Sessions().backend(), axes=_along)
