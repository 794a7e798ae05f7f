"""Functions that take, return or make quantized tensors, compiled: the same bits and the same encodings."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._functorch import config
from torch.nn import functional

from halfeven.optimized.aimet.affine import AffineEncoding
from halfeven.optimized.aimet.tensor import DequantizedTensor, QuantizedTensor

pytestmark = [
    # torch.compile asks for the gradient of inputs in the midst of a graph, plain ones too.
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SCALE = torch.tensor(0.1, requires_grad=True)
TENSOR = AffineEncoding(SCALE, torch.tensor(1.0), -8, 7)
CHANNEL = AffineEncoding(torch.tensor([[0.1], [0.2], [0.3], [0.4]]), torch.zeros(4, 1), -8, 7)
X = torch.arange(-12, 12).reshape(4, 6) * 0.05


def make(x: Tensor, encoding: AffineEncoding = TENSOR) -> QuantizedTensor:
    codes = encoding.quantize(x).as_subclass(QuantizedTensor)
    codes.encoding = encoding
    return codes


def overwritten(q: Any) -> Any:
    q = q.clone()
    q[0] = 1
    return q


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "made inside": lambda x: make(x).dequantize() * 2,
    "viewed inside": lambda x: torch.relu(make(x).view(-1).dequantize()),
    "returned": make,
    "returned, constructed": lambda x: QuantizedTensor(TENSOR.quantize(x), encoding=TENSOR),
    "returned, dequantized": lambda x: make(x).dequantize(),
    "returned, per channel": lambda x: make(x, CHANNEL).contiguous().dequantize().clone(),
    "lost": lambda x: make(x, CHANNEL).t(),
}
OF_CODES: dict[str, Callable[[Any], Any]] = {
    "dequantize": lambda q: q.dequantize(),
    "quantize": lambda q: q.quantize(),
    "there and back": lambda q: q.dequantize().quantize(),
    "integers": lambda q: q.quantized_repr(),
    "plain": lambda q: q + 1,
    "keywords": lambda q: torch.relu(input=q),
    "view": lambda q: q.view(-1),
    "index": lambda q: q[0, 1:3].dequantize(),
    "attribute": lambda q: q.T,
    "function": lambda q: torch.transpose(q, 0, 1).dequantize(),
    "several": lambda q: q.chunk(2)[0].dequantize(),
    "sort": lambda q: q.sort()[0],
    "clone": lambda q: q.contiguous().clone(),
    "detach": lambda q: q.detach(),
    "cast": lambda q: q.bfloat16(),
    "multiple": lambda q: q.dequantize() * -2,
    "quotient": lambda q: (q.dequantize() / 2).quantize(),
    "no multiple": lambda q: q.dequantize() * 0,
    "write": overwritten,
    "in place": lambda q: q.clone().add_(1),
    "linear": lambda q: functional.linear(torch.ones(2, 6), q.dequantize()),
    "embedding": lambda q: functional.embedding(torch.tensor([1, 2]), q),
    "dropout": lambda q: functional.dropout(q, training=False),
    "encoding": lambda q: q.encoding.scale * 2,
    "kind": lambda q: q.dequantize() if isinstance(q, QuantizedTensor) else q,
}
# Graph breaks in torch 2.13, which does not look into methods of Tensor that are written in Python.
BROKEN: dict[str, Callable[[Any], Any]] = {
    "split": lambda q: q.split(2)[0].dequantize(),
    "unflatten": lambda q: q.unflatten(1, (2, 3)).dequantize(),
    "iteration": lambda q: next(iter(q)).dequantize(),
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    assert config.check_custom_op_aliasing  # torch's check of the operators of others


def agree(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.requires_grad == expected.requires_grad
    assert torch.equal(found.as_subclass(Tensor), expected.as_subclass(Tensor))
    if isinstance(expected, (QuantizedTensor, DequantizedTensor)):
        assert (found.encoding is None) == (expected.encoding is None)
    if getattr(expected, "encoding", None) is not None:
        for name, value in vars(expected.encoding).items():
            got = vars(found.encoding)[name]
            assert torch.equal(got, value) if isinstance(value, Tensor) else got == value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_a_plain_tensor(name: str) -> None:
    agree(torch.compile(FUNCTIONS[name], fullgraph=True, backend="aot_eager")(X), FUNCTIONS[name](X))


@pytest.mark.parametrize("name", OF_CODES)
def test_of_a_quantized_tensor(name: str) -> None:
    compiled = torch.compile(OF_CODES[name], fullgraph=True, backend="aot_eager")
    agree(compiled(make(X)), OF_CODES[name](make(X)))


@pytest.mark.parametrize("name", BROKEN)
def test_with_a_graph_break(name: str) -> None:
    agree(torch.compile(BROKEN[name], backend="aot_eager")(make(X)), BROKEN[name](make(X)))


def test_after_a_graph_break() -> None:
    def broken(x: Tensor) -> Any:
        codes = make(x)
        torch._dynamo.graph_break()
        return torch.transpose(codes, 0, 1)[1:].dequantize()

    agree(torch.compile(broken, backend="eager")(X), broken(X))


def test_operators_of_others_are_still_checked() -> None:
    with torch.library._scoped_library("halfeven_tests", "FRAGMENT") as library:
        library.define("itself(Tensor x) -> Tensor")
        library.impl("itself", lambda x: x, "CPU")
        library.impl("itself", torch.empty_like, "Meta")
        itself = torch.ops.halfeven_tests.itself.default
        compiled = torch.compile(lambda q: itself(q.dequantize()) + 1, backend="aot_eager")
        refused = pytest.raises(RuntimeError, match="halfeven_tests::itself")
        with config.patch(error_on_custom_op_aliasing=True), refused:
            compiled(make(X, CHANNEL))


def test_a_write_inside_ends_the_encoding_outside() -> None:
    for write in (lambda q: q.add_(1), lambda q: q.view(-1).add_(1)):
        codes = make(X).detach()
        torch.compile(write, fullgraph=True, backend="aot_eager")(codes)
        assert codes.encoding is None
        torch.compiler.reset()


def test_gradients() -> None:
    def loss(x: Tensor) -> Tensor:
        return (make(x).t().dequantize() * 3).sum()

    found = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        x = X.clone().requires_grad_()
        function(x).backward()
        found.append((x.grad, SCALE.grad))
        SCALE.grad = None
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
