"""``halfeven fingerprint``: which choices an implementation has made; it runs in a process of its own."""

import argparse
import sys
from collections.abc import Sequence

__all__ = ["ABOUT", "OPTIONS", "add", "carry_out"]

ABOUT = (
    "find what an implementation does, with no claim; status 1 where no combination of known choices gives every answer"
)
OPTIONS = ("--operation", "--array", "--dtype", "--grid", "--formula", "--json", "--timeout", "--seconds", "--python")
_EXPLAINED, _NOT, _UNKNOWN = 0, 1, 2


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument("fn", metavar="FN", help="pkg.mod:function, a backend's name, or cmd:./my-device")
    parser.add_argument(
        "--operation",
        default="",
        help="quantize (default), dequantize, fake_quantize, cast, scale or block scale",
    )
    parser.add_argument("--array", default="", help="torch (default) or numpy")
    parser.add_argument("--dtype", default="float32", help="of the reals (default: float32)")
    parser.add_argument("--grid", metavar="GRID", help="the codes, int4 or -127:127 (default: int8, then uint8)")
    parser.add_argument("--formula", metavar="ID", help="a formula whose function it is")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds that a call may take (default: 30)")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds that all calls may take (default: 60)")
    parser.add_argument("--python", default="", metavar="PATH", help="the interpreter that has it, if another")


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Ask it, say what it does; 0 a behaviour gives every answer, 1 none does, 2 nothing is known."""
    del given
    from halfeven.conformance.backends.axes import COMMAND, joined, split
    from halfeven.conformance.backends.protocol import KINDS
    from halfeven.conformance.backends.registry import is_own
    from halfeven.conformance.configuration import grid_of, is_grid
    from halfeven.conformance.fingerprinting import of_worker
    from halfeven.conformance.nearest import among
    from halfeven.conformance.output import say
    from halfeven.conformance.workers.named import worker_of
    from halfeven.conformance.workers.server import NoServer, Server
    from halfeven.reference import FORMULAS
    from halfeven.reference.profile import OPERATIONS

    spec, words = split(options.fn)
    of_function = is_own(spec) and ":" in spec and not spec.startswith(COMMAND)
    for word in words if of_function else ():
        if is_grid(word) or word in FORMULAS:
            msg = f"@{word} is not accepted here: give --{'grid' if is_grid(word) else 'formula'} {word}"
            raise ValueError(msg)
    operation = _said("operation", options.operation, words, [*OPERATIONS, *KINDS]) or "quantize"
    array = _said("array", options.array, words, ["torch", "numpy"]) or "torch"
    if options.formula is not None:
        options.formula = FORMULAS.canonical(options.formula)
        among("formula", options.formula, [*FORMULAS])
    limits = None
    if options.grid is not None:
        limits = grid_of(options.grid)
    if of_function:
        more = (array, (options.formula or operation).partition("@")[0])
        words = (*words, *(w for w in more if w not in words))
    with Server(options.python or sys.executable) as server:
        worker = worker_of(
            joined(spec, words), server, timeout=options.timeout, budget=2 * options.seconds + options.timeout
        )
        try:
            result = of_worker(
                worker,
                options.fn,
                operation,
                dtype=options.dtype,
                grid=limits,
                formula=options.formula,
                seconds=options.seconds,
            )
        except NoServer as error:
            raise ValueError(str(error)) from None
        finally:
            worker.close()
    say(result.json() if options.json else str(result))
    return _UNKNOWN if result.nearest is None else _EXPLAINED if result.explained else _NOT


def _said(name: str, option: str, words: Sequence[str], accepted: Sequence[str]) -> str:
    """What an option says, or else a word after the function's name; empty where neither does."""
    from halfeven.conformance.nearest import among

    after = list(dict.fromkeys(w for w in words if w in accepted))
    if option:
        among(name, option, accepted)
    if len({*after, *([option] if option else [])}) > 1:
        both = " and ".join(f"@{w}" for w in after) + (f" and --{name} {option}" if option else "")
        msg = f"{both} are not accepted together: give one {name}"
        raise ValueError(msg)
    return option or "".join(after[:1])
