from __future__ import annotations

import json

import pytest
from record_samples import jca_finding, openssl_finding

from pqcota_provision.records.snapshot import Snapshot, read_snapshot


def snapshot_of(*findings: object) -> Snapshot:
    return read_snapshot("snap-1", "node-1", json.dumps(findings))


def test_what_a_node_runs_is_listed_once_and_sorted() -> None:
    snapshot = snapshot_of(
        openssl_finding("f-1", version="3.0.13"),
        openssl_finding("f-2", version="1.1.1w"),
        openssl_finding("f-3", version="3.0.13"),
        openssl_finding("f-4", lib="boringssl", version=""),
        jca_finding("f-5", "SUN", "BC"),
    )
    assert snapshot.state.modules == ("boringssl", "jca:BC", "jca:SUN", "openssl@1.1.1w", "openssl@3.0.13")


def test_the_order_of_providers_is_the_one_to_go_back_to() -> None:
    assert snapshot_of(jca_finding("f-1", "SUN", "BC", "SunEC")).state.provider_chain == ("SUN", "BC", "SunEC")


def test_two_jvms_with_the_same_providers_do_not_double_them() -> None:
    findings = (jca_finding("f-1", "SUN", "SunEC"), jca_finding("f-2", "SUN", "BC", "SunEC"))
    assert snapshot_of(*findings).state.provider_chain == ("SUN", "SunEC", "BC")


def test_apps_are_kept_by_finding_in_their_order() -> None:
    snapshot = snapshot_of(openssl_finding("f-1", "payments", "ledger"), openssl_finding("f-2"))
    assert snapshot.app_keys == {"f-1": ("payments", "ledger"), "f-2": ()}


def test_a_finding_that_comes_twice_affects_the_apps_of_both() -> None:
    snapshot = snapshot_of(openssl_finding("f-1", "payments"), openssl_finding("f-1", "ledger", "payments"))
    assert snapshot.app_keys == {"f-1": ("payments", "ledger")}


def test_the_names_of_the_schema_are_understood_as_well_as_those_of_json() -> None:
    snapshot = snapshot_of(
        {"id": "f-1", "app_keys": ["payments"], "crypto_runtime": "CRYPTO_RUNTIME_JCA", "jca": {"provider_set": ["BC"]}}
    )
    assert (snapshot.app_keys, snapshot.state.provider_chain) == ({"f-1": ("payments",)}, ("BC",))


@pytest.mark.parametrize(
    "findings",
    [
        pytest.param(None, id="no column"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="none"),
    ],
)
def test_a_snapshot_without_findings_is_one_of_an_empty_node(findings: str | None) -> None:
    snapshot = read_snapshot("snap-1", "node-1", findings)
    assert (snapshot.state.modules, snapshot.app_keys, snapshot.unreadable) == ((), {}, 0)


def test_null_means_unset_in_every_field() -> None:
    finding = {"id": "f-1", "appKeys": None, "openssl": {"lib": None, "version": None}, "jca": None}
    snapshot = snapshot_of(finding, {"id": None, "jca": {"providerSet": None}})
    assert (snapshot.state.modules, snapshot.unreadable) == (("openssl",), 0)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("a string", id="no object"),
        pytest.param(None, id="null"),
        pytest.param({"id": 7}, id="an id that is a number"),
        pytest.param({"id": "f-2", "appKeys": "payments"}, id="apps that are no list"),
        pytest.param({"id": "f-2", "openssl": "3.0"}, id="openssl that is no object"),
        pytest.param({"id": "f-2", "jca": {"providerSet": [1]}}, id="a provider that is a number"),
    ],
)
def test_a_broken_finding_does_not_take_the_others_with_it(broken: object) -> None:
    snapshot = snapshot_of(broken, openssl_finding("f-1", "payments"))
    assert (snapshot.app_keys, snapshot.unreadable) == ({"f-1": ("payments",)}, 1)


@pytest.mark.parametrize(
    "findings",
    [
        pytest.param('{"id": "f-1"}', id="an object instead of a list"),
        pytest.param('"text"', id="a string"),
        pytest.param("[" + "9" * 5000 + "]", id="a number beyond reason"),
        pytest.param("[" * 3000 + "]" * 3000, id="nested beyond reason"),
    ],
)
def test_findings_that_are_no_list_count_as_one_that_cannot_be_read(findings: str) -> None:
    assert read_snapshot("snap-1", "node-1", findings).unreadable == 1
