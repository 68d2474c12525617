"""OpenSSL's config format, read as OpenSSL 3 reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pqcota_provision.text import quote

DEFAULT_SECTION = "default"

_ENVIRONMENT_SECTION = "ENV"
_QUOTES = "\"'`"
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b"}
_SPACE = " \t\r\n"
_NAME_CHARACTER = r"[\w!.%&*+,/;?@^~|-]"
_SECTION = re.compile(rf"\[((?:\\.|{_NAME_CHARACTER}|[{_SPACE}])*)\]", re.ASCII)
_DIRECTIVE = re.compile(rf"\.(include|pragma)(?:[{_SPACE}]|$)")
_NAME = re.compile(rf"(?:\\.|{_NAME_CHARACTER})*", re.ASCII)
_WORD_END = re.compile(r"\W|$", re.ASCII)
_CLOSING = {"{": "}", "(": ")"}
# Without this limit of OpenSSL's, a few lines that each double the one before would fill any memory.
_MAX_EXPANDED = 1 << 16
# What OpenSSL would hold of a text that only repeats itself is not worth knowing.
_MAX_EXPANDED_IN_ALL = 1 << 22


class _Unreadable(Exception):
    """A line that OpenSSL takes for an error; it then reads nothing of the whole file."""


@dataclass(slots=True)
class OpenSslConfig:
    """What OpenSSL makes of a text: each section's last value of every name, None where only the node knows it.

    ``error`` says which line makes OpenSSL read nothing at all, and is empty otherwise; ``includes`` tells
    whether other files have their say too; ``expanded`` counts the characters that variables stood for.
    """

    sections: dict[str, dict[str, str | None]] = field(default_factory=dict)
    includes: bool = False
    error: str = ""
    expanded: int = 0

    def get(self, section: str | None, name: str) -> str | None:
        """Return a value: empty where it is not set, None where the text alone does not tell."""
        return self.sections.get(section, {}).get(name, "") if section is not None else None


def read_openssl_config(text: str) -> OpenSslConfig:
    """Return the sections of a config text, without following its includes."""
    config = OpenSslConfig()
    section = DEFAULT_SECTION
    for number, line in _logical_lines(text.removeprefix("\ufeff")):
        content = _without_comment(line).strip(_SPACE)
        try:
            if content.startswith("["):
                section = _section_name(content)
                config.sections.setdefault(section, {})
            elif match := _DIRECTIVE.match(content):
                config.includes = config.includes or match.group(1) == "include"
            elif content:
                _read_setting(config, section, content)
        except _Unreadable as problem:
            config.error = f"line {number} {problem}"
            return config
    return config


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending = ""
    for number, line in enumerate(re.split(r"\r?\n", text), 1):
        # A lone backslash at the end joins the next line, even to a comment.
        if line.endswith("\\") and not line.endswith("\\\\"):
            pending += line[:-1]
            continue
        yield number, pending + line
        pending = ""
    if pending:
        yield number + 1, pending


def _without_comment(line: str) -> str:
    quoted = ""
    escaped = False
    for index, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quoted:
            quoted = "" if character == quoted else quoted
        elif character in _QUOTES:
            quoted = character
        elif character == "#":
            return line[:index]
    return line


def _section_name(content: str) -> str:
    match = _SECTION.match(content)
    if match is None:
        raise _Unreadable("opens a section and does not close its bracket")
    return match.group(1).strip(_SPACE)


def _read_setting(config: OpenSslConfig, section: str, content: str) -> None:
    name, rest = _split_name(content)
    if rest.startswith("::"):
        section, (name, rest) = name, _split_name(rest[2:])
    rest = rest.lstrip(_SPACE)
    if not rest.startswith("="):
        raise _Unreadable("has no equal sign after its name")
    value = _value(config, section, rest[1:].strip(_SPACE))
    settings = config.sections.setdefault(section, {})
    # The last value of a name counts, in the place where it stands.
    settings.pop(name, None)
    settings[name] = value


def _split_name(content: str) -> tuple[str, str]:
    match = _NAME.match(content)
    name = match.group() if match else ""
    return name, content[len(name) :]


def _value(config: OpenSslConfig, section: str, raw: str) -> str | None:
    text = ""
    known = True
    index = 0
    while index < len(raw):
        character = raw[index]
        index += 1
        if character in _QUOTES:
            end = _closing_quote(raw, index, character)
            text += re.sub(r"\\(.?)", r"\1", raw[index:end])
            index = end + 1
        elif character == "\\":
            text += _ESCAPES.get(raw[index : index + 1], raw[index : index + 1])
            index += 1
        elif character == "$":
            value, index = _expand(config, section, raw, index)
            if len(text) + len(value or "") + len(raw) - index >= _MAX_EXPANDED:
                raise _Unreadable(f"grows beyond {_MAX_EXPANDED} characters with the values of its variables")
            config.expanded += len(value or "")
            if config.expanded > _MAX_EXPANDED_IN_ALL:
                value = None
            known = known and value is not None
            text += value or ""
        else:
            text += character
    return text if known else None


def _closing_quote(raw: str, index: int, quote: str) -> int:
    while index < len(raw) and raw[index] != quote:
        index += 2 if raw[index] == "\\" else 1
    return index


def _expand(config: OpenSslConfig, section: str, raw: str, index: int) -> tuple[str | None, int]:
    closing = _CLOSING.get(raw[index : index + 1], "")
    where = section
    name, end = _word(raw, index + len(closing))
    if raw.startswith("::", end):
        where = name
        name, end = _word(raw, end + 2)
    if closing:
        if not raw.startswith(closing, end):
            raise _Unreadable("names a variable and does not close its brace")
        end += 1
    for candidate in (where, DEFAULT_SECTION):
        if name in config.sections.get(candidate, {}):
            return config.sections[candidate][name], end
    if where != _ENVIRONMENT_SECTION and not config.includes:
        raise _Unreadable(f"uses the variable {quote(name)}, which has no value")
    return None, end


def _word(raw: str, index: int) -> tuple[str, int]:
    match = _WORD_END.search(raw, index)
    end = match.start() if match else len(raw)
    return raw[index:end], end
