"""What is placed where and run when on each node, before any of it becomes a task (SPEC 6 and 8).

Forward and rollback are two readings of the same layout, so that what was placed is what is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pqcota_provision.errors import PlanNotActionable
from pqcota_provision.plan.gates import place_of
from pqcota_provision.plan.model import CryptoRuntime, FinalizedPlan, RemediationAction, RemediationKind
from pqcota_provision.plan.names import refuse_file_name
from pqcota_provision.playbook.fragments.jca import (
    jca_fragment,
    jvm_arguments,
    jvm_options,
    known_provider_class,
)
from pqcota_provision.playbook.fragments.openssl import openssl_fragment
from pqcota_provision.playbook.levels import Level, level_of
from pqcota_provision.playbook.paths import (
    Module,
    jca_fragment_path,
    jvm_arguments_path,
    module_of,
    openssl_fragment_path,
    provider_of,
)
from pqcota_provision.text import quote

SUPPORTED_RUNTIMES = frozenset((CryptoRuntime.OPENSSL, CryptoRuntime.JCA))
CONFIG_KINDS = frozenset((RemediationKind.CONFIG_ONLY, RemediationKind.PROVIDER_INJECT))


class PlacedFile(NamedTuple):
    """A config file on the node; ``title`` says what it is."""

    title: str
    path: str
    text: str


class Hooks(NamedTuple):
    """Each distinct command of a node once per step, in order of first mention."""

    pre: tuple[str, ...] = ()
    activate: tuple[str, ...] = ()
    deactivate: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


class ActionLayout(NamedTuple):
    """What one action places: its module, and the files that no earlier action of the node places."""

    action: RemediationAction
    level: Level
    module: Module | None
    files: tuple[PlacedFile, ...]


class NodeLayout(NamedTuple):
    """All that happens on one node."""

    node: str
    actions: tuple[ActionLayout, ...]
    hooks: Hooks
    split_runtimes: tuple[CryptoRuntime, ...]

    @property
    def modules(self) -> tuple[Module, ...]:
        """Each module of the node once, in order of first mention."""
        return tuple(dict.fromkeys(item.module for item in self.actions if item.module))

    @property
    def files(self) -> tuple[PlacedFile, ...]:
        """Every config file of the node, in order."""
        return tuple(file for item in self.actions for file in item.files)

    @property
    def reaches_config(self) -> bool:
        """Whether any action goes as far as placing config."""
        return any(item.level >= Level.L2 for item in self.actions)

    @property
    def activates(self) -> bool:
        """Whether any action goes as far as activation, which makes the node's run one transaction."""
        return any(item.level is Level.L3 for item in self.actions)


def is_config_action(action: RemediationAction) -> bool:
    """Tell whether config can be generated for an action at all: by its kind and by its runtime."""
    return action.kind in CONFIG_KINDS and action.crypto_runtime in SUPPORTED_RUNTIMES


def lay_out(plan: FinalizedPlan, default_level: Level) -> tuple[NodeLayout, ...]:
    """Return one layout a node, in order of the node's first action.

    Raises PlanNotActionable where two different fragments of a node would need one path (SPEC 11.5).
    """
    by_node: dict[str, list[tuple[int, RemediationAction]]] = {}
    for index, action in enumerate(plan.actions):
        by_node.setdefault(action.target_node_id, []).append((index, action))
    problems: list[str] = []
    layouts = tuple(_lay_out_node(node, actions, default_level, problems) for node, actions in by_node.items())
    if problems:
        raise PlanNotActionable(problems)
    return layouts


def check_activation(plan: FinalizedPlan, default_level: Level) -> None:
    """Raise PlanNotActionable if an L3 action would activate a provider whose class is only a placeholder."""
    problems = [
        f"{place_of(index, action)}: reaches L3, but the class of the provider {quote(provider_of(action))} "
        "is not known; set providerClass"
        for index, action in enumerate(plan.actions)
        if lacks_provider_class(action) and not action.config_artifact and level_of(action, default_level) is Level.L3
    ]
    if problems:
        raise PlanNotActionable(problems)


def lacks_provider_class(action: RemediationAction) -> bool:
    """Tell whether a JCA provider is to be registered whose class nobody named."""
    return (
        action.kind == RemediationKind.PROVIDER_INJECT
        and action.crypto_runtime == CryptoRuntime.JCA
        and not known_provider_class(action)
    )


def _lay_out_node(
    node: str, actions: list[tuple[int, RemediationAction]], default_level: Level, problems: list[str]
) -> NodeLayout:
    owners = _path_owners(action for _, action in actions)
    split = tuple(runtime for runtime, texts in owners.items() if len(texts) > 1)
    used_ids: dict[tuple[CryptoRuntime, str], str] = {}
    placed: set[str] = set()
    laid_out = []
    for index, action in actions:
        level = level_of(action, default_level)
        if not is_config_action(action):
            laid_out.append(ActionLayout(action, level, None, ()))
            continue
        runtime = CryptoRuntime(action.crypto_runtime)
        module = module_of(action) if action.kind == RemediationKind.PROVIDER_INJECT else None
        files: tuple[PlacedFile, ...] = ()
        if level >= Level.L2:
            path_id = ""
            if runtime in split:
                text = _comparison_text(action)
                path_id = owners[runtime][text].id
                other_text = used_ids.setdefault((runtime, path_id), text)
                problem = _path_id_problem(path_id, collides=other_text != text)
                if problem:
                    problems.append(f"{place_of(index, action)} on {node}: {problem}")
                    continue
            files = tuple(file for file in _files(action, path_id) if file.path not in placed)
            placed.update(file.path for file in files)
        laid_out.append(ActionLayout(action, level, module, files))
    return NodeLayout(node, tuple(laid_out), _hooks(laid_out), split)


def _path_owners(
    actions: Iterable[RemediationAction],
) -> dict[CryptoRuntime, dict[str, RemediationAction]]:
    """Return, per runtime, the first action with each distinct text.

    Levels play no part, so that a rollback run with another ``--level`` finds the same paths.
    """
    owners: dict[CryptoRuntime, dict[str, RemediationAction]] = {}
    for action in actions:
        if is_config_action(action):
            texts = owners.setdefault(CryptoRuntime(action.crypto_runtime), {})
            texts.setdefault(_comparison_text(action), action)
    return owners


def _path_id_problem(path_id: str, *, collides: bool) -> str:
    if not path_id:
        return "its fragment differs from another action's and needs a path of its own, but the action has no id"
    if reason := refuse_file_name(path_id):
        return f"its fragment needs a path of its own, but the id {quote(path_id)} {reason}"
    if collides:
        return f"its fragment differs from that of another action with the same id {quote(path_id)}"
    return ""


def _comparison_text(action: RemediationAction) -> str:
    """Return what decides whether two actions of a runtime may share files: the text as the plan has it."""
    options = ""
    if action.crypto_runtime == CryptoRuntime.JCA:
        options = "\0" + "\0".join(_essence_options(_essence(action)))
    return _fragment_text(action) + options


def _fragment_text(action: RemediationAction) -> str:
    return action.config_artifact or _essence_fragment(_essence(action))


def _essence(action: RemediationAction) -> tuple[int, int, str, str, str]:
    """Return all that a generated fragment depends on."""
    return (
        action.crypto_runtime,
        action.kind,
        action.target_algorithm,
        action.provider_choice,
        action.provider_class,
    )


def _action_of(essence: tuple[int, int, str, str, str]) -> RemediationAction:
    runtime, kind, target, provider, provider_class = essence
    return RemediationAction(
        crypto_runtime=runtime,
        kind=kind,
        target_algorithm=target,
        provider_choice=provider,
        provider_class=provider_class,
    )


@lru_cache(maxsize=4096)
def _essence_fragment(essence: tuple[int, int, str, str, str]) -> str:
    action = _action_of(essence)
    return openssl_fragment(action) if essence[0] == CryptoRuntime.OPENSSL else jca_fragment(action)


@lru_cache(maxsize=4096)
def _essence_options(essence: tuple[int, int, str, str, str]) -> tuple[str, ...]:
    return jvm_options(_action_of(essence))


def _files(action: RemediationAction, path_id: str) -> tuple[PlacedFile, ...]:
    # Byte for byte but for the trailing newlines, which become one.
    text = _fragment_text(action).rstrip("\n") + "\n"
    if action.crypto_runtime == CryptoRuntime.OPENSSL:
        return (PlacedFile("OpenSSL fragment", openssl_fragment_path(path_id), text),)
    fragment_path, arguments_path = jca_fragment_path(path_id), jvm_arguments_path(path_id)
    arguments = jvm_arguments(fragment_path, arguments_path, _essence_options(_essence(action)))
    return (
        PlacedFile("JCA fragment", fragment_path, text),
        PlacedFile("JVM argument file", arguments_path, arguments),
    )


def _hooks(laid_out: list[ActionLayout]) -> Hooks:
    activations = [
        item.action.activation for item in laid_out if item.level is Level.L3 and item.action.activation is not None
    ]
    return Hooks(
        pre=_distinct(hooks.pre for hooks in activations),
        activate=_distinct(hooks.activate for hooks in activations),
        deactivate=_distinct(hooks.deactivate for hooks in activations),
        restart=_distinct(hooks.restart for hooks in activations),
    )


def _distinct(commands: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(command.strip() for command in commands if command.strip()))
