"""Each adapter on inputs whose results are worked out by hand, and what every adapter must leave alone.

x / scale and x * (1 / scale) are the same numbers here (scales are powers of two); the zero points are odd, so that
adding one before the rounding moves every tie.
"""

import inspect
import logging
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.conformance.backends.common import quiet_import, storage
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.backends.registry import REGISTRY, NotInstalled, resolve
from halfeven.conformance.configuration import Configuration, code_dtype
from halfeven.conformance.systems import answers
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS, Grid
from halfeven.reference.systems import PROFILES

INT8 = (-128, 127)
# Those that add the zero point to the quotient and then round, where their document rounds first or says nothing.
BEFORE_ROUNDING = {
    "torch.quantize_per_tensor",
    "torch.quantize_per_channel",
    "torch.quantized_decomposed.per_token",
    "torch.quantized_decomposed.per_channel_group",
    "compressed-tensors",
    "brevitas",
}


@dataclass(frozen=True)
class Known:
    """An input, its parameters, and by hand: codes and their reals (zero point after rounding, and before)."""

    granularity: Any
    block_size: tuple[int, ...] | None
    scale: Any
    zero_point: Any
    x: Any
    codes: Any
    codes_before: Any
    reals: Any
    reals_before: Any


# x / s = -1.5 .5 1.5 2.5 200 -200 rounds to -2 0 2 2; with z = 1 before the rounding: -.5 1.5 2.5 3.5 -> 0 2 2 4.
PER_TENSOR = Known(
    "tensor",
    None,
    0.5,
    1,
    [[-0.75, 0.25, 0.75], [1.25, 100.0, -100.0]],
    [[-1, 1, 3], [3, 127, -128]],
    [[0, 2, 2], [4, 127, -128]],
    [[-1.0, 0.0, 1.0], [1.0, 63.0, -64.5]],
    [[-0.5, 0.5, 0.5], [1.5, 63.0, -64.5]],
)
# Rows: s = .5, z = 1 and s = .25, z = -3. Second row: x / s = .5 2.5 -1.5 -> 0 2 -2; with z: -2.5 -.5 -4.5 -> -2 0 -4.
ROWS = ([0.5], [0.25]), ([1], [-3]), [[-0.75, 0.25, 0.75], [0.125, 0.625, -0.375]]
ROW_CODES = (
    *([[-1, 1, 3], [-3, -1, -5]], [[0, 2, 2], [-2, 0, -4]]),
    *([[-1.0, 0.0, 1.0], [0.0, 0.5, -0.5]], [[-0.5, 0.5, 0.5], [0.25, 0.75, -0.25]]),
)
PER_ROW = Known("channel", (1, 3), ROWS[0], ROWS[1], ROWS[2], *ROW_CODES)
PER_TOKEN = Known("token", (1, 3), ROWS[0], ROWS[1], ROWS[2], *ROW_CODES)
PER_COLUMN = Known(
    "channel",
    (3, 1),
    [[0.5, 0.25]],
    [[1, -3]],
    np.asarray(ROWS[2]).T,
    *(np.asarray(a).T for a in ROW_CODES),
)
# A group is one row of the above, two groups to a row.
PER_GROUP = Known(
    "group",
    (1, 3),
    [[0.5, 0.25], [0.25, 0.5]],
    [[1, -3], [-3, 1]],
    [[*ROWS[2][0], *ROWS[2][1]], [*ROWS[2][1], *ROWS[2][0]]],
    *([[*a[0], *a[1]], [*a[1], *a[0]]] for a in ROW_CODES),
)
PER_BLOCK = Known(
    "block",
    (2, 3),
    [[0.5, 0.25]],
    [[1, -3]],
    [[*ROWS[2][0], *ROWS[2][1]]] * 2,
    *([[*a[0], *a[1]]] * 2 for a in ROW_CODES),
)
KNOWN = {"tensor": PER_TENSOR, "row": PER_ROW, "column": PER_COLUMN}
KNOWN |= {"token": PER_TOKEN, "group": PER_GROUP, "block": PER_BLOCK}


def marked(name: str) -> Any:
    return pytest.param(name, marks=[] if REGISTRY[name].library in {"torch", "halfeven"} else [pytest.mark.library])


Q_DQ, ALL_THREE = ("quantize", "dequantize"), ("quantize", "dequantize", "fake_quantize")
EVERY = ("tensor", "channel", "token", "group", "block")
CLAIMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "halfeven": (ALL_THREE, EVERY),
    "halfeven.integer": (ALL_THREE, EVERY),
    "halfeven.aimet": (ALL_THREE, EVERY),
    "torch.fake_quantize_per_tensor_affine": (("fake_quantize",), ("tensor",)),
    "torch.fake_quantize_per_channel_affine": (("fake_quantize",), ("channel",)),
    "torch.quantize_per_tensor": (Q_DQ, ("tensor",)),
    "torch.quantize_per_channel": (Q_DQ, ("channel",)),
    "torch.quantized_decomposed.per_tensor": (Q_DQ, ("tensor",)),
    "torch.quantized_decomposed.per_channel": (Q_DQ, ("channel",)),
    "torch.quantized_decomposed.per_token": (Q_DQ, ("token",)),
    "torch.quantized_decomposed.per_channel_group": (Q_DQ, ("group",)),
    "torchao": (ALL_THREE, EVERY),
    "compressed-tensors": (ALL_THREE, EVERY),
    "brevitas": (("quantize", "fake_quantize"), EVERY),
    "onnxruntime": (ALL_THREE, EVERY[:4]),
    "onnx.reference": (ALL_THREE, EVERY[:4]),
    "aimet.functional": (ALL_THREE, EVERY),
    "aimet.frozen": (ALL_THREE, EVERY),
}
ALL = [marked(name) for name in CLAIMS]
CASES = [
    pytest.param(name, key, operation, marks=marked(name).marks, id=f"{name}-{key}-{operation}")
    for name, (operations, granularities) in CLAIMS.items()
    for key, known in KNOWN.items()
    for operation in operations
    if known.granularity in granularities
]


def load(name: str) -> Backend:
    try:
        return resolve(name)[0]
    except NotInstalled as error:
        assert REGISTRY[name].extra, "torch and halfeven are never skipped"
        pytest.skip(str(error))


def arguments(backend: Backend, known: Known, operation: str) -> dict[str, Any]:
    """The three tensors or arrays under the names that the backend's profile has for them."""
    profile = PROFILES[backend.profile]
    sign = -1 if profile.parameters[1] == "offset" else 1
    floats = profile.codes == "input"
    first = (
        np.asarray(known.codes, np.float32 if floats else np.int8)
        if operation == "dequantize"
        else np.asarray(known.x, np.float32)
    )
    arrays = {
        "q" if operation == "dequantize" else "x": np.array(first, order="C"),
        "scale": np.asarray(known.scale, np.float32),
        profile.parameters[1]: np.asarray(known.zero_point, np.float32 if sign < 0 else np.int32) * sign,
    }
    arrays = {key: np.asarray(value) for key, value in arrays.items()}
    return arrays if backend.array == "numpy" else {key: torch.from_numpy(value) for key, value in arrays.items()}


def call(backend: Backend, known: Known, operation: Any, given: dict[str, Any]) -> Any:
    keywords: dict[str, Any] = {"block_size": known.block_size}
    if operation != "dequantize" or "qmin" in inspect.signature(backend.operations[operation]).parameters:
        keywords |= {"qmin": INT8[0], "qmax": INT8[1]}
    return backend.operations[operation](*given.values(), **keywords)


def prepared(name: str, key: str, operation: Any) -> tuple[Backend, Known, dict[str, Any]]:
    backend, known = load(name), KNOWN[key]
    return backend, known, arguments(backend, known, operation)


@pytest.mark.parametrize(("name", "key", "operation"), CASES)
def test_a_result_worked_out_by_hand(name: str, key: str, operation: Any) -> None:
    backend, known, given = prepared(name, key, operation)
    before = name in BEFORE_ROUNDING
    codes, reals = (known.codes_before, known.reals_before) if before else (known.codes, known.reals)
    if operation == "dequantize":  # of ``known.codes``
        reals = known.reals
    expected = np.asarray(codes if operation == "quantize" else reals)
    result = call(backend, known, operation, given)
    assert type(result) is type(next(iter(given.values())))
    array = np.asarray(result)
    wanted = np.float32 if operation != "quantize" or PROFILES[backend.profile].codes == "input" else np.int8
    assert array.dtype == wanted
    assert array.shape == np.asarray(known.x).shape
    assert array.tolist() == expected.tolist()


@pytest.mark.parametrize(("name", "key", "operation"), CASES)
def test_arguments_stay_as_they_were(name: str, key: str, operation: Any) -> None:
    backend, known, given = prepared(name, key, operation)
    before = {k: np.asarray(v).tobytes() for k, v in given.items()}
    result = call(backend, known, operation, given)
    assert {k: np.asarray(v).tobytes() for k, v in given.items()} == before
    if backend.array == "torch":
        assert not any(v.requires_grad for v in (*given.values(), result))
        result += 1
    else:
        result = np.add(result, 1, out=result)
    assert {k: np.asarray(v).tobytes() for k, v in given.items()} == before, "the result is the argument's memory"


@pytest.mark.parametrize(("name", "key", "operation"), CASES)
def test_a_script_shows_what_the_adapter_returned(name: str, key: str, operation: Any) -> None:
    backend, known, given = prepared(name, key, operation)
    shape = np.asarray(known.x).shape
    c = Configuration(operation, "float32", Grid(*INT8), shape, known.granularity, known.block_size)
    result = np.asarray(shown(backend, c, given))
    returned = np.asarray(call(backend, known, operation, given))
    assert (result.dtype, result.shape) == (returned.dtype, returned.shape)
    assert result.tobytes() == returned.tobytes()
    assert len(set(result.ravel().tolist())) > 3


def shown(backend: Backend, c: Configuration, given: dict[str, Any]) -> Any:
    """What the backend's script gives, with ``given`` in scope."""
    spelt = Inside(backend).script(f"{backend.profile}:{c.operation}", {}, c)
    if backend.library != "halfeven":
        assert "halfeven" not in spelt.header + spelt.called
    scope = dict(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(
            f"{backend.prelude}\nimport torch\n{spelt.header}".replace("from __future__ import annotations", ""), scope
        )
        exec(spelt.steps, scope)
        return eval(spelt.called, scope)


# No code of [0, 15] is negative. torchao takes no uint16.
@pytest.mark.parametrize(
    ("name", "grid", "stored"),
    [
        (name, grid, stored)
        for name in ("halfeven.integer", "torch.quantized_decomposed.per_tensor")
        for grid, stored in [((0, 15), "uint8"), ((-8, 7), "int8"), ((0, 1023), "uint16"), ((-1, 255), "int16")]
    ],
)
def test_codes_are_unsigned_where_none_is_negative(name: str, grid: tuple[int, int], stored: str) -> None:
    _stored_and_back(name, grid, stored)


@pytest.mark.library
@pytest.mark.parametrize(
    ("grid", "stored"), [((0, 15), "uint8"), ((-8, 7), "int8"), ((0, 1023), "int16"), ((0, 65535), "int32")]
)
def test_torchao_has_no_uint16(grid: tuple[int, int], stored: str) -> None:
    _stored_and_back("torchao", grid, stored)


def _stored_and_back(name: str, grid: tuple[int, int], stored: str) -> None:
    """The dtype of the codes, from the adapter and from its script, and the way back in another dtype of reals."""
    backend = load(name)
    x = torch.tensor([-1.5, 0.25, 1.0, 1.75, 50000.0])
    scope: dict[str, Any] = {"x": x, "scale": torch.tensor(0.5), "zero_point": torch.tensor(1, dtype=torch.int32)}
    given = [scope["scale"], scope["zero_point"]]
    scope["q"] = backend.operations["quantize"](x, *given, qmin=grid[0], qmax=grid[1])
    assert scope["q"].dtype == getattr(torch, stored)
    assert scope["q"].tolist() == [max(-2, grid[0]), 1, 3, 5, min(100001, grid[1])]
    c = Configuration("quantize", backend.dtypes[-1], Grid(*grid), (5,))
    codes = scope["q"]
    scope["q"] = codes.to(getattr(torch, code_dtype(c.grid).name))  # as the engine hands them over
    q, y = (shown(backend, replace(c, operation=o), scope) for o in Q_DQ)
    assert (q.dtype, q.tolist()) == (codes.dtype, codes.tolist())
    assert y.dtype == getattr(torch, c.dtype)
    assert y.tolist() == torch.tensor([(code - 1) / 2 for code in codes.tolist()], dtype=y.dtype).tolist()


def test_a_grid_beyond_every_dtype_given_is_not_offered() -> None:
    assert storage(Grid(0, 65535), ("int8", "uint8", "int32")) == "int32"
    with pytest.raises(Unsupported, match="qmax=65535 is not offered by some library: its integer dtypes are int8"):
        storage(Grid(0, 65535), ("int8",), library="some library")


def test_no_adapter_offers_what_its_profile_does_not_document() -> None:
    for name, (operations, _) in CLAIMS.items():
        assert set(operations) <= set(PROFILES[REGISTRY[name].profile].operations), name


def test_every_registered_backend_is_tested_here() -> None:
    quantize = {name for name, entry in REGISTRY.items() if entry.adapter or _has_view(name)}
    assert quantize - set(CLAIMS) == {"modelopt", "pytorch-quantization", "torchao.pt2e", "onnxruntime.graphs"}, (
        "tested by their formulas"
    )


def _has_view(name: str) -> bool:
    views = (FORMULAS[f].affine for f in answers(REGISTRY[name].answers or name))
    return any(v and v.profile == REGISTRY[name].profile for v in views)


@pytest.mark.parametrize("name", ALL)
def test_a_backend_says_what_it_is(name: str) -> None:
    backend = load(name)
    assert (backend.name, backend.profile, backend.library) == (
        name,
        REGISTRY[name].profile,
        REGISTRY[name].library,
    )
    assert (tuple(backend.operations), backend.granularities) == CLAIMS[name]
    assert backend.version[0].isdigit()
    assert backend.path()
    assert backend.device == "cpu"


@pytest.mark.parametrize("name", ALL)
def test_every_dtype_claimed_runs(name: str) -> None:
    backend = load(name)
    known = next(k for k in KNOWN.values() if k.granularity in backend.granularities)
    ran = 0
    for dtype in backend.dtypes:
        given = arguments(backend, known, "quantize")
        own = PROFILES[backend.profile].scale_dtype == "input"
        given = {k: _cast(v, dtype) if k == "x" or (own and k == "scale") else v for k, v in given.items()}
        for operation in ("quantize", "fake_quantize"):
            if operation in backend.operations:
                result = call(backend, known, operation, given)
                if operation == "fake_quantize":
                    assert str(result.dtype).removeprefix("torch.") == dtype
                ran += 1
    assert ran >= len(backend.dtypes)


def _cast(value: Any, dtype: str) -> Any:
    import ml_dtypes  # noqa: PLC0415

    if isinstance(value, torch.Tensor):
        return value.to(getattr(torch, dtype))
    return value.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize(
    ("name", "shape", "block_size", "grid", "reason"),
    [
        ("torch.fake_quantize_per_tensor_affine", (4, 6), (1, 6), INT8, "takes one scale"),
        ("torch.fake_quantize_per_channel_affine", (4, 6), (2, 3), INT8, "not per channel"),
        ("torch.quantize_per_tensor", (4, 6), None, (-127, 127), "use all codes"),
        ("torch.quantized_decomposed.per_tensor", (4, 6), (1, 6), INT8, "takes one scale"),
        ("torch.quantized_decomposed.per_tensor", (4, 6), None, (0, 2**32 - 1), "its integer dtypes are"),
        ("torch.quantized_decomposed.per_token", (4, 6), (1, 3), INT8, "one scale per token"),
        ("torch.quantized_decomposed.per_channel_group", (4, 6), (1, 4), INT8, "whole groups"),
        ("torch.quantized_decomposed.per_channel_group", (2, 4, 6), (1, 1, 3), INT8, "of a matrix"),
        ("torchao", (4, 7), (1, 3), INT8, "cuts no short blocks"),
        ("compressed-tensors", (4, 6), None, (-127, 127), "all signed codes"),
        ("compressed-tensors", (6,), (2,), INT8, "whole groups along the last of two dimensions"),
        ("compressed-tensors", (2, 4, 6), (1, 2, 3), INT8, "or blocks of a matrix"),
        ("brevitas", (4, 6), None, (3, 200), "full and narrow ranges"),
        ("onnxruntime", (4, 6), (2, 3), INT8, "along one axis"),
        ("onnxruntime", (4, 6), None, (-127, 127), "its types are int8"),
        ("onnx.reference", (4, 6), (2, 3), INT8, "along one axis"),
    ],
)
def test_what_a_library_does_not_offer_is_said(
    name: str, shape: tuple[int, ...], block_size: tuple[int, ...] | None, grid: tuple[int, int], reason: str
) -> None:
    backend = load(name)
    parts = () if block_size is None else tuple(-(-n // b) for n, b in zip(shape, block_size, strict=True))
    made = [np.zeros(shape, np.float32), np.ones(parts, np.float32), np.zeros(parts, np.int32)]
    tensors = made if backend.array == "numpy" else [torch.from_numpy(a) for a in made]
    function = backend.operations.get("quantize") or backend.operations["fake_quantize"]
    with pytest.raises(Unsupported, match=reason):
        function(*tensors, qmin=grid[0], qmax=grid[1], block_size=block_size)


@pytest.mark.parametrize(
    ("name", "shape", "block_size"),
    [
        ("torch.fake_quantize_per_channel_affine", (2, 0, 3), (1, 1, 3)),
        ("torch.quantize_per_channel", (2, 0, 3), (1, 1, 3)),
        ("torch.quantized_decomposed.per_channel", (2, 0, 3), (1, 1, 3)),
        ("torch.quantized_decomposed.per_token", (2, 0), (1, 1)),
        ("torchao", (2, 0, 3), (1, 1, 3)),
        ("onnxruntime", (2, 0, 3), (1, 1, 3)),
        ("onnx.reference", (2, 0, 3), (1, 1, 3)),
    ],
)
def test_an_empty_tensor_without_parameters_is_not_offered(
    name: str, shape: tuple[int, ...], block_size: tuple[int, ...]
) -> None:
    test_what_a_library_does_not_offer_is_said(name, shape, block_size, INT8, "empty")


def test_per_channel_beyond_the_second_axis_of_channels_last_is_not_offered() -> None:
    backend = load("torch.quantize_per_channel")
    x = torch.ones(2, 3, 4, 5)
    given = torch.ones(1, 1, 4, 1), torch.zeros(1, 1, 4, 1, dtype=torch.int32)
    keywords = {"qmin": -128, "qmax": 127, "block_size": (2, 3, 1, 5)}
    assert backend.operations["quantize"](x, *given, **keywords).tolist() == x.tolist()
    with pytest.raises(Unsupported, match="axis=2 of a channels-last tensor"):
        backend.operations["quantize"](x.to(memory_format=torch.channels_last), *given, **keywords)


@pytest.mark.library
@pytest.mark.parametrize("name", ["onnxruntime", "onnx.reference"])
@pytest.mark.parametrize(
    ("block_size", "codes"), [((4,), [3, 3, 3, 3]), ((1,), [3, 5, 9, 17]), ((2,), [3, 3, 5, 5]), ((3,), [3, 3, 3, 5])]
)
def test_blocks_of_a_vector(name: str, block_size: tuple[int, ...], codes: list[int]) -> None:
    """One block is one scale to ONNX, blocks of one are an axis; and the last block may be short."""
    n = -(-4 // block_size[0])
    scale, zero = np.float32([0.5, 0.25, 0.125, 0.0625][:n]), np.ones(n, np.int32)
    q = load(name).operations["quantize"](
        np.ones(4, np.float32), scale, zero, qmin=-128, qmax=127, block_size=block_size
    )
    assert q.tolist() == codes


@pytest.mark.parametrize("name", [n for n in ALL if n.values[0] in {"halfeven.integer", "torchao", "onnxruntime"}])
def test_a_block_may_be_longer_than_its_dimension(name: str) -> None:
    backend = load(name)
    arrays = np.ones((2, 3), np.float32), np.float32([[0.5], [0.25]]), np.int32([[1], [-3]])
    given = arrays if backend.array == "numpy" else [torch.from_numpy(a) for a in arrays]
    q = backend.operations["quantize"](*given, qmin=-128, qmax=127, block_size=(1, 8))
    assert np.asarray(q).tolist() == [[3, 3, 3], [1, 1, 1]]


def test_a_quiet_import_leaves_the_root_logger_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy_library.py").write_text(
        "import logging, warnings\nwarnings.warn('noise')\nlogging.getLogger().addHandler(logging.NullHandler())\n"
        "logging.getLogger().setLevel(1)\nlogging.getLogger('x').critical('noise')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    root = logging.getLogger()
    before = root.handlers[:], root.level, root.manager.disable
    quiet_import("noisy_library")
    assert (root.handlers, root.level, root.manager.disable) == before
    assert capsys.readouterr() == ("", "")


@pytest.mark.library
@pytest.mark.parametrize("name", ["onnxruntime", "onnx.reference"])
def test_a_zero_point_that_is_no_code_is_not_wrapped(name: str) -> None:
    backend = load(name)
    x, scale = np.zeros(3, np.float32), np.asarray(1, np.float32)
    with pytest.raises(Unsupported, match="zero_point=300"):
        backend.operations["quantize"](x, scale, np.asarray(300, np.int32), qmin=-128, qmax=127)


@pytest.mark.library
@pytest.mark.parametrize("name", ["onnxruntime", "onnx.reference"])
@pytest.mark.parametrize(
    ("grid", "dtype", "codes"),
    [
        ((-8, 7), "int8", [-8, -1, 1, 7]),
        ((0, 15), "uint8", [0, 0, 1, 15]),
        ((-2, 1), "int8", [-2, -1, 1, 1]),
        ((0, 3), "uint8", [0, 0, 1, 3]),
        ((0, 65535), "uint16", [0, 0, 1, 101]),
    ],
)
def test_codes_that_numpy_has_no_dtype_for_come_in_bytes(
    name: str, grid: tuple[int, int], dtype: str, codes: list[int]
) -> None:
    backend = load(name)
    x, scale, zero = np.float32([-100, -1, 0.25, 50]), np.asarray(0.5, np.float32), np.asarray(1, np.int32)
    q = backend.operations["quantize"](x, scale, zero, qmin=grid[0], qmax=grid[1])
    assert (q.dtype, q.tolist()) == (np.dtype(dtype), codes)
    y = backend.operations["dequantize"](q, scale, zero, qmin=grid[0], qmax=grid[1])
    assert (y.dtype, y.tolist()) == (np.dtype(np.float32), [(c - 1) / 2 for c in codes])
    c = Configuration("quantize", "float32", Grid(*grid), (4,))
    given = {"x": x, "q": q, "scale": scale, "zero_point": zero}
    for operation, returned in (("quantize", q), ("dequantize", y)):
        result = shown(backend, replace(c, operation=operation), given)
        assert (result.dtype, result.tolist()) == (returned.dtype, returned.tolist())


@pytest.mark.library
@pytest.mark.parametrize("trainable", [True, False])
def test_the_functional_backends_are_the_two_paths_of_aimets_quantizers(trainable: bool) -> None:
    """A module with its own parameters, trainable and frozen, on inputs where the two paths part."""
    load("aimet.frozen")
    from aimet_torch.quantization.affine import QuantizeDequantize  # noqa: PLC0415

    module = QuantizeDequantize(shape=(), bitwidth=8, symmetric=False)
    module.set_range(-1.0, 1.55)
    module.requires_grad_(trainable)
    scale, offset = module.get_scale().detach(), module.get_offset().detach()
    ties = (torch.arange(-90, 140) + 0.5).to(torch.float64) * scale.double()
    x = torch.cat([torch.nextafter(ties.float(), torch.tensor(s)) for s in (-9.0, 9.0)] + [ties.float()])
    result = {n: load(n).operations["fake_quantize"](x, scale, offset, qmin=0, qmax=255) for n in PATHS}
    c = Configuration("fake_quantize", "float32", Grid(0, 255), tuple(x.shape))
    for name, returned in result.items():
        assert torch.equal(shown(load(name), c, {"x": x, "scale": scale, "offset": offset}), returned), name
    assert not torch.equal(result[PATHS[0]], result[PATHS[1]]), "the inputs do not tell the paths apart"
    assert torch.equal(module(x).as_subclass(torch.Tensor).detach(), result[PATHS[0 if trainable else 1]])


PATHS = ("aimet.functional", "aimet.frozen")
