"""How fast the kernels are, beside every installed peer: ``python benchmarks/speed.py [--quick]``, or ``--help``.

Progress goes to stderr. Ctrl-C keeps what was measured; ``--resume`` goes on from there.
"""

import argparse
import logging
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from kernels import report
from kernels.cases import TABLES, Column, Table, columns
from kernels.machine import machine, slug
from kernels.measure import Budget
from kernels.others import is_disturbed
from kernels.peers import IMPLEMENTATIONS
from kernels.results import SCHEMA, NotExact, group, read, write

_REPORTS = Path(__file__).parents[1] / "reports/performance"
_QUICK = {
    "tables": "((fake |de|^)quantize|backward, x|aminmax), float32, per tensor",
    "columns": "call|cache.*1 thread",
    "implementations": "halfeven|torch\\.[^c]|onnxruntime",
}


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    chosen = tuple(i for i in IMPLEMENTATIONS if re.search(options.implementations, i.name))
    now = machine(chosen)
    out: Path = options.out or _folder(options, now)
    path = out / "results.json"
    if options.report:
        report.write(read(path), out)
        return _index()
    content = read(path) if options.resume else {"schema": SCHEMA, "groups": []}
    if content["groups"] and content["machine"] != now:
        _say("--resume: machine, versions or implementations are not those of the file; start anew without it")
        return 2
    content["machine"] = now
    wanted = [
        (table, column)
        for table in TABLES
        if re.search(options.tables, str(table))
        for column in columns(table)
        if re.search(options.columns, str(column))
    ]
    content["groups"] = [g for g in content["groups"] if not g["interrupted"] and not is_disturbed(g)]
    done = {_key(g) for g in content["groups"]}
    todo = [(table, column) for table, column in wanted if (str(table), str(column)) not in done]
    status = 0
    start = time.monotonic()
    for i, (table, column) in enumerate(todo, 1):
        head = f"[{i}/{len(todo)}, {(time.monotonic() - start) / 60:.1f} min] {table}: {column}"
        try:
            found = _group(table, column, chosen, options, head)
        except KeyboardInterrupt:
            _say("interrupted")
            status = 130
            break
        content["groups"].append(found)
        write(path, content)
        if found["interrupted"]:
            _say("interrupted: what was measured is kept, marked as partial; --resume measures the rest")
            status = 130
            break
    if content["groups"]:
        report.write(content, out)
        _index()
    print(report.text(content, out))
    return status


def _group(table: Table, column: Column, chosen: Any, options: Any, head: str) -> dict[str, Any]:
    _say(f"{head}: checking the results")
    budget = Budget(options.seconds, options.rounds, max(options.rounds, 25))
    return group(table, column, chosen, budget, lambda text: _say(f"{head}: {text}"))


def _key(found: dict[str, Any]) -> tuple[str, str]:
    return str(Table(**found["table"])), str(Column(**found["column"]))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="speed.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test: few tables, peers and rounds")
    parser.add_argument("--tables", metavar="REGEX", help="which tables, such as 'quantize, float32'")
    parser.add_argument("--columns", metavar="REGEX", help="which sizes and threads, such as 'memory, 1'")
    parser.add_argument("--implementations", metavar="REGEX", help="which implementations, such as halfeven")
    parser.add_argument("--seconds", type=float, help="per table and column, after the least number of rounds")
    parser.add_argument("--rounds", type=int, help="least number of rounds")
    parser.add_argument(
        "--resume", action="store_true", help="keep what OUT has already, unless it is partial or was disturbed (‡)"
    )
    parser.add_argument("--report", action="store_true", help="write tables and plots of OUT anew; measure nothing")
    parser.add_argument("--out", type=Path, metavar="OUT", help="folder (of a full run reports/performance/PROCESSOR)")
    options = parser.parse_args(arguments)
    partial = options.quick or any((options.tables, options.columns, options.implementations))
    for name in ("tables", "columns", "implementations"):
        if getattr(options, name) is None:
            setattr(options, name, _QUICK[name] if options.quick else "")
    options.seconds = options.seconds if options.seconds is not None else (0.2 if options.quick else 8.0)
    options.rounds = options.rounds if options.rounds is not None else (3 if options.quick else 9)
    options.partial = partial and not options.report
    return options


def _folder(options: argparse.Namespace, now: dict[str, Any]) -> Path:
    """Of each processor its own; what is no full run must not replace the results of one."""
    return Path(tempfile.gettempdir()) / "halfeven-benchmark" if options.partial else _REPORTS / slug(now)


def _index() -> int:
    """The page that lists the processors."""
    report.index(_REPORTS, [read(path)["machine"] for path in sorted(_REPORTS.glob("*/results.json"))])
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the libraries, at import and at every call
    logging.disable(logging.WARNING)
    try:
        sys.exit(main(sys.argv[1:]))
    except NotExact as error:
        _say(f"Not exact, so not measured: {error}")
        sys.exit(1)
