import copy
import hashlib
import json
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import ANSWERS, CALLS, OFFER

from halfeven.conformance.engine.batch import dump, load
from halfeven.conformance.engine.call import Answer, Call, arguments_of, leaves
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.sound import Damaged, sound
from halfeven.conformance.workers import flat, npz
from halfeven.conformance.workers.folder import (
    FORMATS,
    Bundle,
    Format,
    Plan,
    read_answers,
    read_bundle,
    write_answers,
    write_bundle,
)
from halfeven.conformance.workers.record import key


def same(a: object, b: object) -> bool:
    """Whether two calls, or two answers, are the same to the last bit."""
    return dump([a]) == dump([b])  # type: ignore[list-item]


@pytest.fixture(params=FORMATS)
def bundle(request: pytest.FixtureRequest, tmp_path: Path) -> Bundle:
    return write_bundle(tmp_path / "bundle", Plan(OFFER, seed=3), CALLS, request.param)


def test_a_bundle_reads_as_it_was_written(bundle: Bundle) -> None:
    assert read_bundle(bundle.folder) == bundle
    assert bundle.keys == tuple(map(key, CALLS))
    rows = (bundle.folder / "calls.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[2].split("\t")[0::2] == ["1", "onnx:quantize", "rows apart"]
    assert (bundle.folder / "bundle.id").read_text(encoding="ascii") == f"{bundle.id}\n"


def test_calls_read_as_they_were_written(bundle: Bundle) -> None:
    if bundle.format == "flat":
        with pytest.raises(ValueError, match="format=flat is not answered here"):
            next(bundle.batches())
        return
    [(first, calls)] = bundle.batches()
    assert first == 0
    assert [same(a, b) for a, b in zip(calls, CALLS, strict=True)] == [True] * 3


@pytest.mark.parametrize("form", FORMATS)
def test_answers_read_as_they_were_written(bundle: Bundle, form: Format) -> None:
    folder = bundle.folder.parent / "answers"
    write_answers(folder, bundle, ANSWERS, form)
    assert [same(a, b) for a, b in zip(read_answers(folder, bundle), ANSWERS, strict=True)] == [True] * 3


def test_large_bundles_are_cut_into_files_of_some_mib(tmp_path: Path) -> None:
    large = [replace(CALLS[0], positional=(plain(np.zeros(2**19, np.float32)),)) for _ in range(5)]
    written = write_bundle(tmp_path / "b", Plan(OFFER), large)
    assert len(written.files) == 3
    assert [len(calls) for _, calls in written.batches()] == [2, 2, 1]


def test_no_call_is_left_out_of_the_hash(tmp_path: Path) -> None:
    first = write_bundle(tmp_path / "a", Plan(OFFER), CALLS)
    assert write_bundle(tmp_path / "b", Plan(OFFER), CALLS).id == first.id
    assert write_bundle(tmp_path / "c", Plan(OFFER), CALLS[:2]).id != first.id
    assert write_bundle(tmp_path / "d", Plan(OFFER, seed=1), CALLS).id != first.id


def test_a_folder_in_use_is_not_written_into(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="holds something"):
        write_bundle(bundle.folder, bundle.plan, CALLS)


# What is wrong with a bundle, done to it, and the words that say so.
def _change(folder: Path, **changes: object) -> None:
    path = folder / "bundle.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def _first(folder: Path) -> Path:
    return next(p for p in sorted(folder.iterdir()) if p.name.startswith("calls") and p.suffix != ".tsv")


def _truncated(folder: Path) -> None:
    path = _first(folder)
    path.write_bytes(path.read_bytes()[:-1])


def _changed(folder: Path) -> None:
    path = _first(folder)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _linked(folder: Path) -> None:
    path = _first(folder)
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def _pipe(folder: Path) -> None:
    path = _first(folder)
    path.unlink()
    os.mkfifo(path)


def _named(folder: Path, name: str) -> None:
    data = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    data["files"][0]["name"] = name
    _resealed(folder, data)


def _resealed(folder: Path, data: dict[str, object]) -> None:
    """Write it with its own hash, as who means harm would."""
    data.pop("bundle", None)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    sealed = {**data, "bundle": hashlib.sha256(text.encode()).hexdigest()}
    (folder / "bundle.json").write_text(json.dumps(sealed), encoding="utf-8")


def _sealed(folder: Path, **changes: object) -> None:
    _resealed(folder, {**json.loads((folder / "bundle.json").read_text(encoding="utf-8")), **changes})


HARM = {
    "no bundle.json": (lambda f: (f / "bundle.json").unlink(), "bundle.json cannot be read"),
    "no JSON": (lambda f: (f / "bundle.json").write_text("{", encoding="utf-8"), "no JSON"),
    "nested": (lambda f: (f / "bundle.json").write_text("[" * 100_000, encoding="utf-8"), "no JSON"),
    "NaN": (lambda f: (f / "bundle.json").write_text('{"version": NaN}', encoding="utf-8"), "NaN is no number"),
    "twice": (lambda f: (f / "bundle.json").write_text('{"a": 1, "a": 2}', encoding="utf-8"), "given twice"),
    "a list": (lambda f: (f / "bundle.json").write_text("[]", encoding="utf-8"), "it is no bundle"),
    "long number": (lambda f: (f / "bundle.json").write_text("1" * 5000, encoding="utf-8"), "bundle.json is no JSON"),
    "another version": (lambda f: _change(f, version=2), "version 2 is not read here"),
    "another seed": (lambda f: _change(f, seed=4), "its hash is another"),
    "another format": (lambda f: _sealed(f, format="zip"), "format 'zip' is not accepted"),
    "another tier": (lambda f: _sealed(f, tier="all"), "tier 'all'"),
    "no offer": (lambda f: _sealed(f, offer={"name": "x"}), "an offer has a name and a profile"),
    "other counts": (lambda f: _sealed(f, calls=10**30), "3 calls of 1000"),
    "no counts": (lambda f: _sealed(f, calls=None), "3 calls of None"),
    "cut short": (_truncated, "bytes:"),
    "a bit flipped": (_changed, "its hash is another"),
    "a link": (_linked, "a link is not followed"),
    "a pipe": (_pipe, "is no regular file"),
    "out of the folder": (lambda f: _named(f, "../bundle/calls.tsv"), "is not accepted: give letters"),
    "absolute": (lambda f: _named(f, "/etc/passwd"), "is not accepted: give letters"),
    "hidden": (lambda f: _named(f, ".."), "is not accepted: give letters"),
    "itself": (lambda f: _named(f, "bundle.json"), "named twice"),
    "no name": (lambda f: _named(f, ""), "is not accepted: give letters"),
}


@pytest.mark.parametrize("name", HARM)
def test_a_bundle_that_was_changed_is_refused(bundle: Bundle, name: str) -> None:
    do, words = HARM[name]
    do(bundle.folder)
    with pytest.raises(Damaged, match=str(bundle.folder)) as refusal:
        read_bundle(bundle.folder)
    assert words in str(refusal.value)


@pytest.fixture(params=FORMATS)
def answered(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Bundle, Path]:
    written = write_bundle(tmp_path / "bundle", Plan(OFFER), CALLS)
    write_answers(tmp_path / "answers", written, ANSWERS, request.param)
    return written, tmp_path / "answers"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (ANSWERS[:2], "of 3"),
        ([*ANSWERS, ANSWERS[0]], "3"),
        ([], "of 3"),
    ],
)
def test_as_many_answers_as_calls(bundle: Bundle, answers: list[Answer], words: str) -> None:
    folder = bundle.folder.parent / "answers"
    write_answers(folder, bundle, answers)
    with pytest.raises(Damaged, match=words):
        read_answers(folder, bundle)


def test_answers_to_another_bundle_are_refused(answered: tuple[Bundle, Path]) -> None:
    written, folder = answered
    with pytest.raises(Damaged, match="answers another bundle"):
        read_answers(folder, replace(written, id="0" * 64))


@pytest.mark.parametrize("order", [(0, 2, 1), (0, 1, 1), (1, 2, 3), (0, 1)])
def test_answers_in_another_order_are_refused(tmp_path: Path, order: tuple[int, ...]) -> None:
    written = write_bundle(tmp_path / "bundle", Plan(OFFER), CALLS)
    answers = [ANSWERS[min(i, 2)] for i in order]
    batch = dump(answers, {"bundle": written.id, "calls": list(order)})
    (tmp_path / "s").mkdir()
    (tmp_path / "s/answers-0000.safetensors").write_bytes(batch)
    write_answers(tmp_path / "f", written, answers, "flat")
    index = tmp_path / "f/answers.txt"
    lines = index.read_text(encoding="ascii").splitlines()
    lines[2:-1] = [" ".join(["answer", str(n), *line.split()[2:]]) for n, line in zip(order, lines[2:-1], strict=True)]
    index.write_text("\n".join(lines), encoding="ascii")
    for name in "sf":
        with pytest.raises(Damaged, match="answer"):
            read_answers(tmp_path / name, written)


def test_answers_of_several_forms_are_refused(answered: tuple[Bundle, Path]) -> None:
    written, folder = answered
    (folder / "answers.md").write_text("", encoding="utf-8")
    with pytest.raises(Damaged, match=r"answers\.md"):
        read_answers(folder, written)


def test_a_compressed_npz_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", manifest=np.zeros(10**6, np.uint8))
    with pytest.raises(Damaged, match="is compressed"):
        npz.from_npz((tmp_path / "a.npz").read_bytes())


def test_no_array_is_taken_for_more_than_its_bytes(tmp_path: Path) -> None:
    written = write_bundle(tmp_path / "bundle", Plan(OFFER), CALLS[:1])
    lines = f"halfeven-answers 1\nbundle {written.id}\nanswer 0 returned array int8 {{}} 0\nend 1\n"
    for shape in ("1 99", "2 9999999999 9999999999", "1 -1", "65 " + "1 " * 65, "3 1", "1 nan", "1 1e3", "-1"):
        with pytest.raises(Damaged, match="line 3"):
            flat.answers_of(lines.format(shape).encode(), b"12345678", written.id, 1)


def _mutants(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    draw = random.Random(seed)
    words = [b"9" * 12, b"-1", b"nan", b"null", b"{}", b"[]", b'"x"', b"\0", b"\xff", b"1e999", b"[" * 40, b"true"]
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 5))):
            at = draw.randrange(len(changed) + 1)
            match draw.randrange(5):
                case 0:
                    changed[at : at + 1] = bytes([draw.randrange(256)])
                case 1:
                    changed[at:at] = draw.choice(words)
                case 2:
                    del changed[at : at + draw.randrange(1, 40)]
                case 3:
                    del changed[at:]
                case _:
                    other = draw.randrange(len(changed) + 1)
                    changed[at : at + 8] = changed[other : other + 8]
        yield bytes(changed)


def test_whatever_the_answers_are_they_are_read_or_refused(answered: tuple[Bundle, Path]) -> None:
    """Nothing else is raised, and what is read is an answer to every call."""
    written, folder = answered
    refused = read = 0
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for mutant in _mutants(whole, 5, 400):
            path.write_bytes(mutant)
            try:
                found = read_answers(folder, written)
            except Damaged as reason:
                refused += str(folder) in str(reason)
            else:
                read += 1
                assert [type(a) for a in found] == [Answer] * 3
                assert len(dump(found)) < len(whole) + 10_000
        path.write_bytes(whole)
    assert refused > 100
    assert refused + read == 400 * len([*folder.iterdir()])


def test_whatever_the_calls_are_they_are_read_or_refused(tmp_path: Path) -> None:
    for form in ("safetensors", "npz"):
        written = write_bundle(tmp_path / form, Plan(OFFER), CALLS, form)
        path = written.folder / written.files[0]
        refused = 0
        for mutant in _mutants(path.read_bytes(), 7, 400):
            path.write_bytes(mutant)
            try:
                found = [call for _, calls in written.batches() for call in calls]
            except Damaged:
                refused += 1
            else:
                assert all(isinstance(call, Call) and key(call) for call in found)
        assert refused > 100


def test_whatever_the_description_is_it_is_read_or_refused(bundle: Bundle) -> None:
    path = bundle.folder / "bundle.json"
    refused = 0
    for mutant in _mutants(path.read_bytes(), 9, 150):
        path.write_bytes(mutant)
        try:
            assert read_bundle(bundle.folder) == bundle  # a blank more
        except Damaged:
            refused += 1
    assert refused > 100


JUNK = (
    None,
    True,
    -1,
    0,
    2**63,
    10**30,
    1.5,
    float("inf"),
    "",
    "x",
    "../x",
    [],
    [1],
    {},
    {"a": 1},
    ["m0", "int8", [3]],
)


def _other(value: Any, draw: random.Random) -> Any:
    """The same JSON with something else in one place."""
    if isinstance(value, dict | list) and value and draw.random() < 0.9:
        copied = value.copy()
        at = draw.choice([*value] if isinstance(value, dict) else range(len(value)))
        match draw.randrange(8):
            case 0:
                del copied[at]
            case 1 if isinstance(value, list):
                copied.insert(at, copy.deepcopy(value[at]))
            case _:
                copied[at] = _other(value[at], draw)
        return copied
    return draw.choice(JUNK)


@pytest.mark.parametrize("kind", [Call, Answer])
def test_whatever_a_manifest_says_it_is_read_or_refused(kind: type) -> None:
    whole = dump(CALLS if kind is Call else ANSWERS)
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    manifest = json.loads(header["__metadata__"]["halfeven"])
    draw, read = random.Random(11), 0
    for turn in range(3000):
        changed = {"__metadata__": {"halfeven": json.dumps(_other(manifest, draw) if turn % 4 else manifest)}}
        arrays = {k: v for k, v in header.items() if k != "__metadata__"}
        others = arrays if turn % 4 else _other(arrays, draw)
        text = json.dumps({**changed, **others} if isinstance(others, dict) else others).encode()
        try:
            found = load(len(text).to_bytes(8, "little") + text + whole[8 + length :], kind)
        except Damaged:
            continue
        read += 1
        for item in found:
            sound(item)
            dump([item])
            if kind is Call:
                arguments_of([item.positional, item.named])
            else:
                list(leaves(item.value))
    assert 100 < read < 2000


def test_whatever_the_sealed_description_says_it_is_read_or_refused(bundle: Bundle) -> None:
    said = json.loads((bundle.folder / "bundle.json").read_text(encoding="utf-8"))
    draw, refused = random.Random(13), 0
    for _ in range(300):
        try:
            changed = _other(said, draw)
            _resealed(bundle.folder, changed if isinstance(changed, dict) else {})
            found = read_bundle(bundle.folder)
        except Damaged:
            refused += 1
        else:
            assert found.keys == bundle.keys
            assert plan(found.plan.offer, found.plan.tier, found.plan.seed) is not None
    assert refused > 100
