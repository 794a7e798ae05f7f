"""A function with a document's own arguments is checked on a grid too, by way of the formula's affine view."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from halfeven.conformance import check, view
from halfeven.conformance.arrays import to_torch
from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.configuration import DTYPES, Configuration
from halfeven.conformance.quote import NoScript
from halfeven.reference import FORMULAS, PROFILES, Grid
from halfeven.reference.catalogue import AffineView, Formula
from halfeven.reference.rounding import half_up

VIEWS = [f for f in FORMULAS.values() if f.affine and not f.version]
GRIDS = (Grid(-128, 127), Grid(0, 255), Grid(-127, 127), Grid(-8, 7))
BLOCKS: tuple[tuple[tuple[int, ...] | None, tuple[int, ...]], ...] = (
    (None, ()),
    ((6, 1), (1, 4)),
    ((1, 4), (6, 1)),
    ((1, 2), (6, 2)),
    ((3, 2), (2, 2)),
)


@pytest.mark.parametrize("formula", VIEWS, ids=lambda f: f.id)
def test_the_formula_by_its_own_arguments_gives_what_its_operation_gives(formula: Formula) -> None:
    """On every grid and in all blocks that the document has arguments for; ties and far values among the inputs."""
    assert formula.affine is not None
    profile, operation = PROFILES[formula.affine.profile], formula.affine.operation
    call = view.operation(formula.function, formula.affine, "numpy")
    values = np.array([0.05, -0.15, 0.25, 0.35, -12.85, 12.75, 1e9, -1e9, 0.0, -0.0, 3.14, 25.55] * 2, np.float32)
    compared = 0
    for grid in filter(profile.accepts, GRIDS):
        for blocks, shape in BLOCKS:
            scale = (np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32) / 10).reshape(shape)
            zero = (np.arange(int(np.prod(shape))) % 5 - 2).reshape(shape)
            zero = zero.astype(np.float32 if profile.parameters[-1] == "offset" else np.int32)
            zero = (
                np.maximum(zero, grid.qmin).astype(zero.dtype) if profile.name.startswith(("onnx", "torch.q")) else zero
            )
            x = values.reshape(6, 4)
            real = np.dtype(np.float32)
            given: Any = {"qmin": grid.qmin, "qmax": grid.qmax, "block_size": blocks}
            if operation == "dequantize":
                x = (np.arange(24).reshape(6, 4) % (grid.num_steps + 1) + grid.qmin).astype(np.int32)
                x = (
                    x.astype(np.float32)
                    if profile.codes == "input"
                    else x.astype(np.int8 if grid.qmin < 0 else np.uint8)
                )
                expected = profile.dequantize(x, scale, zero, grid, real, blocks)
                given["dtype"] = real
            else:
                expected = getattr(profile, operation)(x, scale, zero, grid, blocks)
            try:
                found = call(x, scale, zero, **given)
            except Unsupported:
                continue
            assert np.array_equal(np.asarray(found, np.float64), np.asarray(expected, np.float64)), (grid, blocks)
            compared += 1
    assert compared >= (2 if formula.id == "torch/quantize_per_tensor" else 3)


def rounding_up(x: Any, y_scale: Any, y_zero_point: Any = None, **attributes: Any) -> Any:
    """QuantizeLinear, but a tie goes up."""
    codes = FORMULAS["onnx/QuantizeLinear"].function(x, y_scale, y_zero_point, **attributes)
    if codes.dtype not in (np.int8, np.uint8) or y_scale.dtype != np.float32 or y_scale.shape not in ((), (1,)):
        return codes
    zero = 0 if y_zero_point is None else y_zero_point.astype(np.float64)
    ends = np.iinfo(codes.dtype)
    with np.errstate(all="ignore"):
        up = half_up(x.astype(np.float32) / y_scale) + zero
    return np.where(np.isfinite(up), np.clip(up, ends.min, ends.max), codes).astype(codes.dtype)


def test_a_wrong_function_is_found_by_the_checks_of_the_operation_and_the_cause_is_said() -> None:
    verdict = check(rounding_up, formula="onnx/QuantizeLinear", array="numpy")
    assert not verdict.conforms
    nearest = [r for r in verdict.results if r.requirement == "onnx/quantize/nearest-code" and r.outcome == "differs"]
    said = {(c.sentence, c.where) for r in nearest for c in r.causes}
    sentence = "rounds ties up where the document rounds ties to even"
    assert said == {(sentence, "int8, uint8: parameters per tensor")}, "of 8 bits, with one scale, and nowhere else"


def test_ids_of_the_first_edition_and_of_operations_are_taken() -> None:
    def per_tensor(input: torch.Tensor, scale: Any, zero_point: Any, dtype: str) -> torch.Tensor:  # noqa: A002
        held = torch.uint8 if dtype == "quint8" else torch.int8
        ends = torch.iinfo(held)
        return torch.clamp(torch.round(input / scale + zero_point), ends.min, ends.max).to(held)

    for id_ in ("torch/quantize_per_tensor", "torch.quantize"):
        verdict = check(per_tensor, formula=id_)
        assert verdict.conforms, str(verdict)
        assert verdict.points > 100_000
    with pytest.raises(ValueError, match=r"did you mean onnx/QuantizeLinear"):
        check(per_tensor, formula="onnx/quantize")
    with pytest.raises(TypeError, match="onnx/QuantizeLinear is called by keyword, with x, y_scale"):
        check(per_tensor, formula="onnx/QuantizeLinear")


def test_a_call_that_the_document_has_no_arguments_for_is_not_run() -> None:
    record = FORMULAS["torch/quantize_per_tensor"]
    assert record.affine is not None
    assert view.granularities(record.affine) == ("tensor",)
    call = view.operation(record.function, record.affine, "numpy")
    with pytest.raises(Unsupported, match="the function takes one scale"):
        call(
            np.zeros((2, 2), np.float32),
            np.ones((2, 1), np.float32),
            np.zeros((2, 1)),
            qmin=0,
            qmax=255,
            block_size=(1, 2),
        )


def taken(**named: Any) -> dict[str, Any]:
    return named


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("array", ["torch", "numpy"])
@pytest.mark.parametrize("formula", VIEWS, ids=lambda f: f.id)
def test_a_script_hands_over_what_the_operation_does(formula: Formula, array: Any, dtype: str) -> None:
    assert formula.affine is not None
    profile, name = PROFILES[formula.affine.profile], formula.affine.operation
    of = view.operation(taken, replace(formula.affine, result=dict), array)
    made = 0
    for blocks, shape in BLOCKS:
        c = Configuration(name, dtype, next(filter(profile.accepts, GRIDS)), (6, 4), "any", blocks)
        x = np.arange(24).reshape(6, 4).astype(np.int8 if name == "dequantize" else DTYPES[dtype])
        x = x.astype(DTYPES[dtype]) if profile.codes == "input" else x
        scale = (np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32) / 4).reshape(shape)
        scale = scale.astype(DTYPES[dtype if profile.scale_dtype == "input" else "float32"])
        arrays = [x, scale, np.full(shape, 2, np.int32)][: 1 + len(profile.parameters)]
        given = [to_torch(a) for a in arrays] if array == "torch" else arrays
        more = {"dtype": DTYPES[dtype]} if name == "dequantize" else {}
        try:
            spelt = view.script(of, c)
            expected = of(*given, qmin=c.grid.qmin, qmax=c.grid.qmax, block_size=blocks, **more)
        except (NoScript, Unsupported):
            continue
        names = dict(zip(["q" if name == "dequantize" else "x", *profile.parameters], given, strict=True))
        found = eval(spelt.called, {"taken": taken, "np": np, "torch": torch, "ml_dtypes": ml_dtypes, **names})
        assert found.keys() == expected.keys()
        for key, value in found.items():
            assert type(value) is type(expected[key]) or isinstance(value, np.ndarray | np.generic), key
            assert getattr(value, "dtype", None) == getattr(expected[key], "dtype", None), key
            assert np.array_equal(*(v.float() if isinstance(v, torch.Tensor) else v for v in (value, expected[key]))), (
                key
            )
        made += 1
    assert made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda x, s, z: x.reshape(-1), "x.reshape((24,))"),
        (lambda x, s, z: (s, z, 3), "(scale, zero_point, 3)"),
        (lambda x, s, z: [z.item()], "[zero_point.item()]"),
        (lambda x, s, z: s[()], "scale"),
        (lambda x, s, z: np.zeros(2, np.int8), "np.zeros((2,), np.int8)"),
        (lambda x, s, z: np.float32(2), "np.float32(2.0)"),
        (lambda x, s, z: z.astype(ml_dtypes.int4), "zero_point.astype(ml_dtypes.int4)"),
        (lambda x, s, z: "int8", "'int8'"),
        (lambda x, s, z: np.ones(2), None),
        (lambda x, s, z: int(z) - 1, None),
        (lambda x, s, z: int(z) + 128, None),
        (lambda x, s, z: s * 2, None),
        (lambda x, s, z: 1 / s, None),
        (lambda x, s, z: -z, None),
        (lambda x, s, z: x + np.arange(4, dtype=np.float32), None),
    ],
)
def test_an_argument_of_a_script_is_an_array_or_a_constant_or_there_is_no_script(given: Any, said: str | None) -> None:
    made = AffineView("onnx", "quantize", lambda x, s, z, *_: {"given": given(x, s, z)})
    c = Configuration("quantize", "float32", Grid(-128, 127), (6, 4), "tensor", None)
    of = view.operation(taken, made, "numpy")
    if said is None:
        with pytest.raises(NoScript, match="given is none of the arrays x, scale, zero_point"):
            view.script(of, c)
    else:
        assert view.script(of, c).called == f"taken(given={said})"
