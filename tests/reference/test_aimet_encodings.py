"""AIMET's printed examples, and what holds of every range, bitwidth and histogram."""

import numpy as np
import pytest

from halfeven.conformance.requirement import Arguments
from halfeven.conformance.systems import call_sets
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems.aimet.sqnr import Sqnr, candidates, costs, errors_of

CALLS = call_sets()


F32 = np.float32
quantize = FORMULAS["aimet/affine.quantize"].function
quantize_dequantize = FORMULAS["aimet/affine.quantize_dequantize"].function
dequantize = FORMULAS["aimet/affine.dequantize"].function
compute_encodings = FORMULAS["aimet/compute_encodings"].function
bitwidth_grid = FORMULAS["aimet/bitwidth_grid"].function
recalibrated_range = FORMULAS["aimet/recalibrated_range"].function
scale_and_offset = FORMULAS["aimet/scale_and_offset"].function
histogram = FORMULAS["aimet/histogram"].function
PRINTED = 5e-5  # half a unit of the last digit that the documents print


def test_printed_example_of_a_symmetric_quantizer_per_channel() -> None:
    x = np.array([[-1.20, 4.1, -0.21, 2.3], [0.2, 5.6, -1.0, -0.1]], F32)
    found = compute_encodings((x,), 8, True, (2, 1))
    codes = quantize(x, found["scale"], found["offset"], 8, True)
    assert codes.tolist() == [[-37, 127, -7, 71], [5, 127, -23, -2]]
    reals = dequantize(codes, found["scale"], found["offset"])
    printed = [[-1.1945, 4.1000, -0.2260, 2.2921], [0.2205, 5.6000, -1.0142, -0.0882]]
    assert np.abs(reals - np.array(printed)).max() < PRINTED + 1e-6


def test_printed_example_of_an_assigned_range() -> None:
    """Minimum -1 and maximum 1 in 8 asymmetric bits: the printed outputs lie on codes -127 to 128 of 2 / 255."""
    one = np.ones((5, 2), F32)
    low, high = recalibrated_range(-one, one, 0, 255, False)
    assert {f"{v:.4f}" for v in low.ravel()} == {"-0.9961"}
    assert {f"{v:.4f}" for v in high.ravel()} == {"1.0039"}


def test_printed_example_of_calibrated_blocks() -> None:
    """What is printed was quantized in blocks of five, so quantizing it again in these changes no printed digit."""
    x = np.array(
        [
            [-0.2771, 0.3038, 1.0819, 0.9700, 0.9487, -0.1307, -1.7894, -0.1709, -0.2212, 0.7741],
            [-1.0295, -1.2265, -1.0295, 1.0564, 0.6177, -1.0386, -0.0176, -2.6054, 1.8836, -0.1232],
            [-0.8229, 0.5540, 0.3992, -0.2363, 1.2546, -1.0036, 0.2355, 0.1741, 1.6079, 0.6247],
            [-1.0115, 1.2458, 0.9157, -1.4694, -0.0639, -0.2568, 0.0680, 1.6695, 0.7932, -0.1889],
            [0.0158, 0.5695, 0.5220, 0.1977, -1.4475, -0.0424, -1.1128, -0.8796, -0.1060, 1.5897],
        ],
        F32,
    )

    def moved(shape: tuple[int, ...], block_size: tuple[int, ...]) -> float:
        found = compute_encodings((x,), 8, False, shape, block_size)
        again = quantize_dequantize(x, found["scale"], found["offset"], 8, block_size=block_size)
        return float(np.abs(again - x).max())

    # Printed ends are off by half a digit each, and so is every code's place between them.
    assert moved((5, 2), (1, 5)) < 4 * PRINTED
    assert moved((5, 1), (1, 10)) > 20 * PRINTED


@pytest.mark.parametrize("bitwidth", range(1, 33))
@pytest.mark.parametrize("symmetric", [False, True])
def test_zero_is_a_code_of_every_finite_range(bitwidth: int, symmetric: bool) -> None:
    qmin, qmax = bitwidth_grid(bitwidth, symmetric)
    ends = np.array([-1e30, -7.5, -1.0, -1e-9, 0.0, 1e-30, 0.3, 2.0, 1e30], F32)
    low, high = (a.ravel() for a in np.meshgrid(ends, ends))
    scale, offset = scale_and_offset(low, high, qmin, qmax, symmetric)
    assert (scale > 0).all()
    assert ((-offset >= F32(qmin)) & (-offset <= F32(qmax))).all()
    assert (offset == np.rint(offset)).all()


def test_histogram_counts_every_value_of_finite_batches() -> None:
    for call in CALLS["aimet/histogram", "batches"].build():
        found = histogram(**call)
        assert found["counts"].sum() == sum(x.size for x in call["batches"])


def judged() -> list[Arguments]:
    names = [name for formula, name in CALLS if formula == "aimet/sqnr_encodings" and name != "refusals"]
    return [call for name in names for call in CALLS["aimet/sqnr_encodings", name].build()]


@pytest.mark.parametrize("version", ["", "@2.42"])
def test_no_sum_in_float32_can_choose_another_candidate(version: str) -> None:
    """Between the best and the next other candidate lies more than both float32 sums can lose, B u / (1 - B u) each."""
    observe = FORMULAS[f"aimet/histogram{version}"].function
    compared = 0
    for call in judged():
        limit, blocks = call.get("histogram_growth_limit"), call.get("block_size")
        seen = observe(call["batches"], call["shape"], call["num_bins"], limit, blocks)
        symmetric, n, gamma = call["symmetric"], call["num_steps"], call.get("gamma", 3.0)
        count = (
            call.get("symmetric_delta_candidates", 101) if symmetric else call.get("asymmetric_delta_candidates", 17)
        )
        lost = call["num_bins"] * 2.0**-24 / (1 - call["num_bins"] * 2.0**-24)
        for row in zip(seen["counts"], seen["edges"], seen["min"], seen["max"], strict=True):
            delta, offset = candidates(Sqnr(), row[2], row[3], n, symmetric, count, call.get("offset_candidates", 21))
            cost = costs(errors_of(Sqnr(), row[0], row[1], delta, offset, n, gamma))
            best = cost.argmin()
            others = cost[(delta != delta[best]) | (offset != offset[best])]
            if cost[best] == 0 or not others.size:
                continue  # no sum of zeros rounds, the first of several is taken; and nothing else may be all there is
            assert others.min() * (1 - lost) > cost[best] * (1 + lost)
            compared += 1
    assert compared > 30
