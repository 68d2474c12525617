from __future__ import annotations

from typing import Any

import pytest
from playbook_plans import HOOKS, action, injection, jca_injection, l3, plan

from pqcota_provision.plan.model import (
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.plan.notices import NoticeId, NoticeKind
from pqcota_provision.playbook.generate import Direction, generate
from pqcota_provision.playbook.levels import Level

UNSET = DeployAutomationLevel.UNSPECIFIED
JCA = CryptoRuntime.JCA
ADVICE = {"provider-slot-taken", "manual-step", "approval-label"}


def notices(subject: FinalizedPlan, direction: Direction = Direction.FORWARD, level: Level = Level.L2) -> list[str]:
    return [notice.id.value for notice in generate(subject, level=level, direction=direction).notices]


CASES: list[Any] = [
    # action, forward, rollback
    (action(), [], []),
    (action(automation_level=UNSET), ["level-unset"], ["level-unset"]),
    (
        action(automation_level=DeployAutomationLevel.L3_FULL_AUTO),
        ["activate-missing", "restart-missing"],
        ["activate-missing", "restart-missing"],
    ),
    (action(**l3()), [], []),
    (
        action(**l3(activation=ActivationHooks(activate="on", restart="go"))),
        ["deactivate-missing"],
        ["deactivate-missing"],
    ),
    (
        action(**l3(activation=ActivationHooks(activate=" \n", restart="go"))),
        ["activate-missing"],
        ["activate-missing"],
    ),
    (action(target_algorithm=""), ["target-unset"], []),
    (action(target_algorithm="ML-DSA"), ["target-signature"], []),
    (action(target_algorithm="HQC"), ["target-no-group"], []),
    (action(target_algorithm="RSA"), ["target-no-group"], []),
    (action(kind=RemediationKind.REBUILD, target_algorithm=""), ["manual-step"], ["manual-step"]),
    (action(crypto_runtime=CryptoRuntime.WIN_CNG), ["runtime-unsupported"], ["runtime-unsupported"]),
    (action(crypto_runtime=77), ["runtime-unsupported"], ["runtime-unsupported"]),
    (jca_injection(), ["provider-slot-taken"], []),
    (jca_injection(provider_choice="acme"), ["provider-class-unknown", "provider-slot-taken"], []),
    (jca_injection(provider_choice="acme", provider_class="a.B"), ["provider-slot-taken"], []),
    (injection(provider_choice="fips"), ["provider-shape"], []),
    (injection(provider_choice="pkcs11"), ["provider-shape"], []),
    (injection(provider_choice="pkcs11", config_artifact="openssl_conf = i"), ["fragment-inert"], []),
    (action(config_artifact="Groups = X25519MLKEM768"), ["fragment-inert", "fragment-harmful"], []),
]


@pytest.mark.parametrize(("subject", "forward", "rollback"), CASES)
def test_a_reader_is_told_what_an_action_will_not_bring_about(
    subject: RemediationAction, forward: list[str], rollback: list[str]
) -> None:
    assert (notices(plan(subject)), notices(plan(subject), Direction.ROLLBACK)) == (forward, rollback)


def test_a_reader_is_told_when_fragments_of_a_node_are_split() -> None:
    subject = plan(action(), action(id="a2", target_algorithm="Kyber"))
    (notice,) = generate(subject).notices
    assert (notice.id, notice.node, notice.action) == (NoticeId.FRAGMENTS_SPLIT, "node-1", "")


def test_a_split_of_what_is_never_placed_is_not_reported() -> None:
    l1 = {"automation_level": DeployAutomationLevel.L1_STAGE_ONLY}
    assert notices(plan(action(**l1), action(id="a2", target_algorithm="Kyber", **l1))) == []


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        (
            injection(provider_choice="acme-pqc"),
            injection(id="b", provider_choice="acme_pqc", target_node_id="n2"),
            True,
        ),
        (injection(provider_choice="x"), jca_injection(id="b", provider_choice="x", provider_class="a.B"), True),
        (injection(), injection(id="b", target_node_id="n2"), False),
    ],
)
def test_modules_that_share_a_variable_are_reported(
    first: RemediationAction, second: RemediationAction, clash: bool
) -> None:
    assert ("variable-clash" in notices(plan(first, second))) is clash


def test_the_default_level_decides_about_hooks_of_an_unset_level() -> None:
    subject = plan(action(automation_level=UNSET, activation=ActivationHooks(activate="on", restart="go")))
    assert notices(subject, level=Level.L3) == ["level-unset", "deactivate-missing"]


@pytest.mark.parametrize("notice_id", NoticeId)
def test_only_advice_leaves_the_exit_status_alone(notice_id: NoticeId) -> None:
    from pqcota_provision.plan.notices import Notice

    expected = NoticeKind.ADVICE if notice_id.value in ADVICE else NoticeKind.BLANK
    assert Notice(notice_id, "sentence", "remedy").kind is expected


def test_every_notice_says_what_will_not_happen_and_how_to_mend_it() -> None:
    subjects = [plan(case[0], id="", ruleset_version="", finalized_at=None) for case in CASES]
    subjects.append(plan(action(finding_id=""), derived_from_snapshot_id="", approval_signatures=("label",)))
    for subject in subjects:
        for notice in generate(subject).notices:
            assert notice.sentence.endswith(".")
            assert notice.remedy.endswith(".")


def test_every_notice_that_needs_no_store_can_be_brought_about() -> None:
    seen = {notice_id for case in CASES for notice_id in (*case[1], *case[2])}
    bare = plan(action(finding_id=""), id="", ruleset_version="", finalized_at=None, derived_from_snapshot_id="")
    seen |= set(notices(bare))
    elsewhere = {"reference-invalid", "approval-label", "fragments-split", "variable-clash", "reference-unresolved"}
    assert {notice_id.value for notice_id in NoticeId} == seen | elsewhere


def test_hooks_are_no_reason_for_a_notice_below_l3() -> None:
    assert notices(plan(action(activation=HOOKS))) == []
