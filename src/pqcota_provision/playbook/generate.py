"""From a plan to the text of a playbook, forward or rollback (SPEC 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from pqcota_provision.plan.gates import check_executable
from pqcota_provision.plan.model import (
    CryptoRuntime,
    FinalizedPlan,
    RemediationKind,
    wire_name,
)
from pqcota_provision.plan.notices import Notice, has_blanks, plan_notices
from pqcota_provision.playbook import tasks
from pqcota_provision.playbook.layout import (
    ActionLayout,
    NodeLayout,
    check_activation,
    is_config_action,
    lay_out,
)
from pqcota_provision.playbook.levels import Level
from pqcota_provision.playbook.notices import WHY_MANUAL, forward_notices, rollback_notices
from pqcota_provision.playbook.paths import (
    CONFIG_DIRECTORY,
    STAGING_DIRECTORY,
    Module,
    module_of,
)
from pqcota_provision.playbook.yamlwriter import Item, Value, YamlWriter, comment_lines
from pqcota_provision.text import quote

_TASKS_INDENT = 4


class Direction(Enum):
    """Whether a playbook carries a plan out or undoes it."""

    FORWARD = "forward"
    ROLLBACK = "rollback"


class Playbook(NamedTuple):
    """A generated playbook: its YAML text in parts, and the notices about what it will not bring about."""

    parts: tuple[str, ...]
    notices: tuple[Notice, ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.parts)

    @property
    def has_blanks(self) -> bool:
        """Whether the plan leaves something out, so that the output is incomplete."""
        return has_blanks(self.notices)


def generate(
    plan: FinalizedPlan,
    *,
    level: Level = Level.L2,
    direction: Direction = Direction.FORWARD,
    pinned: Mapping[str, Iterable[str]] | None = None,
    verify: bool = False,
    approvals_verified: bool = True,
) -> Playbook:
    """Return the playbook of an executable plan.

    ``level`` holds for actions that set none; ``pinned`` maps a module's file name to the SHA-256 digests one
    of which it must have; ``verify`` adds tasks to a forward playbook that prove the effect on the node before
    its service is touched. Approvals are not judged here: see verify_approvals. The same plan and arguments
    give the same bytes.

    Raises PlanNotFinalized or PlanNotActionable.
    """
    check_executable(plan)
    forward = direction is Direction.FORWARD
    if forward:
        check_activation(plan, level)
    layouts = lay_out(plan, level)
    notices = (
        *plan_notices(plan),
        *(forward_notices(plan, level, layouts) if forward else rollback_notices(plan, level)),
    )
    renderer = _Renderer(direction, pinned or {}, verify=verify, approvals_verified=approvals_verified)
    return Playbook(tuple(renderer.render(plan, level, layouts)), notices)


class _Renderer:
    def __init__(
        self, direction: Direction, pinned: Mapping[str, Iterable[str]], *, verify: bool, approvals_verified: bool
    ) -> None:
        self._forward = direction is Direction.FORWARD
        self._pinned = pinned
        self._verify = verify
        self._approvals_verified = approvals_verified
        self._writer = YamlWriter()
        # Nodes that get the same share one body.
        self._bodies: dict[object, tuple[str, ...]] = {}

    def render(self, plan: FinalizedPlan, level: Level, layouts: Sequence[NodeLayout]) -> list[str]:
        parts = ["---\n", comment_lines(self._header(plan, level, layouts)), "\n"]
        parts += self._inventory_play([layout.node for layout in layouts])
        for layout in layouts:
            parts.append("\n")
            parts += self._node_play(layout)
            parts += self._body(layout)
        return parts

    def _header(self, plan: FinalizedPlan, level: Level, layouts: Sequence[NodeLayout]) -> Iterator[str]:
        if not self._approvals_verified:
            yield "THE APPROVALS OF THIS PLAN WERE NOT VERIFIED: no key was registered when this was made."
            yield ""
        yield from _header(plan, level, layouts, forward=self._forward)

    def _inventory_play(self, nodes: Sequence[str]) -> list[str]:
        return self._play(
            {
                "name": "Check the inventory",
                "hosts": "localhost",
                "connection": "local",
                "become": False,
                "gather_facts": False,
                "tasks": tasks.inventory_check(nodes),
            }
        )

    def _node_play(self, layout: NodeLayout) -> list[str]:
        verb = "Provision" if self._forward else "Roll back"
        return self._play(
            {"name": f"{verb} {layout.node}", "hosts": layout.node, "become": True, "gather_facts": False},
            tuple(_about_actions(layout)),
        )

    def _play(self, entries: Mapping[str, Value | Sequence[Item]], comments: tuple[str, ...] = ()) -> list[str]:
        return self._writer.sequence([Item(entries, comments)])

    def _body(self, layout: NodeLayout) -> tuple[str, ...]:
        shape = (
            layout.hooks,
            layout.activates,
            layout.reaches_config,
            tuple((item.module, item.files) for item in layout.actions if item.module or item.files),
            tuple(_verified_by(item) for item in layout.actions) if self._verify else None,
        )
        body = self._bodies.get(shape)
        if body is None:
            node_tasks = tuple(self._forward_tasks(layout) if self._forward else self._rollback_tasks(layout))
            body = ("  tasks: []\n",)
            if node_tasks:
                body = ("  tasks:\n", *self._writer.sequence(node_tasks, _TASKS_INDENT))
            self._bodies[shape] = body
        return body

    def _pins(self, module: Module) -> tuple[str, ...]:
        return tuple(sorted(self._pinned.get(module.file_name, ())))

    def _forward_tasks(self, layout: NodeLayout) -> Iterator[Item]:
        for module in layout.modules:
            yield from tasks.check_source(module, self._pins(module))
        directories = [
            *tasks.make_directory(STAGING_DIRECTORY),
            *(tasks.make_directory(CONFIG_DIRECTORY) if layout.reaches_config else ()),
        ]
        placement = [
            item
            for action in layout.actions
            for item in (
                *(tasks.stage_module(action.module, self._pins(action.module)) if action.module else ()),
                *(placed for file in action.files for placed in tasks.place_file(file)),
            )
        ]
        verification = self._verification(layout)
        if not layout.activates:
            yield from (*directories, *placement, *verification)
            return
        hooks = layout.hooks
        pre = tasks.run_hooks("pre", hooks.pre)
        yield from directories
        yield from tasks.transaction(
            _paths(layout),
            hooks,
            [
                *((*placement, *verification, *tasks.service_touched(), *pre) if verification else (*pre, *placement)),
                *(tasks.activation_begins() if hooks.activate else ()),
                *tasks.run_hooks("activate", hooks.activate),
                *tasks.run_hooks("restart", hooks.restart),
            ],
            undo_activation=True,
            touches_service_at_once=not verification,
        )

    def _verification(self, layout: NodeLayout) -> tuple[Item, ...]:
        if not self._verify:
            return ()
        from pqcota_provision.playbook.verification import verify_action

        return tuple(item for action in layout.actions for item in verify_action(action))

    def _rollback_tasks(self, layout: NodeLayout) -> Iterator[Item]:
        removal = [
            item
            for action in layout.actions
            for item in (
                *(removed for file in action.files for removed in tasks.remove_file(file.title, file.path)),
                *(tasks.remove_file("module", action.module.path) if action.module else ()),
            )
        ]
        if not layout.activates:
            yield from removal
            return
        hooks = layout.hooks
        yield from tasks.transaction(
            _paths(layout),
            hooks,
            [
                *tasks.run_hooks("pre", hooks.pre),
                *tasks.run_hooks("deactivate", hooks.deactivate),
                *removal,
                *tasks.run_hooks("restart", hooks.restart),
            ],
            undo_activation=False,
        )


def _verified_by(item: ActionLayout) -> tuple[object, ...]:
    action = item.action
    return (action.kind, action.target_algorithm, action.provider_choice, action.provider_class, action.config_artifact)


def _paths(layout: NodeLayout) -> tuple[str, ...]:
    modules = (module.path for module in layout.modules)
    return tuple(dict.fromkeys((*modules, *(file.path for file in layout.files))))


def _about_actions(layout: NodeLayout) -> Iterator[str]:
    for item in layout.actions:
        yield from _about_action(item)


def _about_action(item: ActionLayout) -> Iterator[str]:
    action = item.action
    name = f"Action {quote(action.id)}" if action.id else "Action without id"
    kind = wire_name(action.kind).removeprefix(RemediationKind.prefix())
    runtime = wire_name(action.crypto_runtime).removeprefix(CryptoRuntime.prefix())
    yield f"{name}: {kind} on {runtime}, level {item.level.option}."
    if action.kind in WHY_MANUAL:
        reason = WHY_MANUAL[RemediationKind(action.kind)]
        yield f"  Manual: no config can do it, since {reason}. A person has to; this playbook does nothing for it."
    elif not is_config_action(action):
        yield "  Nothing can be generated for this runtime; this playbook does nothing for it."
    if action.rollback_note:
        yield f"  Rollback note of the plan: {quote(action.rollback_note, 400)}"


def _header(plan: FinalizedPlan, level: Level, layouts: Sequence[NodeLayout], *, forward: bool) -> Iterator[str]:
    name = quote(plan.id) if plan.id else "without id"
    transactions = sum(layout.activates for layout in layouts)
    yield (
        f"Carries out the post-quantum migration plan {name}."
        if forward
        else f"Undoes the post-quantum migration plan {name}."
    )
    yield "Made by pqcota-provision; make it anew from the plan instead of editing it."
    yield ""
    yield "Apply it with the inventory that the nodes were discovered with:"
    yield f"  ansible-playbook -i targets.ini {'provision.yml' if forward else 'rollback.yml'}"
    yield ""
    yield f"Default level: {level.option}, for actions that set none."
    yield _about_activation(layouts, forward=forward)
    if transactions:
        yield (
            f"Level l3 is reached on {transactions} of {len(layouts)} nodes. There a run is one transaction: if a step "
            "fails, the node is put back and the play fails."
        )
        yield "Every run runs the hooks, the restart included, also where nothing else has to be changed."
        yield "A node that becomes unreachable in the middle cannot be put back; run the playbook again."
    if not forward:
        yield "This is no version rollback: files of the plan are removed, and no earlier version of them comes back."
        return
    yield from _about_modules(plan)


def _about_activation(layouts: Sequence[NodeLayout], *, forward: bool) -> str:
    if forward:
        nodes = sum(bool(layout.hooks.activate) for layout in layouts)
        if nodes:
            return f"It activates: the plan's activate hooks run on {nodes} of {len(layouts)} nodes."
        return "No action activates anything: apps go on as they are until somebody points them at the files."
    nodes = sum(bool(layout.hooks.deactivate) for layout in layouts)
    if nodes:
        return f"It deactivates: the plan's deactivate hooks run on {nodes} of {len(layouts)} nodes."
    return "No action deactivates anything: see to it that no app is pointed at the files before they are removed."


def _about_modules(plan: FinalizedPlan) -> Iterator[str]:
    modules: dict[Module, None] = {}
    has_jar = False
    for action in plan.actions:
        if action.kind == RemediationKind.PROVIDER_INJECT and is_config_action(action):
            modules[module_of(action)] = None
            has_jar = has_jar or action.crypto_runtime == CryptoRuntime.JCA
    if not modules:
        return
    yield ""
    yield "The suite supplies no modules. Put each into files/ beside this playbook, or name it; pin its hash:"
    for module in modules:
        yield f"  {module.file_name}: -e {module.source_variable}=PATH -e {module.hash_variable}=SHA256"
    if has_jar:
        yield (
            "A staged JAR is not loaded by itself: a JVM loads it from the argument file, "
            "with JDK_JAVA_OPTIONS=@/etc/pqcota/jvm.pqcota in its environment."
        )
