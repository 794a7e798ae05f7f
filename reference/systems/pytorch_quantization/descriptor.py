"""pytorch-quantization: ``ScaledQuantDescriptor``, what it accepts, its dict and YAML, and the tensor it describes."""

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.systems.pytorch_quantization.calibrators import reduce_amax
from halfeven.reference.systems.pytorch_quantization.e4m3 import SCALED_E4M3, scaled_e4m3
from halfeven.reference.systems.pytorch_quantization.tensor_quant import TENSOR_QUANT, fake_tensor_quant, tensor_quant

__all__ = [
    "ScaledQuantDescriptor",
    "described",
    "described_amax",
    "descriptor",
    "descriptor_assign",
    "descriptor_dict",
    "descriptor_from_yaml",
    "descriptor_round_trip",
    "descriptor_yaml_round_trip",
]


@dataclass(frozen=True)
class Checks(Behaviour):
    """The choice of what a descriptor refuses."""

    checked: str = choice({
        "all": "refuses a wrong type or value of every argument",
        "few": "refuses wrong types of num_bits, name and amax, unknown arguments and an axis together with learn_amax",
    })  # fmt: skip


@dataclass(frozen=True)
class Assignment(Behaviour):
    """The choice of what may be assigned to."""

    properties: str = choice({"read-only": "refuses to assign to a property", "open": "assigns to a property"})


@dataclass(frozen=True)
class Trip(Behaviour):
    """The choice of what is lost on the way through a dict or a text."""

    left_out: str = choice({
        "nothing": "writes every argument that differs from its default",
        "two": "writes neither calib_method nor narrow_range",
    })  # fmt: skip


@dataclass(frozen=True)
class Written(Trip):
    """The choices in writing a descriptor as a dict."""

    always: str = choice({
        "nothing": "writes no argument that has its default",
        "num-bits-and-name": "writes num_bits and name whatever they are",
    })  # fmt: skip


@dataclass(frozen=True)
class Read(Behaviour):
    """The choice in reading a descriptor from a text."""

    unknown: str = choice(
        {"refused": "refuses a key that it does not know", "ignored": "ignores a key that it does not know"}
    )


@dataclass(frozen=True)
class DescribedAmax(Behaviour):
    """The choices in finding the amax that a descriptor asks for."""

    axis: str = choice({
        "refused": "counts a negative axis from the end, and refuses one outside the rank",
        "left-out": "leaves out a negative axis and one outside the rank",
    })  # fmt: skip
    learnt: str = choice(
        {"scaled": "multiplies an amax to be learnt by scale_amax", "plain": "leaves an amax to be learnt as it is"}
    )
    factor: str = choice({
        "any": "multiplies every other amax by scale_amax",
        "found": "multiplies only an amax that was found by scale_amax",
    })  # fmt: skip


@dataclass(frozen=True)
class Described(Behaviour):
    """The choice in quantizing as a descriptor says."""

    narrow: str = choice({
        "fake": "follows narrow_range where it gives reals, and leaves out the lowest code where it gives codes",
        "both": "follows narrow_range where it gives codes, too",
    })  # fmt: skip


_SOURCE = "pytorch_quantization.tensor_quant.ScaledQuantDescriptor"
_METHODS = ("max", "histogram")


@dataclass(frozen=True)
class ScaledQuantDescriptor:
    """How a tensor is quantized. ``amax`` is kept as the floats, or nested tuples of them, that float32 holds.

    Attributes:
        num_bits: an integer of 1 or more, or (4, 3) for float8_e4m3fn.
        name: a string or None.
        fake_quant: whether the result is reals; else codes and scale.
        axis: an int or a tuple of them, the dimensions whose indices have an amax each; None is one amax for all.
        amax: a float, list or array of 0 or more, in reals; None where it is found.
        learn_amax: whether it is to be learnt.
        scale_amax: a float that amax is multiplied by, or None.
        calib_method: "max" or "histogram".
        unsigned: whether the codes start at 0.
        narrow_range: whether a signed grid leaves out its lowest code.

    Raises:
        TypeError: an argument of another name or type than documented; an ``axis`` together with ``learn_amax``.
        ValueError: ``num_bits`` below 1, a negative or NaN ``amax``, another ``calib_method``.
    """

    num_bits: Any = 8
    name: Any = None
    fake_quant: Any = True
    axis: Any = None
    amax: Any = None
    learn_amax: Any = False
    scale_amax: Any = None
    calib_method: Any = "max"
    unsigned: Any = False
    narrow_range: Any = False

    def __post_init__(self) -> None:  # noqa: D105 - the class says what it refuses
        whole = isinstance(self.axis, tuple) and all(isinstance(a, int) for a in self.axis)
        accepted: dict[str, tuple[bool, str]] = {
            "num_bits": (isinstance(self.num_bits, int) or self.num_bits == (4, 3), "an integer or (4, 3)"),
            "name": (self.name is None or isinstance(self.name, str), "a string or None"),
            "fake_quant": (isinstance(self.fake_quant, bool), "a boolean"),
            "axis": (self.axis is None or isinstance(self.axis, int) or whole, "None, an int or a tuple of int"),
            "amax": (self.amax is None or isinstance(self.amax, float | list | np.ndarray), "a float, list or ndarray"),
            "learn_amax": (isinstance(self.learn_amax, bool), "a boolean"),
            "scale_amax": (self.scale_amax is None or isinstance(self.scale_amax, float), "a float or None"),
            "calib_method": (isinstance(self.calib_method, str), "a string"),
            "unsigned": (isinstance(self.unsigned, bool), "a boolean"),
            "narrow_range": (isinstance(self.narrow_range, bool), "a boolean"),
        }
        for key, (fits, wanted) in accepted.items():
            if not fits:
                msg = f"{key}={getattr(self, key)!r} is not accepted: give {wanted}"
                raise TypeError(msg)
        if self.learn_amax and self.axis is not None:
            msg = f"axis={self.axis} is not accepted with learn_amax=True: give None"
            raise TypeError(msg)
        if isinstance(self.num_bits, int) and self.num_bits < 1:
            msg = f"num_bits={self.num_bits} is not accepted: give 1 or more"
            raise ValueError(msg)
        if self.calib_method not in _METHODS:
            msg = f"calib_method={self.calib_method!r} is not accepted: give one of {', '.join(_METHODS)}"
            raise ValueError(msg)
        object.__setattr__(self, "amax", _kept(self.amax))
        if self.amax is not None and not (np.asarray(self.amax) >= 0).all():
            msg = f"amax={self.amax} is not accepted: give values of 0 or more"
            raise ValueError(msg)

    def to_dict(self) -> dict[str, Any]:
        """What differs from its default, tuples as they are."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> "ScaledQuantDescriptor":
        """The descriptor of a dict as ``to_dict`` gives it."""
        return _made({**given, "amax": _lists(given.get("amax"))})

    def to_yaml(self) -> str:
        """A line ``key: value`` for each entry of the dict, the value in JSON, which is YAML too; infinity is .inf."""
        texts = {key: (json.dumps(value), isinstance(value, str)) for key, value in self.to_dict().items()}
        return "".join(f"{k}: {t if word else t.replace('Infinity', '.inf')}\n" for k, (t, word) in texts.items())

    @classmethod
    def from_yaml(cls, yaml_str: str) -> "ScaledQuantDescriptor":
        """The descriptor of such lines; a list is a tuple where no list is accepted."""
        pairs = (line.split(": ", 1) for line in yaml_str.splitlines())
        given = {k: json.loads(v if v.startswith('"') else v.replace(".inf", "Infinity")) for k, v in pairs}
        tuples = {k: tuple(v) for k, v in given.items() if k in {"axis", "num_bits"} and isinstance(v, list)}
        return _made({**given, **tuples})


def _made(given: dict[str, Any]) -> ScaledQuantDescriptor:
    """The descriptor of these arguments; one that it has not is a TypeError like the others."""
    known = [f.name for f in fields(ScaledQuantDescriptor)]
    for key, value in given.items():
        if key not in known:
            msg = f"{key}={value!r} is not accepted: the arguments are {', '.join(known)}"
            raise TypeError(msg)
    return ScaledQuantDescriptor(**given)


def _kept(amax: Any) -> Any:
    """Through float32 into Python floats; a list as a tuple, so that two descriptors compare."""
    with np.errstate(over="ignore"):
        return None if amax is None else _tuples(np.asarray(amax, np.float32).tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _lists(value: Any) -> Any:
    return list(map(_lists, value)) if isinstance(value, tuple) else value


def _properties(d: ScaledQuantDescriptor) -> dict[str, Any]:
    values = {f.name: getattr(d, f.name) for f in fields(d)}
    return {**values, "amax": None if d.amax is None else np.asarray(d.amax, np.float32)}


@formula(
    "pytorch-quantization/descriptor",
    equation=r"d = (b, \dots)",
    basis=Real(),
    source=_SOURCE,
    behaviour=Checks(),
    versions={"2.2.1": (Checks("few"), f"{_SOURCE}: measured")},
)
def descriptor(b: Checks, **kwargs: Any) -> dict[str, Any]:
    """The properties of a descriptor, amax as a float32 array or None.

    Args:
        **kwargs: as in ``ScaledQuantDescriptor``, and so the errors.
    """
    return _properties(_made(kwargs)) if b.checked == "all" else _hardly_checked(kwargs)


def _hardly_checked(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The properties, of which ``num_bits`` of 0 and every amax of an accepted type pass, and most are not checked."""
    known = {f.name: f.default for f in fields(ScaledQuantDescriptor)}
    checked = {k: v for k, v in kwargs.items() if k in {"num_bits", "name", "amax"} or k not in known}
    if type(checked.get("num_bits")) is int and checked["num_bits"] == 0:
        del checked["num_bits"]
    amax = kwargs.get("amax")
    if isinstance(amax, float | list | np.ndarray):
        del checked["amax"]
    _made(checked)
    if kwargs.get("learn_amax") and kwargs.get("axis") is not None:
        msg = f"axis={kwargs['axis']} is not accepted with learn_amax=True: give None"
        raise TypeError(msg)
    return {**known, **kwargs, "amax": None if amax is None else np.asarray(amax, np.float32)}


@formula(
    "pytorch-quantization/descriptor_assign",
    equation=r"d.k \leftarrow v",
    basis=Real(),
    source=_SOURCE,
    behaviour=Assignment(),
)
def descriptor_assign(b: Assignment, attribute: str, value: Any) -> None:
    """Assign to a property of a descriptor.

    Args:
        attribute: the property's name.
        value: any.

    Raises:
        AttributeError: ``attribute`` is a property of the descriptor, all of which are read-only.
    """
    if b.properties == "read-only" and attribute in {f.name for f in fields(ScaledQuantDescriptor)}:
        msg = f"{attribute}={value!r} is not accepted: the property is read-only"
        raise AttributeError(msg)


@formula(
    "pytorch-quantization/descriptor_dict",
    equation=r"\{k: d_k \ne \mathrm{default}_k\}",
    basis=Real(),
    source=_SOURCE,
    behaviour=Written(),
    versions={"2.2.1": (Written("two", "num-bits-and-name"), f"{_SOURCE}.dict: measured")},
)
def descriptor_dict(b: Written, **kwargs: Any) -> dict[str, Any]:
    """The descriptor's dict: what differs from its default, amax as a float or nested tuples.

    Args:
        **kwargs: as in ``ScaledQuantDescriptor``, and so the errors.
    """
    d = _made(kwargs)
    always = {"num_bits": d.num_bits, "name": d.name} if b.always == "num-bits-and-name" else {}
    return always | _written(b, d)


def _written(b: Trip, d: ScaledQuantDescriptor) -> dict[str, Any]:
    left_out = {"calib_method", "narrow_range"} if b.left_out == "two" else set()
    return {k: v for k, v in d.to_dict().items() if k not in left_out}


@formula(
    "pytorch-quantization/descriptor_round_trip",
    equation=r"d(\mathrm{dict}(d)) = d",
    basis=Real(),
    source=_SOURCE,
    behaviour=Trip(),
    versions={"2.2.1": (Trip("two"), f"{_SOURCE}.dict: measured")},
)
def descriptor_round_trip(b: Trip, **kwargs: Any) -> dict[str, Any]:
    """The properties after the way through the dict, as ``descriptor`` gives them.

    Args:
        **kwargs: as in ``ScaledQuantDescriptor``, and so the errors.
    """
    return _properties(ScaledQuantDescriptor.from_dict(_written(b, _made(kwargs))))


@formula(
    "pytorch-quantization/descriptor_yaml_round_trip",
    equation=r"d(\mathrm{yaml}(d)) = d",
    basis=Real(),
    source=_SOURCE,
    behaviour=Trip(),
)
def descriptor_yaml_round_trip(b: Trip, **kwargs: Any) -> dict[str, Any]:
    """The properties after the way through YAML, as ``descriptor`` gives them.

    Args:
        **kwargs: as in ``ScaledQuantDescriptor``, and so the errors.
    """
    d = _made(kwargs)
    kept = ScaledQuantDescriptor.from_dict(_written(b, d))
    return _properties(ScaledQuantDescriptor.from_yaml(kept.to_yaml()))


@formula(
    "pytorch-quantization/descriptor_from_yaml",
    equation=r"d(\mathrm{yaml})",
    basis=Real(),
    source=_SOURCE,
    behaviour=Read(),
)
def descriptor_from_yaml(b: Read, yaml_str: str) -> dict[str, Any]:
    """The properties that a YAML text of ``key: JSON value`` lines gives.

    Args:
        yaml_str: one line for each argument of ``ScaledQuantDescriptor`` that is given; infinity is .inf.

    Raises:
        TypeError, ValueError: as in ``ScaledQuantDescriptor``; ValueError also where a line is no key and JSON value.
    """
    if b.unknown == "ignored":
        known = tuple(f"{f.name}: " for f in fields(ScaledQuantDescriptor))
        yaml_str = "\n".join(line for line in yaml_str.splitlines() if line.startswith(known))
    return _properties(ScaledQuantDescriptor.from_yaml(yaml_str))


@formula(
    "pytorch-quantization/described_amax",
    equation=r"\mathrm{amax} = \mathrm{scale\_amax} * (\mathrm{amax}_d \text{ or } \max_{i \in c} |x_i|)",
    basis=AsComputed(dtype="float32"),
    source=f"{_SOURCE}: axis, amax, learn_amax, scale_amax",
    behaviour=DescribedAmax(),
    versions={
        "2.2.1": (
            DescribedAmax(axis="left-out", learnt="plain"),
            "pytorch-quantization 2.2.1, TensorQuantizer without calibration: measured",
        )
    },
)
def described_amax(b: DescribedAmax, inputs: Array, **kwargs: Any) -> Array:
    """The amax, float32: the descriptor's, whatever the axis; else that of ``inputs``; 1 where it is to be learnt.

    Args:
        inputs: float32 of any shape.
        **kwargs: as in ``ScaledQuantDescriptor``, and so the errors.

    Returns:
        In reals, times ``scale_amax``; the descriptor's in the shape that it has, another in that of ``reduce_amax``.

    Raises:
        ValueError: an ``axis`` outside [-rank, rank).
        RuntimeError: ``inputs`` is empty, where its own is asked for.
    """
    d = _made(kwargs)
    if d.amax is not None:
        amax = np.asarray(d.amax, np.float32)
    elif d.learn_amax:
        amax = np.asarray(1, np.float32)
    else:
        named = d.axis if isinstance(d.axis, tuple) else () if d.axis is None else (d.axis,)
        kept = tuple(a for a in named if 0 <= a < inputs.ndim) if b.axis == "left-out" else d.axis
        amax = reduce_amax(inputs, kept, "inputs")
    plain = (d.learn_amax and b.learnt == "plain") or (d.amax is not None and b.factor == "found")
    return amax if d.scale_amax is None or plain else np.asarray(amax * np.float32(d.scale_amax))


@formula(
    "pytorch-quantization/described",
    equation=r"\hat x = \mathrm{fake\_tensor\_quant}(x, \mathrm{amax}, b, u),"
    r"\quad (q, s) = \mathrm{tensor\_quant}(x, \mathrm{amax}, b, u)",
    basis=AsComputed(dtype="float32"),
    source=f"{_SOURCE}; TensorQuantizer: measured",
    behaviour=Described(),
)
def described(b: Described, inputs: Array, **kwargs: Any) -> Array | tuple[Array, Array]:
    """The quantized tensor that ``inputs`` and a descriptor define; codes and scale without fake_quant.

    Args:
        inputs: float32 of any shape.
        **kwargs: as in ``ScaledQuantDescriptor``.

    Returns:
        Reals of the shape of ``inputs``, float32; or codes and scale as ``tensor_quant`` gives them.

    Raises:
        TypeError, ValueError, RuntimeError: as in ``ScaledQuantDescriptor``, ``described_amax``, ``tensor_quant`` and
            ``scaled_e4m3``.
    """
    d = _made(kwargs)
    amax = described_amax(DescribedAmax(), inputs, **kwargs)
    if d.num_bits == (4, 3):
        return scaled_e4m3(SCALED_E4M3, inputs, amax)
    if d.fake_quant:
        return fake_tensor_quant(TENSOR_QUANT, inputs, amax, d.num_bits, d.unsigned, d.narrow_range)
    narrow = d.narrow_range if b.narrow == "both" else True
    return tensor_quant(TENSOR_QUANT, inputs, amax, d.num_bits, d.unsigned, narrow)
