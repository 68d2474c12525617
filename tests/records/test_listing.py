from __future__ import annotations

from dataclasses import replace

import pytest
from record_samples import DIGEST, NOW, RECORD, by_content

from pqcota_provision.plan.model import CryptoState, ProvisioningRecord, SnapshotReference, SnapshotResolution
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.listing import record_lines
from pqcota_provision.records.store import StoredRecord


def listed(record: ProvisioningRecord, **stored: object) -> list[str]:
    return list(record_lines(StoredRecord(1, record, **stored)))  # type: ignore[arg-type]


def test_a_record_is_readable_at_a_glance() -> None:
    assert listed(replace(RECORD, after=CryptoState(modules=("openssl@3.5.0",)), note="by hand")) == [
        "plan-1:a1  STAGED  2026-01-02T03:04:05.678901234Z",
        "  node       node-1",
        "  plan       plan-1",
        "  apps       payments, ledger",
        "  before     jca:SUN, openssl@3.0.13",
        "             provider order SUN",
        "  snapshot   snap-1 (from id snap-1 of node-1)",
        "  snapshot   UNRESOLVED the plan's snap-0: there is none",
        "  after      openssl@3.5.0",
        "  note       by hand",
    ]


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        pytest.param(None, "not known: the history held no snapshot of the node", id="no snapshot"),
        pytest.param(CryptoState(), "no module found", id="an empty node"),
    ],
)
def test_what_is_not_known_is_not_shown_as_empty(before: CryptoState | None, shown: str) -> None:
    assert f"  before     {shown}" in listed(replace(RECORD, before=before))


@pytest.mark.parametrize(
    ("resolution", "shown"),
    [
        pytest.param(
            SnapshotResolution(submitted=by_content().snapshot, resolved_snapshot_id="snap-7"),
            f"snap-7 (from content {DIGEST} under rules/1 of node-1)",
            id="by content",
        ),
        pytest.param(
            SnapshotResolution(legacy_plan_snapshot_id="snap-0", resolved_snapshot_id="snap-0"),
            "snap-0 (from the plan's snap-0)",
            id="by the plan",
        ),
        pytest.param(SnapshotResolution(), "UNRESOLVED no reference: no reason was kept", id="nothing at all"),
        pytest.param(
            SnapshotResolution(submitted=SnapshotReference(source_node_id="n"), reason="why"),
            "UNRESOLVED a reference to n that names no snapshot: why",
            id="no snapshot named",
        ),
    ],
)
def test_a_reference_is_shown_with_what_it_was_found_as(resolution: SnapshotResolution, shown: str) -> None:
    assert f"  snapshot   {shown}" in listed(replace(RECORD, snapshot_resolutions=(resolution,)))


def test_stored_text_cannot_forge_a_line_or_steer_the_terminal() -> None:
    nasty = "\x1b[2J\nplan-9:a9  ACTIVATED\u202e"
    everywhere = ProvisioningRecord(
        id=nasty,
        node_id=nasty,
        app_keys=(nasty,),
        plan_id=nasty,
        before=CryptoState(modules=(nasty,), provider_chain=(nasty,), config_digest=nasty, config_snapshot_ref=nasty),
        after=CryptoState(modules=(nasty,)),
        note=nasty,
        at=NOW,
        snapshot_resolutions=(
            SnapshotResolution(submitted=SnapshotReference(source_node_id=nasty, snapshot_id=nasty), reason=nasty),
            SnapshotResolution(submitted=by_content(nasty, node=nasty, ruleset=nasty).snapshot),
            SnapshotResolution(legacy_plan_snapshot_id=nasty, resolved_snapshot_id=nasty),
        ),
    )
    lines = listed(everywhere)
    assert not [line for line in lines if any(character in line for character in "\x1b\n\u202e")]
    assert sum("\\u001b" in line for line in lines) == len(lines)


def test_a_status_of_a_newer_version_is_shown_as_its_number() -> None:
    assert listed(replace(RECORD, status=17))[0].split("  ")[1] == "17"


def test_a_record_without_a_time_of_its_own_shows_when_it_was_stored() -> None:
    first = listed(replace(RECORD, at=None), stored_at=Timestamp.parse("2026-02-03T00:00:00Z"))[0]
    assert first.endswith("  2026-02-03T00:00:00Z")


def test_what_a_newer_version_wrote_is_not_passed_over_in_silence() -> None:
    assert "--json shows all of it" in listed(RECORD, newer_json="{}")[-1]
