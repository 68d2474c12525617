"""Comment lines of the generated config files."""

from __future__ import annotations

from collections.abc import Iterable

from pqcota_provision.text import printable


def comment_block(lines: Iterable[str]) -> str:
    """Return the lines as ``#`` comments, each on one line and none continuing into the next.

    A backslash at the end of a line would make OpenSSL read the directive below as part of the comment.
    """
    text = ""
    for line in lines:
        shown = printable(line).rstrip()
        if shown.endswith("\\"):
            shown += "."
        text += f"# {shown}\n" if shown else "#\n"
    return text
