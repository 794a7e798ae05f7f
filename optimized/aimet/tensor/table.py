"""What each operation makes of the encoding of its input: one table, by name.

An operation keeps an encoding of one scale for all if each element of its result is a copy of an element of the input,
and any other encoding if the elements also stay where they were. What the table does not name gives a plain tensor.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["NAMES", "operations"]

# Rule: the names of its operations in torch.Tensor, torch and torch.nn.functional. The rules are in ``rules``.
NAMES: dict[str, str] = {
    # The elements stay where they are.
    "same": "contiguous requires_grad_ share_memory_ pin_memory positive __pos__ conj resolve_conj resolve_neg",
    "clone": "clone",
    "detach": "detach detach_ data",
    # So they do, rounded to a float dtype; integers are plain.
    "cast": """
        to type type_as float half double bfloat16 cfloat cdouble chalf bool char byte short int long cpu cuda xpu
        """,
    # Each element of the result is a copy, in the order of the input, so that an equal shape says an equal place.
    "reshape": """
        reshape reshape_as view view_as view_copy flatten unflatten ravel squeeze squeeze_copy unsqueeze unsqueeze_copy
        expand expand_as expand_copy broadcast_to atleast_1d atleast_2d atleast_3d
        """,
    # Each element of the result is a copy: permutations, selections, repeats.
    "copy": """
        transpose transpose_copy swapaxes swapdims t t_copy T mT H mH adjoint permute permute_copy movedim moveaxis
        flip fliplr flipud roll rot90 pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle
        __getitem__ select select_copy narrow narrow_copy diagonal diagonal_copy unfold unfold_copy
        split split_copy split_with_sizes split_with_sizes_copy chunk tensor_split hsplit vsplit dsplit
        unsafe_split unsafe_split_with_sizes unsafe_chunk unbind unbind_copy
        gather index_select masked_select take take_along_dim
        repeat repeat_interleave tile
        sort msort topk kthvalue median nanmedian mode cummax cummin amax amin aminmax
        """,
    "extreme": "max min",  # of one tensor; of two it is the other's element as well
    "embedding": "embedding",
    # The same for the input itself.
    "reshape_in_place": "squeeze_ unsqueeze_",
    "copy_in_place": "t_ transpose_ swapaxes_ swapdims_",
    # A dequantized tensor times or by a Python number: the encoding with another scale.
    "multiply": "mul multiply __mul__ __rmul__",
    "divide": "div divide true_divide __truediv__",
    # The result is of the input's kind, but may hold what is no element of it.
    "lose": "as_strided as_strided_copy resize resize_as",
    # The input itself where nothing is to be done, else plain.
    "returned": "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout",
    # The input becomes another tensor.
    "replace": "data=",
    # The input's values change. So do all other operations whose names end in an underscore.
    "write": "__setitem__ __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ real=",
}

_OWNERS = (torch.Tensor, torch, functional)


def operations() -> dict[Callable[..., Any], str]:
    """The rule of each operation, in every spelling that torch has of it."""
    found: dict[Callable[..., Any], str] = {}
    for owner in _OWNERS:
        for name in dir(owner):
            if name.endswith("_") and not name.startswith("_") and callable(getattr(owner, name)):
                found[getattr(owner, name)] = "write"
    for rule, names in NAMES.items():
        for name in names.split():
            found.update(dict.fromkeys(_spellings(name), rule))
    return found


def _spellings(name: str) -> Iterator[Callable[..., Any]]:
    """The functions by that name; with "=" the one that sets the attribute."""
    for owner in _OWNERS:
        function: Any = getattr(owner, name.removesuffix("="), None)
        if owner is Tensor and not callable(function) and hasattr(function, "__set__"):
            yield function.__set__ if name.endswith("=") else function.__get__
        elif callable(function) and not name.endswith("="):
            yield function
