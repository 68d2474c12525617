from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbook_plans import HOOKS, action, executable_plans, injection, jca_injection, l3, plan

from playbook_reader import node_plays, placed_files, removed_paths, staged_modules
from pqcota_provision.errors import PlanNotActionable
from pqcota_provision.plan.model import (
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.playbook.fragments.jca import jca_fragment, jvm_arguments, jvm_options
from pqcota_provision.playbook.fragments.openssl import openssl_fragment
from pqcota_provision.playbook.generate import Direction, generate
from pqcota_provision.playbook.layout import Hooks, _essence_fragment, _essence_options, check_activation, lay_out
from pqcota_provision.playbook.levels import Level

JCA = {"crypto_runtime": CryptoRuntime.JCA}
UNSET = {"automation_level": DeployAutomationLevel.UNSPECIFIED}
L1 = {"automation_level": DeployAutomationLevel.L1_STAGE_ONLY}


@pytest.fixture(autouse=True)
def _nothing_kept_from_another_test() -> None:
    _essence_fragment.cache_clear()
    _essence_options.cache_clear()


def paths(subject: FinalizedPlan, level: Level = Level.L2) -> list[list[str]]:
    return [[file.path for file in layout.files] for layout in lay_out(subject, level)]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(plan(action()), [["/etc/pqcota/openssl-pqc.cnf"]], id="openssl"),
        pytest.param(
            plan(action(**JCA)), [["/etc/pqcota/java.security.pqcota", "/etc/pqcota/jvm.pqcota"]], id="jca-both-files"
        ),
        pytest.param(plan(action(**L1)), [[]], id="l1-places-no-config"),
        pytest.param(plan(action(), action(id="a2")), [["/etc/pqcota/openssl-pqc.cnf"]], id="equal-texts-share"),
        pytest.param(
            plan(action(), action(id="a2", target_algorithm="Kyber"), action(id="a3")),
            [["/etc/pqcota/openssl-pqc.a1.cnf", "/etc/pqcota/openssl-pqc.a2.cnf"]],
            id="different-texts-split-and-the-third-shares-the-first",
        ),
        pytest.param(
            plan(action(**JCA), action(id="a2", target_algorithm="Kyber", **JCA)),
            [
                [
                    "/etc/pqcota/java.security.a1.pqcota",
                    "/etc/pqcota/jvm.a1.pqcota",
                    "/etc/pqcota/java.security.a2.pqcota",
                    "/etc/pqcota/jvm.a2.pqcota",
                ]
            ],
            id="jca-files-split-together",
        ),
        pytest.param(
            plan(action(), action(id="a1", **JCA)),
            [["/etc/pqcota/openssl-pqc.cnf", "/etc/pqcota/java.security.pqcota", "/etc/pqcota/jvm.pqcota"]],
            id="runtimes-of-one-id-do-not-collide",
        ),
        pytest.param(
            plan(action(target_node_id="b"), action(target_node_id="a"), action(id="a3", target_node_id="b", **JCA)),
            [
                ["/etc/pqcota/openssl-pqc.cnf", "/etc/pqcota/java.security.pqcota", "/etc/pqcota/jvm.pqcota"],
                ["/etc/pqcota/openssl-pqc.cnf"],
            ],
            id="nodes-in-order-of-first-mention",
        ),
    ],
)
def test_every_config_file_has_the_path_of_the_contract(subject: FinalizedPlan, expected: list[list[str]]) -> None:
    assert paths(subject) == expected


def test_what_no_config_can_do_takes_nothing_from_the_actions_after_it() -> None:
    manual = action(id="a0", kind=RemediationKind.FORK_REPLACE)
    (layout,) = lay_out(plan(manual, injection(), action(id="a2", **JCA)), Level.L2)
    assert [item.action.id for item in layout.actions] == ["a0", "a1", "a2"]
    assert [(item.module and item.module.file_name, len(item.files)) for item in layout.actions] == [
        (None, 0),
        ("oqsprovider.so", 1),
        (None, 2),
    ]


def test_jvm_options_that_differ_are_kept_apart_where_the_fragments_are_equal() -> None:
    written = {"config_artifact": "x = 1", **JCA}
    (layout,) = lay_out(plan(action(**written), action(id="a2", target_algorithm="HQC", **written)), Level.L2)
    assert layout.split_runtimes == (CryptoRuntime.JCA,)
    texts = {file.path: file.text for file in layout.files}
    assert "jdk.tls.namedGroups" in texts["/etc/pqcota/jvm.a1.pqcota"]
    assert "jdk.tls.namedGroups" not in texts["/etc/pqcota/jvm.a2.pqcota"]


def test_openssl_fragments_that_are_equal_are_shared_whatever_the_target() -> None:
    written = {"config_artifact": "x = 1"}
    (layout,) = lay_out(plan(action(**written), action(id="a2", target_algorithm="HQC", **written)), Level.L2)
    assert (layout.split_runtimes, [file.path for file in layout.files]) == ((), ["/etc/pqcota/openssl-pqc.cnf"])


def test_a_split_argument_file_names_its_own_split_fragment() -> None:
    (layout,) = lay_out(plan(action(**JCA), action(id="a2", target_algorithm="Kyber", **JCA)), Level.L2)
    arguments = {file.path: file.text for file in layout.files if file.path.startswith("/etc/pqcota/jvm")}
    assert "-Djava.security.properties=/etc/pqcota/java.security.a2.pqcota" in arguments["/etc/pqcota/jvm.a2.pqcota"]


NEEDS_PATH = "its fragment needs a path of its own, but the id"
NO_ID = "its fragment differs from another action's and needs a path of its own, but the action has no id"


@pytest.mark.parametrize(
    ("first", "second", "problems"),
    [
        pytest.param(
            {"id": ""},
            {"id": "", "target_algorithm": "Kyber"},
            (f"actions[0] on node-1: {NO_ID}", f"actions[1] on node-1: {NO_ID}"),
            id="no-ids",
        ),
        pytest.param(
            {"id": "a"},
            {"id": "a", "target_algorithm": "Kyber"},
            ('actions[1] "a" on node-1: its fragment differs from that of another action with the same id "a"',),
            id="same-id",
        ),
        pytest.param(
            {"id": "a"},
            {"id": "../x", "target_algorithm": "Kyber"},
            (
                f'actions[1] "../x" on node-1: {NEEDS_PATH} "../x" is no plain file name '
                "(letters, digits and . _ + -, not beginning with . or -)",
            ),
            id="id-with-a-path",
        ),
        pytest.param(
            {"id": "a"},
            {"id": "b" * 65, "target_algorithm": "Kyber"},
            (f'actions[1] "{"b" * 65}" on node-1: {NEEDS_PATH} "{"b" * 65}" is longer than 64 characters',),
            id="id-too-long",
        ),
    ],
)
def test_actions_that_would_overwrite_each_other_are_refused(
    first: dict[str, str], second: dict[str, str], problems: tuple[str, ...]
) -> None:
    with pytest.raises(PlanNotActionable) as refusal:
        lay_out(plan(action(**first), action(**second)), Level.L2)
    assert refusal.value.problems == problems


def test_every_collision_of_every_node_is_named_and_the_sound_actions_are_not() -> None:
    sound = action(id="c", target_algorithm="HQC")
    colliding = (action(id="a"), action(id="a", target_algorithm="Kyber"))
    elsewhere = (replace(each, target_node_id="node-2") for each in colliding)
    with pytest.raises(PlanNotActionable) as refusal:
        lay_out(plan(*colliding, sound, *elsewhere), Level.L2)
    assert [problem.partition(":")[0] for problem in refusal.value.problems] == [
        'actions[1] "a" on node-1',
        'actions[4] "a" on node-2',
    ]


@pytest.mark.parametrize("level", [Level.L1, Level.L2])
def test_actions_without_an_id_are_refused_only_where_config_is_placed(level: Level) -> None:
    subject = plan(action(id="", **UNSET), action(id="", target_algorithm="Kyber", **UNSET))
    if level is Level.L1:
        assert paths(subject, level) == [[]]
    else:
        with pytest.raises(PlanNotActionable):
            paths(subject, level)


def test_every_file_is_named_for_what_it_is() -> None:
    (layout,) = lay_out(plan(action(), action(id="a2", **JCA)), Level.L2)
    assert [file.title for file in layout.files] == ["OpenSSL fragment", "JCA fragment", "JVM argument file"]


def test_an_odd_id_is_no_reason_to_refuse_where_it_is_in_no_path() -> None:
    assert paths(plan(action(id="../x"))) == [["/etc/pqcota/openssl-pqc.cnf"]]


@pytest.mark.parametrize(
    ("artifact", "placed"),
    [
        ("x = 1", "x = 1\n"),
        ("x = 1\n\n\n", "x = 1\n"),
        ("\n x\t\n", "\n x\t\n"),
        ("\n\n", "\n"),
        ("  ", "  \n"),
        ("x = X\n", "x = X\n"),
    ],
)
def test_a_hand_written_fragment_is_placed_byte_for_byte_but_for_its_last_newlines(artifact: str, placed: str) -> None:
    (layout,) = lay_out(plan(action(config_artifact=artifact)), Level.L2)
    assert layout.files[0].text == placed


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(action(target_algorithm="Kyber"), id="openssl-config-only"),
        pytest.param(injection(provider_choice="acme"), id="openssl-inject"),
        pytest.param(action(target_algorithm="Kyber", **JCA), id="jca-config-only"),
        pytest.param(jca_injection(provider_choice="acme"), id="jca-inject"),
        pytest.param(jca_injection(provider_choice="acme", provider_class="com.acme.Pqc"), id="jca-inject-with-class"),
    ],
)
def test_what_is_placed_is_what_is_generated_for_the_action(subject: RemediationAction) -> None:
    (layout,) = lay_out(plan(subject), Level.L2)
    expected = [openssl_fragment(subject)]
    if subject.crypto_runtime == CryptoRuntime.JCA:
        paths = "/etc/pqcota/java.security.pqcota", "/etc/pqcota/jvm.pqcota"
        expected = [jca_fragment(subject), jvm_arguments(*paths, jvm_options(subject))]
    assert [file.text for file in layout.files] == expected


def test_each_distinct_hook_runs_once_per_step_in_order_of_first_mention() -> None:
    hooks = (HOOKS, replace(HOOKS, pre=" stop app\n", activate="other"), ActivationHooks(restart="\t"))
    actions = (action(**l3(id=f"a{index}", activation=hook)) for index, hook in enumerate(hooks))
    (layout,) = lay_out(plan(*actions), Level.L2)
    assert layout.hooks == Hooks(("stop app",), ("enable pqc", "other"), ("disable pqc",), ("start app",))


def test_hooks_of_an_action_below_l3_never_run() -> None:
    (layout,) = lay_out(plan(action(activation=HOOKS)), Level.L3)
    assert layout.hooks == Hooks()


def test_an_unset_level_is_the_default_level() -> None:
    (layout,) = lay_out(plan(action(activation=HOOKS, **UNSET)), Level.L3)
    assert layout.hooks.pre == ("stop app",)


def test_a_placeholder_class_is_never_activated() -> None:
    with pytest.raises(PlanNotActionable) as refusal:
        generate(plan(jca_injection(provider_choice="acme", **l3())))
    assert refusal.value.problems == (
        'actions[0] "a1": reaches L3, but the class of the provider "acme" is not known; set providerClass',
    )


def test_the_level_option_activates_no_placeholder_class_either() -> None:
    subject = plan(jca_injection(provider_choice="acme", activation=HOOKS, **UNSET))
    check_activation(subject, Level.L2)
    with pytest.raises(PlanNotActionable, match='the provider "acme" is not known'):
        check_activation(subject, Level.L3)


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(injection(provider_choice="acme", **l3()), id="openssl-needs-no-class"),
        pytest.param(action(provider_choice="acme", **JCA, **l3()), id="config-only-registers-nothing"),
        pytest.param(jca_injection(provider_choice="acme", provider_class="com.acme.Pqc", **l3()), id="class-named"),
        pytest.param(jca_injection(provider_choice="BCFIPS", **l3()), id="class-known"),
        pytest.param(jca_injection(provider_choice="acme", config_artifact="x", **l3()), id="hand-written-fragment"),
    ],
)
def test_an_activation_that_needs_no_class_goes_through(subject: RemediationAction) -> None:
    check_activation(plan(subject), Level.L2)


def test_what_a_placeholder_class_left_behind_can_still_be_rolled_back() -> None:
    playbook = generate(plan(jca_injection(provider_choice="acme", **l3())), direction=Direction.ROLLBACK)
    assert removed_paths(node_plays(playbook.text)[0])[-1] == "/opt/pqcota/acme.jar"


@given(executable_plans, st.sampled_from(Level))
def test_rollback_removes_exactly_what_forward_placed(subject: FinalizedPlan, level: Level) -> None:
    try:
        forward = generate(subject, level=level)
    except PlanNotActionable:
        return
    back = generate(subject, level=level, direction=Direction.ROLLBACK)
    for there, again in zip(node_plays(forward.text), node_plays(back.text), strict=True):
        assert {*placed_files(there), *staged_modules(there)} == set(removed_paths(again))


@given(executable_plans, st.sampled_from(Level), st.sampled_from(Level))
def test_a_rollback_at_a_higher_level_still_finds_every_placed_file(
    subject: FinalizedPlan, level: Level, rollback_level: Level
) -> None:
    try:
        forward = generate(subject, level=level)
        back = generate(subject, level=max(level, rollback_level), direction=Direction.ROLLBACK)
    except PlanNotActionable:
        return
    for there, again in zip(node_plays(forward.text), node_plays(back.text), strict=True):
        assert {*placed_files(there), *staged_modules(there)} <= set(removed_paths(again))


@given(executable_plans, st.sampled_from(Level))
def test_no_file_is_placed_outside_the_two_directories(subject: FinalizedPlan, level: Level) -> None:
    for layout in lay_out(subject, level):
        assert all(file.path.rpartition("/")[0] == "/etc/pqcota" for file in layout.files)
        assert all(module.path.rpartition("/")[0] == "/opt/pqcota" for module in layout.modules)


@pytest.mark.parametrize(
    ("provider", "source", "digest"),
    [
        ("oqsprovider", "pqcota_module_src_oqsprovider", "pqcota_module_sha256_oqsprovider"),
        ("acme-pqc", "pqcota_module_src_acme_pqc", "pqcota_module_sha256_acme_pqc"),
        ("a.b+c", "pqcota_module_src_a_b_c", "pqcota_module_sha256_a_b_c"),
    ],
)
def test_a_modules_variables_are_named_so_that_ansible_knows_them(provider: str, source: str, digest: str) -> None:
    (layout,) = lay_out(plan(injection(provider_choice=provider)), Level.L2)
    assert [(module.source_variable, module.hash_variable) for module in layout.modules] == [(source, digest)]
