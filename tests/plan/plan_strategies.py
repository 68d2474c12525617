"""Hypothesis strategies for whole messages of the contract, made from its table of fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from pqcota_provision.plan.model import FIELDS, Field, FinalizedPlan, ProvisioningRecord, WireEnum
from pqcota_provision.plan.timestamp import Timestamp

Message = TypeVar("Message")

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799

CONTROL_CHARACTERS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"]
ASTRAL = ["\U0001f600", "\U00010000", "\U0010ffff", "\U000e0041"]

texts = st.text(st.characters(codec="utf-8") | st.sampled_from([*'\t\n\r"\\/\u2028\ufeff', *ASTRAL]), max_size=12)
plan_texts = st.text(
    st.characters(codec="utf-8", exclude_characters=CONTROL_CHARACTERS)
    | st.sampled_from([*'\t\n\r"\\/\u2028\ufeff', *ASTRAL]),
    max_size=12,
)
int32s = st.integers(INT32_MIN, INT32_MAX) | st.sampled_from([INT32_MIN, -1, 0, 1, INT32_MAX])
nanos = st.integers(0, 999_999_999) | st.sampled_from([0, 1, 1_000, 1_000_000, 120_000_000, 999_999_999])
timestamps = st.builds(
    Timestamp,
    st.integers(FIRST_SECOND, LAST_SECOND) | st.sampled_from([FIRST_SECOND, -1, 0, LAST_SECOND]),
    nanos,
)


def enum_values(kind: type[WireEnum]) -> st.SearchStrategy[int]:
    """Members of an enum, and numbers that name none."""
    known = {int(value) for value in kind}
    return st.sampled_from(list(kind)) | int32s.filter(lambda number: number not in known)


@dataclass(frozen=True)
class _Values:
    strings: st.SearchStrategy[str]

    def of(self, kind: type) -> st.SearchStrategy[Any]:
        if kind is str:
            return self.strings
        if kind is int:
            return int32s
        if kind is Timestamp:
            return timestamps
        if issubclass(kind, WireEnum):
            return enum_values(kind)
        return self.message(kind)

    def field(self, field: Field) -> st.SearchStrategy[Any]:
        values = self.of(field.kind)
        if field.repeated:
            return st.lists(values, max_size=3).map(tuple)
        if field.kind in FIELDS or field.kind is Timestamp:
            return st.none() | values
        return values

    def message(self, kind: type[Message]) -> st.SearchStrategy[Message]:
        plain = {field.name: self.field(field) for field in FIELDS[kind] if not field.oneof}
        chosen: list[st.SearchStrategy[dict[str, Any]]] = [st.just({})]
        chosen += [st.fixed_dictionaries({field.name: self.of(field.kind)}) for field in FIELDS[kind] if field.oneof]

        def build(values: tuple[dict[str, Any], dict[str, Any]]) -> Message:
            return kind(**values[0], **values[1])

        return st.tuples(st.fixed_dictionaries(plain), st.one_of(chosen)).map(build)


plans: st.SearchStrategy[FinalizedPlan] = _Values(plan_texts).message(FinalizedPlan)
records: st.SearchStrategy[ProvisioningRecord] = _Values(texts).message(ProvisioningRecord)
