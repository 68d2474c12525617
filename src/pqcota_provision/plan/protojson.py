"""Protobuf JSON, read as strictly as Go's protojson reads it and written as a stock protobuf reads it (SPEC 2)."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar

from pqcota_provision.errors import PlanMalformed
from pqcota_provision.plan.model import FIELDS, Field, FinalizedPlan, WireEnum, open_enum
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.text import quote

Message = TypeVar("Message")

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|-?Infinity|NaN', re.DOTALL)
_MAX_DEPTH = 32
# Control characters other than tab, newline and carriage return (SPEC 11.1), and lone surrogates.
_REFUSED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class _Object(tuple[tuple[str, Any], ...]):
    """A JSON object as its pairs in text order, so that a duplicate key is still there to be seen."""

    __slots__ = ()


class _Number(str):
    """A JSON number as it was written, so that no float rounds it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Rules:
    """What reading refuses in strings, and whether names this version does not know are passed over."""

    refused: re.Pattern[str]
    ignore_unknown: bool = False


class _Malformed(Exception):
    """What is wrong with a value; the place is put together while the error travels up."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.steps: list[str] = []

    def place(self) -> str:
        return "".join(reversed(self.steps)).lstrip(".")


_BY_KEY: dict[type, dict[str, Field]] = {
    message: {key: field for field in fields for key in (field.name, field.json_name)}
    for message, fields in FIELDS.items()
}
_ENUM_BY_NAME: dict[type, dict[str, WireEnum]] = {
    field.kind: {value.wire_name: value for value in field.kind}
    for fields in FIELDS.values()
    for field in fields
    if issubclass(field.kind, WireEnum)
}


def load_plan(text: str | bytes) -> FinalizedPlan:
    """Read a plan from protobuf JSON text, given as str or UTF-8 bytes.

    Raises PlanMalformed, naming line and column or the field's path, for anything that is not one plan
    (SPEC 2) and for a control character in any string (SPEC 11.1).
    """
    return _load(FinalizedPlan, text, _Rules(_REFUSED))


def load_message(message: type[Message], text: str | bytes, *, ignore_unknown: bool = False) -> Message:
    """Read any message of the contract, such as a stored ProvisioningRecord; raises PlanMalformed.

    With ``ignore_unknown`` a field or an enum name that this version does not know counts as unset, so that
    what a newer version wrote can still be read.
    """
    return _load(message, text, _Rules(_SURROGATE, ignore_unknown))


def message_from_json_value(message: type[Message], value: object) -> Message:
    """Read a message from JSON already decoded to dicts and lists, as a JSONB column arrives.

    Raises PlanMalformed with the field's path.
    """
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        raise PlanMalformed(f"{_noun(message)} is no value that JSON can hold") from None
    return load_message(message, text)


def dump_message(message: object, *, indent: int | None = 2) -> str:
    """Write a message as protobuf JSON: lowerCamelCase, field-number order, unset and zero values left out.

    With an indent the text ends in a newline; ``indent=None`` gives one line without.
    """
    value = _message_to_json(message)
    if indent is None:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, ensure_ascii=False, indent=indent) + "\n"


def _load(message: type[Message], text: str | bytes, rules: _Rules) -> Message:
    decoded = _decode(text) if isinstance(text, bytes) else text
    document = _parse_json(decoded)
    try:
        return _read_message(message, document, rules)
    except _Malformed as malformed:
        raise PlanMalformed(f"{malformed.place() or _noun(message)} {malformed.sentence}") from None


def _noun(message: type) -> str:
    return "the plan" if message is FinalizedPlan else "the record"


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8")) + 1
        raise PlanMalformed(
            f"line {line}, column {column}: the text is not valid UTF-8", remedy="Save the plan as UTF-8."
        ) from None


def _parse_json(text: str) -> object:
    if text.startswith(codecs.BOM_UTF8.decode("utf-8")):
        raise PlanMalformed(
            "line 1, column 1: the text begins with a byte order mark",
            remedy="Save the plan as UTF-8 without a byte order mark.",
        )
    if not text.strip(" \t\r\n"):
        raise PlanMalformed("line 1, column 1: the input is empty", remedy="Pass a plan: one JSON object.")
    try:
        return json.loads(
            text,
            object_pairs_hook=_Object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise PlanMalformed(f"line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})") from None
    except _Malformed as malformed:
        raise PlanMalformed(f"{_place_of_constant(text)}: {malformed.sentence}") from None
    except RecursionError:
        raise PlanMalformed(f"{_place_of_depth(text)}: the JSON is nested too deeply to be a plan") from None


def _refuse_constant(constant: str) -> object:
    raise _Malformed(f"{constant} is no JSON number")


def _place_of_constant(text: str) -> str:
    return _line_and_column(
        text, next(token.start() for token in _JSON_TOKEN.finditer(text) if token.group()[0] in "-IN")
    )


def _place_of_depth(text: str) -> str:
    depth = 0
    for token in _JSON_TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.group(), 0)
        if depth > _MAX_DEPTH:
            return _line_and_column(text, token.start())
    return _line_and_column(text, len(text))


def _line_and_column(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _describe(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Object):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, _Number):
        return f"the number {quote(value, 24)[1:-1]}"
    return "a string"


def _read_message(message: type[Message], value: object, rules: _Rules) -> Message:
    if type(value) is not _Object:
        raise _Malformed(f"must be an object, not {_describe(value)}")
    by_key = _BY_KEY[message]
    seen: set[str] = set()
    chosen: dict[str, str] = {}
    values: dict[str, Any] = {}
    for key, raw in value:
        field = by_key.get(key)
        if field is None:
            if rules.ignore_unknown:
                continue
            raise _Malformed(f"has an unknown field {quote(key)}")
        name = field.name
        if name in seen:
            raise _Malformed(f"has the field {field.json_name} twice")
        seen.add(name)
        if raw is None:
            continue
        if field.oneof:
            other = chosen.setdefault(field.oneof, field.json_name)
            if other != field.json_name:
                raise _Malformed(f"sets both {other} and {field.json_name}; only one of them may be set")
        try:
            if field.repeated:
                values[name] = _read_list(field, raw, rules)
            elif not (rules.ignore_unknown and _is_unknown_enum_name(field.kind, raw)):
                values[name] = _read_value(field.kind, raw, rules)
        except _Malformed as malformed:
            malformed.steps.append(f".{field.json_name}")
            raise
    return message(**values)


def _read_list(field: Field, raw: object, rules: _Rules) -> tuple[Any, ...]:
    if type(raw) is not list:
        raise _Malformed(f"must be a list, not {_describe(raw)}")
    values = []
    for index, item in enumerate(raw):
        try:
            values.append(_read_value(field.kind, item, rules))
        except _Malformed as malformed:
            malformed.steps.append(f"[{index}]")
            raise
    return tuple(values)


def _read_value(kind: type, raw: object, rules: _Rules) -> Any:
    if kind is str:
        return _read_string(raw, rules)
    if kind in _ENUM_BY_NAME:
        return _read_enum(kind, raw)
    if kind is int:
        return _read_int32(raw)
    if kind is Timestamp:
        return _read_timestamp(raw)
    return _read_message(kind, raw, rules)


def _read_string(raw: object, rules: _Rules) -> str:
    if type(raw) is not str:
        raise _Malformed(f"must be a string, not {_describe(raw)}")
    match = rules.refused.search(raw)
    if match is not None:
        code = ord(match.group())
        if 0xD800 <= code <= 0xDFFF:
            raise _Malformed(f"holds half of a surrogate pair (U+{code:04X}), which is no character")
        raise _Malformed(
            f"holds the control character U+{code:04X} at character {match.start() + 1}; "
            "only tab, newline and carriage return are allowed"
        )
    return raw


def _is_unknown_enum_name(kind: type, raw: object) -> bool:
    return type(raw) is str and kind in _ENUM_BY_NAME and raw not in _ENUM_BY_NAME[kind]


def _read_enum(kind: type, raw: object) -> int:
    names = _ENUM_BY_NAME[kind]
    if type(raw) is str:
        value = names.get(raw)
        if value is None:
            prefix = next(iter(names)).removesuffix("UNSPECIFIED")
            raise _Malformed(f"has the unknown name {quote(raw)}; names begin with {prefix}")
        return value
    if type(raw) is not _Number:
        raise _Malformed(f"must be a name or a number, not {_describe(raw)}")
    return open_enum(kind, _whole_int32(raw))


def _read_int32(raw: object) -> int:
    if type(raw) is _Number or type(raw) is str:
        return _whole_int32(raw)
    raise _Malformed(f"must be a whole number, not {_describe(raw)}")


def _whole_int32(text: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _Malformed(f"must be a whole number, not {quote(text, 24)}")
    sign, whole, fraction, exponent = match.groups()
    digits = whole + (fraction or "")
    if not digits.strip("0"):
        return 0
    point = len(whole) + _exponent(exponent or "0")
    # An int32 has at most ten digits; this also keeps a huge exponent from being written out.
    if point > len(digits) + 10 or point < 1:
        raise _Malformed(f"must be a whole number within 32 bits, not {quote(text, 24)}")
    if digits[point:].strip("0"):
        raise _Malformed(f"must be a whole number, not {quote(text, 24)}")
    significant = digits[:point].ljust(point, "0").lstrip("0")
    value = int(sign + (significant if len(significant) <= 10 else "9" * 11))
    if not _INT32_MIN <= value <= _INT32_MAX:
        raise _Malformed(f"must lie within 32 bits, not {quote(text, 24)}")
    return value


def _exponent(text: str) -> int:
    digits = text.lstrip("+-").lstrip("0")
    # Ten digits are more than any text is long, so what comes after them changes nothing.
    magnitude = int(digits[:10] or "0")
    return -magnitude if text.startswith("-") else magnitude


def _read_timestamp(raw: object) -> Timestamp:
    if type(raw) is not str:
        raise _Malformed(f"must be an RFC 3339 string, not {_describe(raw)}")
    try:
        return Timestamp.parse(raw)
    except ValueError as error:
        raise _Malformed(f"is {quote(raw, 40)}, which {error}") from None


def _message_to_json(message: object) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for json_name, field in _WRITTEN[type(message)]:
        value = getattr(message, field.name)
        if value is None or (not field.oneof and field.kind in _SCALARS and not value):
            continue
        if field.repeated:
            if value:
                result[json_name] = [_value_to_json(item) for item in value]
        else:
            result[json_name] = _value_to_json(value)
    return result


_SCALARS = frozenset((str, int, *_ENUM_BY_NAME))
_WRITTEN = {message: tuple((field.json_name, field) for field in fields) for message, fields in FIELDS.items()}


def _value_to_json(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, WireEnum):
        return value.wire_name
    if isinstance(value, int):
        return value
    if isinstance(value, Timestamp):
        return value.to_json_text()
    return _message_to_json(value)
