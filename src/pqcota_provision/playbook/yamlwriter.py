"""Plays, tasks and comments as YAML text.

The structure is written here; every scalar goes through PyYAML's emitter, and each distinct one only once.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from yaml.emitter import Emitter
from yaml.events import (
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    StreamEndEvent,
    StreamStartEvent,
)
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from pqcota_provision.text import is_unseen, printable

LINE_LENGTH = 160

_COMMENT_WIDTH = 110
_FOLD_WIDTH = 120
_UNSAFE_TAG = "!unsafe"
_STRING_TAG = "tag:yaml.org,2002:str"
_LINT_OFF = "# yamllint disable rule:line-length"
_LINT_ON = "# yamllint enable rule:line-length"


@dataclass(frozen=True, slots=True)
class Unsafe:
    """Text that Ansible must never read as a template: everything that comes from a plan."""

    text: str


Value = str | Unsafe | bool | Sequence["Value"] | Mapping[str, "Value"]


@dataclass(frozen=True, slots=True)
class Commented:
    """A mapping with comment lines above it and, behind its first line, the lint rules it is exempt from."""

    entries: Mapping[str, Value | Sequence[Commented]]
    comments: tuple[str, ...] = ()
    noqa: tuple[str, ...] = ()


class YamlWriter:
    """Writes nested mappings and sequences in block style, two spaces an indent, sequences indented."""

    def __init__(self) -> None:
        self._scalars: dict[str | Unsafe, str] = {}
        self._resolver = Resolver()

    def sequence(self, items: Iterable[Commented], indent: int = 0) -> str:
        """Return the items as a block sequence whose dashes stand at the indent."""
        return "".join(self.item(item, indent) for item in items)

    def item(self, item: Commented, indent: int) -> str:
        """Return one item of a block sequence, its comments above it."""
        pad = " " * indent
        body = self._mapping(item.entries, indent + 2)
        first, _, rest = body.partition("\n")
        if item.noqa:
            first += "  # noqa: " + " ".join(item.noqa)
        return comment_lines(item.comments, indent) + f"{pad}- {first[indent + 2 :]}\n{rest}"

    def _mapping(self, entries: Mapping[str, Value | Sequence[Commented]], indent: int) -> str:
        return "".join(self._entry(key, value, indent) for key, value in entries.items())

    def _entry(self, key: str, value: Value | Sequence[Commented], indent: int) -> str:
        pad = " " * indent
        if isinstance(value, bool):
            return f"{pad}{key}: {'true' if value else 'false'}\n"
        if isinstance(value, (str, Unsafe)):
            return self._scalar_entry(f"{pad}{key}:", value, indent)
        if isinstance(value, Mapping):
            return f"{pad}{key}:\n{self._mapping(value, indent + 2)}"
        if not value:
            return f"{pad}{key}: []\n"
        text = f"{pad}{key}:\n"
        for item in value:
            if isinstance(item, Commented):
                text += self.item(item, indent + 2)
            elif isinstance(item, (str, Unsafe)):
                text += self._scalar_entry(f"{pad}  -", item, indent + 2)
            else:
                raise TypeError(f"no YAML for an item of {type(item).__name__}")
        return text

    def _scalar_entry(self, head: str, value: str | Unsafe, indent: int) -> str:
        pad = " " * indent
        first, *others = self._scalar(value).split("\n")
        lines = [f"{head} {first}", *(f"{pad}{line}" if line else "" for line in others)]
        text = "\n".join(lines) + "\n"
        if any(len(line) > LINE_LENGTH for line in lines):
            return f"{pad}{_LINT_OFF}\n{text}{pad}{_LINT_ON}\n"
        return text

    def _scalar(self, value: str | Unsafe) -> str:
        known = self._scalars.get(value)
        if known is None:
            known = self._scalars[value] = self._emit(value)
        return known

    def _emit(self, value: str | Unsafe) -> str:
        unsafe = isinstance(value, Unsafe)
        text = value.text if isinstance(value, Unsafe) else value
        resolved = self._resolver.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        implicit = (False, False) if unsafe else (resolved == _STRING_TAG, True)
        style = "|" if "\n" in text else None
        stream = io.StringIO()
        # Marks that steer a terminal or a reader's eye are shown as escapes.
        visible = not any(is_unseen(character) for character in text if character not in "\n\t")
        emitter = Emitter(stream, width=_FOLD_WIDTH, allow_unicode=visible)
        for event in (
            StreamStartEvent(),
            DocumentStartEvent(explicit=False),
            MappingStartEvent(None, None, True, flow_style=False),
            ScalarEvent(None, _STRING_TAG, (True, False), "k"),
            ScalarEvent(None, _UNSAFE_TAG if unsafe else _STRING_TAG, implicit, text, style=style),
            # A second entry, so that trailing newlines are closed by it and not by a document end mark.
            ScalarEvent(None, _STRING_TAG, (True, False), "z"),
            ScalarEvent(None, _STRING_TAG, (True, False), "z"),
            MappingEndEvent(),
            DocumentEndEvent(explicit=False),
            StreamEndEvent(),
        ):
            emitter.emit(event)
        return stream.getvalue().removeprefix("k: ").removesuffix("z: z\n").removesuffix("\n")


def comment_lines(lines: Iterable[str], indent: int = 0) -> str:
    """Return lines as YAML comments; no text in them can end a comment or outgrow the line length."""
    pad = " " * indent
    text = ""
    for line in lines:
        shown = printable(line)
        if not shown.strip():
            text += f"{pad}#\n"
            continue
        if len(shown) <= _COMMENT_WIDTH:
            text += f"{pad}# {shown}".rstrip() + "\n"
            continue
        lead = len(shown) - len(shown.lstrip(" "))
        for part in textwrap.wrap(
            shown, _COMMENT_WIDTH, subsequent_indent=" " * lead, break_on_hyphens=False, drop_whitespace=True
        ):
            text += f"{pad}# {part}".rstrip() + "\n"
    return text
