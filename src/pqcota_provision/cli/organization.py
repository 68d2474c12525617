"""Which organization a command works for, as the environment says (SPEC 10)."""

from __future__ import annotations

from pqcota_provision.cli import common
from pqcota_provision.errors import UsageProblem
from pqcota_provision.records.organization import resolve_organization
from pqcota_provision.text import quote

ORGANIZATION_VARIABLE = "PQCOTA_ORG"
REQUIRE_ORGANIZATION_VARIABLE = "PQCOTA_REQUIRE_ORG"


def organization_help(what: str) -> dict[str, str]:
    """Return the help on the variables; ``what`` says what belongs to the organization."""
    return {
        ORGANIZATION_VARIABLE: f"the organization whose {what} these are (without it: default)",
        REQUIRE_ORGANIZATION_VARIABLE: "1: an organization other than default must be named",
    }


def organization() -> str:
    """Return the organization that the environment names; raises OrganizationRefused."""
    return resolve_organization(
        common.environment(ORGANIZATION_VARIABLE) or None, required=switch(REQUIRE_ORGANIZATION_VARIABLE, "0")
    )


def switch(variable: str, default: str) -> bool:
    """Return whether a variable is 1; raises UsageProblem where it is neither 1 nor 0."""
    value = common.environment(variable) or default
    if value not in ("0", "1"):
        raise UsageProblem(f"{variable} is {quote(value)}", remedy="It takes 1 or 0.")
    return value == "1"
