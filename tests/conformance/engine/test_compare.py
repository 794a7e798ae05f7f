import numpy as np

from halfeven.conformance.engine.compare import compare_codes, compare_reals


def test_codes_are_counted_in_steps_whatever_their_dtype() -> None:
    found = compare_codes(np.array([1.0, 2.0, 3.0, -128.0]), np.array([1, 4, 3, 127], np.int8))
    assert (found.differing, found.steps, found.unit) == (2, 255, "code steps")
    assert found.where.tolist() == [1, 3]


def test_a_code_between_two_codes_differs() -> None:
    found = compare_codes(np.array([1.0]), np.array([1.25]))
    assert (found.differing, found.steps) == (1, 1)


def test_nan_codes() -> None:
    both = compare_codes(np.array([np.nan, 1.0]), np.array([np.nan, 1.0], np.float32))
    assert both.differing == 0
    one = compare_codes(np.array([np.nan, 1.0]), np.array([0, 1]))
    assert one.differing == 1
    assert one.steps >= 1


def test_a_signalling_nan_is_one_and_warns_of_nothing() -> None:
    signalling = np.full(64, 0x7F800001, np.uint32).view(np.float32)
    assert compare_codes(np.ones(64), signalling).differing == 64
    assert compare_codes(np.full(64, np.nan), signalling).differing == 0


def test_the_sign_of_a_zero_code_is_not_looked_at() -> None:
    assert compare_codes(np.array([-0.0]), np.array([0.0])).differing == 0


def test_reals_are_counted_in_ulps() -> None:
    one = np.float32(1)
    above = np.nextafter(one, np.float32(2))
    found = compare_reals(np.array([one, one]), np.array([above, one]))
    assert (found.differing, found.steps, found.unit) == (1, 1, "ulp")
    across = compare_reals(np.array([-1e-45], np.float32), np.array([1e-45], np.float32))
    assert across.steps == 2


def test_a_zero_of_the_other_sign_differs_by_no_ulp() -> None:
    found = compare_reals(np.array([0.0], np.float32), np.array([-0.0], np.float32))
    assert (found.differing, found.steps) == (1, 0)


def test_any_nan_equals_any_nan_and_no_number() -> None:
    nans = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert compare_reals(nans, nans[::-1]).differing == 0
    assert compare_reals(nans[:1], np.array([1.0], np.float32)).differing == 1


def test_bytes_alone_do_not_hide_a_nan_pair() -> None:
    # 16 bytes, so that the fast path of whole words is taken, once equal and once not.
    e = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    assert compare_reals(e, e.copy()).differing == 0
    a = e.copy()
    a[2] = 5
    assert compare_reals(e, a).where.tolist() == [2]


def test_float64_orders_do_not_overflow() -> None:
    found = compare_reals(np.array([-1e308]), np.array([1e308]))
    assert found.steps > 2**62
