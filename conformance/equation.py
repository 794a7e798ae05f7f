"""Equations for a terminal: what stands in TeX in the catalogue, as one would type it."""

import re
from collections.abc import Mapping

__all__ = ["plain"]

_ROUNDED: Mapping[tuple[str, str], str] = {
    ("lceil", "rfloor"): "round",
    ("lceil", "rceil"): "ceil",
    ("lfloor", "rfloor"): "floor",
}
#: What is typed in another way than it is called in TeX.
_WORDS: Mapping[str, str] = {
    "epsilon": "eps",
    "partial": "d",
    "bmod": "mod",
    "pm": "+-",
    "approx": "~",
    "mapsto": "->",
    "cdot": "*",
    "times": "*",
    "le": "<=",
    "ge": ">=",
    "ne": "!=",
    "leftarrow": "<-",
    "dots": "...",
    "ldots": "...",
}
#: Before all else, the longer ones first.
_SIGNS: Mapping[str, str] = {
    r"\\": "; ",
    r"\bigl": "",
    r"\bigr": "",
    r"\quad": " ",
    r"\{": "[",
    r"\}": "]",
    r"\_": "_",
    r"\#": "#",
    "&": " if ",
}
_SIGN = re.compile(r"\\([A-Za-z]+|.)")
_GROUP = r"\{([^{}]*)\}"
_SIMPLE = re.compile(r"[\w.]+")


def plain(equation: str) -> str:
    r"""An equation in letters and signs alone.

    >>> plain(r"\hat x = (\mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max}) - z) \cdot s")
    'x^ = (clamp(round(x / s) + z, q_min, q_max) - z) * s'
    >>> plain(r"s = \tfrac{2 a}{n},\quad E = \begin{cases} 0 & x \le 1 \\ 2^{k} & else \end{cases}")
    's = (2 a)/n, E = [0 if x <= 1; 2^k else]'
    """
    text = equation
    for sign, typed in _SIGNS.items():
        text = text.replace(sign, typed)
    for start, end in (("begin", "["), ("end", "]")):
        text = re.sub(rf"\\{start}\s*\{{cases\}}", f" {end} " if start == "begin" else end, text)
    before = ""
    while before != text:  # from the innermost group outwards
        before = text
        text = re.sub(rf"\\(?:mathrm|text){_GROUP}", lambda m: m[1].replace(" ", "\0"), text)
        text = re.sub(rf"\\hat\s*(?:{_GROUP}|\\?([A-Za-z]+))", lambda m: f"{m[1] or m[2]}^", text)
        text = re.sub(rf"\\t?frac{_GROUP}{_GROUP}", lambda m: f"{_held(m[1])}/{_held(m[2])}", text)
        text = re.sub(rf"_{_GROUP}", lambda m: f"_{_held(m[1])}", text)
        text = re.sub(rf"\^{_GROUP}", lambda m: f"^{_held(m[1])}", text)
    text = _rounded(text)
    text = _SIGN.sub(lambda m: f" {_WORDS.get(m[1], m[1] if m[1].isalpha() else '')} ", text).replace("\0", " ")
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"(?<=[(\[]) | (?=[)\],;_])", "", text).replace("if else", "else")
    return re.sub(r"\b(max|min|log|sum) (?=\()", r"\1", text).strip()


def _held(group: str) -> str:
    """A group that stands where one sign does: in parentheses, where it is more than a name or a number."""
    return group if _SIMPLE.fullmatch(group) else f"({group})"


def _rounded(text: str) -> str:
    """Brackets that round, as functions; they may stand in each other."""
    found, opened = "", list[tuple[str, int]]()
    place = 0
    for m in re.finditer(r"\\(lceil|lfloor|rceil|rfloor)", text):
        found += text[place : m.start()]
        place = m.end()
        if m[1].startswith("l"):
            opened.append((m[1], len(found)))
        elif opened:
            left, at = opened.pop()
            found = f"{found[:at]}{_ROUNDED.get((left, m[1]), 'round')}({found[at:].strip()})"
    return found + text[place:]
