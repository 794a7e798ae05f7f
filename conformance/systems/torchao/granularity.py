"""torchao: block sizes, and the dimensions over which blocks are reduced."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.requirement import Calls, documented
from halfeven.conformance.systems.torchao.by_release import absent, by_release

__all__ = ["ANSWERS"]


@documented(
    "torchao/get_reduction_params",
    "quant_primitives: the parameters of the reduction and their example; quantize_affine, the table of granularities",
)
def blocks() -> Calls:
    """A dimension is split into its blocks and reduced inside them; a block of the whole dimension reduces it, one of 1
    leaves it."""
    # The document's example, blocks of 1, of a whole dimension and below 1, and what does not fit.
    for shape, block in (
        ((3, 3, 10, 10), (3, 3, 2, 10)),
        ((3, 3, 10, 10), (3, 3, 10, 10)),
        ((3, 3, 10, 10), (1, 3, 10, 10)),
        ((3, 3, 10, 10), (3, 1, 10, 10)),
        ((3, 3, 10, 10), (3, 3, 10, 2)),
        ((2, 4), (1, 1)),
        ((2, 1), (2, 1)),
        ((2, 4), (-1, 0)),
        ((0, 4), (1, 2)),
        ((0, 4), (3, 4)),
        ((), ()),
        ((2, 4), (2, 3)),
        ((2, 4), (2, 8)),
        ((2, 4), (4,)),
        ((2, 4), (1, 2, 4)),
    ):
        yield {"block_size": block, "input_size": shape}


@documented(
    "torchao/get_block_size",
    "quantization.granularity; AffineQuantizedTensor, field block_size: the whole shape is per tensor",
)
def granularities() -> Calls:
    """Per tensor a block is the whole shape; per axis it is 1 along the axis; per token and row it is one vector; per
    group and block it is as given."""
    # Every granularity of tensors of rank 1 to 4, and groups and blocks that do not divide.
    for shape in ((4,), (2, 4), (2, 3, 4), (3, 3, 10, 10)):
        yield {"input_shape": shape, "granularity": "PerTensor"}
        yield {"input_shape": shape, "granularity": "PerToken"}
        for axis in (0, len(shape) - 1, -1):
            yield {"input_shape": shape, "granularity": "PerAxis", "axis": axis}
            yield {"input_shape": shape, "granularity": "PerRow", "dim": axis}
        for size in (1, 2, 3, 4):
            yield {"input_shape": shape, "granularity": "PerGroup", "group_size": size}
        for block in ((2,), (1, 2), (2, 2), (5, 5), (1, 1, 1, 1)):
            yield {"input_shape": shape, "granularity": "PerBlock", "block_size": block}
    yield {"input_shape": (2, 4), "granularity": "PerRow"}
    for name in ("PerNothing", "PerAxis", "PerGroup"):  # the last two without what they need
        yield {"input_shape": (2, 4), "granularity": name}


def _reduction(block_size: tuple[int, ...], input_size: tuple[int, ...]) -> Any:
    from torchao.quantization import quant_primitives

    shape, dims = quant_primitives._get_reduction_params(block_size, input_size)  # noqa: SLF001 - it has no other name
    return tuple(shape), tuple(dims)


def _block_size(input_shape: tuple[int, ...], granularity: str, **given: Any) -> Any:
    from torchao.quantization import granularity as granularities
    from torchao.quantization.utils import get_block_size

    if not hasattr(granularities, granularity):
        msg = f"granularity={granularity} is not a class of torchao's"
        raise Unsupported(msg)
    return get_block_size(input_shape, getattr(granularities, granularity)(**given))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {"torchao/get_reduction_params": _reduction, "torchao/get_block_size": _block_size},
        v0_11={"torchao/get_block_size": absent},
    ),
}
