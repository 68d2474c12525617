"""What a plan may name: files, Java classes and hosts (SPEC 11.2 and 11.3).

Each check returns None, or the reason the name is refused as a clause that completes a sentence.
"""

from __future__ import annotations

import ipaddress
import re

MAX_FILE_NAME = 64
MAX_HOST_NAME = 253

_FILE_NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")
_CLASS_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:\.[A-Za-z_$][A-Za-z0-9_$]*)*")
_HOST_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_ZONE = re.compile(r"[A-Za-z0-9._-]+")

# Groups that every Ansible inventory has; as a pattern they mean many hosts.
_ANSIBLE_GROUPS = frozenset(("all", "ungrouped"))


def refuse_file_name(name: str) -> str | None:
    """Tell why a name is no plain file name: letters, digits and ``. _ + -``, not beginning with ``.`` or ``-``."""
    if len(name) > MAX_FILE_NAME:
        return f"is longer than {MAX_FILE_NAME} characters"
    if _FILE_NAME.fullmatch(name) is None:
        return "is no plain file name (letters, digits and . _ + -, not beginning with . or -)"
    return None


def refuse_class_name(name: str) -> str | None:
    """Tell why a name is no fully qualified Java class name in ASCII."""
    if _CLASS_NAME.fullmatch(name) is None:
        return "is no Java class name such as com.example.ExampleProvider"
    return None


def refuse_host_name(name: str) -> str | None:
    """Tell why a name is not exactly one host: a pattern, a group that is always there, or a malformed address."""
    if name.lower() in _ANSIBLE_GROUPS:
        return "is an Ansible group of many hosts, not one host"
    if ":" in name:
        address, _, zone = name.partition("%")
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            return "is no host name and no IPv6 address (a port belongs into the inventory)"
        return None if not zone or _ZONE.fullmatch(zone) else "has a malformed IPv6 zone"
    if len(name) > MAX_HOST_NAME:
        return f"is longer than {MAX_HOST_NAME} characters"
    if _HOST_NAME.fullmatch(name) is None:
        return "is not one host name (letters, digits and . _ -); Ansible patterns are not accepted"
    return None
