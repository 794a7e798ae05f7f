"""pytorch-quantization's ``ScaledQuantDescriptor``: what is required, and the calls that decide it."""

from typing import Any

import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected, measured

__all__: list[str] = []

P = "pytorch-quantization/"
DESCRIPTOR, ASSIGN, DICT = P + "descriptor", P + "descriptor_assign", P + "descriptor_dict"
FROM_YAML, AMAX, DESCRIBED = P + "descriptor_from_yaml", P + "described_amax", P + "described"
F32 = np.dtype(np.float32)
INPUTS = np.array([[[-2, 1], [0.5, 3]], [[0.1, -0.2], [7, -0.4]], [[0, 0.7], [-1, 1.5]]], F32)

FIELDS: dict[str, tuple[Any, ...]] = {
    "num_bits": (8, 1, 4, 16, (4, 3)),
    "name": (None, "", "conv1", "a: b\n\u00e9", "Infinity"),
    "fake_quant": (True, False),
    "axis": (None, 0, 1, -1, (0,), (0, 1), (), (-2, 0)),
    "learn_amax": (False, True),
    "scale_amax": (None, 0.5, 1.0, 0.1),
    "calib_method": ("max", "histogram"),
    "unsigned": (False, True),
    "narrow_range": (False, True),
}


@documented("pytorch-quantization/descriptor_round_trip", "ScaledQuantDescriptor.dict")
@expected(
    "pytorch-quantization/descriptor_yaml_round_trip",
    "ScaledQuantDescriptor.from_yaml, to_yaml, which treats amax and axis",
    text="A descriptor created from its YAML is the same in every field, an axis that is an integer or a tuple "
    "included.",
)
@documented(
    DICT,
    "ScaledQuantDescriptor.dict",
    text="The dict holds the attributes with a value other than the default, and no others.",
)
@documented(
    DESCRIPTOR,
    "ScaledQuantDescriptor: arguments, keyword arguments, read-only properties",
    text="num_bits is 8, name None, fake_quant True, axis None, amax None, learn_amax False, scale_amax None, "
    "calib_method max and unsigned False unless given; each can be read.",
)
def fields() -> Calls:
    """A descriptor constructed from the dict is the same in every field."""
    # One field at a time, and some together.
    yield {}
    for key, values in FIELDS.items():
        for value in values:
            yield {key: value}
    yield {"num_bits": 4, "name": "x", "fake_quant": False, "axis": (1, 2), "unsigned": True, "narrow_range": True}
    yield {"learn_amax": True, "amax": 2.5, "scale_amax": 0.25, "calib_method": "histogram"}


@documented("pytorch-quantization/descriptor_round_trip", "ScaledQuantDescriptor.dict", aspect="amax")
@expected(
    "pytorch-quantization/descriptor_yaml_round_trip",
    "ScaledQuantDescriptor.from_yaml, to_yaml, which treats amax and axis",
    aspect="amax",
    text="A descriptor created from its YAML has the same amax to the bit.",
)
@documented(
    DICT,
    "ScaledQuantDescriptor.dict; amax",
    aspect="amax",
    text="The dict holds amax by the values that float32 holds, zero among them.",
)
@documented(
    DESCRIPTOR,
    "ScaledQuantDescriptor: amax (float32: measured)",
    aspect="amax",
    text="amax is given as a float, a list or an array, of any shape, and is kept in float32.",
)
def amaxes() -> Calls:
    """A descriptor constructed from the dict has the same amax to the bit."""
    # Floats that float32 rounds, zero, beyond its range; lists and arrays of them, per row.
    for amax in (0.1, 1 / 3, 1.0, 0.0, 1e300, 1e-46, 3.4028235677973366e38, [0.1, 2.0], [1, 2], [3.0], [[0.1], [0.7]]):
        yield {"amax": amax}
    yield {"amax": np.array([0.1, 0.2])}
    yield {"amax": np.array([[0.1], [0.3]], F32)}
    yield {"amax": 0.3, "axis": 0}
    yield {"amax": np.float64(0.1)}


@documented(DESCRIPTOR, "ScaledQuantDescriptor: TypeError")
def refused_types() -> Calls:
    """A type that is not listed for its argument is a TypeError, and so is an argument that is not listed."""
    # A type that the document does not list, for each field; a keyword that it has not.
    wrong: dict[str, tuple[Any, ...]] = {
        "num_bits": (8.0, "8", None, (5, 2), [4, 3]),
        "name": (3, b"x"),
        "fake_quant": (1, None, "no"),
        "axis": ("foo", 1.0, ("a",), [0]),
        "amax": (1, (1.0, 2.0), "1", np.float32(1)),
        "learn_amax": (1, None),
        "scale_amax": (1, "2"),
        "calib_method": (None, 1),
        "unsigned": ("no", 1),
        "narrow_range": (1, None),
        "bogus": (1,),
    }
    for key, values in wrong.items():
        for value in values:
            yield {key: value}


@expected(DESCRIPTOR, "ScaledQuantDescriptor: num_bits, calib_method, amax", aspect="refused-values")
def values() -> Calls:
    """Widths below 1, a calib_method other than max and histogram, and a negative or NaN amax are refused."""
    for bits in (0, -1):
        yield {"num_bits": bits}
    for method in ("entropy", "", "MAX"):
        yield {"calib_method": method}
    for amax in (-1.0, float("nan"), [1.0, -1.0]):
        yield {"amax": amax}


@measured(
    DESCRIPTOR,
    "ScaledQuantDescriptor: learn_amax; the document does not speak of an axis together with it",
    aspect="learn-amax-and-axis",
)
def refused_axis_with_learn_amax() -> Calls:
    """learn_amax takes no axis."""
    # Both at once.
    for axis in (0, (0, 1)):
        yield {"learn_amax": True, "axis": axis}


@documented(ASSIGN, "ScaledQuantDescriptor: read-only properties", aspect="read-only")
def refused_assignments() -> Calls:
    """The properties cannot be assigned to."""
    # Each property, with its own default.
    yield from ({"attribute": key, "value": choices[0]} for key, choices in FIELDS.items())
    yield {"attribute": "amax", "value": 1.0}
    yield {"attribute": "unlisted", "value": 1.0}  # no property


@documented(FROM_YAML, "ScaledQuantDescriptor.from_yaml")
def texts() -> Calls:
    """A descriptor is created from a YAML text; lists stand for tuples, and what is not there has its default."""
    # One key, all of them, none; lists for tuples.
    yield {"yaml_str": ""}
    yield {"yaml_str": "num_bits: 4\nname: null\naxis: [0, 1]\n"}
    yield {"yaml_str": 'name: "a: b"\naxis: 0\nunsigned: true\nnarrow_range: true\nfake_quant: false\n'}
    yield {"yaml_str": 'num_bits: [4, 3]\namax: 0.1\ncalib_method: "histogram"\n'}
    yield {"yaml_str": "amax: [0.1, 0.2]\nscale_amax: 0.5\n"}
    yield {"yaml_str": "learn_amax: true\namax: 3.0\n"}
    yield {"yaml_str": 'name: "x.inf"\n'}


@expected(FROM_YAML, "ScaledQuantDescriptor.from_yaml")
def refusals() -> Calls:
    """What the constructor refuses is refused from YAML."""
    # What the descriptor refuses, by way of a text.
    yield {"yaml_str": "num_bits: 8.0\n"}
    yield {"yaml_str": "num_bits: -1\n"}
    yield {"yaml_str": "bogus: 1\n"}


@documented(AMAX, "ScaledQuantDescriptor: axis", aspect="axis")
def own_axis() -> Calls:
    """Without an amax the scale has the absolute maximum of each entry along the axes, of the whole tensor where axis
    is None; axis 0 of a KCRS weight is per channel."""
    # No amax given: the inputs' own, of all of them or per entry along the axes.
    for axis in (None, 0, 1, 2, (0,), (0, 1), (1, 2), ()):
        yield {"inputs": INPUTS, "axis": axis}
    kcrs = np.arange(-8, 8, dtype=F32).reshape(2, 2, 2, 2)
    yield {"inputs": kcrs, "axis": 0}


@documented(AMAX, "ScaledQuantDescriptor: axis, in [-rank, rank)")
def negative_axis() -> Calls:
    """A negative axis counts from the end."""
    for axis in (-1, -2, -3, (-1, 0)):
        yield {"inputs": INPUTS, "axis": axis}


@documented(AMAX, "ScaledQuantDescriptor: axis, in [-rank, rank)", aspect="axis-out-of-range")
def refused_axis() -> Calls:
    """An axis outside [-rank, rank) is refused."""
    # An axis that the inputs have not.
    for axis in (3, -4, (0, 3)):
        yield {"inputs": INPUTS, "axis": axis}


@documented(AMAX, "ScaledQuantDescriptor: amax")
def amax_over_axis() -> Calls:
    """A given amax is used, and the axis ignored."""
    # An amax together with an axis, even one that the inputs have not.
    for axis in (None, 0, 5):
        for amax in (0.1, [1.0, 2.0]):
            yield {"inputs": INPUTS, "axis": axis, "amax": amax}


@documented(AMAX, "ScaledQuantDescriptor: scale_amax")
def scale_amax() -> Calls:
    """A given scale_amax multiplies amax."""
    # A factor that float32 rounds, on a given amax and on the inputs' own.
    for factor in (0.5, 0.1, 1.0, 3.0):
        yield {"inputs": INPUTS, "scale_amax": factor}
        yield {"inputs": INPUTS, "scale_amax": factor, "axis": 1}
        yield {"inputs": INPUTS, "scale_amax": factor, "amax": 0.7}


@documented(AMAX, "ScaledQuantDescriptor: amax, learn_amax (1: measured)")
def learn_amax() -> Calls:
    """A learnable amax starts at the one given; without one at 1."""
    yield {"inputs": INPUTS, "learn_amax": True, "amax": 0.7}
    yield {"inputs": INPUTS, "learn_amax": True}
    yield {"inputs": INPUTS, "learn_amax": True, "amax": 0.7, "scale_amax": 0.5}


@documented(DESCRIBED, "ScaledQuantDescriptor: first sentences, num_bits, fake_quant, unsigned")
def modes() -> Calls:
    """A descriptor and a tensor define a quantized one: fake quantized, or codes and scale without fake_quant; unsigned
    where it says so; num_bits gives the scale."""
    # Fake and real, signed and unsigned, narrow and full, e4m3, per tensor and per channel.
    positive = np.abs(INPUTS)
    for more in ({}, {"axis": 0}, {"amax": 1.3}, {"scale_amax": 0.5}, {"amax": 0.9, "axis": 1}):
        for fake in (True, False):
            yield {"inputs": INPUTS, "fake_quant": fake, **more}
            yield {"inputs": INPUTS, "fake_quant": fake, "num_bits": 4, "narrow_range": True, **more}
            yield {"inputs": positive, "fake_quant": fake, "num_bits": 3, "unsigned": True, **more}
        yield {"inputs": INPUTS, "num_bits": (4, 3), **more}
