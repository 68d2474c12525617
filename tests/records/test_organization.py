from __future__ import annotations

import pytest

from pqcota_provision.errors import OrganizationRefused
from pqcota_provision.records.memory import MemoryHistory, MemoryRecordStore
from pqcota_provision.records.organization import resolve_organization


@pytest.mark.parametrize(
    ("name", "required", "expected"),
    [
        pytest.param(None, False, "default", id="none named"),
        pytest.param("", False, "default", id="an empty one named"),
        pytest.param("default", False, "default", id="default named"),
        pytest.param("acme", False, "acme", id="one named"),
        pytest.param("acme", True, "acme", id="one named where one must be"),
        pytest.param("0-", True, "0-", id="the shortest"),
        pytest.param("a" * 64, True, "a" * 64, id="the longest"),
    ],
)
def test_records_go_to_the_organization_that_is_named(name: str | None, required: bool, expected: str) -> None:
    assert resolve_organization(name, required=required) == expected


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a", id="one character"),
        pytest.param("a" * 65, id="too long"),
        pytest.param("-acme", id="begins with a hyphen"),
        pytest.param("Acme", id="upper case"),
        pytest.param("ac me", id="space"),
        pytest.param("acme\n", id="line break at the end"),
        pytest.param("äcme", id="not ASCII"),
        pytest.param("acme_eu", id="underscore"),
        pytest.param("١٢", id="digits of another script"),
    ],
)
def test_a_malformed_organization_is_refused(name: str, required: bool) -> None:
    with pytest.raises(OrganizationRefused):
        resolve_organization(name, required=required)


@pytest.mark.parametrize("name", [None, "", "default"])
def test_with_an_organization_required_nobody_shares_the_default_one(name: str | None) -> None:
    with pytest.raises(OrganizationRefused, match="PQCOTA_REQUIRE_ORG"):
        resolve_organization(name, required=True)


@pytest.mark.parametrize("handle", [MemoryRecordStore, MemoryHistory])
def test_there_is_no_handle_without_a_well_formed_organization(handle: type) -> None:
    with pytest.raises(OrganizationRefused):
        handle("")
