"""The pages about plans miss no field, no name and no notice."""

from __future__ import annotations

import json
import re

import pytest
from example_plans import EXAMPLES

from pqcota_provision.plan.evidence import evidence_problems
from pqcota_provision.plan.model import FIELDS, WireEnum
from pqcota_provision.plan.notices import Notice, NoticeId, NoticeKind
from pqcota_provision.plan.protojson import dump_message, load_plan

DOCS = EXAMPLES.parent / "docs"
PLAN_FIELDS = (DOCS / "plan-fields.md").read_text(encoding="utf-8")
DIFFERENCES = (DOCS / "differences.md").read_text(encoding="utf-8")

ENUMS = sorted(
    {field.kind for fields in FIELDS.values() for field in fields if issubclass(field.kind, WireEnum)}, key=str
)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(field.json_name, field.number, id=f"{message.__name__}.{field.json_name}")
        for message, fields in FIELDS.items()
        for field in fields
    ],
)
def test_every_field_of_the_contract_is_described_with_its_number(name: str, number: int) -> None:
    assert f"`{name}` ({number})" in PLAN_FIELDS


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: str(enum.__name__))
def test_every_name_of_an_enum_is_listed_with_its_number(enum: type[WireEnum]) -> None:
    [line] = [line for line in PLAN_FIELDS.splitlines() if f"`{enum.prefix()}…`" in line]
    assert re.findall(r"`([A-Z0-9_]+)` (\d+)", line) == [(member.name, str(member.value)) for member in enum]


@pytest.mark.parametrize("notice_id", NoticeId, ids=lambda notice_id: str(notice_id.value))
def test_every_notice_is_described_with_its_kind(notice_id: NoticeId) -> None:
    kind = Notice(notice_id, "", "").kind
    assert f"`{notice_id.value}`" in PLAN_FIELDS
    if kind is NoticeKind.ADVICE:
        assert f"advice `{notice_id.value}`" in " ".join(PLAN_FIELDS.split())


@pytest.mark.parametrize("block", re.findall(r"```json\n(.*?)```", PLAN_FIELDS, re.DOTALL))
def test_the_references_that_are_shown_are_sound(block: str) -> None:
    source = json.loads(block)
    plan = load_plan(json.dumps({"actions": [{"findingId": source["findingId"], "evidenceSources": [source]}]}))
    assert not list(evidence_problems(plan.actions[0]))
    assert json.loads(dump_message(plan))["actions"][0]["evidenceSources"] == [source]


def test_the_notices_that_are_said_to_be_new_exist() -> None:
    [paragraph] = [part for part in DIFFERENCES.split("\n\n") if part.startswith("**Six more ids.**")]
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", paragraph))
    assert len(named) == 6
    assert named <= {notice_id.value for notice_id in NoticeId}


@pytest.mark.parametrize("page", [PLAN_FIELDS, DIFFERENCES], ids=["plan-fields", "differences"])
def test_links_lead_somewhere(page: str) -> None:
    anchors = {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in page.splitlines()
        if line.startswith("#")
    }
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert targets
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in anchors
        else:
            assert (DOCS / target).exists(), target
