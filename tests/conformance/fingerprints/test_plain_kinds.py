"""Casts and choices of scales as people write them: what each does is told, and nothing that it does not do."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kind_kernels import Kernel
from kind_kernels.casts import CASTS
from kind_kernels.scales import BLOCKS, SCALES

from halfeven.conformance import fingerprint
from halfeven.conformance.fingerprints.result import UNDECIDED, Fingerprint


def fingered(kernel: Kernel, kind: str) -> Fingerprint:
    with np.errstate(all="ignore"):
        return fingerprint(kernel.function, kind, kernel.array)


def not_told(found: Fingerprint, kernel: Kernel) -> dict[str, Any]:
    """The choices that a kernel makes and that are told as something else, or not."""
    every = {name: value if isinstance(value, set) else {value} for name, value in kernel.fields.items()}
    return {name: found.fields.get(name) for name, value in every.items() if found.fields.get(name) not in value}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kernel", CASTS, ids=lambda k: k.name)
def test_a_cast_is_what_it_does(kernel: Kernel) -> None:
    found = fingered(kernel, "cast")
    assert not_told(found, kernel) == {}
    assert found.explained == kernel.all
    assert found.calls < 200


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [*(("scale", k) for k in SCALES), *(("block scale", k) for k in BLOCKS)],
    ids=lambda k: getattr(k, "name", k),
)
def test_how_a_scale_is_made_is_what_is_told(kind: str, kernel: Kernel) -> None:
    found = fingered(kernel, kind)
    assert not_told(found, kernel) == {}
    assert found.explained == kernel.all
    assert found.calls < 200


def test_there_are_eighty_or_so() -> None:
    assert len(CASTS) + len(SCALES) + len(BLOCKS) > 70


def test_a_sort_of_inputs_that_nothing_known_gives_leaves_the_rest() -> None:
    def odd(x):
        with np.errstate(all="ignore"):
            return np.where(np.isnan(x), np.float16(7), x.astype(np.float16))

    found = fingerprint(odd, "cast", "numpy")
    assert (found.fields["format"], found.fields["rounding"]) == ("float16", "half-even")
    assert found.fields["nan"] == "gives 7.0"
    assert not found.explained


@pytest.mark.parametrize("function", [np.negative, np.rint], ids=["negative", "rint"])
def test_what_is_no_cast_has_no_format(function) -> None:
    found = fingerprint(function, "cast", "numpy")
    assert found.fields.get("format", UNDECIDED) == UNDECIDED
    assert found.profiles == ()


def of_the_mean(x):
    return np.abs(x).mean(axis=1) / np.float32(127)


def of_the_median(x):
    return np.median(np.abs(x), axis=1).astype(np.float32)


def of_the_norm(x):
    return np.sqrt((x.astype(np.float64) ** 2).mean(axis=1)).astype(np.float32) / np.float32(7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [of_the_mean, of_the_median, of_the_norm], ids=lambda f: f.__name__)
def test_what_is_no_known_scale_has_no_divisor(function) -> None:
    found = fingerprint(function, "scale", "numpy")
    assert not found.explained
    assert found.fields.get("divisor", UNDECIDED) == UNDECIDED


def a_quarter_more(x):
    s = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    return np.clip(np.floor(x / s + np.float32(0.25)), -127, 127), s


def signs(x):
    return np.sign(x), np.abs(x).max(axis=1, keepdims=True) / np.float32(127)


def stored_in_bfloat16(x):
    s = (np.abs(x).max(axis=1, keepdims=True) / np.float32(127)).astype(ml_dtypes.bfloat16).astype(np.float32)
    return np.clip(np.floor(x / s + np.float32(0.25)), -127, 127), s


def power_from_five_quarters(x):
    fraction, exponent = np.frexp(np.abs(x).max() / np.float32(127))
    return np.ldexp(np.float32(1), exponent - (fraction < 0.625))


def one_row_doubled(x):
    s = np.abs(x).max(axis=1) / np.float32(127)
    return s * (1 + (np.arange(len(s)) == 3)).astype(np.float32)


def a_quarter_by_128(x):
    odd = np.arange(len(x))[:, None] % 4 == 3
    s = np.abs(x).max(axis=1, keepdims=True) / np.where(odd, np.float32(128), np.float32(127))
    return np.clip(np.rint(x / s), -128, 127), s


def of_nine_tenths(x):
    return np.abs(x).max(axis=1) * np.float32(0.9) / np.float32(127)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("function", "share", "words", "divisor"),
    [
        (a_quarter_more, 0.7, "code_quotient x / s, divisor 127.0, division divide", 127),
        (stored_in_bfloat16, 0.6, "codes integers, divisor 127.0", 127),
        (signs, 0.01, "divisor 127.0, division divide", 127),
        (power_from_five_quarters, 0.6, "over the tensor, held power of two", UNDECIDED),
        (one_row_doubled, 0.9, "divisor 127.0, division divide", UNDECIDED),
        (a_quarter_by_128, 0.9, "divisor 127.0, code_rounding half-even", UNDECIDED),
        (of_nine_tenths, 0.6, "divisor 141.1", UNDECIDED),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_the_nearest_plain_way_is_said_where_none_gives_all(function, share: float, words: str, divisor: Any) -> None:
    found = fingerprint(function, "scale", "numpy")
    assert found.nearest is not None
    assert share < found.nearest.share < 1
    assert all(some in found.nearest.words for some in words.split(", "))
    assert found.fields["divisor"] == divisor
    assert found.fields["division"] in {UNDECIDED, "divide"}
    assert {found.fields.get(name, UNDECIDED) for name in ("codes", "code_rounding", "code_quotient")} == {UNDECIDED}
    assert ("code" in found.nearest.words) == (function in {a_quarter_more, stored_in_bfloat16, a_quarter_by_128})
