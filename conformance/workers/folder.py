"""A bundle: a plan's calls in a folder, for a device that answers them elsewhere, and the folder of its answers.

What comes back is data from elsewhere: it is refused with the file and the reason, and nothing in it makes this
process read another file, or hold more than the file holds.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.engine.batch import dump, opened
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.engine.memory import Strided
from halfeven.conformance.engine.sound import Damaged, refuse
from halfeven.conformance.engine.tier import TIERS, Tier
from halfeven.conformance.workers import flat, npz
from halfeven.conformance.workers.greeting import greeting, offer_of
from halfeven.conformance.workers.paths import read, read_json
from halfeven.conformance.workers.record import key

__all__ = [
    "FORMATS",
    "VERSION",
    "Bundle",
    "Format",
    "Plan",
    "read_answers",
    "read_bundle",
    "write_answers",
    "write_bundle",
]

VERSION = 1
Format = Literal["safetensors", "npz", "flat"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SIZE, _CALLS = 4 << 20, 1024  # of one file
_TABLE, _COLUMNS = "calls.tsv", "number\tkey\tformula\tcall shape\treason"
_FILES = {"bundle.json", "bundle.id"}


@dataclass(frozen=True)
class Plan:
    """What the calls were planned from, which plans them again.

    Attributes:
        offer: what the device is asked for.
        tier, seed: how much, and what is drawn.
    """

    offer: Offer
    tier: Tier = "quick"
    seed: int = 0


@dataclass(frozen=True)
class Bundle:
    """A bundle that was written or read.

    Attributes:
        id: the hash of the whole, which its answers repeat.
        format: in which its calls are written.
        plan: what they were planned from.
        keys: of each call its content's hash, in order.
        files: names of the files with its calls.
    """

    folder: Path
    id: str
    format: Format
    plan: Plan
    keys: tuple[str, ...]
    files: tuple[str, ...]

    def batches(self) -> Iterator[tuple[int, list[Call]]]:
        """The calls, a file at a time, with the number of the first.

        Raises:
            ValueError: the bundle is written for a reader in another language.
            Damaged: a file is not what the bundle says of it.
        """
        if self.format == "flat":
            msg = f"{self.folder}: format=flat is not answered here: export with --format safetensors or npz"
            raise ValueError(msg)
        first = 0
        for name in self.files:
            calls, of = _opened(self.folder, name, read(self.folder, name), Call)
            if of != {"calls": [*range(first, first + len(calls))]}:
                refuse(f"{self.folder / name}: its calls do not follow those of the file before")
            yield first, calls
            first += len(calls)


def write_bundle(folder: Path, plan: Plan, calls: Sequence[Call], form: Format = "safetensors") -> Bundle:
    """Write the calls, each with its reason, and last ``bundle.json``, without which it is no bundle.

    Raises:
        ValueError: the folder holds something.
        OSError: it cannot be written to.
    """
    _empty(folder)
    files = [*_write(folder, "calls", form, calls, None)]
    keys = [key(call) for call in calls]
    rows = (
        f"{i}\t{k}\t{c.formula}\t{c.shape}\t{_line(c.reason)}" for i, (k, c) in enumerate(zip(keys, calls, strict=True))
    )
    (folder / _TABLE).write_text("\n".join([_COLUMNS, *rows]) + "\n", encoding="utf-8")
    said: dict[str, Any] = {
        "version": VERSION,
        "written by": f"halfeven {metadata.version('halfeven')}",
        "format": form,
        "formulas": [*dict.fromkeys(c.formula for c in calls)],
        "tier": plan.tier,
        "seed": plan.seed,
        "offer": greeting(plan.offer),
        "calls": len(calls),
        "files": [_described(folder / name) for name in [*files, _TABLE]],
    }
    id_ = _id(said)
    (folder / "bundle.id").write_text(f"{id_}\n", encoding="ascii")
    (folder / "bundle.json").write_text(json.dumps({**said, "bundle": id_}, indent=1) + "\n", encoding="utf-8")
    return Bundle(folder, id_, form, plan, tuple(keys), tuple(files))


def read_bundle(folder: Path) -> Bundle:
    """Read a bundle: every file that it names is looked at, whole.

    Raises:
        Damaged: it is none, of another version, or was changed; the message has file and reason.
    """
    where = folder / "bundle.json"
    data = read_json(folder, where.name)
    try:
        return _bundle(folder, data)
    except Damaged as reason:
        refuse(f"{reason}" if f"{reason}".startswith(f"{folder}") else f"{where}: {reason}")
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        msg = f"{where}: it is no bundle: {type(error).__name__}: {f'{error}'[:200]}"
        raise Damaged(msg) from None


def _bundle(folder: Path, data: dict[str, Any]) -> Bundle:
    if data["version"] != VERSION:
        refuse(f"version {data['version']!r:.40} is not read here: this is version {VERSION}")
    if data["format"] not in FORMATS:
        refuse(f"format {data['format']!r:.40} is not accepted: give one of {', '.join(FORMATS)}")
    if data["tier"] not in TIERS or type(data["seed"]) is not int:
        refuse(f"tier {data['tier']!r:.40} and seed {data['seed']!r:.40} are not accepted")
    id_ = data.pop("bundle")
    if _id(data) != id_:
        refuse("it is not the one that was written: its hash is another")
    files = {str(f["name"]): f for f in data["files"]}
    if len(files) < len(data["files"]) or _FILES & {*files}:
        refuse("a file is named twice")
    table = b""
    for name, said in files.items():
        found = read(folder, name, said["bytes"])
        if hashlib.sha256(found).hexdigest() != said["sha256"]:
            refuse(f"{folder / name}: it is not the one that was written: its hash is another")
        table = found if name == _TABLE else table
    keys = tuple(row.split("\t")[1] for row in table.decode().splitlines()[1:])
    if len(keys) != data["calls"]:
        refuse(f"{folder / _TABLE}: {len(keys)} calls of {data['calls']!r:.40}")
    plan = Plan(offer_of(data["offer"]), data["tier"], data["seed"])
    return Bundle(folder, id_, data["format"], plan, keys, tuple(name for name in files if name != _TABLE))


def write_answers(folder: Path, bundle: Bundle, answers: Iterable[Answer], form: Format | None = None) -> None:
    """Write the answers to a bundle's calls, in their order, in the bundle's format or another.

    Raises:
        ValueError: the folder holds something.
        OSError: it cannot be written to.
    """
    _empty(folder)
    for _ in _write(folder, "answers", form or bundle.format, answers, bundle.id):
        pass


def read_answers(folder: Path, bundle: Bundle) -> list[Answer]:
    """One answer for each call of the bundle, in their order.

    Raises:
        Damaged: a file is damaged, answers another bundle, or answers are missing, doubled or in another order; the
            message has file and reason.
    """
    if not folder.is_dir():
        refuse(f"{folder} is no folder of answers")
    names = sorted(p.name for p in folder.iterdir() if p.name.startswith("answers"))
    if "answers.txt" in names:
        return _flat(folder, names, bundle)
    found: list[Answer] = []
    for name in names:
        if not name.endswith((".safetensors", ".npz")):
            refuse(f"{folder / name}: it is none of answers.txt, answers-*.safetensors and answers-*.npz")
        answers, of = _opened(folder, name, read(folder, name), Answer)
        _in_order(folder / name, of, len(found), len(answers), bundle)
        found += answers
    if len(found) < len(bundle.keys):
        refuse(f"{folder}: {len(found)} of {len(bundle.keys)} answers are there")
    return found


def _in_order(path: Path, of: Any, first: int, count: int, bundle: Bundle) -> None:
    """That a file answers the calls that come next, and no others."""
    if not isinstance(of, dict) or of.get("bundle") != bundle.id:
        refuse(f"{path}: it answers another bundle")
    numbers = of.get("calls")
    if not isinstance(numbers, list) or len(numbers) != count:
        refuse(f"{path}: it does not say which calls its {count} answers are to")
    for wanted, number in enumerate(numbers, first):
        if number != wanted or type(number) is not int or number >= len(bundle.keys):
            refuse(f"{path}: answer {number!r:.40} comes where answer {wanted} of {len(bundle.keys)} should")


def _flat(folder: Path, names: Sequence[str], bundle: Bundle) -> list[Answer]:
    if foreign := [name for name in names if name not in {"answers.txt", "answers.bin"}]:
        refuse(f"{folder / foreign[0]}: answers in another form stand next to answers.txt")
    index, data = read(folder, "answers.txt"), read(folder, "answers.bin")
    try:
        return flat.answers_of(index, data, bundle.id, len(bundle.keys))
    except Damaged as reason:
        msg = f"{folder / 'answers.txt'}, {reason}"
        raise Damaged(msg) from None


def _opened(folder: Path, name: str, data: bytes, kind: type[Any]) -> tuple[list[Any], Any]:
    try:
        return opened(npz.from_npz(data) if name.endswith(".npz") else data, kind)
    except Damaged as reason:
        msg = f"{folder / name}: {reason}"
        raise Damaged(msg) from None


def _write(folder: Path, stem: str, form: Format, items: Iterable[Any], bundle: str | None) -> Iterator[str]:
    """Write calls or answers, and give the names of the files."""
    if form == "flat":
        listed = [*items]
        head = [f"halfeven-{stem} {VERSION}", *([] if bundle is None else [f"bundle {bundle}"])]
        with (folder / f"{stem}.txt").open("w", encoding="ascii") as index, (folder / f"{stem}.bin").open("wb") as file:
            lines = (flat.call_lines if bundle is None else flat.answer_lines)(enumerate(listed), flat.Data(file))
            index.writelines(f"{line}\n" for line in (*head, *lines, f"end {len(listed)}"))
        yield from (f"{stem}.txt", f"{stem}.bin")
        return
    said = {} if bundle is None else {"bundle": bundle}
    first = 0
    for turn, part in enumerate(_parts(iter(items))):
        name = f"{stem}-{turn:04}.{form}"
        batch = dump(part, {**said, "calls": [*range(first, first + len(part))]})
        (folder / name).write_bytes(npz.to_npz(batch) if form == "npz" else batch)
        first += len(part)
        yield name


def _parts(items: Iterator[Any]) -> Iterator[list[Any]]:
    """Items for one file each: no more than ``_CALLS``, and no more bytes than ``_SIZE`` where one alone has not."""
    while some := list(islice(items, 1)):
        size = _bytes(some[0])
        while size < _SIZE and len(some) < _CALLS and (more := list(islice(items, 1))):
            some += more
            size += _bytes(more[0])
        yield some


def _bytes(item: Any) -> int:
    values = [item.value] if isinstance(item, Answer) else [*item.positional, *item.named.values()]
    return sum(v.memory.nbytes if isinstance(v, Strided) else getattr(v, "nbytes", 0) for v in values)


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        msg = f"--out: {folder} holds something: name a folder that is empty or not there yet"
        raise ValueError(msg)


def _described(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"name": path.name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _id(said: dict[str, Any]) -> str:
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _line(text: str) -> str:
    return " ".join(text.split())
