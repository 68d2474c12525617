"""What ``systemctl show`` says, as recorded, and what to make of it when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from proving_lab import RECORDED_ACTIVE, RECORDED_NOT_FOUND

from pqcota_provision.errors import NodeUnreadable
from pqcota_provision.proof.node import UNIT_PROPERTIES, UnitState, parse_unit, systemctl_show


def test_a_running_unit_is_read_as_recorded() -> None:
    assert parse_unit(RECORDED_ACTIVE) == UnitState(
        load_state="loaded",
        active_state="active",
        invocation_id="0515ad62e3724a928c34127c16d594ef",
        main_pid=62,
        active_enter=1_730_798_415_000,
    )


def test_a_unit_that_does_not_exist_is_read_as_recorded() -> None:
    assert parse_unit(RECORDED_NOT_FOUND) == UnitState("not-found", "inactive", "", 0, 0)


@pytest.mark.parametrize("name", UNIT_PROPERTIES)
def test_a_property_that_is_not_told_is_not_guessed(name: str) -> None:
    text = "".join(line + "\n" for line in RECORDED_ACTIVE.splitlines() if not line.startswith(f"{name}="))
    with pytest.raises(NodeUnreadable, match=name):
        parse_unit(text)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("MainPID=-1", id="negative process"),
        pytest.param("MainPID=", id="empty process"),
        pytest.param("MainPID=²", id="digit of another kind"),
        pytest.param("ActiveEnterTimestampMonotonic=n/a", id="no time"),
    ],
)
def test_a_number_that_is_none_is_not_guessed(line: str) -> None:
    name = line.partition("=")[0]
    text = "\n".join(line if old.startswith(f"{name}=") else old for old in RECORDED_ACTIVE.splitlines())
    with pytest.raises(NodeUnreadable, match="something else than a number"):
        parse_unit(text)


def test_an_invocation_that_is_no_id_is_none() -> None:
    assert parse_unit(RECORDED_ACTIVE.replace("0515ad62e3724a928c34127c16d594ef", "today")).invocation_id == ""


def systemctl(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    command = directory / "systemctl"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))


def test_systemctl_is_asked_for_the_unit_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl(tmp_path, monkeypatch, 'for word in "$@"; do echo "$word"; done')
    assert systemctl_show("payments.service").splitlines() == [
        "show",
        "--property=LoadState,ActiveState,InvocationID,MainPID,ActiveEnterTimestampMonotonic",
        "--",
        "payments.service",
    ]


def test_a_failing_systemctl_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl(tmp_path, monkeypatch, "echo 'System has not been booted with systemd' >&2; exit 1")
    with pytest.raises(NodeUnreadable, match='status 1: "System has not been booted with systemd"'):
        systemctl_show("payments.service")


def test_a_machine_without_systemctl_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeUnreadable, match="systemctl cannot be run: No such file or directory"):
        systemctl_show("payments.service")


def test_a_systemctl_that_hangs_is_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl(tmp_path, monkeypatch, "exec /bin/sleep 60")
    monkeypatch.setattr("pqcota_provision.proof.node.SYSTEMCTL_SECONDS", 0.2)
    with pytest.raises(NodeUnreadable, match=r"gave no answer within 0\.2 s"):
        systemctl_show("payments.service")
