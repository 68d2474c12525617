"""Plays, tasks and comments as YAML text.

The structure is written here; every scalar goes through PyYAML's emitter, and each distinct one only once.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

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
# Words without any YAML indicator: the emitter would write them as they are.
_PLAIN_WORDS = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_ONE_LINE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_LINES = re.compile(r"[\x21-\x7e][\x20-\x7e\n]*")
# What the emitter writes before the text on the line on which it decides whether to fold it.
_FOLD_LEAD = len(f"k: {_UNSAFE_TAG} '")
_MAX_EMPTY_LINES = 2


class Unsafe(NamedTuple):
    """Text that Ansible must never read as a template: everything that comes from a plan."""

    text: str


Value = str | Unsafe | bool | Sequence["Value"] | Mapping[str, "Value"]


class Item(NamedTuple):
    """One item of a block sequence: a mapping, comment lines above it, the lint rules it is exempt from.

    A ``shared`` item stands in many places and is written once for each indent.
    """

    entries: Mapping[str, Value | Sequence[Item]]
    comments: tuple[str, ...] = ()
    noqa: tuple[str, ...] = ()
    shared: bool = False


class YamlWriter:
    """Writes nested mappings and sequences in block style, two spaces an indent, sequences indented."""

    def __init__(self) -> None:
        self._scalars: dict[str | Unsafe, str] = {}
        # By indent and identity. The item is kept beside its text, so that its identity stays its own.
        self._shared: dict[int, dict[int, tuple[Item, str]]] = {}
        self._resolver = Resolver()

    def sequence(self, items: Iterable[Item], indent: int = 0) -> list[str]:
        """Return the text of a block sequence, in parts, its dashes standing at the indent."""
        parts: list[str] = []
        self._add_sequence(items, indent, parts)
        return parts

    def _add_sequence(self, items: Iterable[Item], indent: int, parts: list[str]) -> None:
        shared = self._shared.setdefault(indent, {})
        for item in items:
            if not item.shared:
                self._add_item(item, indent, parts)
                continue
            known = shared.get(id(item))
            if known is None:
                own_parts: list[str] = []
                self._add_item(item, indent, own_parts)
                known = shared[id(item)] = (item, "".join(own_parts))
            parts.append(known[1])

    def _add_item(self, item: Item, indent: int, parts: list[str]) -> None:
        pad = " " * indent
        entries = iter(item.entries.items())
        first = self._entry(*next(entries), indent + 2)[indent + 2 :]
        pending = ""
        if item.comments:
            pending = comment_lines(item.comments, indent)
        if first.startswith("#"):
            directive, _, first = first.partition("\n")
            pending += f"{pad}{directive}\n"
            first = first[indent + 2 :]
        if item.noqa:
            first = first.replace("\n", "  # noqa: " + " ".join(item.noqa) + "\n", 1)
        pending += f"{pad}- {first}"
        for key, value in entries:
            if _holds_items(value):
                parts.append(f"{pending}{pad}  {key}:\n")
                pending = ""
                self._add_sequence(value, indent + 4, parts)
            else:
                pending += self._entry(key, value, indent + 2)
        if pending:
            parts.append(pending)

    def _mapping(self, entries: Mapping[str, Value], indent: int) -> str:
        return "".join(self._entry(key, value, indent) for key, value in entries.items())

    def _entry(self, key: str, value: Value | Sequence[Item], indent: int) -> str:
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
        for element in value:
            if not isinstance(element, (str, Unsafe)):
                raise TypeError(f"no YAML for an element of {type(element).__name__}")
            text += self._scalar_entry(f"{pad}  -", element, indent + 2)
        return text

    def _scalar_entry(self, head: str, value: str | Unsafe, indent: int) -> str:
        pad = " " * indent
        scalar = self._scalar(value)
        if "\n" not in scalar and len(head) + len(scalar) < LINE_LENGTH:
            return f"{head} {scalar}\n"
        first, *others = scalar.split("\n")
        lines = [f"{head} {first}", *(f"{pad}{line}" if line else "" for line in others)]
        text = "\n".join(lines) + "\n"
        rules = ["rule:line-length"] if any(len(line) > LINE_LENGTH for line in lines) else []
        if "\n" * (_MAX_EMPTY_LINES + 2) in text:
            rules.append("rule:empty-lines")
        if rules:
            named = " ".join(rules)
            return f"{pad}# yamllint disable {named}\n{text}{pad}# yamllint enable {named}\n"
        return text

    def _scalar(self, value: str | Unsafe) -> str:
        known = self._scalars.get(value)
        if known is None:
            known = self._scalars[value] = self._emit(value)
        return known

    def _is_string(self, text: str) -> bool:
        """Tell whether YAML reads the plain text as a string, not as a number, a truth value or nothing."""
        tag = self._resolver.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        return bool(tag == _STRING_TAG)

    def _emit(self, value: str | Unsafe) -> str:
        text = value.text if isinstance(value, Unsafe) else value
        is_string = self._is_string(text)
        # Ansible resolves the type of an unsafe scalar even where it is quoted, so that 'true' would become a
        # truth value. Text like that holds no template, and stays a string in quotes without the tag.
        unsafe = isinstance(value, Unsafe) and is_string
        if isinstance(value, str) and is_string and _PLAIN_WORDS.fullmatch(value):
            return value
        # What the emitter writes for plain text on one line and on several; that is all but some texts, and the
        # emitter is slow.
        if unsafe and _FOLD_LEAD + len(text) + text.count("'") <= _FOLD_WIDTH and _ONE_LINE.fullmatch(text):
            return f"{_UNSAFE_TAG} '" + text.replace("'", "''") + "'"
        if "\n" in text and " \n" not in text and not text.endswith(("\n\n", " ")) and _LINES.fullmatch(text):
            head = f"{_UNSAFE_TAG} |" if unsafe else "|"
            lines = text.removesuffix("\n").split("\n")
            return "\n".join((head if text.endswith("\n") else f"{head}-", *(line and f"  {line}" for line in lines)))
        implicit = (False, False) if unsafe else (is_string, True)
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


def _holds_items(value: Value | Sequence[Item]) -> TypeGuard[Sequence[Item]]:
    return isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], Item)


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
        import textwrap

        lead = len(shown) - len(shown.lstrip(" "))
        for part in textwrap.wrap(
            shown, _COMMENT_WIDTH, subsequent_indent=" " * lead, break_on_hyphens=False, drop_whitespace=True
        ):
            text += f"{pad}# {part}".rstrip() + "\n"
    return text
