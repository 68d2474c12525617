"""The proving key: only root may be able to read it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pqcota_provision.errors import KeyUnusable
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.proof.files import open_regular, reason_of
from pqcota_provision.text import quote

_ROOT = 0
_READABLE_BY_OTHERS = 0o077
_MAX_BYTES = 4096


def read_proving_key(path: Path) -> PrivateKey:
    """Read the private key in a file that belongs to root and that neither group nor others may touch.

    Raises KeyUnusable, naming the file's owner and mode and what they must be; never shows the key.
    """
    shown = quote(str(path), 240)
    try:
        with open(open_regular(path), "rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(_MAX_BYTES)
    except OSError as error:
        raise KeyUnusable(f"the proving key {shown} cannot be read: {reason_of(error)}") from None
    mode = stat.S_IMODE(status.st_mode)
    if mode & _READABLE_BY_OTHERS:
        raise KeyUnusable(
            f"the proving key {shown} has mode {mode:04o}; it must be 0600 or 0400, out of reach of group and others",
            remedy=f"Take the rights away with chmod 0600 {path}, and make a new key if somebody may have read it.",
        )
    if status.st_uid != _ROOT:
        raise KeyUnusable(
            f"the proving key {shown} belongs to user {status.st_uid}; it must belong to root",
            remedy=f"Give it to root with chown root {path}, and make a new key if somebody may have read it.",
        )
    try:
        return PrivateKey.parse(data.decode("ascii", "replace"))
    except KeyUnusable as error:
        raise KeyUnusable(f"the proving key {shown}: {error}") from None
