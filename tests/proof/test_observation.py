"""Looking at real processes: what counts is what is mapped, whatever lies at the path by now."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from proving_lab import HOUR, NANOS, Ahead, Daemon, Lab, open_lab

from pqcota_provision.proof.configuration import Service
from pqcota_provision.proof.look import Look, is_still_live, look_at


@pytest.fixture
def lab(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    needs: Callable[[str], str],
    skip_or_fail: Callable[[str], NoReturn],
) -> Iterator[Lab]:
    with open_lab(tmp_path, tmp_path_factory, needs, skip_or_fail) as lab:
        yield lab


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def look(lab: Lab, service: Service | None = None, after: int = HOUR) -> Look:
    return look_at(service or lab.service, after, lab.node, lambda _: None)


def test_a_module_that_ran_long_enough_is_evidence_of_its_bytes_since_its_start(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    started = lab.present().wall
    lab.let_pass(2 * HOUR)
    evidence = look(lab).evidence
    assert evidence is not None
    assert evidence.sha256 == sha256(lab.modules["first"])
    assert abs(evidence.running_since.seconds - started // NANOS) <= 2


def test_a_file_replaced_while_mapped_is_not_mistaken_for_what_runs(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    lab.stage("second")
    lab.let_pass(2 * HOUR)
    evidence = look(lab).evidence
    assert sha256(lab.module) == sha256(lab.modules["second"])
    assert evidence is not None
    assert evidence.sha256 == sha256(lab.modules["first"])


def test_a_mapped_file_that_was_deleted_is_still_hashed(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    lab.module.unlink()
    lab.let_pass(2 * HOUR)
    evidence = look(lab).evidence
    assert evidence is not None
    assert evidence.sha256 == sha256(lab.modules["first"])


def test_replacing_a_file_does_not_take_from_the_age_of_the_bytes_that_still_run(lab: Lab) -> None:
    """Unlinking changes the inode, but not the bytes in it."""
    lab.stage("first")
    written = time.time_ns() - 10 * HOUR * NANOS
    os.utime(lab.module, ns=(written, written))
    lab.start()
    lab.stage("second")
    lab.ahead = Ahead(wall=0, monotonic=2 * HOUR, boot=2 * HOUR)
    evidence = look(lab).evidence
    assert evidence is not None
    assert evidence.sha256 == sha256(lab.modules["first"])


def test_a_restart_onto_a_new_build_starts_its_time_anew(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    lab.stage("second")
    lab.start()
    lab.let_pass(HOUR // 2)
    found = look(lab)
    assert found.evidence is None
    assert "of 1h" in found.obstacle
    lab.let_pass(HOUR)
    later = look(lab).evidence
    assert later is not None
    assert later.sha256 == sha256(lab.modules["second"])


@pytest.mark.parametrize("keeps_times", [pytest.param(False, id="plain"), pytest.param(True, id="times put back")])
def test_bytes_overwritten_in_place_do_not_inherit_the_age_of_the_process(lab: Lab, keeps_times: bool) -> None:
    """The process maps the new bytes at once, and has run them for no time at all."""
    lab.stage("first")
    lab.start()
    before = lab.module.stat()
    new = lab.modules["second"].read_bytes()
    assert len(new) == before.st_size
    with open(lab.module, "r+b") as file:
        file.write(new)
    if keeps_times:
        os.utime(lab.module, ns=(before.st_atime_ns, before.st_mtime_ns - 10 * HOUR * NANOS))
    lab.ahead = Ahead(wall=HOUR // 2, monotonic=2 * HOUR, boot=2 * HOUR)
    found = look(lab, after=HOUR)
    assert found.evidence is None
    assert "oqsprovider.so has been untouched for 30m of 1h" in found.obstacle


def test_bytes_overwritten_in_place_count_from_then_on(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    with open(lab.module, "r+b") as file:
        file.write(lab.modules["second"].read_bytes())
    lab.ahead = Ahead(wall=HOUR, monotonic=2 * HOUR, boot=2 * HOUR)
    evidence = look(lab, after=HOUR // 2).evidence
    assert evidence is not None
    assert evidence.sha256 == sha256(lab.modules["second"])
    assert evidence.running_since.seconds == lab.module.stat().st_ctime_ns // NANOS


def test_a_process_younger_than_its_unit_counts_from_its_own_start(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    lab.ahead = Ahead(wall=2 * HOUR, monotonic=2 * HOUR, boot=HOUR // 2)
    assert "its main process has run for 30m" in look(lab).obstacle


def test_a_file_that_is_only_read_is_no_running_code(lab: Lab) -> None:
    lab.stage("first")
    lab.start(as_data=True)
    lab.let_pass(2 * HOUR)
    assert "as data only" in look(lab).obstacle


def test_a_jar_is_accepted_as_data_since_a_jvm_maps_it_so(lab: Lab) -> None:
    jar = lab.stage("first", "acme.jar")
    lab.start(module=jar, as_data=True)
    lab.let_pass(2 * HOUR)
    evidence = look(lab, lab.service.model_copy(update={"module": str(jar)})).evidence
    assert evidence is not None
    assert evidence.sha256 == sha256(jar)


def test_a_service_that_never_loaded_its_module_is_no_evidence(lab: Lab) -> None:
    lab.stage("first")
    other = lab.stage("second", "other.so")
    lab.start(module=other)
    lab.let_pass(2 * HOUR)
    assert f"has not mapped {lab.module}" in look(lab).obstacle


def test_a_module_reached_through_a_link_is_found(lab: Lab, tmp_path: Path) -> None:
    lab.stage("first")
    link = tmp_path / "linked.so"
    link.symlink_to(lab.module)
    lab.start(module=link)
    lab.let_pass(2 * HOUR)
    assert look(lab, lab.service.model_copy(update={"module": str(link)})).evidence is not None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"ActiveState": "failed", "MainPID": "0"}, "is failed, not active", id="failed"),
        pytest.param({"ActiveState": "activating"}, "is activating, not active", id="starting"),
        pytest.param({"MainPID": "0"}, "has no main process", id="no main process"),
        pytest.param({"LoadState": "masked"}, "(masked)", id="masked"),
        pytest.param({"InvocationID": ""}, "does not tell since when", id="no invocation"),
        pytest.param({"ActiveEnterTimestampMonotonic": "0"}, "does not tell since when", id="no time"),
        pytest.param({"MainPID": "4194304"}, "cannot be looked at", id="process gone"),
        pytest.param({"MainPID": "none"}, "something else than a number", id="unreadable number"),
    ],
)
def test_a_unit_that_does_not_run_is_no_evidence(lab: Lab, change: dict[str, str], expected: str) -> None:
    lab.stage("first")
    lab.start()
    lab.systemd.change("payments.service", **change)
    lab.let_pass(2 * HOUR)
    found = look(lab)
    assert found.evidence is None
    assert expected in found.obstacle


def test_a_unit_that_systemd_does_not_know_is_no_evidence(lab: Lab) -> None:
    assert "systemd has no unit payments.service to run (not-found)" in look(lab).obstacle


def test_a_restart_during_the_look_spoils_it(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    lab.let_pass(2 * HOUR)

    def restart(_: str) -> None:
        lab.start()

    service = lab.service.model_copy(update={"ready": "tcp://127.0.0.1:1"})
    found = look_at(service, HOUR, lab.node, restart)
    assert found.evidence is None
    assert "changed while it was looked at" in found.obstacle


def test_a_service_that_is_not_ready_is_no_evidence(lab: Lab) -> None:
    lab.stage("first")
    lab.start()
    lab.let_pass(2 * HOUR)
    service = lab.service.model_copy(update={"ready": "tcp://127.0.0.1:1"})
    found = look_at(service, HOUR, lab.node, lambda url: f"says no to {url}")
    assert found.obstacle == "its ready probe tcp://127.0.0.1:1 says no to tcp://127.0.0.1:1"


def _restart(lab: Lab) -> None:
    lab.start()


def _new_invocation(lab: Lab) -> None:
    lab.systemd.change("payments.service", InvocationID="f" * 32)


def _overwrite(lab: Lab) -> None:
    with open(lab.module, "r+b") as file:
        file.write(lab.modules["second"].read_bytes())


def _replace(lab: Lab) -> None:
    lab.stage("second")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_restart, id="restarted onto the same bytes"),
        pytest.param(_new_invocation, id="another invocation"),
        pytest.param(_overwrite, id="overwritten in place"),
        pytest.param(_replace, id="replaced while mapped"),
    ],
)
def test_whatever_touched_a_build_makes_it_another_look(lab: Lab, change: Callable[[Lab], None]) -> None:
    lab.stage("first")
    lab.start()
    lab.let_pass(2 * HOUR)
    live = look(lab).live
    assert live is not None
    assert is_still_live(live, lab.node)
    change(lab)
    assert not is_still_live(live, lab.node)


def test_two_files_mapped_under_one_name_are_not_told_apart_by_luck(lab: Lab) -> None:
    lab.stage("first")
    twice = (
        "import ctypes, sys\nctypes.CDLL(sys.argv[1])\nprint('loaded', flush=True)\nsys.stdin.readline()\n"
        "ctypes.CDLL(sys.argv[2])\nprint('again', flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        # The loader takes the same path twice for the same module.
        [sys.executable, "-I", "-S", "-c", twice, str(lab.module), f"{lab.staging}/./{lab.module.name}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"loaded\n"
        lab.stage("second")
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"again\n"
        lab.systemd.started("payments.service", process.pid)
        lab.let_pass(2 * HOUR)
        assert "2 different files" in look(lab).obstacle
    finally:
        process.communicate()


def test_the_bytes_of_a_daemon_survive_the_removal_of_its_directory(lab: Lab, tmp_path: Path) -> None:
    directory = tmp_path / "release"
    directory.mkdir()
    module = directory / "oqsprovider.so"
    shutil.copy(lab.modules["third"], module)
    daemon = Daemon(module)
    try:
        shutil.rmtree(directory)
        (mapped,) = lab.node.mapped_files(daemon.pid, str(module))
        assert mapped.deleted
        assert lab.node.sha256(mapped) == sha256(lab.modules["third"])
    finally:
        daemon.stop()
