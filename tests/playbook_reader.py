"""Reads a generated playbook back: its plays, its tasks in order, and which texts are marked as no template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

Play = dict[str, Any]
Task = dict[str, Any]


class UnsafeText(str):
    """Text that carried the tag which keeps Ansible from reading it as a template."""

    __slots__ = ()


class _Loader(yaml.SafeLoader):
    pass


def _construct_unsafe(loader: yaml.SafeLoader, node: yaml.Node) -> UnsafeText:
    assert isinstance(node, yaml.ScalarNode)
    return UnsafeText(loader.construct_scalar(node))


_Loader.add_constructor("!unsafe", _construct_unsafe)


def load_yaml(text: str) -> Any:
    """Return what the YAML text holds."""
    return yaml.load(text, _Loader)


def load_plays(text: str) -> list[Play]:
    """Return the plays of a playbook, the inventory check first."""
    plays = load_yaml(text)
    assert isinstance(plays, list)
    return plays


def node_plays(text: str) -> list[Play]:
    """Return the plays that act on nodes."""
    return load_plays(text)[1:]


def walk(tasks: list[Task], *, sections: tuple[str, ...] = ("block", "rescue", "always")) -> Iterator[Task]:
    """Yield every task, entering the given sections of blocks in order."""
    for task in tasks:
        if "block" in task:
            for section in sections:
                yield from walk(task.get(section, []), sections=sections)
        else:
            yield task


def regular_tasks(play: Play) -> list[Task]:
    """Return the tasks that run when nothing fails, in order, without what only cleans up."""
    return list(walk(play["tasks"], sections=("block",)))


def rescue_tasks(play: Play) -> list[Task]:
    """Return the tasks that run only after a failure."""
    return [
        task
        for outer in play["tasks"]
        if "block" in outer
        for inner in outer["block"]
        if "rescue" in inner
        for task in inner["rescue"]
    ]


def arguments(task: Task, module: str) -> dict[str, Any] | None:
    """Return a task's arguments if it calls that module."""
    return task.get(f"ansible.builtin.{module}")


def placed_files(play: Play) -> dict[str, str]:
    """Return the config files a play places: path to content."""
    copies = (arguments(task, "copy") for task in regular_tasks(play))
    return {copy["dest"]: copy["content"] for copy in copies if copy and "content" in copy}


def staged_modules(play: Play) -> list[str]:
    """Return where a play stages modules, in order."""
    copies = (arguments(task, "copy") for task in regular_tasks(play))
    return [copy["dest"] for copy in copies if copy and "content" not in copy and not copy.get("remote_src")]


def removed_paths(play: Play) -> list[str]:
    """Return the paths a play removes when nothing fails, in order."""
    files = (arguments(task, "file") for task in regular_tasks(play))
    return [file["path"] for file in files if file and file["state"] == "absent"]


def hooks_run(play: Play) -> list[str]:
    """Return the hook commands a play runs when nothing fails, in order."""
    shells = (arguments(task, "shell") for task in regular_tasks(play))
    return [shell["cmd"] for shell in shells if shell]
