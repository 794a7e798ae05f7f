"""The command ``halfeven``: run, report, list, diff, and those that have a module each in ``commands``."""

import argparse
import contextlib
import shlex
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import metadata
from itertools import takewhile
from pathlib import Path

from halfeven.conformance import commands
from halfeven.conformance.nearest import among
from halfeven.conformance.output import say

__all__ = ["main"]

CONFORMS, DIFFERS, USAGE = 0, 1, 2
_ABOUT = (
    "Check implementations of quantization against the formulas they document. "
    "Exit status: 0 conforms, 1 differs, 2 wrong usage, an incomplete run, or nothing ran."
)
_AFTER = "What follows -- goes to pytest: halfeven run torch -- -k int8"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status says what came of it."""
    try:
        return _carry_out(list(sys.argv[1:] if arguments is None else arguments))
    except (ValueError, TypeError, OSError) as error:
        return _usage(str(error))
    except KeyboardInterrupt:
        return _usage("interrupted")
    except Exception:  # noqa: BLE001 - Python would end with 1, which says that something differs
        traceback.print_exc()
        return _usage("an error in halfeven itself, so nothing is known to conform")


def _carry_out(given: list[str]) -> int:
    parser, known = _parser()
    if given and not given[0].startswith("-"):
        _known_command(given[0], known)
    split = given.index("--") if "--" in given else len(given)
    options, unknown = parser.parse_known_args(commands.joined(given[:split]))
    if unknown:  # argparse would only say that it does not know it
        return _usage(f"option {unknown[0]!r} is not known{_nearest_option(options.command, unknown[0])}")
    match options.command:
        case "run":
            return _run(options, given[split + 1 :], given)
        case "list":
            return _list(options)
        case "report":
            return _report(options)
        case "diff":
            return _diff(options)
        case _:
            return commands.carry_out(options, given)


def _known_command(word: str, known: Iterable[str]) -> None:
    """Refuse a word that is no command; ``check``, which is the function's name, with the command that does it."""
    if word == "check":
        msg = "COMMAND='check' is not accepted: did you mean run, as in halfeven run pkg.mod:fn --profile onnx?"
        raise ValueError(msg)
    among("COMMAND", word, known)


def _parser() -> tuple[argparse.ArgumentParser, Iterable[str]]:
    """The parser, and the commands that it knows."""
    parser = argparse.ArgumentParser("halfeven", description=_ABOUT, allow_abbrev=False, epilog=_AFTER)
    parser.add_argument("--version", action="version", version=f"halfeven {metadata.version('halfeven')}")
    commands_ = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands_.add_parser("run", help="check backends and write a report", allow_abbrev=False)
    run.add_argument("backends", nargs="*", metavar="BACKEND", help="names, groups or pkg.mod:attr (default: default)")
    run.add_argument("--profile", help="hold every backend to this profile instead of its own claim")
    run.add_argument("--device", metavar="DEVICE", help="where all of them compute: cuda, cuda:1, xpu, ...")
    run.add_argument("--compiled", action="store_true", help="all of them under torch.compile")
    run.add_argument("--tier", default="quick", help="quick (default), standard, or exhaustive: all inputs too")
    run.add_argument("--shard", default="", metavar="I/N", help="exhaustive: the part of all scales (default: 1/16)")
    run.add_argument("-n", dest="workers", default="auto", help="processes (default: one per core; 0: no workers)")
    run.add_argument("--out", type=Path, default=Path("halfeven-report"), help="folder (default: halfeven-report)")
    run.add_argument("--seed", type=int, default=0, help="seed of what is drawn (default: 0)")
    run.add_argument(
        "--item", action="append", default=[], metavar="ID", help="run only this item of the report; repeatable"
    )
    run.add_argument(
        "--require", metavar="SHARE", help="to conform: each requirement checked (default), all, any, or as 90%%"
    )
    run.add_argument("--strict", action="store_true", help="judge what documents leave open, and what was measured")
    run.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="what a call may take (default: 30)"
    )
    run.add_argument("--python", metavar="PATH", help="the interpreter that has the backends, where it is another")
    run.add_argument("--resume", action="store_true", help="resume an interrupted run in --out")
    report = commands_.add_parser("report", help="write the report of a run that was cut short", allow_abbrev=False)
    report.add_argument("out", type=Path, metavar="DIR", help="the folder of the run")
    lists = commands_.add_parser("list", help="list backends, profiles, formulas, ...", allow_abbrev=False)
    lists.add_argument("what", metavar="|".join(_LISTS), help="what to list")
    lists.add_argument(
        "names", nargs="*", default=[], metavar="FORMULA", help="with formulas: show these formulas in full"
    )
    lists.add_argument("--profile", help="only entries for this profile")
    diff = commands_.add_parser(
        "diff", help="compare two reports; 1 on a regression, 2 where none compares", allow_abbrev=False
    )
    diff.add_argument("base", type=Path, help="the earlier report, or its folder")
    diff.add_argument("head", type=Path, help="the later one")
    commands.add(commands_)
    return parser, commands_.choices


def _run(options: argparse.Namespace, extra: list[str], given: list[str]) -> int:
    from halfeven.conformance import runner
    from halfeven.conformance.backends.axes import extended
    from halfeven.conformance.backends.protocol import canonical_profile
    from halfeven.conformance.engine.exhaustive.parameters import shard_of
    from halfeven.conformance.engine.tier import TIERS
    from halfeven.conformance.report.share import EACH, requirement_share
    from halfeven.reference.systems import PROFILES

    among("tier", options.tier, TIERS)
    shard_of(options.shard or "1/1")
    if options.workers != "auto" and not options.workers.isdigit():
        return _usage(f"-n {options.workers} is not accepted: give a number of processes, or auto")
    if options.resume:
        given = _taken_up(options, given)
    if options.profile is not None:
        options.profile = canonical_profile(options.profile)
        among("profile", options.profile, PROFILES)
    request = runner.Request(
        backends=[extended(b, options.device, compiled=options.compiled) for b in options.backends or ["default"]],
        profile=options.profile,
        tier=options.tier,
        seed=options.seed,
        out=options.out,
        workers=options.workers,
        items=options.item,
        require=requirement_share(options.require or EACH),
        strict=options.strict,
        resume=options.resume,
        timeout=options.timeout,
        shard=options.shard,
        python=options.python or "",
        given=given,
        extra=extra,
    )
    return runner.run(request)


def _taken_up(options: argparse.Namespace, given: list[str]) -> list[str]:
    """What the interrupted run was asked, which is asked again; another choice would leave out what it promised.

    A folder is data: code that it names and that is not this project's is imported only where the command line names
    it as well.
    """
    from halfeven.conformance.backends.registry import is_ours
    from halfeven.conformance.report import codec, folder

    path: Path = options.out / folder.PLAN
    begun = _words(codec.read_plan(path).command, path) if path.exists() else []
    if begun[:2] != ["halfeven", "run"]:
        return given
    earlier = _earlier(begun, path)
    if not options.backends and not all(map(is_ours, earlier.backends)):
        named = " ".join(["halfeven", "run", *map(shlex.quote, earlier.backends), *map(shlex.quote, given[1:])])
        msg = f"--resume: {options.out} names code that is not halfeven's, which must be named again: {named}"
        raise ValueError(msg)
    for name in ("backends", "profile", "item", "require", "device", "compiled", "strict", "shard"):
        had, now = getattr(earlier, name), getattr(options, name)
        if now and now != had:
            msg = f"--resume: {options.out} holds a run with {name} {had or 'by default'}, not {now}: leave it out"
            raise ValueError(msg)
        setattr(options, name, had)
    return begun[1:]


def _earlier(begun: list[str], path: Path) -> argparse.Namespace:
    msg = f"{path}, at /command: {shlex.join(begun)!r} is not accepted: it is no run that can be resumed"
    try:
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
            earlier, unknown = _parser()[0].parse_known_args(list(takewhile(lambda word: word != "--", begun[1:])))
    except SystemExit:  # its words were no command, or asked for help
        raise ValueError(msg) from None
    if unknown:
        raise ValueError(msg)
    return earlier


def _words(command: str, path: Path) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        msg = f"{path}, at /command: {command!r} is not accepted: {error}"
        raise ValueError(msg) from None


def _report(options: argparse.Namespace) -> int:
    from halfeven.conformance import runner

    return runner.report(options.out)


def _list(options: argparse.Namespace) -> int:
    from tabulate import tabulate

    from halfeven.conformance.backends.protocol import canonical_profile
    from halfeven.reference import PROFILES

    among("WHAT", options.what, _LISTS)
    if options.profile is not None:
        options.profile = canonical_profile(options.profile)
        among("profile", options.profile, PROFILES)
    if options.names:
        return _describe(options.what, options.names)
    rows = _LISTS[options.what](options.profile)
    widths = [{"text": 60, "says": 60, "source": 50, "equation": 70}.get(key, 70) for key in rows[0]] if rows else None
    say(tabulate(rows, headers="keys", maxcolwidths=widths, disable_numparse=True))
    return CONFORMS


def _describe(what: str, names: list[str]) -> int:
    """A formula's equation and source, and how its function is called."""
    import inspect

    from halfeven.conformance.equation import plain
    from halfeven.conformance.nearest import nearest
    from halfeven.reference import FORMULAS

    if what != "formulas":
        return _usage(f"{names[0]} is not accepted: only formulas are listed by name")
    for name in names:
        if name not in FORMULAS:
            return _usage(f"FORMULA={name!r} is not accepted{nearest(name, FORMULAS)}")
        f = FORMULAS[name]
        arguments = ", ".join(
            p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in inspect.signature(f.function).parameters.values()
        )
        say(f"{f.id}({arguments})\n\n    {plain(f.equation)}\n    {f.source} ({f.basis.name})\n")
        say(f"{inspect.getdoc(f.function)}\n")
        for choice, words in (f.behaviour.choices() if f.behaviour else {}).items():
            own = getattr(f.behaviour, choice)
            say(f"    {choice}: {words[own]}")
            for other in (w for v, w in words.items() if v != own):
                say(f"        or {other}")
        documented = FORMULAS[f.id.partition("@")[0]].behaviour
        for version in FORMULAS.versions(f.id):
            if version.version and version.behaviour is not None and documented is not None:
                say(f"    {version.id} ({version.source}): {documented.against(version.behaviour)}")
    return CONFORMS


def _backends(profile: str | None) -> list[dict[str, str]]:
    from halfeven.conformance.backends.registry import describe

    return [r for r in describe() if profile in {None, r["profile"]}]


def _profiles(profile: str | None) -> list[dict[str, str]]:
    from halfeven.reference.systems import PROFILES, has_own_operations

    wanted = [p for n, p in PROFILES.items() if has_own_operations(n) and profile in {None, n}]
    return [{"profile": p.name, "operations": ", ".join(p.operations), "computes": p.title} for p in wanted]


def _formulas(profile: str | None) -> list[dict[str, str]]:
    """One row per documented formula, with the versions that were measured."""
    from halfeven.reference import FORMULAS
    from halfeven.reference.systems import system_of

    system = None if profile is None else system_of(profile)
    return [
        {
            "formula": f.id,
            "versions": ", ".join(v.version for v in FORMULAS.versions(f.id) if v.version),
            "source": f.source,
            "equation": f.equation,
        }
        for f in FORMULAS.values()
        if not f.version and system in {None, f.system}
    ]


def _requirements(profile: str | None) -> list[dict[str, str]]:
    from halfeven.conformance.requirements import every_requirement, requirements

    found = every_requirement().values() if profile is None else requirements(profile)
    return [
        {
            "requirement": r.id,
            "basis": r.basis,
            "text": r.text,
            "decided by": ", ".join(r.checks),
        }
        for r in found
    ]


def _documents(profile: str | None) -> list[dict[str, str]]:
    """Every sentence of the documents: what tests it, or why nothing does."""
    from halfeven.conformance.documents import documents

    return [
        {
            "document": d.name,
            "place": s.place,
            "says": s.says,
            "requirements": ", ".join(s.requirements) or f"not testable: {s.not_testable}",
        }
        for d in documents()
        for s in d.sentences
        if profile is None or any(r.startswith(f"{profile}/") for r in s.requirements)
    ]


def _codes(profile: str | None) -> list[dict[str, str]]:
    """Every code; with a profile those of what it does, without what a document would have to say otherwise."""
    from halfeven.conformance.explaining.code import every_code

    if profile is None:
        return [{"code": c.code, "says": c.sentence} for c in every_code().values()]
    mine = (c for c in every_code().values() if profile in c.known)
    return [{"code": c.code, "says": c.sentence.partition(" where the document ")[0]} for c in mine]


_LISTS = {
    "backends": _backends,
    "profiles": _profiles,
    "formulas": _formulas,
    "requirements": _requirements,
    "documents": _documents,
    "codes": _codes,
}


def _diff(options: argparse.Namespace) -> int:
    import gc

    from halfeven.conformance.report import codec, diff

    gc.disable()  # nothing of two reports becomes garbage, and to look for it takes a third of the time
    found = diff.diff(codec.read_json(_file(options.base)), codec.read_json(_file(options.head)))
    say(diff.to_markdown(found))
    if not found.is_known:
        return USAGE
    return DIFFERS if found.regressed else CONFORMS


def _file(path: Path) -> Path:
    """A report file, or the folder that holds one."""
    return path / "report.json" if path.is_dir() else path


def _nearest_option(command: str, word: str) -> str:
    import difflib

    known = {
        "run": [
            "--profile",
            "--tier",
            "--shard",
            "-n",
            "--out",
            "--seed",
            "--item",
            "--require",
            "--timeout",
            "--python",
            "--device",
            "--compiled",
            "--strict",
            "--resume",
        ],
        "list": ["--profile"],
        **commands.OPTIONS,
    }.get(command, [])
    near = difflib.get_close_matches(word.split("=", maxsplit=1)[0], known, n=2, cutoff=0.4)
    return f": did you mean {', '.join(near)}?" if near else (f": give one of {', '.join(known)}" if known else "")


def _usage(message: str) -> int:
    from halfeven.conformance.report.printable import printable

    print(f"halfeven: {printable(message, '')}", file=sys.stderr)
    return USAGE
