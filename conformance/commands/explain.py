"""``halfeven explain``: a code, one value, or the witness of a report."""

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["ABOUT", "OPTIONS", "add", "carry_out", "signed"]

ABOUT = "explain a code (HE101), one value (X SCALE ZERO), or the witness of a report"
OPTIONS = (
    "--code",
    "--result",
    "--operation",
    "--dtype",
    "--scale-dtype",
    "--grid",
    "--profile",
    "--formula",
    "--from",
    "--json",
)
_SIGNED = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument(
        "what", nargs="*", metavar="HE101 | X SCALE [ZERO]", help="codes; or a value, its scale, its zero"
    )
    parser.add_argument("--code", metavar="Q", help="the code that was seen: which choices give it?")
    parser.add_argument("--result", metavar="REAL", help="the real that was seen, of dequantize and fake_quantize")
    parser.add_argument("--operation", default="quantize", help="quantize (default), dequantize or fake_quantize")
    parser.add_argument("--dtype", default="float32", help="of the reals (default: float32)")
    parser.add_argument("--scale-dtype", default="", metavar="DTYPE", help="of the scale (default: that of the reals)")
    parser.add_argument("--grid", default="int8", help="the codes: int8 (default), uint4, -127:127, ...")
    parser.add_argument(
        "--profile",
        default="",
        help="whose document explains it, or a backend that claims one (default: the textbook's)",
    )
    parser.add_argument("--formula", default="", metavar="ID", help="likewise, a formula that quantizes on a grid")
    parser.add_argument("--from", dest="place", metavar="REPORT#ID", help="the witness of a report, by id or by HE101")
    parser.add_argument("--json", action="store_true", help="print JSON")


def signed(word: str) -> str:
    """A negative number, so that argparse does not take it for an option: with a space in front."""
    return f" {word}" if _SIGNED.match(word) else word


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Print it; 0."""
    del given
    from halfeven.conformance.output import say

    found = list(_found(options))
    if options.json:
        shown = [e.to_dict() for e in found]
        say(json.dumps(shown[0] if len(shown) == 1 else shown, indent=2))
    else:
        say("\n\n".join(map(str, found)))
    return 0


def _found(options: argparse.Namespace) -> list[Any]:
    from halfeven.conformance.configuration import grid_of
    from halfeven.conformance.explaining.code import explain_code
    from halfeven.conformance.explaining.value import explain_value
    from halfeven.conformance.explaining.witness import explain_witness

    words = [word.strip() for word in options.what]
    if options.place is not None:
        if words:
            msg = f"{words[0]!r} is not accepted with --from: the witness has its values"
            raise ValueError(msg)
        return [explain_witness(options.place)]
    if words and all(word[:2].upper() == "HE" for word in words):
        return [explain_code(word) for word in words]
    if len(words) not in {2, 3}:
        msg = f"{' '.join(words)!r} is not accepted: give a code such as HE101, or X SCALE [ZERO], or --from"
        raise ValueError(msg)
    return [
        explain_value(
            *words,
            code=None if options.code is None else options.code.strip(),
            result=None if options.result is None else options.result.strip(),
            operation=options.operation,
            dtype=options.dtype,
            scale_dtype=options.scale_dtype,
            grid=grid_of(options.grid),
            profile=_canonical(options.profile),
            formula=options.formula,
        )
    ]


def _canonical(profile: str) -> str:
    """The name of a profile, or that which a backend of this name claims."""
    from halfeven.conformance.backends.protocol import canonical_profile
    from halfeven.conformance.backends.registry import REGISTRY
    from halfeven.reference.systems import PROFILES

    found = canonical_profile(profile) if profile else profile
    return REGISTRY[found].profile if found not in PROFILES and found in REGISTRY else found
