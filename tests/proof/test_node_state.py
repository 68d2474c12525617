"""What a node remembers, and who may write to it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pqcota_provision.errors import NodeStateUnusable
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.census import Census, CensusEntry
from pqcota_provision.proof.state import HealthyBuild, NodeState, Refusal

NOW = Timestamp.parse("2026-01-02T03:04:05Z")
FIRST, SECOND = "1" * 64, "2" * 64


@pytest.fixture
def state(tmp_path: Path) -> NodeState:
    state = NodeState(tmp_path / "state", "acme")
    state.prepare(now=NOW)
    return state


def healthy(sha256: str, at: str, app: str = "payments") -> HealthyBuild:
    return HealthyBuild(app, "oqsprovider", sha256, "0.8.0", "live", at=at, last_at=at)


def test_a_build_enters_the_history_once_and_keeps_its_first_time(state: NodeState) -> None:
    assert state.record_healthy(healthy(FIRST, "2026-01-01T00:00:00Z"))
    assert not state.record_healthy(healthy(FIRST, "2026-01-02T00:00:00Z"))
    (build,) = state.healthy_builds("payments")
    assert (build.at, build.last_at) == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")


def test_the_history_is_in_the_order_in_which_builds_ran(state: NodeState) -> None:
    state.record_healthy(healthy(SECOND, "2026-01-01T00:00:00Z"))
    state.record_healthy(healthy(FIRST, "2026-01-02T00:00:00Z"))
    state.record_healthy(healthy(FIRST, "2026-01-03T00:00:00Z", app="ledger"))
    assert [(build.app, build.sha256) for build in state.healthy_builds()] == [
        ("ledger", FIRST),
        ("payments", SECOND),
        ("payments", FIRST),
    ]


def test_organizations_keep_separate_histories(state: NodeState, tmp_path: Path) -> None:
    state.record_healthy(healthy(FIRST, "2026-01-01T00:00:00Z"))
    assert NodeState(tmp_path / "state", "globex").healthy_builds() == ()


def test_a_refusal_holds_for_the_node_whatever_the_organization(state: NodeState, tmp_path: Path) -> None:
    refusal = Refusal("payments", FIRST, "leaks", "2026-01-01T00:00:00Z")
    state.refuse(refusal)
    assert NodeState(tmp_path / "state", "globex").refusals() == (refusal,)


def test_a_later_refusal_of_the_same_build_gives_the_reason(state: NodeState) -> None:
    state.refuse(Refusal("payments", FIRST, "leaks", "2026-01-01T00:00:00Z"))
    state.refuse(Refusal("payments", FIRST, "crashes", "2026-01-02T00:00:00Z"))
    assert [refusal.reason for refusal in state.refusals()] == ["crashes"]


def test_a_census_is_kept_as_it_was_taken(state: NodeState) -> None:
    assert state.census() is None
    census = Census("/opt/pqcota", "2026-01-01T00:00:00Z", (CensusEntry("a.so", FIRST, 0, 0, 0o644),))
    state.keep_census(census)
    assert state.census() == census


def test_a_marker_stays_as_it_was_left(state: NodeState, tmp_path: Path) -> None:
    state.mark_required("payments")
    path = tmp_path / "state" / "proof-required" / "payments"
    before = path.stat()
    state.mark_required("payments")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert state.required_apps() == ("payments",)


def test_everything_is_for_its_owner_only(state: NodeState, tmp_path: Path) -> None:
    state.record_healthy(healthy(FIRST, "2026-01-01T00:00:00Z"))
    state.refuse(Refusal("payments", FIRST, "leaks", "2026-01-01T00:00:00Z"))
    state.mark_required("payments")
    for folder, names, files in os.walk(tmp_path / "state"):
        for name in (*names, *files):
            assert os.stat(os.path.join(folder, name)).st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o1777])
def test_a_directory_that_others_may_enter_is_refused_and_left_as_it_is(tmp_path: Path, mode: int) -> None:
    """It may be a directory of somebody else's, named by mistake."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(mode)
    with pytest.raises(NodeStateUnusable, match=f"mode {mode:04o}; it must belong to root with mode 0700"):
        NodeState(tmp_path / "state", "acme").prepare(now=NOW)
    assert (tmp_path / "state").stat().st_mode & 0o7777 == mode


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NodeStateUnusable, match="cannot be used: Not a directory"):
        NodeState(tmp_path / "file" / "state", "acme").prepare(now=NOW)


RECORD = json.dumps(healthy(FIRST, "2026-01-01T00:00:00Z").document())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(RECORD[:-5], id="cut"),
        pytest.param("[]", id="list"),
        pytest.param("null", id="null"),
        pytest.param('{"app": "payments"}', id="fields missing"),
        pytest.param(RECORD.replace('"live"', "1"), id="number"),
        pytest.param("[" * 10_000, id="deep"),
        pytest.param(RECORD + " " * (1 << 20), id="large"),
    ],
)
def test_a_record_that_is_damaged_is_named_and_not_skipped(state: NodeState, tmp_path: Path, text: str) -> None:
    state.record_healthy(healthy(FIRST, "2026-01-01T00:00:00Z"))
    (tmp_path / "state" / "healthy" / "acme" / "payments" / f"{FIRST}.json").write_text(text)
    with pytest.raises(NodeStateUnusable, match=FIRST):
        state.healthy_builds()


def test_new_evidence_takes_the_place_of_a_damaged_record(state: NodeState, tmp_path: Path) -> None:
    state.record_healthy(healthy(FIRST, "2026-01-01T00:00:00Z"))
    (tmp_path / "state" / "healthy" / "acme" / "payments" / f"{FIRST}.json").write_text("{")
    assert state.record_healthy(healthy(FIRST, "2026-01-02T00:00:00Z"))
    assert [build.at for build in state.healthy_builds()] == ["2026-01-02T00:00:00Z"]


def test_what_killed_writers_left_is_removed_once_it_is_old(state: NodeState, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "refusals"
    folder.mkdir()
    old, fresh = folder / ".a.json.1.tmp", folder / ".b.json.2.tmp"
    for path, age in ((old, 7200), (fresh, 60)):
        path.write_text("{")
        os.utime(path, (NOW.seconds - age, NOW.seconds - age))
    state.prepare(now=NOW)
    assert not old.exists()
    assert fresh.exists()
