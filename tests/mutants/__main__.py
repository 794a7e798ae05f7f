"""Try every mutant and write the page: ``make mutants``, or with ``MODULES=`` and a part of a module's name, those.

It can be ended at any time, and tells what survived until then.
"""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tabulate import tabulate

from mutants.generator import Mutant
from mutants.ledger import HOLE, LEDGER, gone, is_new, reason
from mutants.run import Verdict
from mutants.suite import every_mutant, verdicts

_HEAD = """# Mutants

*Made by `make mutants`; [contributing.md](contributing.md#mutants) says what a mutant is.*

A mutant that some call sees is *seen*. The rest stand in `tests/mutants/survivors.toml`, each with its reason: no call
can tell an *equivalent* one from the source; of a *hole* a call is missing; an *open* one nobody has judged. The score
is the share of the seen among all but the equivalent. The calls are asked of the formula, of its versions, and of each
choice that no version has. What is said to people, and modules that only register, have no mutants.
"""
OPEN = "open"


def page(found: Mapping[Mutant, Verdict]) -> str:
    """The score of each module."""
    rows = []
    for module in dict.fromkeys(m.module for m in found):
        own = {m: v for m, v in found.items() if m.module == module}
        left = [reason(m, LEDGER) or OPEN for m, v in own.items() if v in {"survives", "not run"}]
        holes, opened = (sum(why.startswith(word) for why in left) for word in (HOLE, OPEN))
        rows.append((f"`{module}`", len(own), len(own) - len(left), len(left) - holes - opened, holes, opened))
    rows.sort()
    rows.append(("in all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    shares = [(*row, f"{100 * row[2] / max(row[1] - row[3], 1):.1f} %") for row in rows]
    headers = ("module", "mutants", "seen", "equivalent", "hole", "open", "score")
    table = tabulate(shares, headers, tablefmt="github", disable_numparse=True)
    said = f"Of {rows[-1][1]} mutants {rows[-1][2]} are seen, {rows[-1][5]} are open."
    return f"{_HEAD}\n{said}\n\n{re.sub(r'-{3,}', '---', re.sub(r' {2,}', ' ', table))}\n"


def main(pattern: str, path: Path) -> int:
    """Try the mutants of the modules whose names hold ``pattern``; with an empty one write the page to ``path``."""
    start, count, found = time.perf_counter(), Counter[str](), dict[Mutant, Verdict]()
    every = sum(bool(re.search(pattern, m.module)) for part in every_mutant().values() for m in part)

    def seen(mutant: Mutant, verdict: Verdict) -> None:
        found[mutant] = verdict
        count[verdict] += 1
        if is_new(mutant, verdict, LEDGER):
            print(f"{verdict}: {mutant.module}, {mutant.owner}: {mutant.change}", flush=True)
        elif len(found) % 500 == 0:
            print(f"{len(found)} of {every}, {time.perf_counter() - start:.0f} s: {dict(count)}", flush=True)

    try:
        verdicts(lambda m: bool(re.search(pattern, m.module)), os.cpu_count() or 1, seen)
    except KeyboardInterrupt:
        print(f"ended after {len(found)} of {every}")
    else:
        if not pattern:
            path.write_text(page(found), encoding="utf-8")
    stale = gone(list(found.items()), LEDGER)
    new = [m for m, v in found.items() if is_new(m, v, LEDGER)]
    for owner, change in sorted(stale):
        print(f"no longer survives: {owner}: {change}")
    print(f"{len(found)} mutants, {dict(count)}: {len(new)} new survivors, {len(stale)} rows that no longer survive")
    return int(bool(new or stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
