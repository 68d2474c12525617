"""Notices that depend on levels, fragments and paths (SPEC 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pqcota_provision.plan.model import (
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    RemediationAction,
    RemediationKind,
    wire_name,
)
from pqcota_provision.plan.notices import Notice, NoticeId, action_notice
from pqcota_provision.playbook.algorithms import Use, family_of
from pqcota_provision.playbook.fragments.jca import PROVIDER_SLOT
from pqcota_provision.playbook.layout import (
    CONFIG_KINDS,
    SUPPORTED_RUNTIMES,
    NodeLayout,
    is_config_action,
    lacks_provider_class,
)
from pqcota_provision.playbook.levels import Level, level_of
from pqcota_provision.playbook.paths import Module, module_of, provider_of
from pqcota_provision.text import join_names, quote

# Providers whose section has to say more than where the module is, and what.
_SHAPED_PROVIDERS = {
    "fips": "the machine's own fipsmodule.cnf, made by openssl fipsinstall",
    "pkcs11": "the path of its PKCS#11 driver",
}

WHY_MANUAL = {
    RemediationKind.FORK_REPLACE: "the OpenSSL on the node is replaced by another one, a package change",
    RemediationKind.PROXY_FRONT: "a proxy is put in front of the app, an architecture change",
    RemediationKind.REBUILD: "the app has to be built against another library",
    RemediationKind.JDK_UPGRADE: "the JDK itself is replaced by a newer one",
    RemediationKind.APP_RECONFIG: "the app's own configuration decides, and only its owner knows it",
    RemediationKind.DECOMMISSION: "the app is taken out of service",
}


def forward_notices(plan: FinalizedPlan, default_level: Level, layouts: Iterable[NodeLayout]) -> Iterator[Notice]:
    """Yield the notices of a forward run: about each action in plan order, then about nodes and variables."""
    for action in plan.actions:
        yield from _level_notices(action, default_level)
        yield from _content_notices(action)
    for layout in layouts:
        if layout.split_runtimes and layout.files:
            yield _split_notice(layout)
    yield from _variable_clashes(plan)


def rollback_notices(plan: FinalizedPlan, default_level: Level) -> Iterator[Notice]:
    """Yield the notices of a rollback run, about each action in plan order."""
    for action in plan.actions:
        yield from _level_notices(action, default_level)
        yield from _unsupported_or_manual(action)


def _level_notices(action: RemediationAction, default_level: Level) -> Iterator[Notice]:
    if action.automation_level == DeployAutomationLevel.UNSPECIFIED:
        yield action_notice(
            action,
            NoticeId.LEVEL_UNSET,
            f"The action sets no automationLevel, so --level ({default_level.option}) decides how far it goes; "
            "no signature covers that.",
            "Set automationLevel before the plan is approved.",
        )
    if level_of(action, default_level) is not Level.L3:
        return
    hooks = action.activation
    activate = bool(hooks and hooks.activate.strip())
    if not activate:
        yield action_notice(
            action,
            NoticeId.ACTIVATE_MISSING,
            "The action reaches L3 without an activate hook, so nothing will make the app use what is placed.",
            "Write activation.activate for the way this app starts.",
        )
    if not (hooks and hooks.restart.strip()):
        yield action_notice(
            action,
            NoticeId.RESTART_MISSING,
            "The action reaches L3 without a restart hook, so the running app may never load what is placed, "
            "and a failed run restarts nothing.",
            "Write activation.restart.",
        )
    if activate and not (hooks and hooks.deactivate.strip()):
        yield action_notice(
            action,
            NoticeId.DEACTIVATE_MISSING,
            "The action has an activate hook and no deactivate hook, so neither a rollback nor a failed run "
            "will undo the activation.",
            "Write activation.deactivate, which undoes what activate does.",
        )


def _content_notices(action: RemediationAction) -> Iterator[Notice]:
    yield from _unsupported_or_manual(action)
    if action.kind not in CONFIG_KINDS:
        return
    yield from _target_notices(action)
    if action.config_artifact:
        yield from _artifact_notices(action)
    if action.kind != RemediationKind.PROVIDER_INJECT:
        return
    if action.crypto_runtime == CryptoRuntime.JCA:
        yield from _jca_provider_notices(action)
    elif action.crypto_runtime == CryptoRuntime.OPENSSL and not action.config_artifact:
        yield from _shape_notices(action)


def _unsupported_or_manual(action: RemediationAction) -> Iterator[Notice]:
    if action.kind not in CONFIG_KINDS:
        yield action_notice(
            action,
            NoticeId.MANUAL_STEP,
            f"The action is {_kind_name(action)}: {WHY_MANUAL[RemediationKind(action.kind)]}. "
            "The playbook does nothing for it.",
            "Let a person carry it out and record it.",
        )
    elif action.crypto_runtime not in SUPPORTED_RUNTIMES:
        yield action_notice(
            action,
            NoticeId.RUNTIME_UNSUPPORTED,
            f"Nothing can be generated for the runtime {wire_name(action.crypto_runtime)}; "
            "the playbook does nothing for this action.",
            "Set cryptoRuntime to CRYPTO_RUNTIME_OPENSSL or CRYPTO_RUNTIME_JCA, or plan a manual kind.",
        )


def _kind_name(action: RemediationAction) -> str:
    return wire_name(action.kind).removeprefix(RemediationKind.prefix())


def _target_notices(action: RemediationAction) -> Iterator[Notice]:
    family = family_of(action.target_algorithm)
    target = quote(action.target_algorithm)
    if not action.target_algorithm:
        yield action_notice(
            action,
            NoticeId.TARGET_UNSET,
            "The action has no targetAlgorithm, so no TLS group will be set.",
            "Set targetAlgorithm, such as ML-KEM.",
        )
    elif family is not None and family.use is Use.SIGNATURE:
        yield action_notice(
            action,
            NoticeId.TARGET_SIGNATURE,
            f"The target {target} is a signature algorithm, for which no TLS group exists; none will be set.",
            "Plan certificates and keys for it separately, or set a key encapsulation such as ML-KEM.",
        )
    elif family is None or not family.group:
        yield action_notice(
            action,
            NoticeId.TARGET_NO_GROUP,
            f"No hybrid TLS group is known for the target {target}, so none will be set.",
            "Set targetAlgorithm to ML-KEM, or write the group into configArtifact.",
        )


def _artifact_notices(action: RemediationAction) -> Iterator[Notice]:
    from pqcota_provision.playbook.fragments.artifact import artifact_flaws

    for flaw in artifact_flaws(action):
        if flaw.harmful:
            yield action_notice(
                action,
                NoticeId.FRAGMENT_HARMFUL,
                f"The configArtifact {flaw.reason}.",
                "Correct configArtifact before any host reads it, or leave it out to have one generated.",
            )
        else:
            yield action_notice(
                action,
                NoticeId.FRAGMENT_INERT,
                f"The configArtifact {flaw.reason}.",
                "Correct configArtifact, or leave it out to have one generated.",
            )


def _jca_provider_notices(action: RemediationAction) -> Iterator[Notice]:
    provider = quote(provider_of(action))
    if lacks_provider_class(action):
        effect = (
            "nobody can tell whether the configArtifact registers it"
            if action.config_artifact
            else "the fragment holds a placeholder that registers nothing"
        )
        yield action_notice(
            action,
            NoticeId.PROVIDER_CLASS_UNKNOWN,
            f"The class of the provider {provider} is not known, so {effect}.",
            "Set providerClass to the class that the provider's documentation names.",
        )
    if action.config_artifact:
        yield action_notice(
            action,
            NoticeId.PROVIDER_SLOT_TAKEN,
            f"The configArtifact decides under which number {provider} is registered; a number that is in use is "
            "taken over, what was there is no longer listed, and later providers are asked after it.",
            "Try the app's TLS before activation; the first free number, 13 on a stock JDK 9 or later for Linux, "
            "takes nothing over.",
        )
    else:
        yield action_notice(
            action,
            NoticeId.PROVIDER_SLOT_TAKEN,
            f"Registering {provider} takes over provider {PROVIDER_SLOT}; what was there, SunRsaSign on a stock JDK, "
            "is no longer listed, and later providers are asked after it.",
            "Try the app's TLS before activation; where it fails, register the provider in configArtifact under the "
            "first free number (13 on a stock JDK 9 or later for Linux).",
        )


def _shape_notices(action: RemediationAction) -> Iterator[Notice]:
    provider = provider_of(action)
    need = _SHAPED_PROVIDERS.get(provider.lower().removesuffix("-provider"))
    if need:
        yield action_notice(
            action,
            NoticeId.PROVIDER_SHAPE,
            f"The provider {quote(provider)} needs more in its section than activate and module: {need}. "
            "The generated fragment will not load it.",
            "Write the section into configArtifact.",
        )


def _split_notice(layout: NodeLayout) -> Notice:
    runtimes = join_names([runtime.name for runtime in layout.split_runtimes])
    return Notice(
        NoticeId.FRAGMENTS_SPLIT,
        f"The actions on {layout.node} want different fragments for {runtimes}, so each has a path of its own "
        "and none is at the standard path.",
        "Point each app at its own fragment in its activate hook, or make the actions agree.",
        node=layout.node,
    )


def _variable_clashes(plan: FinalizedPlan) -> Iterator[Notice]:
    first: dict[str, Module] = {}
    reported: set[str] = set()
    for action in plan.actions:
        if action.kind != RemediationKind.PROVIDER_INJECT or not is_config_action(action):
            continue
        module = module_of(action)
        other = first.setdefault(module.suffix, module)
        if other.file_name != module.file_name and module.file_name not in reported:
            reported.add(module.file_name)
            yield action_notice(
                action,
                NoticeId.VARIABLE_CLASH,
                f"The modules {other.file_name} and {module.file_name} share the Ansible variables "
                f"{module.source_variable} and {module.hash_variable}, so one value would serve both.",
                "Rename one provider, or split the plan so that each run stages one of them.",
            )
