from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
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

pytestmark = pytest.mark.real

BATCH = 12
MARK = "END-OF-TEXT-7f3a"
TRAPS = [
    "{{ lookup('pipe', 'id') }}",
    "${#array[@]} {% raw %}",
    "it's",
    'say "no" creates=/etc/passwd chdir=/ removes=x',
    "a \\\nb",
    "#jinja2: variable_start_string:'[%', variable_end_string:'%]'\n[% 1 + 1 %]",
    "\ttab\n  two spaces  \n\n\nlast",
    "carriage\r\nreturn",
    "!unsafe |\n- hosts: all",
    "\u2028line\u2029 \ufeff \u202e\U0001f510 \ud55c\uad6d",
    "%YAML 1.1\n---\n...",
    "true",
]

# What the gates refuse cannot come so far: control characters other than tab, newline and carriage return.
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\r\t '\"{}%#\\=!&*"), min_size=1
)


def printing(text: str, to: Path) -> str:
    """Return a hook whose own text holds the text, and that copies it to a file as it arrived."""
    return f"cat > '{to}' <<'{MARK}'\n{text}\n{MARK}"


def plan_of(batch: list[str], folder: Path) -> FinalizedPlan:
    return FinalizedPlan(
        status=PlanStatus.FINALIZED,
        approval_signatures=("reviewer-1:ed25519:AAAA",),
        actions=tuple(
            RemediationAction(
                id=f"a{index}",
                target_node_id=NODE,
                crypto_runtime=CryptoRuntime.OPENSSL,
                kind=RemediationKind.CONFIG_ONLY,
                automation_level=DeployAutomationLevel.L3_FULL_AUTO,
                config_artifact=f"{index}\n{text}",
                activation=ActivationHooks(pre=printing(text, folder / str(index))),
            )
            for index, text in enumerate(batch)
        ),
    )


def check_arrival(sandbox: Sandbox, batch: list[str]) -> None:
    folder = sandbox.root / "arrived"
    folder.mkdir(exist_ok=True)
    outcome = sandbox.run(plan_of(batch, folder))
    assert outcome.status == 0, outcome.output
    hooks = {text: (folder / str(index)).read_bytes() for index, text in enumerate(batch)}
    assert hooks == {text: f"{text}\n".encode() for text in batch}
    path = "openssl-pqc.{}.cnf" if len(batch) > 1 else "openssl-pqc.cnf"
    placed = [(sandbox.etc / "pqcota" / path.format(f"a{index}")).read_bytes() for index in range(len(batch))]
    assert placed == [(f"{index}\n{text}".rstrip("\n") + "\n").encode() for index, text in enumerate(batch)]


def test_text_that_has_broken_other_tools_arrives_byte_for_byte(sandbox: Sandbox) -> None:
    check_arrival(sandbox, TRAPS)


@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    # Each batch is a run of ansible-playbook, so there is no time to shrink one.
    phases=(Phase.explicit, Phase.generate),
)
@given(batch=st.lists(texts, min_size=BATCH, max_size=BATCH, unique=True))
def test_any_text_of_a_plan_arrives_byte_for_byte(sandbox: Sandbox, batch: list[str]) -> None:
    check_arrival(sandbox, batch)
