"""The pass, branch by branch, around real processes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from proving_lab import CANARY_KEY, HOUR, OTHER_KEY, Canary, Lab, open_lab

from pqcota_provision.errors import NodeConfigMalformed, ProofStoreUnavailable
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.configuration import Service
from pqcota_provision.proof.state import Refusal
from pqcota_provision.proof.statement import load_proof
from pqcota_provision.proof.store import DirectoryProofStore, StoredProof
from pqcota_provision.proof.verification import judge

NO_POLICY = ""
REQUIRING = "require: [{app: payments, provers: [canary-1]}]\n"
MALFORMED = "after: soon\n"


@pytest.fixture
def lab(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    needs: Callable[[str], str],
    skip_or_fail: Callable[[str], NoReturn],
) -> Iterator[Lab]:
    with open_lab(tmp_path, tmp_path_factory, needs, skip_or_fail) as lab:
        yield lab


@pytest.fixture
def canary(lab: Lab, tmp_path: Path) -> Canary:
    return Canary(lab, tmp_path)


@pytest.fixture
def veteran(canary: Canary) -> Canary:
    """A canary that has run the first build for two hours."""
    canary.lab.stage("first")
    canary.lab.start()
    canary.lab.let_pass(2 * HOUR)
    return canary


def said(lines: list[str], part: str) -> bool:
    return any(part in line for line in lines)


def test_a_build_that_ran_well_is_recorded_and_proven(veteran: Canary) -> None:
    lines = veteran.run()
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == ["first"]
    assert said(lines, "minted a proof of oqsprovider 0.8.0 (sha256 ")
    data = veteran.store.get("payments", veteran.sha256("first"), "canary-1")
    assert data is not None
    proof = load_proof(data)
    assert (proof.app, proof.provider, proof.platform, proof.version, proof.prover) == (
        "payments",
        "oqsprovider",
        "linux/amd64",
        "0.8.0",
        "canary-1",
    )
    assert proof.active_since < proof.proven_at


def test_a_second_pass_leaves_the_proof_and_says_nothing(veteran: Canary) -> None:
    veteran.run()
    place = ("payments", veteran.sha256("first"), "canary-1")
    before = veteran.store.get(*place)
    veteran.lab.let_pass(HOUR)
    assert veteran.run(hourly=True) == []
    assert veteran.store.get(*place) == before


def test_history_remembers_when_a_build_was_first_and_last_seen_healthy(veteran: Canary) -> None:
    veteran.run()
    veteran.lab.let_pass(HOUR)
    veteran.run()
    (build,) = veteran.state.healthy_builds("payments")
    assert build.how == "live"
    assert build.at < build.last_at


def test_a_build_that_is_too_young_is_neither_recorded_nor_proven(canary: Canary) -> None:
    canary.lab.stage("first")
    canary.lab.start()
    canary.lab.let_pass(HOUR // 2)
    lines = canary.run(hourly=True)
    assert canary.healthy() == canary.proven() == []
    assert said(lines, "payments: not minting yet: ")


def test_history_is_kept_without_any_policy(veteran: Canary) -> None:
    veteran.policy = NO_POLICY
    veteran.run()
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []


def test_a_node_that_proves_other_apps_mints_nothing_for_this_one(veteran: Canary) -> None:
    veteran.policy = veteran.policy.replace("[payments]", "[ledger]")
    lines = veteran.run()
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []
    assert said(lines, "ledger: not minting: the policy proves it, but the registry has no such service")


# Before, during and after the change


def test_the_build_that_a_pass_replaces_is_in_the_history_for_a_later_rollback(veteran: Canary) -> None:
    def deploy() -> int:
        assert veteran.healthy() == ["first"]
        veteran.lab.put_clocks_right()
        veteran.lab.stage("second")
        veteran.lab.start()
        return 0

    lines = veteran.run(deploy)
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []
    assert said(lines, "payments: not minting yet: ")


def test_a_failing_change_does_not_cost_the_proof_and_its_status_comes_through(veteran: Canary) -> None:
    assert veteran.proving_pass().around(lambda: 17) == 17
    assert veteran.proven() == ["first"]


def test_a_change_that_raises_does_not_cost_the_proof(veteran: Canary) -> None:
    def raises() -> int:
        raise RuntimeError("the change broke")

    with pytest.raises(RuntimeError, match="the change broke"):
        veteran.proving_pass().around(raises)
    assert veteran.proven() == ["first"]


def test_a_build_that_changed_and_changed_back_has_to_run_anew(veteran: Canary) -> None:
    def there_and_back() -> int:
        veteran.lab.put_clocks_right()
        veteran.lab.stage("second")
        veteran.lab.start()
        veteran.lab.stage("first")
        veteran.lab.start()
        return 0

    lines = veteran.run(there_and_back)
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []
    assert said(lines, "payments: not minting yet: ")


def test_a_restart_during_the_change_has_to_run_anew(veteran: Canary) -> None:
    def restart() -> int:
        veteran.lab.put_clocks_right()
        veteran.lab.start()
        return 0

    veteran.run(restart)
    assert veteran.proven() == []


def test_a_build_the_change_did_not_touch_keeps_its_first_look(veteran: Canary) -> None:
    """Whatever the probe says after the change: the look that counts was taken before it."""
    veteran.services = (veteran.lab.service.model_copy(update={"ready": "tcp://127.0.0.1:1"}),)
    recorded = veteran.proving_pass().record()
    asked: list[str] = []

    def no_longer(url: str) -> str:
        asked.append(url)
        return "does not answer any more"

    replace(veteran.proving_pass(), probe=no_longer).mint_and_log(recorded)
    assert asked == []
    assert veteran.proven() == ["first"]


def test_a_build_that_only_became_live_by_the_change_is_looked_at_again(canary: Canary) -> None:
    canary.policy = canary.policy.replace("1h", "1s")

    def start() -> int:
        canary.lab.stage("first")
        canary.lab.start()
        canary.lab.let_pass(HOUR)
        return 0

    canary.run(start)
    assert canary.healthy() == ["first"]
    assert canary.proven() == ["first"]


def test_a_service_that_the_change_added_to_the_registry_is_looked_at(veteran: Canary) -> None:
    services, veteran.services = veteran.services, ()

    def register() -> int:
        veteran.services = services
        return 0

    veteran.run(register)
    assert veteran.proven() == ["first"]


def test_a_build_staged_but_not_loaded_is_not_proven(veteran: Canary) -> None:
    def stage() -> int:
        veteran.lab.stage("second")
        return 0

    lines = veteran.run(stage)
    assert veteran.proven() == []
    assert said(lines, f"the census of {veteran.lab.staging} does not hold these bytes")


# A policy that does not parse


def test_a_policy_that_does_not_parse_mints_nothing_and_says_so_every_time(veteran: Canary) -> None:
    veteran.policy = MALFORMED
    for hourly in (True, False, True):
        assert said(veteran.run(hourly=hourly), "nothing is minted until the proof policy can be read: ")
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []


def test_a_policy_that_does_not_parse_records_at_the_default_age(canary: Canary) -> None:
    canary.policy = "after: 10s\nafter: 20s\n"
    canary.lab.stage("first")
    canary.lab.start()
    canary.lab.let_pass(HOUR - 60)
    canary.run()
    assert canary.healthy() == []
    canary.lab.let_pass(60)
    canary.run()
    assert canary.healthy() == ["first"]


def test_a_policy_that_does_not_parse_touches_no_marker(veteran: Canary) -> None:
    veteran.policy = REQUIRING
    veteran.run()
    veteran.policy = REQUIRING + "unknown: 1\n"
    assert not said(veteran.run(hourly=True), "the requirement is off")
    assert veteran.state.required_apps() == ("payments",)


# What stands in the way of minting


def test_without_a_census_minting_is_paused(veteran: Canary) -> None:
    shutil.rmtree(veteran.lab.staging)
    lines = veteran.run(hourly=True)
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []
    assert said(lines, "minting is paused until this node has a census: the staging directory")


def test_an_older_census_does_not_stand_in_for_one_that_cannot_be_taken(veteran: Canary) -> None:
    veteran.policy, proving = NO_POLICY, veteran.policy
    veteran.run()
    assert veteran.state.census() is not None
    veteran.policy = proving
    veteran.lab.staging.chmod(0o777)
    lines = veteran.run()
    assert veteran.proven() == []
    assert said(lines, "it must belong to root and be writable by root only")


@pytest.mark.parametrize("owner", [pytest.param(0, id="writable by others"), pytest.param(65534, id="not root's")])
def test_a_module_that_others_can_exchange_is_not_proven(veteran: Canary, owner: int) -> None:
    os.chown(veteran.lab.module, owner, 0)
    veteran.lab.module.chmod(0o644 if owner else 0o666)
    veteran.lab.let_pass(2 * HOUR)
    lines = veteran.run()
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []
    assert said(lines, "not to root" if owner else "mode 0666")


def test_a_build_this_node_refused_is_never_proven_here(veteran: Canary) -> None:
    veteran.state.prepare(now=_now(veteran))
    veteran.state.refuse(Refusal("ledger", veteran.sha256("first"), "leaks a handle", "2026-01-02T03:04:05Z"))
    lines = veteran.run()
    assert veteran.healthy() == ["first"]
    assert veteran.proven() == []
    assert said(lines, 'this node refused it on 2026-01-02T03:04:05Z for ledger: "leaks a handle"')


def test_a_refusal_of_another_build_stands_in_nobodys_way(veteran: Canary) -> None:
    veteran.state.prepare(now=_now(veteran))
    veteran.state.refuse(Refusal("payments", veteran.sha256("second"), "crashes", "2026-01-02T03:04:05Z"))
    veteran.run()
    assert veteran.proven() == ["first"]


def test_refusals_that_cannot_be_read_mean_no_minting(veteran: Canary) -> None:
    folder = veteran.state_directory / "refusals" / "payments"
    folder.mkdir(parents=True)
    veteran.state_directory.chmod(0o700)
    (folder / f"{'0' * 64}.json").write_text("{")
    lines = veteran.run()
    assert veteran.proven() == []
    assert said(lines, "nothing is minted: ")


def test_a_store_that_cannot_be_read_means_no_minting(veteran: Canary) -> None:
    (veteran.directory / "proofs").write_text("a file where a directory should be")
    lines = veteran.run()
    assert veteran.healthy() == ["first"]
    assert said(lines, "payments: not minting oqsprovider 0.8.0")
    assert said(lines, "cannot be read: Not a directory")


class FailingStore:
    """A store whose disk is full."""

    def get(self, app: str, sha256: str, prover: str) -> bytes | None:
        return None

    def put(self, app: str, sha256: str, prover: str, data: bytes) -> None:
        raise ProofStoreUnavailable("the disk is full")

    def entries(self) -> Iterator[StoredProof]:
        return iter(())


def test_a_put_that_fails_is_said(veteran: Canary) -> None:
    veteran.store = FailingStore()
    assert said(veteran.run(), "the disk is full")


def test_a_proving_key_that_others_may_read_mints_nothing(veteran: Canary) -> None:
    veteran.key_file.chmod(0o640)
    lines = veteran.run()
    assert veteran.proven() == []
    assert said(lines, "has mode 0640; it must be 0600 or 0400")


def test_what_lies_in_the_place_of_a_proof_is_not_taken_for_one(veteran: Canary) -> None:
    veteran.store.put("payments", veteran.sha256("first"), "canary-1", b"not a proof")
    lines = veteran.run()
    assert veteran.store.get("payments", veteran.sha256("first"), "canary-1") == b"not a proof"
    assert said(lines, "what lies in the store in its place is no proof")


def test_a_proof_signed_with_the_key_before_is_pointed_out_and_left(veteran: Canary) -> None:
    veteran.run()
    place = ("payments", veteran.sha256("first"), "canary-1")
    before = veteran.store.get(*place)
    veteran.key_file.write_text(OTHER_KEY.to_text())
    lines = veteran.run()
    assert said(lines, "does not match its signature")
    assert veteran.store.get(*place) == before


# Two passes at once


class RacedStore(DirectoryProofStore):
    """A store in which another pass mints between the question and the answer."""

    def __init__(self, directory: Path, organization: str, other: Canary) -> None:
        super().__init__(directory, organization)
        self._other = other

    def put(self, app: str, sha256: str, prover: str, data: bytes) -> None:
        self._other.run()
        super().put(app, sha256, prover, data)


def test_two_passes_that_race_leave_one_proof_and_no_failure(veteran: Canary) -> None:
    other = Canary(veteran.lab, veteran.directory)
    veteran.store = RacedStore(veteran.directory / "proofs", "acme", other)
    veteran.lab.let_pass(HOUR)
    lines = veteran.run()
    assert said(other.said, "minted a proof of ")
    assert said(lines, "was already minted by another pass")
    assert veteran.proven() == ["first"]


# Markers


def test_a_requirement_leaves_its_marker_and_the_hourly_run_tells_when_it_is_off(veteran: Canary) -> None:
    veteran.policy = REQUIRING
    veteran.run()
    assert veteran.state.required_apps() == ("payments",)
    assert veteran.run(hourly=True) == []
    veteran.policy = NO_POLICY
    assert veteran.run(hourly=True) == [
        "payments: the requirement is off: this node once required a proof and no longer does; "
        "1 healthy build on record."
    ]


def test_a_requirement_switched_on_and_off_between_two_hourly_runs_leaves_its_trail(veteran: Canary) -> None:
    veteran.policy = NO_POLICY
    assert not said(veteran.run(hourly=True), "requirement")
    veteran.policy = REQUIRING
    veteran.run()
    veteran.policy = NO_POLICY
    assert said(veteran.run(hourly=True), "payments: the requirement is off")


def test_only_the_hourly_run_tells_that_a_requirement_is_off(veteran: Canary) -> None:
    veteran.policy = REQUIRING
    veteran.run()
    veteran.policy = NO_POLICY
    assert not said(veteran.run(), "the requirement is off")


def test_a_node_that_never_required_a_proof_stays_quiet(veteran: Canary) -> None:
    veteran.policy = NO_POLICY
    veteran.run()
    assert veteran.run(hourly=True) == []


def test_an_app_without_healthy_history_is_no_news(canary: Canary) -> None:
    canary.policy = REQUIRING
    canary.run()
    canary.policy = NO_POLICY
    assert canary.run(hourly=True) == []


def test_a_requirement_leaves_its_marker_though_the_registry_cannot_be_read(
    canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> tuple[Service, ...]:
        raise NodeConfigMalformed("services is missing")

    monkeypatch.setattr(canary, "read_services", unreadable)
    canary.policy = REQUIRING
    lines = canary.run()
    assert lines == ["no service is looked at: services is missing."]
    assert canary.state.required_apps() == ("payments",)


# The state directory


def test_a_state_directory_that_others_can_write_to_is_not_trusted_and_the_change_still_happens(
    veteran: Canary,
) -> None:
    veteran.state_directory.mkdir(mode=0o700)
    veteran.state_directory.chmod(0o777)
    done: list[bool] = []

    def change() -> int:
        done.append(True)
        return 5

    veteran.said.clear()
    assert veteran.proving_pass().around(change) == 5
    assert done == [True]
    assert [line for line in veteran.said if "nothing is recorded and nothing minted" in line] == veteran.said
    assert len(veteran.said) == 1
    assert list(veteran.state_directory.iterdir()) == []


def test_the_history_and_the_census_are_for_root_only(veteran: Canary) -> None:
    veteran.run()
    assert veteran.state_directory.stat().st_mode & 0o777 == 0o700
    census = veteran.state_directory / "census.json"
    assert census.stat().st_mode & 0o777 == 0o600
    assert json.loads(census.read_text())["modules"] == [
        {"name": "oqsprovider.so", "sha256": veteran.sha256("first"), "owner": 0, "group": 0, "mode": "0644"}
    ]


def test_a_proof_holds_under_the_provers_public_key_and_no_other(veteran: Canary) -> None:
    veteran.run()
    (stored,) = veteran.store.entries()
    assert judge(stored, {"canary-1": CANARY_KEY.public}).holds
    assert not judge(stored, {"canary-1": OTHER_KEY.public}).holds


def _now(canary: Canary) -> Timestamp:
    return Timestamp.from_nanoseconds(canary.lab.present().wall)
