from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pytest
from record_samples import DIGEST, NOW, action, by_content, by_id, jca_finding, openssl_finding, plan_of

from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    CryptoState,
    ProvisioningStatus,
    SnapshotReference,
    SnapshotResolution,
)
from pqcota_provision.plan.notices import NoticeId, plan_notices
from pqcota_provision.records.history import ContentKey
from pqcota_provision.records.memory import MemoryHistory
from pqcota_provision.records.recording import Recording, record_plan
from pqcota_provision.records.snapshot import Snapshot, read_snapshot


def snapshot(snapshot_id: str, node: str, *findings: object) -> Snapshot:
    return read_snapshot(snapshot_id, node, json.dumps(findings))


def history_of(*snapshots: Snapshot, contents: Mapping[ContentKey, Snapshot] | None = None) -> MemoryHistory:
    history = MemoryHistory("acme")
    for each in snapshots:
        history.add(each)
    for key, each in (contents or {}).items():
        history.add(each, key)
    return history


def resolutions(recording: Recording) -> tuple[SnapshotResolution, ...]:
    return recording.records[0].snapshot_resolutions


def test_a_record_says_which_action_of_which_plan_was_staged_when_on_which_node() -> None:
    record = record_plan(plan_of(action(7)), history=history_of(), now=NOW).records[0]
    assert (record.id, record.plan_id, record.action_id, record.node_id, record.status, record.at) == (
        "plan-1:a7",
        "plan-1",
        "a7",
        "node-1",
        ProvisioningStatus.STAGED,
        NOW,
    )


def test_every_action_has_its_record_in_the_order_of_the_plan() -> None:
    plan = plan_of(action(2), action(1, target_node_id="node-2"), action(3))
    recording = record_plan(plan, history=history_of(), now=NOW)
    assert [(record.id, record.node_id) for record in recording.records] == [
        ("plan-1:a2", "node-1"),
        ("plan-1:a1", "node-2"),
        ("plan-1:a3", "node-1"),
    ]


def test_the_state_before_is_that_of_the_latest_snapshot_of_the_target() -> None:
    history = history_of(
        snapshot("old", "node-1", openssl_finding(version="1.1.1")),
        snapshot("new", "node-1", openssl_finding(version="3.0.13"), jca_finding("f-2", "SUN", "BC")),
        snapshot("other", "node-2", openssl_finding(version="3.5.0")),
    )
    before = record_plan(plan_of(action()), history=history, now=NOW).records[0].before
    assert before == CryptoState(modules=("jca:BC", "jca:SUN", "openssl@3.0.13"), provider_chain=("SUN", "BC"))


def test_a_node_without_a_snapshot_is_not_mistaken_for_an_empty_one() -> None:
    plan = plan_of(action(1, target_node_id="unseen"), action(2, target_node_id="empty"))
    recording = record_plan(plan, history=history_of(snapshot("s", "empty")), now=NOW)
    assert [record.before for record in recording.records] == [None, CryptoState()]
    assert any('"unseen"' in remark and '"empty"' not in remark for remark in recording.remarks)


def test_the_affected_apps_come_from_the_latest_snapshot_of_the_target() -> None:
    history = history_of(
        snapshot("old", "node-1", openssl_finding("f-1", "retired")),
        snapshot("new", "node-1", openssl_finding("f-1", "payments", "ledger"), openssl_finding("f-2", "other")),
    )
    assert record_plan(plan_of(action()), history=history, now=NOW).records[0].app_keys == ("payments", "ledger")


def test_a_finding_gone_from_the_latest_snapshot_is_found_in_the_one_its_evidence_names() -> None:
    history = history_of(
        snapshot("old", "node-1", openssl_finding("f-1", "payments")),
        snapshot("new", "node-1", openssl_finding("f-9", "other")),
    )
    recording = record_plan(plan_of(action(1, by_id("old"))), history=history, now=NOW)
    assert recording.records[0].app_keys == ("payments",)


def test_a_finding_gone_from_the_latest_snapshot_is_found_in_the_one_the_plan_names() -> None:
    history = history_of(
        snapshot("old", "node-1", openssl_finding("f-1", "payments")),
        snapshot("new", "node-1", openssl_finding("f-9", "other")),
    )
    recording = record_plan(plan_of(action(), derived_from_snapshot_id="old"), history=history, now=NOW)
    assert recording.records[0].app_keys == ("payments",)


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param((), id="no evidence"),
        pytest.param((by_id("elsewhere", node="node-2"),), id="evidence from the other node"),
    ],
)
def test_apps_of_another_node_with_the_same_finding_id_are_not_taken(sources: tuple[ActionEvidenceSource]) -> None:
    history = history_of(
        snapshot("elsewhere", "node-2", openssl_finding("f-1", "not-ours")),
        snapshot("here", "node-1", openssl_finding("f-9", "other")),
    )
    assert record_plan(plan_of(action(1, *sources)), history=history, now=NOW).records[0].app_keys == ()


def test_a_reference_by_id_is_resolved_to_the_snapshot_it_names() -> None:
    history = history_of(snapshot("snap-1", "node-1", openssl_finding("f-1")))
    recording = record_plan(plan_of(action(1, by_id("snap-1"))), history=history, now=NOW)
    assert resolutions(recording) == (
        SnapshotResolution(submitted=by_id("snap-1").snapshot, resolved_snapshot_id="snap-1"),
    )
    assert (recording.resolved, recording.unresolved, recording.notices) == (1, 0, ())


def test_a_reference_by_content_is_resolved_to_the_snapshot_with_that_content() -> None:
    found = snapshot("snap-7", "node-1", openssl_finding("f-1"))
    history = history_of(contents={ContentKey("node-1", "rules/1", DIGEST): found})
    recording = record_plan(plan_of(action(1, by_content())), history=history, now=NOW)
    assert resolutions(recording) == (
        SnapshotResolution(submitted=by_content().snapshot, resolved_snapshot_id="snap-7"),
    )


def test_the_snapshot_a_plan_was_derived_from_stands_in_where_there_is_no_evidence() -> None:
    history = history_of(snapshot("snap-1", "node-2", openssl_finding("f-1")))
    recording = record_plan(plan_of(action(), derived_from_snapshot_id="snap-1"), history=history, now=NOW)
    assert resolutions(recording) == (
        SnapshotResolution(legacy_plan_snapshot_id="snap-1", resolved_snapshot_id="snap-1"),
    )


def test_with_evidence_the_snapshot_the_plan_was_derived_from_is_not_asked() -> None:
    history = history_of(snapshot("snap-1", "node-1", openssl_finding("f-1")))
    plan = plan_of(action(1, by_id("snap-1")), derived_from_snapshot_id="gone")
    assert record_plan(plan, history=history, now=NOW).unresolved == 0


def test_an_action_without_finding_needs_none_in_the_snapshot_the_plan_was_derived_from() -> None:
    history = history_of(snapshot("snap-1", "node-1"))
    plan = plan_of(action(finding_id=""), derived_from_snapshot_id="snap-1")
    assert record_plan(plan, history=history, now=NOW).resolved == 1


HELD = {
    "snap-1": snapshot("snap-1", "node-1", openssl_finding("f-1")),
    "snap-2": snapshot("snap-2", "node-2", openssl_finding("f-1")),
    "snap-3": snapshot("snap-3", "node-1", openssl_finding("f-3")),
}
CONTENTS = {
    ContentKey("node-1", "rules/1", DIGEST): HELD["snap-1"],
    ContentKey("node-1", "rules/3", DIGEST): HELD["snap-3"],
}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(
            by_id("gone"), 'there is no snapshot "gone" in the history of the organization "acme"', id="no such id"
        ),
        pytest.param(
            by_id("snap-2", node="node-1"),
            'the snapshot "snap-2" is one of the node "node-2", not of "node-1"',
            id="another node's snapshot",
        ),
        pytest.param(by_id("snap-3"), 'the snapshot "snap-3" does not hold the finding "f-1"', id="not the finding"),
        pytest.param(by_content("f" * 64), 'no snapshot of the node "node-1"', id="no such content"),
        pytest.param(by_content(node="node-2"), 'no snapshot of the node "node-2"', id="content of another node"),
        pytest.param(by_content(ruleset="rules/2"), "under that rulesetVersion", id="content under other rules"),
        pytest.param(
            by_content(ruleset="rules/3"), 'does not hold the finding "f-1"', id="content without the finding"
        ),
    ],
)
def test_a_reference_that_does_not_hold_is_recorded_with_the_reason_and_noticed(
    source: ActionEvidenceSource, said: str
) -> None:
    history = history_of(*HELD.values(), contents=CONTENTS)
    recording = record_plan(plan_of(action(1, source)), history=history, now=NOW)
    (resolution,) = resolutions(recording)
    assert (resolution.submitted, resolution.resolved_snapshot_id) == (source.snapshot, "")
    assert said in resolution.reason
    (notice,) = recording.notices
    assert (notice.id, notice.action, notice.node) == (NoticeId.REFERENCE_UNRESOLVED, "a1", "node-1")
    assert resolution.reason in notice.sentence
    assert (recording.resolved, recording.unresolved) == (0, 1)


@pytest.mark.parametrize(
    ("snapshot_id", "said"),
    [
        pytest.param("gone", 'there is no snapshot "gone"', id="no such id"),
        pytest.param("snap-3", 'does not hold the finding "f-1"', id="not the finding"),
    ],
)
def test_a_plan_derived_from_a_snapshot_that_does_not_hold_is_noticed_for_each_action(
    snapshot_id: str, said: str
) -> None:
    plan = plan_of(action(1), action(2), derived_from_snapshot_id=snapshot_id)
    recording = record_plan(plan, history=history_of(*HELD.values()), now=NOW)
    assert [(notice.id, notice.action) for notice in recording.notices] == [
        (NoticeId.REFERENCE_UNRESOLVED, "a1"),
        (NoticeId.REFERENCE_UNRESOLVED, "a2"),
    ]
    assert all(said in record.snapshot_resolutions[0].reason for record in recording.records)


MALFORMED = ActionEvidenceSource(finding_id="f-1", snapshot=SnapshotReference(source_node_id="", snapshot_id="snap-1"))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(MALFORMED, id="no source node"),
        pytest.param(ActionEvidenceSource(finding_id="f-1"), id="no reference"),
        pytest.param(by_id("snap-1", finding=""), id="no finding"),
        pytest.param(by_id("snap-1", finding="f-2"), id="another finding than the action"),
        pytest.param(by_content("not a digest"), id="no digest"),
    ],
)
def test_a_malformed_reference_is_recorded_unresolved_and_noticed_once(source: ActionEvidenceSource) -> None:
    plan = plan_of(action(1, source))
    recording = record_plan(plan, history=history_of(*HELD.values(), contents=CONTENTS), now=NOW)
    (resolution,) = resolutions(recording)
    assert (resolution.submitted, resolution.resolved_snapshot_id) == (source.snapshot, "")
    assert resolution.reason.startswith("not looked up: ")
    assert (recording.resolved, recording.unresolved, recording.notices) == (0, 1, ())
    assert any(notice.id in (NoticeId.REFERENCE_INVALID, NoticeId.FINDING_MISSING) for notice in plan_notices(plan))


def test_a_malformed_reference_does_not_keep_the_next_one_from_being_resolved() -> None:
    plan = plan_of(action(1, MALFORMED, by_id("snap-3", finding="f-3")))
    recording = record_plan(plan, history=history_of(*HELD.values()), now=NOW)
    assert [resolution.resolved_snapshot_id for resolution in resolutions(recording)] == ["", "snap-3"]


class CountingHistory(MemoryHistory):
    """Counts the look-ups that reach it."""

    def __init__(self) -> None:
        super().__init__("acme")
        self.asked: list[tuple[str, int]] = []

    def latest(self, node_ids: Collection[str]) -> Mapping[str, Snapshot]:
        self.asked.append(("latest", len(node_ids)))
        return super().latest(node_ids)

    def by_id(self, snapshot_ids: Collection[str]) -> Mapping[str, Snapshot]:
        self.asked.append(("by id", len(snapshot_ids)))
        return super().by_id(snapshot_ids)

    def by_content(self, keys: Collection[ContentKey]) -> Mapping[ContentKey, Snapshot]:
        self.asked.append(("by content", len(keys)))
        return super().by_content(keys)


def test_a_large_plan_does_not_ask_the_history_once_an_action() -> None:
    actions = [
        action(number, by_id(f"snap-{number}"), by_content(), target_node_id=f"node-{number % 10}")
        for number in range(100)
    ]
    history = CountingHistory()
    record_plan(plan_of(*actions), history=history, now=NOW)
    assert history.asked == [("latest", 10), ("by id", 100), ("by content", 1)]


class NoHistory(MemoryHistory):
    """A history that is not there."""

    def exists(self) -> bool:
        return False

    def latest(self, node_ids: Collection[str]) -> Mapping[str, Snapshot]:
        raise AssertionError("nothing may be looked up where there is no history")

    def by_id(self, snapshot_ids: Collection[str]) -> Mapping[str, Snapshot]:
        return self.latest(snapshot_ids)


def test_without_a_history_records_are_made_and_that_is_said() -> None:
    recording = record_plan(plan_of(action(1, by_id("snap-1"))), history=NoHistory("acme"), now=NOW)
    assert recording.records[0].before is None
    assert "which this database does not hold" in resolutions(recording)[0].reason
    assert [notice.id for notice in recording.notices] == [NoticeId.REFERENCE_UNRESOLVED]
    assert any("no table pqcota_snapshots" in remark for remark in recording.remarks)


def test_findings_that_could_not_be_read_are_said_to_be_missing_from_the_record() -> None:
    history = history_of(snapshot("snap-1", "node-1", "broken", openssl_finding()))
    recording = record_plan(plan_of(action()), history=history, now=NOW)
    assert recording.remarks == (
        '1 finding in the latest snapshots of "node-1" could not be read, so what the records say about these nodes '
        "is incomplete.",
    )
