"""Which organization a store or a history is read and written for (SPEC 10)."""

from __future__ import annotations

import re

from pqcota_provision.errors import OrganizationRefused
from pqcota_provision.text import quote

DEFAULT_ORGANIZATION = "default"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,63}")


def resolve_organization(name: str | None, *, required: bool) -> str:
    """Return the organization to work for: the one named, else ``default``.

    ``required`` is the setting that an organization of one's own must be named. Raises OrganizationRefused
    for a malformed name, and with ``required`` for none or for ``default`` (SPEC 10).
    """
    if not name:
        if required:
            raise OrganizationRefused("no organization is named, and PQCOTA_REQUIRE_ORG asks for one")
        return DEFAULT_ORGANIZATION
    check_organization(name)
    if required and name == DEFAULT_ORGANIZATION:
        raise OrganizationRefused(
            f"the organization {quote(name)} is what everyone without a name shares, "
            "and PQCOTA_REQUIRE_ORG asks for one of your own"
        )
    return name


def check_organization(name: str) -> str:
    """Return the name if it has the shape of an organization's, else raise OrganizationRefused."""
    if _NAME.fullmatch(name) is None:
        raise OrganizationRefused(f"the organization {quote(name)} is malformed")
    return name
