"""The first process of a test's namespaces: lays out a root where one is asked for, then reaps whoever is left.

Run as ``unshare --mount --pid --net --uts --fork --kill-child python namespace_init.py NAME [host]``. It says
``ready`` once the namespaces can be entered. All mounts lie in its own mount namespace and all processes in its
own process namespace, so that its death, however it comes, leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys

SCRATCH = "/run"  # a directory that every Linux has, to mount on; the machine's own /run is not touched
WRITABLE = {"opt": "755", "root": "700", "run": "755", "tmp": "1777", "var/tmp": "1777"}
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
# Paths of the machine that must not shine through, even if they come to be while the host runs.
HIDDEN = ("etc/pqcota",)


def mount(kind: str, target: str, options: str = "defaults") -> None:
    """Mount a filesystem of a kind at a target."""
    subprocess.run(["mount", "-t", kind, kind, target, "-o", options], check=True)


def lay_out_root() -> None:
    """Make the host's root: an overlay over the machine's, with all that changes kept in memory."""
    mount("tmpfs", SCRATCH, "size=256m,mode=755")
    upper, work, root = (f"{SCRATCH}/{name}" for name in ("upper", "work", "root"))
    for path in (upper, work, root):
        os.mkdir(path)
    for path in HIDDEN:
        os.makedirs(os.path.dirname(f"{upper}/{path}"), exist_ok=True)
        os.mknod(f"{upper}/{path}", stat.S_IFCHR, os.makedev(0, 0))  # an overlay's mark for "not here"
    mount("overlay", root, f"lowerdir=/,upperdir={upper},workdir={work}")
    for name, mode in WRITABLE.items():
        mount("tmpfs", f"{root}/{name}", f"size=64m,mode={mode}")
    mount("proc", f"{root}/proc")
    mount("tmpfs", f"{root}/dev", "size=1m,mode=755")
    for name, numbers in DEVICES.items():
        os.mknod(f"{root}/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(*numbers))
        os.chmod(f"{root}/dev/{name}", 0o666)
    os.symlink("/proc/self/fd", f"{root}/dev/fd")
    os.mkdir(f"{root}/dev/shm")
    os.mkdir(f"{root}/run/machine")
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "run/machine"], check=True)
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/run/machine"], check=True)
    os.rmdir("/run/machine")


def reap() -> None:
    """Collect every process of the namespace that lost its parent, for ever."""
    while True:
        signal.sigwait({signal.SIGCHLD})
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def main() -> None:
    """Lay out the namespaces and stay."""
    socket.sethostname(sys.argv[1])
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    if "host" in sys.argv[2:]:
        lay_out_root()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    print("ready", flush=True)
    reap()


if __name__ == "__main__":
    main()
