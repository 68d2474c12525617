"""Reading a plan: what is accepted in which spelling, what is refused, and that every refusal names its place."""

from __future__ import annotations

import contextlib
import json
import random
import re
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plan_samples import LABELLED
from plan_strategies import CONTROL_CHARACTERS, INT32_MAX, INT32_MIN, plans

from pqcota_provision.errors import PlanMalformed
from pqcota_provision.plan.model import (
    FinalizedPlan,
    PlanStatus,
    ProvisioningRecord,
    RemediationKind,
    SnapshotReference,
)
from pqcota_provision.plan.protojson import dump_message, load_message, load_plan, message_from_json_value
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.text import printable

PLACE = re.compile(
    r"(line [1-9][0-9]*, column [1-9][0-9]*: "
    r"|the plan "
    r"|[a-z][A-Za-z]*(\[[0-9]+\])?(\.[a-z][A-Za-z]*(\[[0-9]+\])?)* )"
)


def refusal_of(text: str | bytes) -> str:
    """Read what must not be readable, and return the one problem."""
    with pytest.raises(PlanMalformed) as refusal:
        load_plan(text)
    [problem] = refusal.value.problems
    return problem


def priority_of(number: str) -> int:
    return load_plan('{"actions":[{"priority":' + number + "}]}").actions[0].priority


@pytest.mark.parametrize(
    ("number", "value"),
    [
        pytest.param("7", 7, id="plain"),
        pytest.param('"7"', 7, id="string"),
        pytest.param('"-7"', -7, id="negative-string"),
        pytest.param('"1e2"', 100, id="string-with-exponent"),
        pytest.param("2147483647", INT32_MAX, id="largest"),
        pytest.param("-2147483648", INT32_MIN, id="smallest"),
        pytest.param("1e9", 10**9, id="exponent"),
        pytest.param("1E+9", 10**9, id="capital-exponent-with-sign"),
        pytest.param("1e0000000000009", 10**9, id="exponent-with-leading-zeros"),
        pytest.param("1e+00000000000009", 10**9, id="signed-exponent-with-leading-zeros"),
        pytest.param("70e-00000000000001", 7, id="negative-exponent-with-leading-zeros"),
        pytest.param("0.00000000007e11", 7, id="fraction-shifted-away"),
        pytest.param("2.147483647e9", INT32_MAX, id="largest-with-fraction"),
        pytest.param("7.000", 7, id="zero-fraction"),
        pytest.param("7000e-3", 7, id="negative-exponent"),
        pytest.param("-0", 0, id="minus-zero"),
        pytest.param("0e99999999999999999999", 0, id="zero-with-huge-exponent"),
        pytest.param("0.000e-99999999999999999999", 0, id="zero-with-huge-negative-exponent"),
        pytest.param("0." + "0" * 50_000 + "7e50001", 7, id="long-fraction-shifted-away"),
        pytest.param("7" + "0" * 50_000 + "e-50000", 7, id="long-number-shifted-back"),
        pytest.param("null", 0, id="null"),
    ],
)
def test_an_int32_has_the_value_its_author_wrote(number: str, value: int) -> None:
    assert priority_of(number) == value


@given(value=st.integers(INT32_MIN, INT32_MAX), shift=st.integers(-30, 30), zeros=st.integers(0, 12))
def test_an_int32_written_with_an_exponent_keeps_its_value(value: int, shift: int, zeros: int) -> None:
    mantissa = str(value * 10**-shift) if shift < 0 else f"{Decimal(value).scaleb(-shift):f}"
    assert priority_of(f"{mantissa}e{'-' if shift < 0 else ''}{'0' * zeros}{abs(shift)}") == value


@pytest.mark.parametrize(
    "number",
    [
        pytest.param("2147483648", id="one-too-large"),
        pytest.param("-2147483649", id="one-too-small"),
        pytest.param("1e10", id="too-large-with-exponent"),
        pytest.param("1e99999999999999999999", id="huge-exponent"),
        pytest.param("1e-99999999999999999999", id="huge-negative-exponent"),
        pytest.param("1e4294967296", id="exponent-that-wraps-to-zero-in-32-bits"),
        pytest.param("9" * 100_000, id="hundred-thousand-digits"),
        pytest.param("0.5", id="half"),
        pytest.param("75e-1", id="half-by-exponent"),
        pytest.param("1000e-4", id="all-digits-shifted-out"),
        pytest.param("1000e-5", id="more-than-all-digits-shifted-out"),
        pytest.param('""', id="empty-string"),
        pytest.param('" 7"', id="string-with-space"),
        pytest.param('"+7"', id="string-with-plus"),
        pytest.param('"07"', id="string-with-leading-zero"),
        pytest.param('"7,"', id="string-with-comma"),
        pytest.param('"0x7"', id="hexadecimal-string"),
        pytest.param('"1_000"', id="string-with-underscore"),
        pytest.param('"\\u0667"', id="arabic-digit"),
        pytest.param("true", id="true"),
        pytest.param("[7]", id="list"),
        pytest.param("{}", id="object"),
    ],
)
def test_a_number_that_is_no_int32_is_refused_at_its_path(number: str) -> None:
    assert refusal_of('{"actions":[{"priority":' + number + "}]}").startswith("actions[0].priority must ")


@pytest.mark.parametrize("number", ["1e99999999", "-1e99999999", '"1e99999999"', "1e-99999999", "0e99999999"])
def test_a_huge_exponent_takes_no_memory(number: str) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(PlanMalformed):
            priority_of(number)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        pytest.param('"REMEDIATION_KIND_REBUILD"', RemediationKind.REBUILD, id="name"),
        pytest.param("5", RemediationKind.REBUILD, id="number"),
        pytest.param("5.0", RemediationKind.REBUILD, id="number-with-fraction"),
        pytest.param("99", 99, id="number-without-name"),
        pytest.param("-1", -1, id="negative-number"),
        pytest.param("null", RemediationKind.UNSPECIFIED, id="null"),
    ],
)
def test_an_enum_is_its_name_or_its_number(value: str, kind: int) -> None:
    read = load_plan('{"actions":[{"kind":' + value + "}]}").actions[0].kind
    assert (read, type(read)) == (kind, type(kind))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param('"REBUILD"', id="without-prefix"),
        pytest.param('"remediation_kind_rebuild"', id="lower-case"),
        pytest.param('"PLAN_STATUS_DRAFT"', id="of-another-enum"),
        pytest.param('"5"', id="number-as-string"),
        pytest.param('""', id="empty"),
        pytest.param("2147483648", id="beyond-32-bits"),
        pytest.param("1.5", id="fraction"),
        pytest.param("false", id="false"),
    ],
)
def test_what_names_no_enum_value_is_refused_at_its_path(value: str) -> None:
    assert refusal_of('{"actions":[{},{"kind":' + value + "}]}").startswith("actions[1].kind ")


def test_both_spellings_of_every_field_are_read() -> None:
    snake = '{"approval_signatures":["s"],"derived_from_snapshot_id":"d","ruleset_version":"r","finalized_at":null}'
    camel = '{"approvalSignatures":["s"],"derivedFromSnapshotId":"d","rulesetVersion":"r"}'
    assert load_plan(snake) == load_plan(camel)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('{"id":"a","id":"a"}', "the plan has the field id twice", id="same-key"),
        pytest.param('{"id":null,"id":"a"}', "the plan has the field id twice", id="null-first"),
        pytest.param(
            '{"actions":[{"findingId":"a","finding_id":"a"}]}',
            "actions[0] has the field findingId twice",
            id="both-spellings",
        ),
        pytest.param('{"i\\u0064":"a","id":"b"}', "the plan has the field id twice", id="escaped-key"),
        pytest.param('{"ID":"a"}', 'the plan has an unknown field "ID"', id="other-case"),
        pytest.param(
            '{"actions":[{"activation":{"stop":"x"}}]}',
            'actions[0].activation has an unknown field "stop"',
            id="unknown-nested",
        ),
        pytest.param('{"x":null}', 'the plan has an unknown field "x"', id="unknown-null"),
        pytest.param(
            '{"actions":[{"evidenceSources":[{"snapshot":{"snapshotId":"a","content":{}}}]}]}',
            "actions[0].evidenceSources[0].snapshot sets both snapshotId and content; only one of them may be set",
            id="both-of-a-oneof",
        ),
        pytest.param('{"actions":[null]}', "actions[0] must be an object, not null", id="null-in-list"),
        pytest.param('{"actions":{}}', "actions must be a list, not an object", id="object-for-list"),
        pytest.param('{"approvalSignatures":"a"}', "approvalSignatures must be a list, not a string", id="bare-item"),
        pytest.param('{"scope":1e5}', "scope must be a string, not the number 1e5", id="number-for-string"),
        pytest.param('{"scope":true}', "scope must be a string, not true", id="true-for-string"),
        pytest.param('{"scope":false}', "scope must be a string, not false", id="false-for-string"),
        pytest.param(
            '{"finalizedAt":0}', "finalizedAt must be an RFC 3339 string, not the number 0", id="number-for-time"
        ),
        pytest.param(
            '{"finalizedAt":"2026-02-30T00:00:00Z"}',
            'finalizedAt is "2026-02-30T00:00:00Z", which names a day that does not exist',
            id="no-such-day",
        ),
        pytest.param("[]", "the plan must be an object, not a list", id="list-for-plan"),
        pytest.param('"a"', "the plan must be an object, not a string", id="string-for-plan"),
        pytest.param("null", "the plan must be an object, not null", id="null-for-plan"),
        pytest.param(
            '{"id":"\\ud800"}', "id holds half of a surrogate pair (U+D800), which is no character", id="surrogate"
        ),
        pytest.param(
            '{"id":"\\udfff"}',
            "id holds half of a surrogate pair (U+DFFF), which is no character",
            id="last-surrogate",
        ),
        pytest.param(
            '{"id":"\\udc00\\ud800"}',
            "id holds half of a surrogate pair (U+DC00), which is no character",
            id="swapped-surrogates",
        ),
        pytest.param('{"\\ud800":1}', 'the plan has an unknown field "\\ud800"', id="surrogate-in-key"),
    ],
)
def test_what_is_no_plan_is_refused_at_its_path(text: str, problem: str) -> None:
    assert refusal_of(text) == problem


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("", "line 1, column 1", id="empty"),
        pytest.param(" \r\n\t", "line 1, column 1", id="blank"),
        pytest.param('{\n "id": }', "line 2, column 8", id="no-value"),
        pytest.param('{"scope":"한국어",\n"id":"\x01"}', "line 2, column 7", id="raw-control-character"),
        pytest.param('{"id":"a"}\n{"id":"b"}', "line 2, column 1", id="second-object"),
        pytest.param('{"id":"a"}\0', "line 1, column 11", id="nul-after-the-object"),
        pytest.param("\ufeff{}", "line 1, column 1", id="byte-order-mark"),
        pytest.param('{"id":"NaN [{",\n"actions":[{"priority":NaN}]}', "line 2, column 24", id="nan"),
        pytest.param('{"actions":\n[{"priority": -Infinity}]}', "line 2, column 15", id="minus-infinity"),
        pytest.param("Infinity", "line 1, column 1", id="infinity"),
        pytest.param('{"id":"[[[",\n"actions":' + "[" * 100_000, "line 2, column 42", id="too-deep"),
        pytest.param('{"x":' * 100_000 + "1" + "}" * 100_000, "line 1, column 161", id="too-deep-in-objects"),
        pytest.param(b'{"id":"a\xff"}', "line 1, column 9", id="no-utf-8"),
        pytest.param(
            '{"scope":"한",\n"id":"한'.encode() + b'\xed\xa0\x80"}', "line 2, column 8", id="surrogate-in-utf-8"
        ),
        pytest.param(b'{"id":"\xc0\x80"}', "line 1, column 8", id="overlong-nul"),
        pytest.param('{"id":"a"}'.encode("utf-16"), "line 1, column 1", id="utf-16"),
    ],
)
def test_what_is_no_json_is_refused_at_line_and_column(text: str | bytes, place: str) -> None:
    assert refusal_of(text).startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        pytest.param("", "one JSON object", id="empty"),
        pytest.param("\ufeff{}", "without a byte order mark", id="byte-order-mark"),
        pytest.param(b"\xff", "as UTF-8", id="no-utf-8"),
        pytest.param('{"id":1}', "docs/plan-fields.md", id="wrong-type"),
    ],
)
def test_a_refusal_says_what_to_do_next(text: str | bytes, remedy: str) -> None:
    with pytest.raises(PlanMalformed) as refusal:
        load_plan(text)
    assert remedy in refusal.value.remedy


@pytest.mark.parametrize("character", [pytest.param(c, id=f"U+{ord(c):04X}") for c in CONTROL_CHARACTERS])
def test_a_control_character_never_gets_into_a_plan(character: str) -> None:
    text = json.dumps({"actions": [{"activation": {"restart": f"ab{character}"}}]})
    assert refusal_of(text) == (
        f"actions[0].activation.restart holds the control character U+{ord(character):04X} at character 3; "
        "only tab, newline and carriage return are allowed"
    )


@pytest.mark.parametrize("character", ["\t", "\n", "\r", "\u2028", "\u202e", "\ufeff", "\ufffd", "\U0010ffff"])
def test_text_that_is_no_control_character_survives(character: str) -> None:
    assert load_plan(json.dumps({"scope": character})).scope == character


def test_a_member_of_a_oneof_that_is_set_to_nothing_stays_set() -> None:
    text = '{"actions":[{"evidenceSources":[{"snapshot":{"snapshotId":""}}]}]}'
    plan = load_plan(text)
    assert plan.actions[0].evidence_sources[0].snapshot == SnapshotReference(snapshot_id="")
    assert load_plan(dump_message(plan)) == plan


def test_a_plan_is_written_in_order_of_field_numbers_without_zeros() -> None:
    plan = FinalizedPlan(
        finalized_at=Timestamp(0, 120_000_000), approval_signatures=("é",), status=PlanStatus.IN_REVIEW, id="p"
    )
    assert dump_message(plan) == (
        '{\n  "id": "p",\n  "status": "PLAN_STATUS_IN_REVIEW",\n  "approvalSignatures": [\n    "é"\n  ],\n'
        '  "finalizedAt": "1970-01-01T00:00:00.120Z"\n}\n'
    )


def test_a_record_arrives_from_decoded_json_as_from_text() -> None:
    value: dict[str, object] = {
        "id": "r",
        "at": "2026-01-02T03:04:05Z",
        "snapshotResolutions": [{"submitted": {}}],
        "note": None,
    }
    assert message_from_json_value(ProvisioningRecord, value) == load_message(ProvisioningRecord, json.dumps(value))


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def nested(depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"id": {1}}, id="set"),
        pytest.param({"id": b"a"}, id="bytes"),
        pytest.param(circular(), id="circular"),
        pytest.param(nested(100_000), id="deep"),
        pytest.param({"id": float("nan")}, id="nan"),
        pytest.param({"id": 10**5000}, id="huge-number"),
        pytest.param({"x": 1}, id="unknown-field"),
        pytest.param(["id"], id="list"),
    ],
)
def test_decoded_json_that_is_no_record_is_refused(value: object) -> None:
    with pytest.raises(PlanMalformed) as refusal:
        message_from_json_value(ProvisioningRecord, value)
    assert "the plan has" not in str(refusal.value)


def assert_refused_properly(text: str | bytes) -> None:
    """Reading gives a plan, or PlanMalformed with a place on one line; never anything else."""
    try:
        load_plan(text)
    except PlanMalformed as refusal:
        [problem] = refusal.problems
        assert PLACE.match(problem)
        assert printable(problem) == problem


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf{}")
@example(b"\xff\xfe{\x00}\x00")
def test_no_bytes_surface_as_anything_but_a_malformed_plan(data: bytes) -> None:
    assert_refused_properly(data)


@given(st.text(max_size=200) | st.text(alphabet='{}[]",:\\ \n0123456789.eE+-truefalsnidNaInfty', max_size=60))
@example("\ud800")
@example('{"\ud800":1}')
@example('{"status":"\u202e\ud800"}')
@example("-Infinity")
@example('["NaN", "\\"[" , NaN]')
def test_no_text_surfaces_as_anything_but_a_malformed_plan(text: str) -> None:
    assert_refused_properly(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
HOSTILE_FRAGMENTS = [
    *(
        '"',
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "NaN",
        "-",
        "e",
        "1e999999999",
        "9" * 400,
        "\0",
        "\x7f",
        "\u2028",
    ),
    *("\\ud83d", "\\u0000", "\ufeff", "[" * 2000, '{"id":' * 2000, '"id":"x",', '"9999-12-31T23:59:59-23:59"'),
]


@given(plan=plans, seed=st.randoms(use_true_random=False))
def test_no_damage_to_a_plan_surfaces_as_anything_but_a_malformed_plan(
    plan: FinalizedPlan, seed: random.Random
) -> None:
    text = dump_message(plan)
    for _ in range(seed.randint(1, 3)):
        start = seed.randrange(len(text) + 1)
        end = start + seed.choice((0, 0, 1, 1, 2, 10))
        text = text[:start] + seed.choice(HOSTILE_FRAGMENTS) + text[end:]
    assert_refused_properly(text)


@given(plan=plans, damage=st.binary(min_size=1, max_size=3), seed=st.randoms(use_true_random=False))
def test_no_damaged_byte_surfaces_as_anything_but_a_malformed_plan(
    plan: FinalizedPlan, damage: bytes, seed: random.Random
) -> None:
    data = dump_message(plan).encode()
    start = seed.randrange(len(data))
    assert_refused_properly(data[:start] + damage + data[start + len(damage) :])


@given(value=JSON_VALUES, seed=st.randoms(use_true_random=False))
def test_no_other_value_in_a_field_surfaces_as_anything_but_a_malformed_plan(
    value: object, seed: random.Random
) -> None:
    document = json.loads(dump_message(LABELLED))
    holder: Any = document
    while True:
        key = seed.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        if not isinstance(holder[key], dict | list) or seed.random() < 0.3:
            break
        holder = holder[key]
    holder[key] = value
    assert_refused_properly(json.dumps(document))


def test_a_record_of_a_newer_version_can_still_be_read() -> None:
    text = (
        '{"id":"r","newField":{"a":[1]},"status":"PROVISIONING_STATUS_PARTLY","before":{"modules":["m"],"x":1},'
        '"snapshotResolutions":[{"submitted":{"sourceNodeId":"n","y":null}}]}'
    )
    record = load_message(ProvisioningRecord, text, ignore_unknown=True)
    assert record == load_message(
        ProvisioningRecord,
        '{"id":"r","before":{"modules":["m"]},"snapshotResolutions":[{"submitted":{"sourceNodeId":"n"}}]}',
    )
    with pytest.raises(PlanMalformed, match=r"^the record has an unknown field"):
        load_message(ProvisioningRecord, text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"id":"a","id":"b"}', id="field-twice"),
        pytest.param('{"status":true}', id="enum-of-another-type"),
        pytest.param('{"snapshotResolutions":[{"submitted":{},"legacyPlanSnapshotId":"x"}]}', id="both-of-a-oneof"),
        pytest.param('{"id":1}', id="wrong-type"),
    ],
)
def test_leniency_towards_a_newer_version_is_no_leniency_towards_damage(text: str) -> None:
    with pytest.raises(PlanMalformed):
        load_message(ProvisioningRecord, text, ignore_unknown=True)
