"""``compute_encodings``, and when a quantizer has a value."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized.aimet import affine
from halfeven.optimized.aimet.affine import Quantize, QuantizeDequantize
from halfeven.optimized.aimet.encoding_analyzer import MinMaxEncodingAnalyzer, PercentileEncodingAnalyzer

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
X = torch.tensor([[-1.3, 0.4, 2.2, -0.0], [0.7, -0.2, 0.31, 3.9]])
Y = torch.tensor([[-2.6, 0.1, 1.0, 0.5], [0.2, 0.9, -4.4, 0.0]])


def bits(t: Tensor) -> list[int]:
    plain = t.detach().as_subclass(Tensor).contiguous()
    carrier = {2: torch.int16, 4: torch.int32, 8: torch.int64}[plain.element_size()]
    found: list[int] = plain.view(carrier).flatten().tolist()
    return found


def made(kind: Any = QuantizeDequantize, symmetric: bool = False, **options: Any) -> Any:
    return kind((2, 1), 8, symmetric, **options)


def test_batches_count_together_and_are_quantized_by_their_own_range() -> None:
    q, alone = made(), [made(), made()]
    outputs = []
    with q.compute_encodings():
        outputs += [q(X), q(Y), q(X)]
        assert not q.is_initialized(), "nothing is set before the end"
    assert q.is_initialized()
    assert q.min.tolist() == torch.minimum(X, Y).amin(1, keepdim=True).tolist()
    assert q.max.tolist() == torch.maximum(X, Y).amax(1, keepdim=True).tolist()
    for one, x, inside in zip((*alone, alone[0]), (X, Y, X), outputs, strict=True):
        with one.compute_encodings():
            one(x)
        assert bits(one(x)) == bits(inside)
        assert bits(inside.encoding.scale) == bits(one.get_scale())
    assert bits(q(X)) != bits(outputs[0])


@pytest.mark.parametrize("kind", [Quantize, QuantizeDequantize])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("params", [torch.float32, torch.bfloat16])
def test_one_batch_is_quantized_inside_as_after(kind: Any, symmetric: bool, dtype: torch.dtype, params: Any) -> None:
    for blocks in ({}, {"block_size": (1, 4)}, {"encoding_analyzer": PercentileEncodingAnalyzer((2, 1), 64, 95.0)}):
        q = made(kind, symmetric, **blocks).to(params)
        with q.compute_encodings():
            inside = q(X.to(dtype))
        assert inside.dtype == dtype
        assert type(inside) is type(q(X.to(dtype)))
        assert bits(inside) == bits(q(X.to(dtype)))
        assert not inside.encoding.scale.requires_grad


def test_gradient_of_the_input_flows_inside() -> None:
    q, x = made(), X.clone().requires_grad_()
    with q.compute_encodings():
        q(x).as_subclass(Tensor).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0] * 4] * 2
    assert q.min.grad is None


def test_a_second_time_forgets_the_first() -> None:
    q = made()
    for x in (Y, X):
        with q.compute_encodings():
            q(x)
    assert q.min.tolist() == X.amin(1, keepdim=True).clamp(max=0).tolist()


def stopped(q: Any) -> None:
    """Observe one batch, and fail at the next."""
    q(X)
    q(torch.ones(3, 2))


def test_nothing_is_set_after_an_error() -> None:
    for value in (False, True):
        q = made()
        if value:
            q.set_range(-1.0, 1.0)
        kept = q.min.tolist(), q.max.tolist()
        with pytest.raises(RuntimeError, match="shape"), q.compute_encodings():
            stopped(q)
        assert (q.min.tolist(), q.max.tolist()) == kept
        assert q.is_initialized() is value
        assert "forward" not in vars(q)
        if value:
            q(X)


def test_without_elements() -> None:
    q = made()
    with q.compute_encodings():
        pass
    with q.compute_encodings():
        assert q(torch.zeros(2, 0)).shape == (2, 0)
    assert not q.is_initialized()


def test_nested_contexts_leave_forward_as_it_was() -> None:
    q = made()
    with q.compute_encodings(), q.compute_encodings():
        q(X)
    assert q.is_initialized()
    assert "forward" not in vars(q)
    q.forward = own = q.forward
    with q.compute_encodings():
        q(X)
    assert vars(q)["forward"] is own


def test_a_forward_of_ones_own_is_observed() -> None:
    class Doubled(QuantizeDequantize):
        def forward(self, input: Tensor) -> Any:  # noqa: A002
            return super().forward(2 * input)

    q = Doubled((), 8, False)
    with q.compute_encodings():
        inside = q(X)
    assert q.max.tolist() == X.max().tolist(), "what it is called with, not what it quantizes"
    assert bits(inside) == bits(q(X)) == bits(QuantizeDequantize.forward(q, 2 * X))


def test_frozen_ends() -> None:
    q = made(symmetric=False)
    q.set_range(-0.5, 0.5)
    assert q.is_overwrite_allowed()
    q.allow_overwrite(min=False)
    assert (q.is_overwrite_allowed("min"), q.is_overwrite_allowed("max"), q.is_overwrite_allowed()) == (
        False,
        True,
        True,
    )
    with q.compute_encodings():
        q(X)
    assert q.min.tolist() == [[-0.5], [-0.5]]
    assert q.max.tolist() == X.amax(1, keepdim=True).tolist()
    q.allow_overwrite(False)
    with q.compute_encodings():
        inside = q(Y)
    assert bits(inside) == bits(q(Y)), "its own encoding"
    assert q.max.tolist() == X.amax(1, keepdim=True).tolist()
    q.allow_overwrite(mode=True)
    assert q.is_overwrite_allowed("min")
    with pytest.raises(RuntimeError, match="scale is not accepted: give max, min"):
        q.allow_overwrite(scale=True)
    with pytest.raises(KeyError):
        q.is_overwrite_allowed("scale")
    fresh = made()
    fresh.allow_overwrite(False)
    with fresh.compute_encodings(), pytest.raises(RuntimeError, match="min and max have no value"):
        fresh(X)


@pytest.mark.parametrize("kind", [affine.Quantize, affine.QuantizeDequantize, affine.Dequantize])
def test_without_a_value(kind: Any) -> None:
    q = made(kind)
    with pytest.raises(RuntimeError, match=rf"{kind.__name__} cannot run: min and max have no value"):
        q(X)
    q.min = torch.nn.Parameter(-torch.ones(2, 1))
    with pytest.raises(RuntimeError, match=rf"{kind.__name__} cannot run: max have no value"):
        q(X)
    empty = q(torch.zeros(3, 0, dtype=torch.float16))
    assert (empty.shape, empty.dtype) == ((3, 0), torch.float16)
    assert bits(empty.encoding.scale) == bits(torch.tensor(1.0))


def test_what_counts_as_a_value() -> None:
    for change in (lambda p: p.mul_(1.0), lambda p: p.copy_(torch.ones(2, 1)), lambda p: p.zero_()):
        q = made()
        with torch.no_grad():
            change(q.min)
            assert not q.is_initialized()
            change(q.max)
        assert q.is_initialized()
    q = made()
    optimizer = torch.optim.SGD(q.parameters(), lr=0.1)
    q.min.grad, q.max.grad = torch.ones(2, 1), torch.ones(2, 1)
    optimizer.step()
    assert q.is_initialized()
    called = torch.func.functional_call(made(), {"min": -torch.ones(2, 1), "max": torch.ones(2, 1)}, (X,))
    assert called.shape == X.shape


def test_a_registered_placeholder() -> None:
    q = made()
    q.set_range(-1.0, 1.0)
    q.register_quantization_parameter("extra", torch.nn.Parameter(torch.ones(1)))
    assert not q.is_initialized()
    q.extra = torch.nn.Parameter(torch.ones(1))
    assert q.is_initialized()
    q.register_parameter("plain", torch.nn.Parameter(torch.ones(1)))
    q.register_quantization_parameter("none", None)
    assert q.is_initialized()


def test_in_inference_mode() -> None:
    with torch.inference_mode():
        q = made()
        assert not q.is_initialized()
        with q.compute_encodings():
            inside = q(X)
        assert q.is_initialized()
        assert bits(q(X)) == bits(inside)
        other = made()
        other._reparametrize_to_scale_offset()
        with other.compute_encodings():
            other(X)
        assert bits(other(X)) == bits(inside)
    outside = made()
    with torch.inference_mode(), outside.compute_encodings():
        outside(X)
    assert outside.is_initialized()
    assert bits(outside(X)) == bits(inside)


def test_one_symmetric_bit() -> None:
    """Upstream leaves NaN here."""
    q = QuantizeDequantize((), 1, True)
    with q.compute_encodings():
        q(torch.tensor([-1.5, 0.2, 3.0]))
    assert (q.min.tolist(), q.max.tolist(), q.get_scale().tolist()) == (-1.5, 0.0, 1.5)
    assert q(torch.tensor([-1.4, -0.7, 3.0])).tolist() == [-1.5, 0.0, 0.0]


def test_extremes_warn() -> None:
    for values in ([float("nan"), 1.0], [1.0, float("inf")], [1.0, 3.39e38]):
        q = QuantizeDequantize((), 8, False)
        with pytest.warns(UserWarning, match="observed"), q.compute_encodings():
            q(torch.tensor(values))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = QuantizeDequantize((), 8, False)
        with q.compute_encodings():
            q(torch.tensor([1.0, 3.2e38]))


def test_a_shift_counts_a_step_less() -> None:
    """Eight values on either side of zero, 7.5 steps from it, cover the greatest magnitude."""
    q = QuantizeDequantize((), 4, True, zero_point_shift=0.5)
    with q.compute_encodings():
        inside = q(torch.tensor([-3.0, 1.0, 0.0]))
    assert (q.min.tolist(), q.max.tolist()) == (-3.0, 3.0)
    assert bits(q.get_max()) == bits(-q.get_min()) == bits(q.get_scale() * 7.5)
    assert bits(inside) == bits(q(torch.tensor([-3.0, 1.0, 0.0])))
    assert 0.0 not in q(torch.linspace(-3, 3, 100)).tolist()


def test_an_analyzer_of_fewer_parameters() -> None:
    q = QuantizeDequantize((2, 1), 8, False, encoding_analyzer=MinMaxEncodingAnalyzer(()))
    with q.compute_encodings():
        q(X)
    assert q.max.tolist() == [[X.max().tolist()]] * 2


def test_both_documented_examples_of_quantize() -> None:
    """One parameter along a dimension serves all of its blocks. Upstream refuses both."""
    x = torch.randn(5, 10, generator=torch.Generator().manual_seed(0))
    q = Quantize(shape=(5, 1), bitwidth=8, symmetric=False, block_size=(1, 5))
    assert not q.is_initialized()
    with q.compute_encodings():
        _ = q(x)
    assert q.is_initialized()
    assert q.min.shape == (5, 1)
    rows = Quantize(shape=(5, 1), bitwidth=8, symmetric=False)
    rows.load_state_dict({"min": q.min, "max": q.max})
    assert bits(q(x)) == bits(rows(x))
    assert bits(q(x).dequantize()) == bits(rows(x).dequantize())
    assert q(x).amin(1).tolist() == [0.0] * 5
    assert q(x).amax(1).tolist() == [255.0] * 5
    q = Quantize(shape=(5, 1), bitwidth=8, symmetric=False, block_size=(1, 5))
    q.min = torch.nn.Parameter(-torch.ones_like(q.min))
    q.max = torch.nn.Parameter(torch.ones_like(q.max))
    wanted = Quantize((), 0, 255, False)
    wanted.set_range(-1.0, 1.0)
    assert bits(q(x)) == bits(wanted(x))
    for shape in ((5, 7), (4, 10), (10,)):
        with pytest.raises((RuntimeError, IndexError)):
            q(torch.zeros(shape))
