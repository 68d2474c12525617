from __future__ import annotations

import hashlib
import stat
from typing import Any

import pytest
from sandbox import NODE, Sandbox

from pqcota_provision.plan.model import (
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.playbook.generate import Direction
from pqcota_provision.playbook.layout import lay_out
from pqcota_provision.playbook.levels import Level

pytestmark = pytest.mark.real

MODULE = "/opt/pqcota/oqsprovider.so"
FRAGMENT = "/etc/pqcota/openssl-pqc.cnf"
L3 = DeployAutomationLevel.L3_FULL_AUTO


def plan(*actions: RemediationAction) -> FinalizedPlan:
    return FinalizedPlan(
        id="p1", status=PlanStatus.FINALIZED, actions=actions, approval_signatures=("reviewer-1:ed25519:AAAA",)
    )


def injection(**fields: Any) -> RemediationAction:
    defaults: dict[str, Any] = {
        "id": "a1",
        "target_node_id": NODE,
        "crypto_runtime": CryptoRuntime.OPENSSL,
        "kind": RemediationKind.PROVIDER_INJECT,
        "automation_level": DeployAutomationLevel.L2_STAGE_INSTALL,
        "target_algorithm": "ML-KEM",
        "provider_choice": "oqsprovider",
    }
    return RemediationAction(**{**defaults, **fields})


def jca_injection(**fields: Any) -> RemediationAction:
    return injection(**{"id": "j1", "crypto_runtime": CryptoRuntime.JCA, "provider_choice": "BC", **fields})


def service_hooks(sandbox: Sandbox, **hooks: str) -> ActivationHooks:
    """Return hooks that stop, switch and start the service which the state file stands for."""
    state = sandbox.state
    defaults = {
        "pre": f"echo stopped >> '{state}'",
        "activate": f"echo activated >> '{state}'",
        "deactivate": f"echo deactivated >> '{state}'",
        "restart": f"echo running >> '{state}'",
    }
    return ActivationHooks(**{**defaults, **hooks})


def l3_injection(sandbox: Sandbox, **hooks: str) -> RemediationAction:
    return injection(automation_level=L3, activation=service_hooks(sandbox, **hooks))


def history(sandbox: Sandbox) -> list[str]:
    return sandbox.state.read_text().split() if sandbox.state.exists() else []


def expected_files(subject: FinalizedPlan, modules: dict[str, bytes]) -> dict[str, bytes]:
    placed = {file.path: file.text.encode() for layout in lay_out(subject, Level.L2) for file in layout.files}
    return dict(sorted({**modules, **placed}.items(), key=lambda item: (not item[0].startswith("/opt"), item[0])))


def test_a_node_gets_exactly_the_files_of_the_plan(sandbox: Sandbox) -> None:
    subject = plan(injection(), jca_injection())
    modules = {
        MODULE: sandbox.supply("oqsprovider.so", b"\x7fELF\x00\xff"),
        "/opt/pqcota/BC.jar": sandbox.supply("BC.jar"),
    }
    outcome = sandbox.run(subject)
    assert (outcome.status, sandbox.files()) == (0, expected_files(subject, modules)), outcome.output
    modes = {path: stat.S_IMODE(sandbox.on_node(path).stat().st_mode) for path in (*sandbox.files(), "/opt/pqcota")}
    assert modes == {**dict.fromkeys(sandbox.files(), 0o644), "/opt/pqcota": 0o755}


def test_applying_again_changes_nothing(sandbox: Sandbox) -> None:
    subject = plan(injection(), jca_injection())
    sandbox.supply("oqsprovider.so")
    sandbox.supply("BC.jar")
    sandbox.run(subject)
    again = sandbox.run(subject)
    assert (again.status, again.changed) == (0, 0), again.output


def test_applying_an_l3_plan_again_changes_nothing_but_runs_its_hooks(sandbox: Sandbox) -> None:
    subject = plan(l3_injection(sandbox))
    sandbox.supply("oqsprovider.so")
    sandbox.run(subject)
    again = sandbox.run(subject)
    assert (again.status, again.changed, history(sandbox)) == (0, 3, ["stopped", "activated", "running"] * 2)
    assert sandbox.leftovers() == []


@pytest.mark.parametrize("level", [DeployAutomationLevel.L1_STAGE_ONLY, DeployAutomationLevel.L2_STAGE_INSTALL, L3])
def test_check_mode_on_a_bare_node_succeeds_and_writes_nothing(sandbox: Sandbox, level: DeployAutomationLevel) -> None:
    sandbox.supply("oqsprovider.so")
    action = injection(automation_level=level, activation=service_hooks(sandbox))
    outcome = sandbox.run(plan(action), "--check", "--diff")
    assert (outcome.status, sandbox.files(), history(sandbox)) == (0, {}, []), outcome.output


def test_check_mode_over_another_version_of_the_module_succeeds(sandbox: Sandbox) -> None:
    subject = plan(l3_injection(sandbox))
    sandbox.supply("oqsprovider.so", b"old")
    sandbox.run(subject)
    digest = hashlib.sha256(sandbox.supply("oqsprovider.so", b"new")).hexdigest()
    outcome = sandbox.run(subject, "--check", "-e", f"pqcota_module_sha256_oqsprovider={digest}")
    assert (outcome.status, sandbox.files()[MODULE]) == (0, b"old"), outcome.output


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param("pqcota_module_sha256_oqsprovider=" + "0" * 64, id="of-the-module"),
        pytest.param("pqcota_module_sha256=" + "0" * 64, id="of-all-modules"),
        pytest.param("pqcota_module_sha256_oqsprovider=", id="empty"),
    ],
)
@pytest.mark.parametrize("level", [DeployAutomationLevel.L2_STAGE_INSTALL, L3])
def test_a_module_of_another_hash_changes_nothing_on_the_node(
    sandbox: Sandbox, expected: str, level: DeployAutomationLevel
) -> None:
    sandbox.supply("oqsprovider.so")
    action = injection(automation_level=level, activation=service_hooks(sandbox))
    outcome = sandbox.run(plan(action), "-e", expected)
    assert (outcome.status, sandbox.files(), history(sandbox)) == (2, {}, []), outcome.output
    assert "Nothing was changed on this node" in outcome.output


def test_a_module_of_the_right_hash_is_staged_whatever_the_case_of_its_digits(sandbox: Sandbox) -> None:
    digest = hashlib.sha256(sandbox.supply("oqsprovider.so")).hexdigest().upper()
    outcome = sandbox.run(plan(injection()), "-e", f"pqcota_module_sha256_oqsprovider={digest}")
    assert (outcome.status, sandbox.files()[MODULE]) == (0, b"a module"), outcome.output


@pytest.mark.parametrize("level", [DeployAutomationLevel.L1_STAGE_ONLY, L3])
def test_a_missing_module_is_found_before_anything_is_changed(sandbox: Sandbox, level: DeployAutomationLevel) -> None:
    action = injection(automation_level=level, activation=service_hooks(sandbox))
    outcome = sandbox.run(plan(action))
    assert (outcome.status, sandbox.files(), history(sandbox)) == (2, {}, []), outcome.output
    assert not (sandbox.opt / "pqcota").exists()


def test_a_folder_named_as_module_source_is_not_copied_to_the_node(sandbox: Sandbox) -> None:
    outcome = sandbox.run(plan(injection()), "-e", f"pqcota_module_src_oqsprovider={sandbox.controller}")
    assert (outcome.status, sandbox.files()) == (2, {}), outcome.output


FAILURES = [
    pytest.param({"pre": "exit 1"}, "Run the pre hook", ["running"], id="pre"),
    pytest.param({"activate": "exit 1"}, "Run the activate hook", ["stopped", "deactivated", "running"], id="activate"),
    pytest.param(
        {"restart": "if test -e {once}; then echo running >> '{state}'; else : > {once}; exit 1; fi"},
        "Run the restart hook",
        ["stopped", "activated", "deactivated", "running"],
        id="restart-once",
    ),
    pytest.param(
        {"activate": "exit 1", "deactivate": "exit 1"},
        "Run the activate hook",
        ["stopped", "running"],
        id="activate-and-then-deactivate",
    ),
]


@pytest.mark.parametrize("previous", [True, False], ids=["over-a-previous-version", "on-a-bare-node"])
@pytest.mark.parametrize(("hooks", "step", "expected"), FAILURES)
def test_a_hook_that_fails_leaves_the_files_as_before_and_the_service_running(
    sandbox: Sandbox, previous: bool, hooks: dict[str, str], step: str, expected: list[str]
) -> None:
    if previous:
        sandbox.supply("oqsprovider.so", b"\x00old\xff")
        sandbox.run(plan(injection(target_algorithm="Kyber")))
        sandbox.on_node(FRAGMENT).chmod(0o600)
    before = sandbox.files()
    names = {"state": str(sandbox.state), "once": str(sandbox.root / "once")}
    filled = {
        name: command.replace("{state}", names["state"]).replace("{once}", names["once"])
        for name, command in hooks.items()
    }
    sandbox.supply("oqsprovider.so", b"new")
    outcome = sandbox.run(plan(l3_injection(sandbox, **filled)))
    assert (outcome.status, sandbox.files(), history(sandbox)) == (2, before, expected), outcome.output
    assert f"This step failed: {step}" in outcome.output
    assert sandbox.leftovers() == []
    if previous:
        assert stat.S_IMODE(sandbox.on_node(FRAGMENT).stat().st_mode) == 0o600


def test_a_file_that_cannot_be_placed_leaves_the_module_as_before(sandbox: Sandbox) -> None:
    subject = plan(l3_injection(sandbox, pre=f"echo stopped >> '{sandbox.state}'; rm -r /etc/pqcota; : > /etc/pqcota"))
    sandbox.supply("oqsprovider.so", b"new")
    outcome = sandbox.run(subject)
    assert (outcome.status, MODULE in sandbox.files(), history(sandbox)[-1]) == (2, False, "running"), outcome.output
    assert "This step failed: Place the OpenSSL fragment" in outcome.output


def test_what_is_no_regular_file_is_not_replaced(sandbox: Sandbox) -> None:
    (sandbox.opt / "pqcota").mkdir()
    (sandbox.opt / "pqcota" / "oqsprovider.so").symlink_to("/opt/elsewhere.so")
    sandbox.supply("oqsprovider.so")
    outcome = sandbox.run(plan(l3_injection(sandbox)))
    assert (outcome.status, history(sandbox)) == (2, []), outcome.output
    assert (sandbox.opt / "pqcota" / "oqsprovider.so").is_symlink()


@pytest.mark.parametrize("level", [DeployAutomationLevel.L2_STAGE_INSTALL, L3])
def test_a_rollback_leaves_no_file_of_the_plan(sandbox: Sandbox, level: DeployAutomationLevel) -> None:
    hooks = service_hooks(sandbox)
    subject = plan(
        injection(automation_level=level, activation=hooks), jca_injection(automation_level=level, activation=hooks)
    )
    sandbox.supply("oqsprovider.so")
    sandbox.supply("BC.jar")
    sandbox.run(subject)
    (sandbox.etc / "pqcota" / "of-somebody-else").write_text("kept")
    outcome = sandbox.run(subject, direction=Direction.ROLLBACK)
    assert (outcome.status, list(sandbox.files())) == (0, ["/etc/pqcota/of-somebody-else"]), outcome.output


def test_a_rollback_on_a_bare_node_succeeds(sandbox: Sandbox) -> None:
    outcome = sandbox.run(plan(injection()), direction=Direction.ROLLBACK)
    assert (outcome.status, outcome.changed) == (0, 0), outcome.output


def test_a_rollback_whose_deactivate_fails_leaves_the_service_running_on_its_files(sandbox: Sandbox) -> None:
    sandbox.supply("oqsprovider.so")
    sandbox.run(plan(l3_injection(sandbox)))
    before = sandbox.files()
    outcome = sandbox.run(plan(l3_injection(sandbox, deactivate="exit 1")), direction=Direction.ROLLBACK)
    assert (outcome.status, sandbox.files(), history(sandbox)[-2:]) == (2, before, ["stopped", "running"]), (
        outcome.output
    )
    assert sandbox.leftovers() == []


@pytest.mark.parametrize(
    ("inventory", "words"),
    [
        pytest.param("other ansible_connection=local\n", "Not a host of the inventory: node-1", id="unknown"),
        pytest.param(
            "[node-1]\na ansible_connection=local\nb ansible_connection=local\n",
            "Also the name of a group: node-1",
            id="a-group",
        ),
    ],
)
def test_a_node_that_is_not_one_host_of_the_inventory_fails_the_run(
    sandbox: Sandbox, inventory: str, words: str
) -> None:
    sandbox.inventory = inventory
    sandbox.supply("oqsprovider.so")
    outcome = sandbox.run(plan(injection()))
    assert (outcome.status, sandbox.files()) == (2, {}), outcome.output
    assert words in " ".join(outcome.output.split())


def test_group_variables_of_the_inventory_do_not_move_the_controllers_check(sandbox: Sandbox) -> None:
    sandbox.inventory += (
        "localhost ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=1\n[all:vars]\nansible_user=deploy\n"
    )
    sandbox.supply("oqsprovider.so")
    outcome = sandbox.run(plan(injection()))
    assert (outcome.status, MODULE in sandbox.files()) == (0, True), outcome.output
