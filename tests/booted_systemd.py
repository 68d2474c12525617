"""A real systemd as process 1 of namespaces of its own, on a throwaway copy of this machine's root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

_SYSTEMD = Path("/lib/systemd/systemd")
_BOOT_SECONDS = 60
_TARGET = "[Unit]\nDefaultDependencies=no\n"

# $1 is the folder of the throwaway root, the rest are folders that must be seen in it.
_INIT = """
set -e
cd "$1"; shift
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
mount -t tmpfs tmpfs root/run
mount -t tmpfs tmpfs root/tmp
# Only now, since the project itself may lie in a folder that has just been covered.
for folder in "$@"; do mkdir -p "root$folder"; mount --rbind "$folder" "root$folder"; done
cd root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
if [ -d /sys/fs/cgroup/systemd ]; then
    mount -t tmpfs tmpfs sys/fs/cgroup
    mkdir -p sys/fs/cgroup/systemd sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
else
    mount -t cgroup2 cgroup2 sys/fs/cgroup
fi
mount --rbind /dev dev
exec chroot . /usr/bin/env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    /lib/systemd/systemd --system --unit=test.target --show-status=no
"""
# The shell joins a control group of its own before it enters namespaces, so that systemd finds an empty tree.
_ENTER = """
for group in $1; do mkdir -p "$group"; echo $$ > "$group/cgroup.procs"; done
shift
exec unshare --mount --pid --fork --kill-child --ipc --uts --net --cgroup sh -c "$@"
"""


class BootedSystemd:
    """The running systemd; commands run beside its units."""

    def __init__(self, root: Path, init: int, environment: dict[str, str]) -> None:
        self.root = root
        self._init = init
        self._environment = environment

    def run(self, *command: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command in the namespaces of the system."""
        namespaces = ["--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup", "--root"]
        return subprocess.run(
            ["nsenter", f"--target={self._init}", *namespaces, "env", "--chdir=/", *command],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def systemctl(self, *arguments: str) -> str:
        done = self.run("systemctl", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, path: str, content: str | bytes, mode: int = 0o644) -> None:
        """Put a file at a path of the system."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)


@contextlib.contextmanager
def boot(needs: Callable[[str], str], skip_or_fail: Callable[[str], NoReturn]) -> Iterator[BootedSystemd]:
    """Boot a system for a test, and leave nothing of it behind."""
    if os.geteuid() != 0:
        skip_or_fail("only root can boot a systemd of its own")
    for tool in ("systemctl", "unshare", "nsenter", "mount", "chroot"):
        needs(tool)
    if not _SYSTEMD.exists():
        skip_or_fail("systemd is not installed")
    # The upper layer of an overlay cannot lie on another overlay.
    directory = Path(tempfile.mkdtemp(prefix="pqcota-systemd-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    groups = [
        tree / directory.name
        for tree in (Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
        if (tree / "cgroup.procs").exists()
    ]
    for name in ("upper/etc/systemd/system", "work", "root"):
        (directory / name).mkdir(parents=True)
    (directory / "upper/etc/systemd/system/test.target").write_text(_TARGET)
    seen = sorted({sys.prefix, sys.base_prefix, str(Path(__file__).parents[1])})
    process = subprocess.Popen(
        ["sh", "-c", _ENTER, "enter", " ".join(map(str, groups)), _INIT, "init", str(directory), *seen],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        init = _wait_for_init(process, skip_or_fail)
        path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        system = BootedSystemd(Path(f"/proc/{init}/root"), init, {"PATH": path, "LC_ALL": "C.UTF-8"})
        _wait_until_booted(system, skip_or_fail)
        yield system
    finally:
        for child in _children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, 9)
        process.kill()
        process.communicate()
        for group in groups:
            _remove_group(group)
        shutil.rmtree(directory, ignore_errors=True)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _wait_for_init(process: subprocess.Popen[bytes], skip_or_fail: Callable[[str], NoReturn]) -> int:
    deadline = time.monotonic() + _BOOT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for child in _children(process.pid):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                    return child
        time.sleep(0.05)
    process.kill()
    assert process.stderr is not None
    why = process.stderr.read().decode(errors="replace").strip()
    return skip_or_fail(f"no systemd of its own can be booted here: {why}")


def _wait_until_booted(system: BootedSystemd, skip_or_fail: Callable[[str], NoReturn]) -> None:
    deadline = time.monotonic() + _BOOT_SECONDS
    while time.monotonic() < deadline:
        if system.run("systemctl", "is-active", "test.target").stdout == "active\n":
            return
        time.sleep(0.1)
    skip_or_fail("the systemd that was booted here does not answer")


def _remove_group(group: Path) -> None:
    for _ in range(50):
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if not group.exists():
            return
        time.sleep(0.1)
