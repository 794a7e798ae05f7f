"""``halfeven export``: write the calls of a plan, for a device that answers them elsewhere."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfeven.conformance.backends.offer import Offer

__all__ = ["ABOUT", "OPTIONS", "add", "carry_out", "offer_of"]

ABOUT = "write the calls of a check into a folder, for a device that answers them elsewhere"
OPTIONS = ("--out", "--format", "--tier", "--seed", "--dtype", "--grid", "--granularity", "--with-expected")
_FORMATS = ("safetensors", "npz", "flat", "onnx")
_TENSOR = "tensor"


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument("formulas", nargs="+", metavar="FORMULA", help="a formula's id, PROFILE or PROFILE:OPERATION")
    parser.add_argument("--out", type=Path, required=True, help="folder, empty or not there yet")
    parser.add_argument("--format", default="safetensors", help=f"{', '.join(_FORMATS)} (default: safetensors)")
    parser.add_argument("--tier", default="quick", help="quick (default) or standard")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is drawn (default: 0)")
    parser.add_argument("--dtype", action="append", metavar="DTYPE", help="float dtype; repeatable (default: float32)")
    parser.add_argument(
        "--grid",
        action="append",
        metavar="GRID",
        help="int8, uint4, ... or QMIN:QMAX; repeatable (default: int8, uint8)",
    )
    parser.add_argument(
        "--granularity", action="append", help="tensor, channel, token, group, block; repeatable (default: tensor)"
    )
    parser.add_argument("--with-expected", action="store_true", help="add the reference's answers, in DIR/expected")


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Plan, record, write."""
    del given
    from halfeven.conformance.engine.plan import plan
    from halfeven.conformance.engine.run import answered
    from halfeven.conformance.engine.tier import TIERS
    from halfeven.conformance.nearest import among
    from halfeven.conformance.properties import CHECK
    from halfeven.conformance.workers.folder import Plan, write_answers, write_bundle
    from halfeven.conformance.workers.record import Recorder

    among("format", options.format, _FORMATS)
    among("tier", options.tier, TIERS)
    offer = offer_of(options.formulas, options.dtype, options.grid, options.granularity)
    recorder = Recorder(offer)
    for item in plan(offer, options.tier, options.seed):
        one_right = item.requirement.basis != "silent" and not item.check.startswith(CHECK)
        if options.format == "onnx" and not one_right:  # its drivers know one right output
            continue
        result = answered(item, recorder).result
        if result.outcome == "crashed":  # else calls would be missing, and nobody would miss them
            msg = f"{item.id} cannot be exported: {result.cause}"
            raise ValueError(msg)
    if not recorder.calls:
        msg = f"{', '.join(options.formulas)}: no check asks anything of it with these dtypes, grids and granularities"
        raise ValueError(msg)
    if options.format == "onnx":
        from halfeven.conformance.systems.onnx.test_data import write

        models, sets = write(options.out, recorder.calls, recorder.given)
        print(f"{options.out}: {models} models with {sets} test data sets, each with the outputs that ONNX documents")
        return 0
    bundle = write_bundle(options.out, Plan(offer, options.tier, options.seed), recorder.calls, options.format)
    if options.with_expected:
        write_answers(options.out / "expected", bundle, recorder.given)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    print(f"{options.out}: {len(bundle.keys)} calls, {size / 1e6:.1f} MB, bundle {bundle.id[:16]}")
    print(f"Answer them, then: halfeven judge {options.out} ANSWERS")
    return 0


def offer_of(
    formulas: Sequence[str],
    dtypes: Sequence[str] | None = None,
    grids: Sequence[str] | None = None,
    granularities: Sequence[str] | None = None,
) -> "Offer":
    """What a device is asked for.

    Raises:
        ValueError: a name is not known, or the formulas belong to several profiles.
    """
    from typing import get_args

    from halfeven.conformance.backends.offer import Offer
    from halfeven.conformance.configuration import DTYPES, Granularity, grid_of
    from halfeven.conformance.nearest import among
    from halfeven.reference.systems import PROFILES

    profiles: dict[str, None] = {}
    operations: dict[Any, None] = {}
    functions: dict[str, None] = {}
    for name in formulas:
        profile, asked, documented = _named(name)
        profiles[profile] = None
        operations |= dict.fromkeys(asked)
        functions |= dict.fromkeys(documented)
    if len(profiles) > 1:
        msg = f"{', '.join(formulas)} belong to {', '.join(profiles)}: export one at a time"
        raise ValueError(msg)
    [profile] = profiles
    for dtype in dtypes or ():
        among("dtype", dtype, DTYPES)
    for granularity in granularities or ():
        among("granularity", granularity, get_args(Granularity))
    chosen = tuple(map(grid_of, grids or ("int8", "uint8")))
    accepted = tuple(g for g in chosen if PROFILES[profile].accepts(g))
    if refused := [str(g) for g in chosen if g not in accepted and grids]:
        msg = f"grid={refused[0]} is not accepted: profile {profile} documents no such codes"
        raise ValueError(msg)
    named = ("qmin", "qmax", *(("block_size",) if {*(granularities or ())} - {_TENSOR} else ()))
    given: Any = tuple(granularities or (_TENSOR,))
    return Offer(
        name="device",
        profile=profile,
        operations={o: (*named, "dtype") if o == "dequantize" else named for o in operations},
        granularities=given,
        dtypes=tuple(dtypes or ("float32",)),
        grids=accepted or None,
        array="numpy",
        functions=tuple(functions),
    )


def _named(name: str) -> tuple[str, Sequence[str], Sequence[str]]:
    """The profile that a name claims, its operations and its formulas."""
    from halfeven.conformance.backends.protocol import canonical_profile
    from halfeven.conformance.nearest import nearest
    from halfeven.conformance.requirements import requirements
    from halfeven.reference.catalogue import FORMULAS
    from halfeven.reference.systems import PROFILES, claim_of, has_own_operations

    if name in FORMULAS:
        f = FORMULAS[name]
        claim = claim_of(f)
        symbol = f.id.partition("@")[0]
        if not any(r.called and r.formula == symbol for r in requirements(claim)):
            msg = f"FORMULA={name!r} is not accepted: no calls decide it; export an operation of its profile {claim}"
            raise ValueError(msg)
        return claim, (), (symbol,)
    profile, _, operation = name.partition(":")
    profile = canonical_profile(profile)
    if profile not in PROFILES or not has_own_operations(profile):
        known = [*FORMULAS, *(p for p in PROFILES if has_own_operations(p))]
        msg = f"FORMULA={name!r} is not accepted{nearest(name, known)}"
        raise ValueError(msg)
    offered = tuple(PROFILES[profile].operations)
    if operation and operation not in offered:
        msg = f"operation={operation!r} of {name!r} is not accepted: give one of {', '.join(offered)}"
        raise ValueError(msg)
    return profile, (operation,) if operation else offered, ()
