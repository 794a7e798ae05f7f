"""The names nearest to one that is not known, for errors: by their letters, or by a part that they share."""

import difflib
from collections.abc import Iterable

__all__ = ["among", "nearest"]

_SHORT = 2  # letters that too many names share
_FEW = 40  # names that are all shown


def nearest(word: str, known: Iterable[str]) -> str:
    """``: did you mean a, b?``, or all of the names where they are few; empty where there are none.

    >>> nearest("onnx/QuantiseLinear", ["onnx/QuantizeLinear", *map(str, range(20))])
    ': did you mean onnx/QuantizeLinear?'
    >>> nearest("gguf/Q8", ["gguf/Q8_0.quantize", "gguf/Q4_0.quantize", *map(str, range(50))])
    ': did you mean gguf/Q8_0.quantize?'
    """
    among = list(dict.fromkeys(known))
    small = word.casefold()
    close = difflib.get_close_matches(small, [name.casefold() for name in among], n=3, cutoff=0.6)
    near = [name for name in among if small and name.casefold().startswith(small)][:4]
    near += [name for match in close for name in among if name.casefold() == match and name not in near]
    last = small.replace(".", "/").rpartition("/")[2]
    near += [name for name in among if len(last) > _SHORT and last in name.casefold() and name not in near][:4]
    if near:
        system = small.replace(".", "/").partition("/")[0]
        alike = sorted(dict.fromkeys(near), key=lambda name: not name.startswith(f"{system}/"))
        return f": did you mean {', '.join(alike[:5])}?"
    return f": give one of {', '.join(sorted(among))}" if 0 < len(among) <= _FEW else ""


def among(name: str, value: str, accepted: Iterable[str]) -> None:
    """Refuse a value that is none of those accepted.

    Raises:
        ValueError: it is none of them; the message has the nearest.
    """
    known = list(accepted)
    if value not in known:
        msg = f"{name}={value!r} is not accepted{nearest(value, known)}"
        raise ValueError(msg)
