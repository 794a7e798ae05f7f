"""ONNX test data that is exported, run by ONNX's own test runner on ONNX Runtime's backend."""

import io
import unittest
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halfeven.conformance.cli import main
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.engine.memory import plain

pytestmark = pytest.mark.library

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("onnxruntime.backend")


def driven(folder: Path) -> unittest.TestResult:
    """What ONNX's own test runner says of every model in a folder, on the CPU."""
    from onnx.backend.test import loader, runner  # noqa: PLC0415 - of the library

    class Own(runner.Runner):
        def __init__(self) -> None:  # not with ONNX's own thousands
            self.backend, self._parent_module = backend, __name__
            self._include_patterns = self._exclude_patterns = self._xfail_patterns = set()
            self._test_items: Any = defaultdict(dict)
            self._test_kwargs: dict[str, Any] = {}
            self._xfail_kwargs: dict[str, Any] = {}

    own = Own()
    for case in loader.load_model_tests(data_dir=str(folder), kind="halfeven"):
        own._add_model_test(case, "halfeven")
    return unittest.TextTestRunner(stream=io.StringIO()).run(own.test_suite)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("onnx") / "data"
    words = ["onnx:quantize", "--format", "onnx", "--grid", "int8", "--grid", "uint8", "--granularity", "channel"]
    assert main(["export", *words, "--out", str(folder)]) == 0
    return folder


def test_the_runtime_passes(exported: Path) -> None:
    found = driven(exported)
    assert found.failures == found.errors == []
    assert found.testsRun - len(found.skipped) == len([*exported.glob("halfeven/test_*")]) > 10


def test_another_output_fails(exported: Path) -> None:
    """By a single code of many, which the runner's own tolerance would allow."""
    changed = 0
    for path in exported.glob("halfeven/test_*/test_data_set_0/output_0.pb"):
        tensor = onnx.load_tensor(path)
        codes = onnx.numpy_helper.to_array(tensor).copy()
        if codes.dtype == np.int8 and codes.size:
            codes.ravel()[-1] ^= 1
            path.write_bytes(onnx.numpy_helper.from_array(codes).SerializeToString())
            changed += 1
    found = driven(exported)
    assert len(found.failures) == changed > 5
    assert found.errors == []


def test_a_formula_that_is_no_operator_is_refused(tmp_path: Path) -> None:
    from halfeven.conformance.systems.onnx.test_data import write  # noqa: PLC0415 - it needs the library

    call = Call("gguf/q8_0", (), {"x": plain(np.zeros(3))})
    with pytest.raises(ValueError, match="not accepted for gguf/q8_0: give onnx/QuantizeLinear"):
        write(tmp_path, [call], [Answer("returned", 1)])
