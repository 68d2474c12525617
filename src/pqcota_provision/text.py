"""Untrusted text made fit for one line of a message or a comment."""

from __future__ import annotations

import re
import unicodedata

_PLAIN_ASCII = re.compile(r"[\x20-\x7e]*")
_UNSEEN_CATEGORIES = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
# Letters and marks that Unicode has renderers leave out (Default_Ignorable_Code_Point).
_IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def is_unseen(character: str) -> bool:
    """Tell whether a character breaks a line, steers a terminal or cannot be seen (bidi marks, BOM, fillers)."""
    return unicodedata.category(character) in _UNSEEN_CATEGORIES or _IGNORABLE.match(character) is not None


def printable(text: str) -> str:
    """Return the text on one line: what cannot be seen, and every line break, becomes an escape."""
    if _PLAIN_ASCII.fullmatch(text):
        return text
    return "".join(_escape(character) if is_unseen(character) else character for character in text)


def _escape(character: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if named is not None:
        return named
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def quote(text: str, limit: int = 80) -> str:
    """Return the text in double quotes on one line, cut at ``limit`` characters.

    Backslashes and quotes are escaped, so that two different texts never look the same.
    """
    cut = text if len(text) <= limit else text[:limit] + "…"
    return '"' + printable(cut.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def join_names(names: list[str] | tuple[str, ...], limit: int = 12) -> str:
    """Return names in one phrase on one line: ``a``, ``a and b``, ``a, b and c``, or cut with the number left out."""
    names = [printable(name) for name in names]
    if len(names) > limit:
        return ", ".join(names[:limit]) + f" and {len(names) - limit} more"
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
