"""A node's files at the very paths a playbook puts them, seen only by the commands a test runs.

The files lie in a directory of the test and are mounted over /etc and /opt in a private mount namespace, so that
absolute paths in generated files need no rewriting and the machine itself stays as it is.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from available import needs, skip_or_fail
from pqcota_provision.playbook.layout import NodeLayout

TIMEOUT = 60

_MOUNTED = ("etc", "opt")
_ENTER = "".join(f'mount -t overlay overlay -o "lowerdir=$1/{name}:/{name}" /{name}; ' for name in _MOUNTED)


class NodeView:
    """A view of this machine with some files of a node laid over it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for name in _MOUNTED:
            (root / name).mkdir(mode=0o755)

    def place(self, path: str, content: str | bytes, mode: int = 0o644) -> str:
        """Put a file at an absolute path below /etc or /opt of the view, and return that path."""
        target = self._target(path)
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)
        return path

    def place_files(self, layout: NodeLayout) -> None:
        """Put a layout's config files where its playbook would."""
        for file in layout.files:
            self.place(file.path, file.text)

    def remove(self, path: str) -> None:
        """Take a placed file away again."""
        self._target(path).unlink()

    def run(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        stdin: str = "",
        user: str = "",
        directory: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside the view to its end, as root of the view or as another user."""
        return subprocess.run(
            self._command(argv, user),
            env=_environment(environment),
            input=stdin,
            cwd=directory or self._root,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str], output: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a command inside the view; the caller ends it."""
        return subprocess.Popen(
            self._command(argv, ""),
            env=_environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self._root,
        )

    def _target(self, path: str) -> Path:
        if path.split("/")[1] not in _MOUNTED:
            raise ValueError(f"{path} is not below one of {_MOUNTED}")
        return self._root / path.lstrip("/")

    def _command(self, argv: Sequence[str], user: str) -> list[str]:
        drop = [needs("setpriv"), f"--reuid={user}", "--regid=65534", "--clear-groups"] if user else []
        return [*_unshare(), "sh", "-ec", f'{_ENTER} shift; exec "$@"', "sh", str(self._root), *drop, *argv]


def require_node_view(root: Path) -> None:
    """Skip the test with the reason where this machine allows no private mounts."""
    view = NodeView(root)
    view.place("/etc/pqcota/probe", "")
    try:
        result = view.run(["test", "-e", "/etc/pqcota/probe"], environment={})
    except OSError as error:
        skip_or_fail(f"no private mount namespace: {error}")
    if result.returncode:
        skip_or_fail(f"no overlay mounts in a private mount namespace: {result.stderr.strip()}")


def _unshare() -> list[str]:
    # Without root, a user namespace gives the right to mount; in it one is root in name.
    return [needs("unshare"), "--mount"] if os.geteuid() == 0 else [needs("unshare"), "--map-root-user", "--mount"]


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", **extra}
