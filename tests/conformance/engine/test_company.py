"""What calls have as a whole: every call that is made for it has it, and its words are those of the region."""

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance.engine.company import TRAITS, companies, traits

VALUES = [0.05, -0.05, 1.5, -12.5, 0.0, 7.25, np.nan, np.inf]
#: The words of calls that are made for what the words of a trait say, where both are not the same.
MADE_FOR = {
    "that end with NaN": "without infinities",
    "that end with +infinity": "without -infinity",
    "that end with -infinity": "without +infinity",
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_every_call_has_what_it_is_made_for(dtype: type) -> None:
    made = list(companies(np.array(VALUES).astype(dtype)))
    assert len({words for words, _ in made}) > 10
    for words, x in made:
        assert MADE_FOR.get(words, words) in traits(x), words
        assert x.dtype == dtype


def test_every_trait_is_had_by_some_calls_and_not_by_others() -> None:
    had = [{*traits(x)} for _, x in companies(np.float32(VALUES))]
    assert {trait for trait in TRAITS if 0 < sum(trait in some for some in had) < len(had)} == {*TRAITS}


def test_an_empty_call_and_one_element_have_no_order() -> None:
    assert traits(np.float32([])) == ()
    assert not {"of equal elements", "in ascending order", "in descending order"} & {*traits(np.float32([1]))}
