"""What a plan may name: files, Java classes and hosts (SPEC 11.2 and 11.3).

Each check returns None, or the reason the name is refused as a clause that completes a sentence.
"""

from __future__ import annotations

import re

MAX_FILE_NAME = 64
MAX_HOST_NAME = 253

_FILE_NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")
_CLASS_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:\.[A-Za-z_$][A-Za-z0-9_$]*)*")
_HOST_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
# The only addresses with a dotted part that Ansible does not take apart at the colons.
_DOTTED_IPV6 = re.compile(r"(?:::(?:ffff:)?|(?:0:){6}|(?:0:){5}ffff:)[0-9.]+", re.IGNORECASE)

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
        return _refuse_ipv6(name)
    if len(name) > MAX_HOST_NAME:
        return f"is longer than {MAX_HOST_NAME} characters"
    if _HOST_NAME.fullmatch(name) is None:
        return "is not one host name (letters, digits and . _ -); Ansible patterns are not accepted"
    return None


def _refuse_ipv6(name: str) -> str | None:
    import ipaddress

    address, separator, _ = name.partition("%")
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return "is no host name and no IPv6 address (a port belongs into the inventory)"
    if separator:
        return "has an IPv6 zone, which Ansible takes apart into two hosts; name the host in the inventory instead"
    # Ansible knows no "::" at either end that stands for a single group.
    lone_gap = address.count(":") == 8 and (address.startswith("::") or address.endswith("::"))
    if lone_gap or ("." in address and _DOTTED_IPV6.fullmatch(address) is None):
        return "is an IPv6 address in a form that Ansible takes apart into several hosts; write it in full"
    return None
