"""Foreign text made fit to be shown: no message of a backend may steer a terminal, or turn what is read around."""

__all__ = ["printable"]


def printable(text: str, keep: str = "\n") -> str:
    r"""The text with every character that is not to be seen spelt as an escape, those in ``keep`` excepted.

    That is: control characters (ESC, BEL, NUL, DEL, U+0085, U+009B), those that change the direction of writing
    (U+202E), other invisible ones, line and paragraph separators, lone surrogates.

    >>> print(printable("no \x1b[2Jkernel\u202e"))
    no \x1b[2Jkernel\u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
