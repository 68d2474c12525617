"""Notices about a plan: each gap is told once, under its stable id, with how to mend it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from plan_samples import ACTION, LABELLED, NOW, with_action
from plan_strategies import plans

from pqcota_provision.plan.evidence import CONTENT_FORMAT, evidence_problems, reference_problem
from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    FinalizedPlan,
    SnapshotContentReference,
    SnapshotReference,
)
from pqcota_provision.plan.notices import Notice, NoticeId, NoticeKind, action_notice, has_blanks, plan_notices
from pqcota_provision.text import printable

SIGNED = replace(LABELLED, approval_signatures=("alice:ed25519:AAAA",))
DIGEST = "0123456789abcdef" * 4
CONTENT = SnapshotContentReference(format_version=CONTENT_FORMAT, digest=DIGEST, ruleset_version="rules/1")
BY_CONTENT = SnapshotReference(source_node_id="node-1", content=CONTENT)
BY_ID = SnapshotReference(source_node_id="node-1", snapshot_id="snap-1")


def ids(plan: FinalizedPlan) -> list[tuple[str, str]]:
    return [(notice.id.value, notice.action) for notice in plan_notices(plan)]


def with_sources(*sources: ActionEvidenceSource, **changes: Any) -> FinalizedPlan:
    return with_action(SIGNED, evidence_sources=sources, **changes)


def test_a_complete_plan_has_no_notice() -> None:
    assert ids(SIGNED) == []


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        pytest.param(replace(SIGNED, id=""), [("plan-id-missing", "")], id="plan-id"),
        pytest.param(replace(SIGNED, ruleset_version=""), [("ruleset-missing", "")], id="ruleset"),
        pytest.param(replace(SIGNED, finalized_at=None), [("finalized-at-missing", "")], id="finalized-at"),
        pytest.param(
            replace(SIGNED, approval_signatures=("x", "alice:ed25519:AAAA", "y")),
            [("approval-label", ""), ("approval-label", "")],
            id="two-labels",
        ),
        pytest.param(
            with_action(SIGNED, finding_id="", evidence_sources=()), [("finding-missing", "a1")], id="finding"
        ),
        pytest.param(
            replace(with_sources(), derived_from_snapshot_id=""), [("snapshot-missing", "a1")], id="no-snapshot-at-all"
        ),
        pytest.param(with_sources(), [], id="snapshot-of-the-plan"),
        pytest.param(replace(SIGNED, derived_from_snapshot_id=""), [], id="snapshot-of-the-action"),
        pytest.param(
            replace(with_sources(ActionEvidenceSource()), derived_from_snapshot_id=""),
            [("finding-missing", "a1")],
            id="malformed-source-is-no-missing-snapshot",
        ),
        pytest.param(
            with_sources(ActionEvidenceSource(snapshot=BY_ID), finding_id=""),
            [("finding-missing", "a1"), ("finding-missing", "a1")],
            id="neither-action-nor-source-names-a-finding",
        ),
        pytest.param(
            with_sources(ActionEvidenceSource(finding_id="f-9", snapshot=BY_ID), finding_id=""),
            [("finding-missing", "a1"), ("reference-invalid", "a1")],
            id="only-the-source-names-a-finding",
        ),
    ],
)
def test_each_gap_is_told_under_its_id(plan: FinalizedPlan, expected: list[tuple[str, str]]) -> None:
    assert ids(plan) == expected


def reference(**changes: Any) -> SnapshotReference:
    return replace(BY_CONTENT, content=replace(CONTENT, **changes))


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(None, id="no-reference"),
        pytest.param(SnapshotReference(), id="empty-reference"),
        pytest.param(replace(BY_ID, source_node_id=""), id="by-id-without-node"),
        pytest.param(replace(BY_CONTENT, source_node_id=""), id="by-content-without-node"),
        pytest.param(SnapshotReference(source_node_id="node-1"), id="neither-id-nor-content"),
        pytest.param(replace(BY_ID, snapshot_id=""), id="empty-id"),
        pytest.param(replace(BY_CONTENT, content=SnapshotContentReference()), id="empty-content"),
        pytest.param(reference(format_version=""), id="no-format-version"),
        pytest.param(reference(digest=""), id="no-digest"),
        pytest.param(reference(ruleset_version=""), id="no-ruleset-version"),
        pytest.param(reference(format_version="pqcota-snapshot-content/v2"), id="other-format-version"),
        pytest.param(reference(format_version="PQCOTA-SNAPSHOT-CONTENT/V1"), id="format-version-in-capitals"),
        pytest.param(reference(format_version=f"{CONTENT_FORMAT} "), id="format-version-with-space"),
        pytest.param(reference(digest=DIGEST[:-1]), id="digest-too-short"),
        pytest.param(reference(digest=f"{DIGEST}0"), id="digest-too-long"),
        pytest.param(reference(digest=DIGEST.upper()), id="digest-in-capitals"),
        pytest.param(reference(digest=f"{DIGEST[:-1]}g"), id="digest-with-a-letter"),
        pytest.param(reference(digest=f"{DIGEST}\n"), id="digest-with-newline"),
        pytest.param(reference(digest="\N{FULLWIDTH DIGIT ONE}" * 64), id="digest-of-wide-digits"),
        pytest.param(reference(digest=f"sha256:{DIGEST[7:]}"), id="digest-with-algorithm"),
    ],
)
def test_a_malformed_reference_is_told_as_invalid(snapshot: SnapshotReference | None) -> None:
    first = ActionEvidenceSource(finding_id="f-1", snapshot=BY_ID)
    malformed = ActionEvidenceSource(finding_id="f-1", snapshot=snapshot)
    assert ids(with_sources(malformed)) == [("reference-invalid", "a1")]
    [notice] = plan_notices(with_sources(first, malformed))
    assert notice.id is NoticeId.REFERENCE_INVALID
    assert notice.sentence.startswith("evidenceSources[1] ")


@pytest.mark.parametrize("snapshot", [BY_ID, BY_CONTENT])
def test_a_reference_by_id_or_content_is_well_formed(snapshot: SnapshotReference) -> None:
    assert reference_problem(ActionEvidenceSource(finding_id="f-1", snapshot=snapshot)) is None


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        pytest.param([("f-2", BY_ID)], [(0, False)], id="first-source-names-another-finding"),
        pytest.param([("F-1", BY_ID)], [(0, False)], id="first-source-names-it-in-other-case"),
        pytest.param([("f-1", BY_ID), ("f-2", BY_CONTENT)], [], id="a-later-source-may-name-another"),
        pytest.param([("", BY_ID)], [(0, True)], id="first-source-names-none"),
        pytest.param([("f-1", BY_ID), ("", BY_ID)], [(1, True)], id="later-source-names-none"),
        pytest.param([("", None)], [(0, True)], id="empty-source"),
        pytest.param([("f-2", None), ("f-3", None)], [(0, False), (1, False)], id="each-source-told-once"),
    ],
)
def test_each_malformed_source_is_told_once_with_its_place(
    sources: list[tuple[str, SnapshotReference | None]], expected: list[tuple[int, bool]]
) -> None:
    action = replace(
        ACTION,
        evidence_sources=tuple(
            ActionEvidenceSource(finding_id=finding, snapshot=snapshot) for finding, snapshot in sources
        ),
    )
    assert [(problem.index, problem.names_no_finding) for problem in evidence_problems(action)] == expected


def test_a_notice_names_its_action_and_node() -> None:
    [notice] = plan_notices(with_action(SIGNED, finding_id="", evidence_sources=()))
    assert (notice.action, notice.node) == ("a1", "node-1")
    assert action_notice(ACTION, notice.id, notice.sentence, notice.remedy) == notice


ADVICE = {"provider-slot-taken", "manual-step", "approval-label"}


def test_only_three_notices_are_advice() -> None:
    kinds = {notice_id.value: Notice(notice_id, "", "").kind for notice_id in NoticeId}
    assert {name for name, kind in kinds.items() if kind is NoticeKind.ADVICE} == ADVICE


def test_the_ids_are_those_of_the_contract() -> None:
    assert {notice_id.value for notice_id in NoticeId} == ADVICE | {
        *("plan-id-missing", "ruleset-missing", "finalized-at-missing", "finding-missing", "snapshot-missing"),
        *("reference-invalid", "reference-unresolved", "level-unset", "activate-missing", "restart-missing"),
        *("deactivate-missing", "target-unset", "target-signature", "target-no-group", "provider-class-unknown"),
        *("fragments-split", "provider-shape", "runtime-unsupported", "variable-clash"),
        *("fragment-inert", "fragment-harmful"),
    }


def test_advice_alone_leaves_no_blank() -> None:
    assert not has_blanks(plan_notices(replace(SIGNED, approval_signatures=("label",))))
    assert has_blanks(plan_notices(replace(SIGNED, approval_signatures=("label",), id="")))


@given(plan=plans)
def test_no_text_of_a_plan_breaks_a_notice_into_lines(plan: FinalizedPlan) -> None:
    for notice in plan_notices(plan):
        assert printable(notice.sentence) == notice.sentence
        assert notice.sentence.endswith(".")
        assert notice.remedy.endswith(".")


@given(plan=plans)
def test_a_signed_time_is_never_told_as_missing(plan: FinalizedPlan) -> None:
    missing = [notice for notice in plan_notices(plan) if notice.id is NoticeId.FINALIZED_AT_MISSING]
    assert bool(missing) == (plan.finalized_at is None)
    assert not [
        notice for notice in plan_notices(replace(plan, finalized_at=NOW)) if notice.id is NoticeId.FINALIZED_AT_MISSING
    ]
