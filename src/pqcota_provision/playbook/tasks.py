"""The Ansible tasks behind each step (SPEC 8, 11.4, 11.6 and 11.8).

Text from the plan reaches a task only as Unsafe, or as a name that the gates have checked letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, wraps
from typing import Any, ParamSpec, cast

from pqcota_provision.playbook.layout import Hooks, PlacedFile
from pqcota_provision.playbook.paths import (
    DIRECTORY_MODE,
    FILE_MODE,
    HASH_VARIABLE,
    SOURCE_VARIABLE,
    Module,
)
from pqcota_provision.playbook.yamlwriter import Item, Unsafe, Value

# Hooks are the plan author's shell commands: Ansible's advice on how to write them better is not ours to follow.
_HOOK_NOQA = ("command-instead-of-module", "command-instead-of-shell", "risky-shell-pipe")

# ansible-lint takes text for a template where Ansible, told by the tag, does not.
_TEXT_NOQA = {"{": "jinja", "\t": "no-tabs"}

NOT_IN_CHECK_MODE = "not ansible_check_mode"


Arguments = ParamSpec("Arguments")


def shared(make: Callable[Arguments, Iterable[Item]]) -> Callable[Arguments, tuple[Item, ...]]:
    """Make a step's tasks once for all nodes, and let the writer write them once."""

    @lru_cache(maxsize=1024)
    def cached(*args: Any, **kwargs: Any) -> tuple[Item, ...]:
        return tuple(item._replace(shared=True) for item in make(*args, **kwargs))

    return cast("Callable[Arguments, tuple[Item, ...]]", wraps(make)(cached))


def task(
    name: str,
    module: str,
    arguments: dict[str, Value],
    *,
    noqa: Sequence[str] = (),
    **keywords: Any,
) -> Item:
    """Return one task: its name, the module with its arguments, then the keywords in the order given.

    An empty keyword is left out.
    """
    entries: dict[str, Value | Sequence[Item]] = {"name": name, f"ansible.builtin.{module}": arguments}
    given = {keyword: value for keyword, value in keywords.items() if value is False or value}
    return Item({**entries, **given}, noqa=tuple(noqa))


def inventory_check(nodes: Sequence[str]) -> tuple[Item, ...]:
    """Return the task that fails the run unless every node is one host of the inventory and no group."""
    return (
        task(
            "Check that every target node is one host of the inventory",
            "assert",
            {
                "that": ["pqcota_unknown_nodes | length == 0", "pqcota_group_nodes | length == 0"],
                "fail_msg": "Nothing was changed. Not a host of the inventory: "
                "{{ pqcota_unknown_nodes | join(', ') | default('none', true) }}. "
                "Also the name of a group: {{ pqcota_group_nodes | join(', ') | default('none', true) }}.",
                "quiet": True,
            },
            vars={
                "pqcota_target_nodes": [Unsafe(node) for node in nodes],
                "pqcota_unknown_nodes": "{{ pqcota_target_nodes | difference(groups['all']) | sort }}",
                "pqcota_group_nodes": "{{ pqcota_target_nodes | intersect(groups.keys() | list) | sort }}",
            },
            tags=["always"],
        ),
    )


def _expected_hash(module: Module, measured: str) -> str:
    """Return the expression of the hash to compare with; where none is expected, what was measured stands."""
    variables = f"{module.hash_variable} | default({HASH_VARIABLE} | default({measured}))"
    return f"{{{{ {variables} | string | trim | lower }}}}"


def _source(module: Module) -> str:
    """Return the expression of the module's source, as the copy action is given it."""
    return f"{module.source_variable} | default({SOURCE_VARIABLE} | default({literal(module.file_name)}))"


def literal(name: str) -> str:
    """Return a checked name as a string literal of Ansible's expressions."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _hash_conditions(measured: str, pinned: Sequence[str]) -> list[str]:
    conditions = [f"{measured} == pqcota_expected_hash"]
    if pinned:
        conditions.append(f"{measured} in pqcota_pinned_hashes")
    return conditions


def _wanted(pinned: Sequence[str]) -> str:
    return "pqcota_pinned_hashes | join(' or ')" if pinned else "pqcota_expected_hash"


def _hash_variables(module: Module, measured: str, pinned: Sequence[str]) -> dict[str, Value]:
    variables: dict[str, Value] = {"pqcota_expected_hash": _expected_hash(module, measured)}
    if pinned:
        variables["pqcota_pinned_hashes"] = sorted(pinned)
    return variables


@shared
def check_source(module: Module, pinned: tuple[str, ...] = ()) -> Iterable[Item]:
    """Return the tasks that look for the module on the controller and check its hash, changing nothing."""
    measured = "pqcota_module_source.stat.checksum"
    return (
        task(
            f"Find {module.file_name} on the controller",
            "stat",
            {
                "path": "{{ lookup('ansible.builtin.first_found', pqcota_candidates, skip=true) | default('', true) }}",
                "follow": True,
                "checksum_algorithm": "sha256",
            },
            vars={
                "ansible_connection": "local",
                "ansible_python_interpreter": "{{ ansible_playbook_python }}",
                "pqcota_source": f"{{{{ {_source(module)} }}}}",
                # Where the copy action looks, in its order.
                "pqcota_candidates": "{{ [pqcota_source] if pqcota_source[:1] in ['/', '~'] "
                "else ['files/' ~ pqcota_source, pqcota_source] }}",
            },
            delegate_to="localhost",
            become=False,
            register="pqcota_module_source",
        ),
        task(
            f"Check {module.file_name} on the controller",
            "assert",
            {
                "that": [
                    "pqcota_module_source.stat.exists",
                    "pqcota_module_source.stat.isreg",
                    *_hash_conditions(measured, pinned),
                ],
                "fail_msg": f"Nothing was changed on this node. {module.file_name} on the controller: "
                "{{ pqcota_found if pqcota_module_source.stat.isreg | default(false) else pqcota_lacking }}.",
                "quiet": True,
            },
            vars={
                **_hash_variables(module, measured, pinned),
                "pqcota_found": f"expected SHA-256 {{{{ {_wanted(pinned)} }}}}, "
                f"found {{{{ {measured} }}}} in {{{{ pqcota_module_source.stat.path }}}}",
                "pqcota_lacking": "no such file; put it into files/ beside the playbook, "
                f"or name it with {module.source_variable}",
            },
        ),
    )


@shared
def make_directory(path: str) -> Iterable[Item]:
    """Return the task that makes a directory of the suite."""
    return (
        task(
            f"Make the directory {path}",
            "file",
            {"path": path, "state": "directory", "owner": "root", "mode": DIRECTORY_MODE},
        ),
    )


@shared
def stage_module(module: Module, pinned: tuple[str, ...] = ()) -> Iterable[Item]:
    """Return the tasks that copy a module to the node, measure what is there and stop on a mismatch."""
    measured = "pqcota_module_staged.stat.checksum"
    return (
        task(
            f"Stage the module {module.path}",
            "copy",
            {
                "src": f"{{{{ {_source(module)} }}}}",
                "dest": Unsafe(module.path),
                "owner": "root",
                "mode": FILE_MODE,
            },
        ),
        task(
            f"Measure {module.path} on the node",
            "stat",
            {"path": Unsafe(module.path), "checksum_algorithm": "sha256"},
            register="pqcota_module_staged",
            when=NOT_IN_CHECK_MODE,
        ),
        task(
            f"Check the hash of {module.path} on the node",
            "assert",
            {
                "that": ["pqcota_module_staged.stat.isreg", *_hash_conditions(measured, pinned)],
                "fail_msg": "The module on this node is not the expected one; its SHA-256 is "
                f"{{{{ {measured} | default('not to be had') }}}}.",
                "quiet": True,
            },
            vars=_hash_variables(module, measured, pinned),
            when=NOT_IN_CHECK_MODE,
        ),
    )


@shared
def place_file(file: PlacedFile) -> Iterable[Item]:
    """Return the task that places a config file, byte for byte."""
    return (
        task(
            f"Place the {file.title} {file.path}",
            "copy",
            {"dest": Unsafe(file.path), "content": Unsafe(file.text), "owner": "root", "mode": FILE_MODE},
            noqa=_text_noqa(file.text),
        ),
    )


@shared
def remove_file(title: str, path: str) -> Iterable[Item]:
    """Return the task that removes a file of the plan."""
    return (task(f"Remove the {title} {path}", "file", {"path": Unsafe(path), "state": "absent"}),)


def run_hooks(step: str, commands: Sequence[str]) -> tuple[Item, ...]:
    """Return one task a command; a command that fails, fails the step."""
    return tuple(
        _hook(f"Run the {step} hook{_position(index, commands)}", command) for index, command in enumerate(commands)
    )


def _position(index: int, commands: Sequence[str]) -> str:
    return f" {index + 1} of {len(commands)}" if len(commands) > 1 else ""


def _hook(name: str, command: str, **keywords: Any) -> Item:
    noqa = (*_HOOK_NOQA, *_text_noqa(command))
    return task(name, "shell", {"cmd": Unsafe(command)}, noqa=noqa, **{"changed_when": True, **keywords})


def _text_noqa(text: str) -> tuple[str, ...]:
    return tuple(rule for mark, rule in _TEXT_NOQA.items() if mark in text)


def transaction(
    paths: tuple[str, ...],
    hooks: Hooks,
    change: Sequence[Item],
    *,
    undo_activation: bool,
    touches_service_at_once: bool = True,
) -> tuple[Item, ...]:
    """Return the tasks that carry out a change and, if a step of it fails, put the node back (SPEC 11.6).

    ``paths`` are the files the change may touch. Their previous versions are kept in a temporary directory on
    the node, which is removed at the end unless a file could not be put back. Unless the service is touched at
    once, a failure before service_touched() restarts nothing.
    """
    inner = Item(
        {
            "name": "Change the node, and put it back if a step fails",
            "block": change,
            "rescue": _put_back(hooks, undo_activation=undo_activation),
        }
    )
    outer = Item(
        {
            "name": "Run as one transaction",
            "block": [*_keep_previous(), inner],
            "always": _drop_previous(),
        }
    )
    return (*_look_at_files(paths), *_begin(service_touched=touches_service_at_once), outer)


@shared
def _look_at_files(paths: tuple[str, ...]) -> Iterable[Item]:
    return (
        task(
            "Look at the files this run may change",
            "stat",
            {"path": "{{ item }}", "checksum_algorithm": "sha256"},
            loop=[Unsafe(path) for path in paths],
            register="pqcota_before",
        ),
        task(
            "Check that each of them is a regular file or absent",
            "assert",
            {
                "that": ["pqcota_irregular | length == 0"],
                "fail_msg": "Nothing was changed on this node. Neither regular files nor absent: "
                "{{ pqcota_irregular | join(', ') }}.",
                "quiet": True,
            },
            vars={
                "pqcota_irregular": "{{ pqcota_before.results | map(attribute='stat') | selectattr('exists') "
                "| rejectattr('isreg') | map(attribute='path') | list }}"
            },
        ),
    )


@shared
def _begin(*, service_touched: bool) -> Iterable[Item]:
    yield task(
        "Begin with nothing activated and nothing to put back",
        "set_fact",
        {
            "pqcota_activation_begun": False,
            "pqcota_service_touched": service_touched,
            "pqcota_not_put_back": [],
        },
    )


@shared
def _keep_previous() -> Iterable[Item]:
    return (
        task(
            "Make a directory for the previous versions",
            "tempfile",
            {"state": "directory", "prefix": "pqcota."},
            changed_when=False,
            register="pqcota_previous",
            when=NOT_IN_CHECK_MODE,
        ),
        task(
            "Keep the previous versions",
            "copy",
            {
                "src": "{{ item.stat.path }}",
                "dest": "{{ pqcota_previous.path }}/{{ pqcota_index }}",
                "remote_src": True,
                "mode": "0600",
            },
            loop="{{ pqcota_before.results }}",
            loop_control={"index_var": "pqcota_index", "label": "{{ item.item }}"},
            changed_when=False,
            when=[NOT_IN_CHECK_MODE, "item.stat.exists"],
        ),
    )


@shared
def service_touched() -> Iterable[Item]:
    """Return the task that notes that from here on a failed run has to restart the service."""
    return (task("Note that the service is touched from here on", "set_fact", {"pqcota_service_touched": True}),)


@shared
def activation_begins() -> Iterable[Item]:
    """Return the task that notes that from here on an activation has to be undone."""
    return (task("Note that activation begins", "set_fact", {"pqcota_activation_begun": True}),)


def _put_back(hooks: Hooks, *, undo_activation: bool) -> tuple[Item, ...]:
    deactivate = hooks.deactivate if undo_activation else ()
    return (
        *_note_failure(),
        *_undo_hooks("deactivate", deactivate, when=["pqcota_activation_begun"]),
        *_restore_files(),
        *_undo_hooks("restart", hooks.restart, when=["pqcota_service_touched"]),
        *_fail(restarts=bool(hooks.restart)),
    )


@shared
def _note_failure() -> Iterable[Item]:
    yield task(
        "Note which step failed",
        "set_fact",
        {
            "pqcota_failed_step": "{{ ansible_failed_task.name }}",
            "pqcota_failed_reason": "{{ ansible_failed_result.msg | default('no reason given') }}"
            "{{ ', status ' ~ ansible_failed_result.rc if ansible_failed_result.rc is defined else '' }}"
            "{{ ': ' ~ pqcota_stderr_lines[0] if pqcota_stderr_lines else '' }}",
            "pqcota_hook_failures": [],
        },
        vars={"pqcota_stderr_lines": "{{ ansible_failed_result.stderr_lines | default([]) }}"},
    )


@shared
def _restore_files() -> Iterable[Item]:
    return (
        task(
            "Put the previous versions back",
            "copy",
            {
                "src": "{{ pqcota_previous.path }}/{{ pqcota_index }}",
                "dest": "{{ item.stat.path }}",
                "remote_src": True,
                "owner": "{{ item.stat.uid | string }}",
                "group": "{{ item.stat.gid | string }}",
                "mode": "{{ item.stat.mode }}",
            },
            loop="{{ pqcota_before.results }}",
            loop_control={"index_var": "pqcota_index", "label": "{{ item.item }}"},
            ignore_errors=True,
            register="pqcota_put_back",
            when=[NOT_IN_CHECK_MODE, "item.stat.exists"],
        ),
        task(
            "Remove the files that were not there before",
            "file",
            {"path": "{{ item.item }}", "state": "absent"},
            loop="{{ pqcota_before.results }}",
            loop_control={"label": "{{ item.item }}"},
            ignore_errors=True,
            register="pqcota_removed",
            when="not item.stat.exists",
        ),
        task(
            "Look at the files again",
            "stat",
            {"path": "{{ item.item }}", "checksum_algorithm": "sha256"},
            loop="{{ pqcota_before.results }}",
            loop_control={"label": "{{ item.item }}"},
            ignore_errors=True,
            register="pqcota_after",
        ),
        # What counts is what is there: a file that never changed may refuse to be written.
        task(
            "Note which files could not be put back",
            "set_fact",
            {"pqcota_not_put_back": "{{ pqcota_not_put_back + [item.item.item] }}"},
            loop="{{ pqcota_after.results }}",
            loop_control={"label": "{{ item.item.item }}"},
            vars={
                "pqcota_facts": ["exists", "checksum", "mode", "uid", "gid"],
                "pqcota_was": "{{ pqcota_facts | map('extract', item.item.stat) | map('default', '') | list }}",
                "pqcota_is": "{{ pqcota_facts | map('extract', item.stat | default({})) | map('default', '') | list }}",
            },
            when="pqcota_was != pqcota_is",
        ),
    )


@shared
def _fail(*, restarts: bool) -> Iterable[Item]:
    restarted = (
        "{{ 'The restart hook was run. ' if pqcota_service_touched else 'The service was not touched. ' }}"
        if restarts
        else "The plan has no restart hook, so nothing was restarted. "
    )
    restarted += (
        "Hooks that failed while the node was put back: "
        "{{ pqcota_hook_failures | join(', ') | default('none', true) }}."
    )
    yield task(
        "Fail with the step that failed",
        "fail",
        {
            "msg": "This step failed: {{ pqcota_failed_step }} ({{ pqcota_failed_reason }}). "
            "Files that could not be put back as they were: "
            "{{ pqcota_not_put_back | join(', ') | default('none', true) }}"
            "{{ pqcota_where if pqcota_not_put_back | length > 0 else '' }}. " + restarted
        },
        vars={"pqcota_where": "; what was there before is in {{ pqcota_previous.path }}"},
    )


def _undo_hooks(step: str, commands: Sequence[str], *, when: Sequence[str]) -> Iterable[Item]:
    for index, command in enumerate(commands):
        position = _position(index, commands)
        yield _hook(
            f"Run the {step} hook{position} to put the node back",
            command,
            ignore_errors=True,
            register="pqcota_undo",
            when=when,
        )
        yield from _note_undo(step, position)


@shared
def _note_undo(step: str, position: str) -> Iterable[Item]:
    yield task(
        f"Note how the {step} hook{position} ended",
        "set_fact",
        {"pqcota_hook_failures": f"{{{{ pqcota_hook_failures + ['{step}{position}'] }}}}"},
        when="pqcota_undo is failed",
    )


@shared
def _drop_previous() -> Iterable[Item]:
    yield task(
        "Remove the previous versions",
        "file",
        {"path": "{{ pqcota_previous.path }}", "state": "absent"},
        changed_when=False,
        when=[NOT_IN_CHECK_MODE, "pqcota_previous.path is defined", "pqcota_not_put_back | length == 0"],
    )
