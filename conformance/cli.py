"""The command ``halfeven``: run, list, diff."""

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from itertools import takewhile
from pathlib import Path

__all__ = ["main"]

CONFORMS, DIFFERS, USAGE = 0, 1, 2
_ABOUT = (
    "Check implementations of quantization against the formulas they document. "
    "Exit status: 0 conforms, 1 differs, 2 wrong usage, an incomplete run, or nothing ran."
)
_AFTER = "What follows -- goes to pytest: halfeven run torch -- -k int8"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status says what came of it."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    split = given.index("--") if "--" in given else len(given)
    options, unknown = _parser().parse_known_args(given[:split])
    if unknown:  # argparse would only say that it does not know it
        return _usage(f"option {unknown[0]!r} is not known{_nearest_option(options.command, unknown[0])}")
    try:
        match options.command:
            case "run":
                return _run(options, given[split + 1 :], given)
            case "list":
                return _list(options)
            case _:
                return _diff(options)
    except BrokenPipeError:  # who reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CONFORMS
    except (ValueError, TypeError, OSError) as error:
        return _usage(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("halfeven", description=_ABOUT, allow_abbrev=False, epilog=_AFTER)
    parser.add_argument("--version", action="version", version=f"halfeven {metadata.version('halfeven')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="check backends and write a report", allow_abbrev=False)
    run.add_argument("backends", nargs="*", metavar="BACKEND", help="names, groups or pkg.mod:attr (default: default)")
    run.add_argument("--profile", help="hold every backend to this profile instead of its own claim")
    run.add_argument("--tier", default="quick", help="quick (default) or standard")
    run.add_argument("-n", dest="workers", default="auto", help="processes (default: one per core; 0: no workers)")
    run.add_argument("--out", type=Path, default=Path("halfeven-report"), help="folder (default: halfeven-report)")
    run.add_argument("--seed", type=int, default=0, help="seed of what is drawn (default: 0)")
    run.add_argument(
        "--item", action="append", default=[], metavar="ID", help="run only this item of the report; repeatable"
    )
    run.add_argument("--resume", action="store_true", help="resume an interrupted run in --out")
    lists = commands.add_parser("list", help="list backends, profiles, formulas, ...", allow_abbrev=False)
    lists.add_argument("what", metavar="WHAT", help="backends, profiles, formulas, requirements or documents")
    lists.add_argument(
        "names", nargs="*", default=[], metavar="FORMULA", help="with formulas: show these formulas in full"
    )
    lists.add_argument("--profile", help="only entries for this profile")
    diff = commands.add_parser("diff", help="compare two reports; status 1 on a regression", allow_abbrev=False)
    diff.add_argument("base", type=Path, help="the earlier report, or its folder")
    diff.add_argument("head", type=Path, help="the later one")
    return parser


def _run(options: argparse.Namespace, extra: list[str], given: list[str]) -> int:
    from halfeven.conformance import runner
    from halfeven.conformance.backends.protocol import canonical_profile
    from halfeven.conformance.trial import TIERS
    from halfeven.reference.systems import PROFILES

    _among("tier", options.tier, TIERS)
    if options.workers != "auto" and not options.workers.isdigit():
        return _usage(f"-n {options.workers} is not accepted: give a number of processes, or auto")
    if options.resume:
        given = _taken_up(options, given)
    if options.profile is not None:
        options.profile = canonical_profile(options.profile)
        _among("profile", options.profile, PROFILES)
    request = runner.Request(
        backends=options.backends or ["default"],
        profile=options.profile,
        tier=options.tier,
        seed=options.seed,
        out=options.out,
        workers=options.workers,
        items=options.item,
        resume=options.resume,
        given=given,
        extra=extra,
    )
    return runner.run(request)


def _taken_up(options: argparse.Namespace, given: list[str]) -> list[str]:
    """What the interrupted run was asked, which is asked again; another choice would leave out what it promised."""
    from halfeven.conformance.report import codec

    path: Path = options.out / "report.json"
    begun = shlex.split(codec.read_json(path).command) if path.exists() else []
    if begun[:2] != ["halfeven", "run"]:
        return given
    earlier, _ = _parser().parse_known_args(list(takewhile(lambda word: word != "--", begun[1:])))
    for name in ("backends", "profile", "item"):
        had, now = getattr(earlier, name), getattr(options, name)
        if now and now != had:
            msg = f"--resume: {options.out} holds a run with {name} {had or 'by default'}, not {now}: leave it out"
            raise ValueError(msg)
        setattr(options, name, had)
    return begun[1:]


def _list(options: argparse.Namespace) -> int:
    from tabulate import tabulate

    from halfeven.conformance.backends.protocol import canonical_profile
    from halfeven.reference import PROFILES

    _among("WHAT", options.what, _LISTS)
    if options.profile is not None:
        options.profile = canonical_profile(options.profile)
        _among("profile", options.profile, PROFILES)
    if options.names:
        return _describe(options.what, options.names)
    rows = _LISTS[options.what](options.profile)
    widths = [{"text": 60, "says": 60, "source": 50, "equation": 70}.get(key, 70) for key in rows[0]] if rows else None
    print(tabulate(rows, headers="keys", maxcolwidths=widths, disable_numparse=True))
    return CONFORMS


def _describe(what: str, names: list[str]) -> int:
    """A formula's equation and source, and how its function is called."""
    import inspect

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
        print(f"{f.id}({arguments})\n\n    {f.equation}\n    {f.source} ({f.basis.name})\n")
        print(f"{inspect.getdoc(f.function)}\n")
        for choice, words in (f.behaviour.choices() if f.behaviour else {}).items():
            own = getattr(f.behaviour, choice)
            print(f"    {choice}: {words[own]}; or " + ", ".join(w for v, w in words.items() if v != own))
        documented = FORMULAS[f.id.partition("@")[0]].behaviour
        for version in FORMULAS.versions(f.id):
            if version.version and version.behaviour is not None and documented is not None:
                print(f"    {version.id} ({version.source}): {documented.against(version.behaviour)}")
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


_LISTS = {
    "backends": _backends,
    "profiles": _profiles,
    "formulas": _formulas,
    "requirements": _requirements,
    "documents": _documents,
}


def _diff(options: argparse.Namespace) -> int:
    from halfeven.conformance.report import codec, diff

    found = diff.diff(codec.read_json(_file(options.base)), codec.read_json(_file(options.head)))
    print(diff.to_markdown(found))
    return DIFFERS if found.regressed else CONFORMS


def _file(path: Path) -> Path:
    """A report file, or the folder that holds one."""
    return path / "report.json" if path.is_dir() else path


def _among(name: str, value: str, accepted: Iterable[str]) -> None:
    from halfeven.conformance.nearest import nearest

    known = list(accepted)
    if value not in known:
        msg = f"{name}={value!r} is not accepted{nearest(value, known)}"
        raise ValueError(msg)


def _nearest_option(command: str, word: str) -> str:
    import difflib

    known = {"run": ["--profile", "--tier", "-n", "--out", "--seed", "--item", "--resume"], "list": ["--profile"]}.get(
        command, []
    )
    near = difflib.get_close_matches(word.split("=", maxsplit=1)[0], known, n=2, cutoff=0.4)
    return f": did you mean {', '.join(near)}?" if near else (f": give one of {', '.join(known)}" if known else "")


def _usage(message: str) -> int:
    print(f"halfeven: {message}", file=sys.stderr)
    return USAGE
