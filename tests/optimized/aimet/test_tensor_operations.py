"""What operations make of an encoding: every row of the table, and writes that must end one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from halfeven.optimized.aimet.affine import AffineEncoding
from halfeven.optimized.aimet.tensor import DequantizedTensor, QuantizedTensor, table
from halfeven.optimized.aimet.tensor.types import OPERATIONS

INDEX = torch.tensor([[1, 0], [2, 1]])


def encoding(shape: tuple[int, ...] = (), **given: Any) -> AffineEncoding:
    scale = torch.linspace(0.1, 0.3, 12)[: torch.Size(shape).numel()].reshape(shape)
    return AffineEncoding(scale, torch.ones(shape), -8, 7, **given)


ENCODINGS = {"tensor": encoding(), "channel": encoding((4, 1)), "block": encoding((2, 1), block_size=(2, 4))}


def tensor(granularity: str, kind: type = QuantizedTensor) -> Any:
    codes = QuantizedTensor(torch.arange(16.0).reshape(4, 4) - 8, encoding=ENCODINGS[granularity])
    return codes if kind is QuantizedTensor else codes.dequantize()


# How the table's operations are called, after the tensor; those that are not here take none.
CALLS: dict[str, tuple[Any, ...]] = {
    "to": (torch.float64,),
    "type": (torch.float64,),
    "type_as": (torch.zeros(1, dtype=torch.float64),),
    "reshape": (2, 8),
    "reshape_as": (torch.zeros(2, 8),),
    "view": (2, 8),
    "view_as": (torch.zeros(2, 8),),
    "unflatten": (1, (2, 2)),
    "unsqueeze": (0,),
    "expand": (2, 4, 4),
    "expand_as": (torch.zeros(2, 4, 4),),
    "broadcast_to": ((2, 4, 4),),
    "transpose": (0, 1),
    "permute": (1, 0),
    "flip": ((0,),),
    "roll": (1,),
    "select": (0, 1),
    "narrow": (0, 1, 2),
    "unfold": (0, 2, 1),
    "split": (2,),
    "split_with_sizes": ([1, 3],),
    "chunk": (2,),
    "gather": (0, INDEX),
    "index_select": (0, INDEX[0]),
    "masked_select": (torch.eye(4, dtype=torch.bool),),
    "take": (INDEX,),
    "take_along_dim": (INDEX[:1].repeat(2, 2), 0),
    "repeat": (2, 1),
    "repeat_interleave": (2,),
    "tile": ((2,),),
    "topk": (2,),
    "kthvalue": (2,),
    "median": (0,),
    "max": (0,),
    "min": (0,),
    "cummax": (0,),
    "cummin": (0,),
    "__getitem__": (slice(1, 3),),
}


def wrapped(result: Any) -> list[Tensor]:
    """The float tensors of a result."""
    several = result if isinstance(result, (tuple, list)) else [result]
    return [t for t in several if t.dtype.is_floating_point]


@pytest.mark.parametrize("granularity", ENCODINGS)
@pytest.mark.parametrize("kind", [QuantizedTensor, DequantizedTensor])
@pytest.mark.parametrize("name", CALLS)
def test_methods_and_functions_agree(name: str, kind: type, granularity: str) -> None:
    x, args = tensor(granularity, kind), CALLS[name]
    results = [getattr(x, name)(*args)]
    if hasattr(torch, name):
        rest = (args,) if name in {"reshape", "permute"} else args
        results.append(getattr(torch, name)(x, *rest))
    kept = granularity == "tensor" or name in {"to", "type", "type_as"}
    for result in results:
        floats = wrapped(result)
        assert floats
        for one in floats:
            assert type(one) is kind
            assert (one.encoding is not None) == kept
            if kept:
                assert torch.equal(one.encoding.scale, x.encoding.scale)
        for one in result if isinstance(result, tuple) else ():
            assert one.dtype.is_floating_point or type(one) is Tensor


def test_every_name_of_the_table_is_one_of_torch() -> None:
    names = [name for group in table.NAMES.values() for name in group.split()]
    assert len(names) == len(set(names))
    known = table.operations()
    assert known.keys() == OPERATIONS.keys()
    for name in names:
        owners = [o for o in (torch.Tensor, torch, functional) if hasattr(o, name.removesuffix("="))]
        assert owners, name


@pytest.mark.parametrize("granularity", ["channel", "block"])
def test_same_shape_and_order_keep_every_encoding(granularity: str) -> None:
    x = tensor(granularity)
    for result in (
        x.view(4, 4),
        torch.reshape(x, (4, 4)),
        x.expand(4, 4),
        x.squeeze(),
        x.contiguous(),
        x.broadcast_to(4, 4),
    ):
        assert torch.equal(result.dequantize(), x.dequantize())
    assert x.t().encoding is None  # of the same shape, and elsewhere
    assert x[torch.tensor([1, 0, 2, 3])].encoding is None


@pytest.mark.parametrize(
    "operation",
    [
        torch.relu,
        torch.neg,
        torch.abs,
        lambda x: x + x,
        lambda x: x * torch.tensor(2.0),
        lambda x: x @ x,
        lambda x: torch.cat([x, x]),
        lambda x: torch.stack([x, x]),
        lambda x: torch.where(x > 0, x, x),
        lambda x: torch.max(x, x + 1),
        lambda x: x.sum(0),
        lambda x: x > 0,
        lambda x: x.int(),
        lambda x: x.to(torch.int8),
        lambda x: x.view(torch.int32),
        lambda x: x.view(torch.float16),
        lambda x: x.argmax(0),
        torch.zeros_like,
        lambda x: torch.relu(input=x),
        lambda x: torch.add(input=x, other=1),
        lambda x: x.new_zeros(2),
        lambda x: torch.clamp(x, 0, 1),
    ],
)
@pytest.mark.parametrize("kind", [QuantizedTensor, DequantizedTensor])
def test_other_results_are_plain(operation: Callable[[Tensor], Tensor], kind: type) -> None:
    assert type(operation(tensor("tensor", kind))) is Tensor


def test_results_have_encodings_of_their_own() -> None:
    x = tensor("tensor")
    for result in (x.view(-1), x.contiguous().half(), x.dequantize(), x.t()):
        result.encoding.qmax = 3
    assert x.encoding.qmax == 7
    assert x.view(-1).encoding.scale is x.encoding.scale


def test_what_may_reach_beyond_the_tensor_loses_it() -> None:
    x = tensor("tensor")
    found = x[0].as_strided((4, 4), (4, 1))
    assert type(found) is QuantizedTensor
    assert found.encoding is None


def test_keywords_only() -> None:
    x = tensor("tensor")
    for result in (
        torch.reshape(input=x, shape=(2, 8)),
        torch.transpose(input=x, dim0=0, dim1=1),
        torch.clone(input=x),
    ):
        assert result.encoding is not None
    assert (torch.mul(input=x.dequantize(), other=2)).encoding is not None


def test_both_kinds_in_one_call() -> None:
    codes, values = tensor("tensor"), tensor("tensor", DequantizedTensor)
    assert type(codes + values) is Tensor
    assert type(values.view_as(codes)) is DequantizedTensor
    assert torch.equal(codes, codes)


WRITES: dict[str, Callable[[Any], Any]] = {
    "add_": lambda x: x.add_(1),
    "operator": lambda x: x.__iadd__(1),
    "zero_": torch.zero_,
    "copy_": lambda x: x.copy_(torch.zeros(4, 4)),
    "setitem": lambda x: x.__setitem__(0, 1.0),
    "resize_": lambda x: x.resize_(2, 2),
    "data": lambda x: setattr(x, "data", torch.zeros(4, 4)),
    "set_": lambda x: x.set_(torch.zeros(4, 4)),
    "out": lambda x: torch.add(torch.zeros(4, 4), 1, out=x),
    "relu": lambda x: functional.relu(x, inplace=True),
    "init": torch.nn.init.zeros_,
    "foreach": lambda x: torch._foreach_add_([x], 1),
    "a view": lambda x: x.view(-1).add_(1),
    "a plain view": lambda x: x.as_subclass(Tensor)[0].add_(1),
    "a detached one": lambda x: x.detach().zero_(),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("kind", [QuantizedTensor, DequantizedTensor])
def test_writes_end_the_encoding(name: str, kind: type) -> None:
    x = tensor("tensor", kind)
    view = x.view(2, 8)
    WRITES[name](x)
    assert type(x) is kind
    assert x.encoding is None
    assert view.encoding is None or name in {"data", "set_", "resize_"}  # which leave its memory alone
    x.encoding = ENCODINGS["tensor"]
    assert x.encoding is ENCODINGS["tensor"]


# There are no versions in inference mode, and torch does not ask a subclass about set_ and lists of tensors.
@pytest.mark.parametrize(
    "name", sorted(WRITES.keys() - {"a view", "a plain view", "a detached one", "foreach", "set_"})
)
def test_writes_in_inference_mode(name: str) -> None:
    with torch.inference_mode():
        x = tensor("tensor").clone()
        assert x.encoding is not None
        WRITES[name](x)
        assert x.encoding is None


def test_in_place_moves() -> None:
    for move in (
        lambda x: x.t_(),
        lambda x: x.unsqueeze_(0),
        lambda x: x.transpose_(0, 1),
        lambda x: x.requires_grad_(),
    ):
        x = tensor("tensor")
        assert move(x) is x
        assert x.encoding is not None
    x = tensor("channel")
    x.squeeze_()
    assert x.encoding is not None
    x.t_()
    assert x.encoding is None
    x = tensor("channel")
    x.unsqueeze_(0)
    assert x.encoding is None
    stale = tensor("tensor")
    stale.as_subclass(Tensor).add_(1)
    stale.t_()
    assert stale.encoding is None


def test_data_of_the_same_kind_brings_its_encoding() -> None:
    x, other = tensor("tensor"), tensor("channel")
    x.data = other
    assert torch.equal(x.dequantize(), other.dequantize())
    assert x.data.encoding is not None


def test_float_casts() -> None:
    x = tensor("channel")
    for y in (
        x.half(),
        x.bfloat16(),
        x.to(torch.bfloat16),
        x.double(),
        x.type(torch.float64),
        x.to(torch.zeros(1, dtype=torch.half)),
    ):
        assert type(y) is QuantizedTensor
        assert y.encoding.scale.dtype == torch.float32
    assert x.float() is x
    assert x.encoding is not None
    assert x.type() == "torch.FloatTensor"


def test_dropout_that_is_off_touches_nothing() -> None:
    x = tensor("tensor")
    assert functional.dropout(x, training=False) is x
    assert x.encoding is not None
    assert type(functional.dropout(x, 0.5)) is Tensor


@pytest.mark.parametrize("granularity", ENCODINGS)
@pytest.mark.parametrize("factor", [2, 0.5, 3.0, -1, -0.25, True])
def test_multiples(factor: float, granularity: str) -> None:
    x = tensor(granularity, DequantizedTensor)
    for y in (
        x * factor,
        factor * x,
        torch.mul(x, factor),
        x.multiply(factor),
        x / (1 / factor),
        torch.true_divide(x, 1 / factor),
    ):
        assert type(y) is DequantizedTensor
        codes = y.quantize()
        mirrored = 7 - 8 - x.quantize()
        assert torch.equal(codes, mirrored if factor < 0 else x.quantize().as_subclass(Tensor))
        assert torch.equal(codes.dequantize(), (codes.as_subclass(Tensor).view_as(y) * 0 + y)) or factor == 3.0


@pytest.mark.parametrize("factor", [0, 0.0, float("inf"), float("nan")])
def test_factors_that_leave_no_scale(factor: float) -> None:
    x = tensor("tensor", DequantizedTensor)
    assert type(x * factor) is Tensor
    if factor != 0:
        assert type(x / factor) is Tensor


def test_a_symmetric_grid_of_odd_ends_has_no_mirror() -> None:
    e = AffineEncoding(torch.tensor(0.1), torch.tensor(0.0), -8, 7, symmetry=True)
    x = QuantizedTensor(torch.arange(-8.0, 8), encoding=e).dequantize()
    assert type(x * -1) is Tensor
    assert type(x * 2) is DequantizedTensor
    assert type(QuantizedTensor(x.quantize(), encoding=e) * 2) is Tensor
    assert type(2 / x) is Tensor
    assert type(torch.div(x, 2, rounding_mode="floor")) is Tensor


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [
        ((), None),
        ((6, 1), None),
        ((1, 4), None),
        ((4,), None),
        ((3, 2), (2, 2)),
        ((1, 2), (6, 2)),
        ((3, 1), (-1, -1)),
        ((6, 4), None),
    ],
)
@pytest.mark.parametrize("indices", [torch.tensor(4), torch.tensor([5, 0, 5]), torch.tensor([[1, 2], [0, 4]])], ids=str)
def test_embeddings(shape: tuple[int, ...], blocks: tuple[int, ...] | None, indices: Tensor) -> None:
    count = torch.Size(shape).numel()
    e = AffineEncoding(
        torch.linspace(0.1, 0.3, count).reshape(shape), torch.arange(count).reshape(shape) % 3, -8, 7, block_size=blocks
    )
    weight = QuantizedTensor(torch.arange(24.0).reshape(6, 4) % 16 - 8, encoding=e)
    rows = functional.embedding(indices, weight)
    assert type(rows) is QuantizedTensor
    expected = functional.embedding(indices, weight.dequantize().as_subclass(Tensor))
    assert torch.equal(rows.dequantize(), expected)
    assert torch.equal(functional.embedding(indices, weight.dequantize()).quantize(), rows)
