"""A small service on a host that hooks really stop, activate and start again.

``ledgerd`` keeps a pid file and a log. At each start it logs what it found: whether it is activated, and the hash
of the files of the plan, so that a test sees what the process that runs now was started with.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from fleet import Host

PROGRAM = "/usr/local/sbin/ledgerd"
PID_FILE = "/run/ledgerd.pid"
LOG = "/var/log/ledgerd.log"
ACTIVATION = "/etc/default/ledgerd"
FRAGMENT = "/etc/pqcota/openssl-pqc.cnf"
MODULE = "/opt/pqcota/oqsprovider.so"
ABSENT = "absent"

HOOKS = {
    "pre": "ledgerd stop",
    "activate": "ledgerd activate",
    "deactivate": "ledgerd deactivate",
    "restart": "ledgerd restart",
}

_SCRIPT = f"""\
#!/bin/sh
# usage: ledgerd start|stop|restart|activate|deactivate
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin

is_running() {{ [ -s {PID_FILE} ] && kill -0 "$(cat {PID_FILE})" 2>/dev/null; }}
hash_of() {{ if [ -f "$1" ]; then sha256sum <"$1" | cut -d' ' -f1; else echo {ABSENT}; fi; }}

stop() {{
  if is_running; then
    kill "$(cat {PID_FILE})"
    while is_running; do sleep 0.01; done
  fi
  rm -f {PID_FILE}
  echo "stop" >>{LOG}
}}

start() {{
  if is_running; then return; fi
  nohup sleep 1000000 </dev/null >/dev/null 2>&1 &
  echo $! >{PID_FILE}
  activated=no
  if [ -f {ACTIVATION} ]; then activated=yes; fi
  echo "start $activated $(hash_of {FRAGMENT}) $(hash_of {MODULE})" >>{LOG}
}}

case $1 in
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
  activate) echo OPENSSL_CONF={FRAGMENT} >{ACTIVATION} ;;
  deactivate) rm -f {ACTIVATION} ;;
  *) exit 2 ;;
esac
"""


class Start(NamedTuple):
    """What the service found when it was started: hashes, or ``absent``."""

    activated: bool
    fragment: str
    module: str


class Ledger:
    """The service on one host, running from the beginning."""

    def __init__(self, host: Host) -> None:
        self._host = host
        host.write(PROGRAM, _SCRIPT, 0o755)
        host.run(PROGRAM, "start")

    @property
    def is_running(self) -> bool:
        """Whether the process of the pid file runs."""
        return self._host.exists(PID_FILE) and self._host.is_running(int(self._host.read(PID_FILE)))

    @property
    def log(self) -> list[str]:
        """The lines of the log: ``stop``, or ``start`` with what was found."""
        return self._host.read(LOG).decode().splitlines()

    @property
    def started_with(self) -> Start:
        """What the last start found."""
        _, activated, fragment, module = next(line for line in reversed(self.log) if line.startswith("start")).split()
        return Start(activated == "yes", fragment, module)

    def found_now(self) -> Start:
        """Return what a start would find now."""
        return Start(self._host.exists(ACTIVATION), self._hash(FRAGMENT), self._hash(MODULE))

    def _hash(self, path: str) -> str:
        return hashlib.sha256(self._host.read(path)).hexdigest() if self._host.exists(path) else ABSENT
