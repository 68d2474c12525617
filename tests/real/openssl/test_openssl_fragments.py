"""Every generated OpenSSL fragment in front of real OpenSSL 3.0 and 3.5, in each way a host may read it (SPEC 7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from openssl_clients import CLIENTS, NODE, Client
from openssl_host import (
    FRAGMENT,
    MODULE,
    PROVIDER,
    Certificate,
    Host,
    OpenSsl,
    Reading,
    Server,
    layout_of,
    openssl_action,
    read_by,
    stock_config,
    tls_server,
)

from available import needs
from node_view import NodeView
from pqcota_provision.plan.model import RemediationKind

pytestmark = pytest.mark.real
pytest_plugins = ["openssl_fixtures"]

CONFIG_ONLY, INJECT = RemediationKind.CONFIG_ONLY, RemediationKind.PROVIDER_INJECT
HYBRID = "X25519MLKEM768"
CLASSICAL = ("x25519", "secp256r1", "x448", "secp384r1", "secp521r1")

READINGS = [pytest.param(reading, id=reading.name.lower().replace("_", "-")) for reading in Reading]
INCLUSIONS = [parameters for parameters in READINGS if parameters.values[0] is not Reading.POINTED_AT]
ANY_FRAGMENT = [
    pytest.param(CONFIG_ONLY, "ML-KEM-768", id="config-only"),
    pytest.param(CONFIG_ONLY, "Kyber768", id="config-only-kyber"),
    pytest.param(CONFIG_ONLY, "ML-DSA-65", id="config-only-without-group"),
    pytest.param(INJECT, "ML-KEM-768", id="inject"),
    pytest.param(INJECT, "ML-DSA-65", id="inject-without-group"),
]
INJECTIONS = [parameters for parameters in ANY_FRAGMENT if parameters.values[0] is INJECT]
HOSTS_OWN_TLS = """
[ssl_sect]
system_default = system_default_sect

[system_default_sect]
MinProtocol = TLSv1.3
Ciphersuites = TLS_CHACHA20_POLY1305_SHA256
"""
HOSTS_OWN_CIPHER_SUITE = 0x1303
# A signal that OpenSSL 3.0 adds to the list, no cipher suite of its own (RFC 5746).
RENEGOTIATION_SIGNAL = 0x00FF


def reading_host(
    node: NodeView, openssl: OpenSsl, reading: Reading, kind: RemediationKind, target: str, module: bytes | None
) -> Host:
    """Return a host with the stock openssl.cnf on which a plan's fragment, and perhaps its module, was placed."""
    node.place_files(layout_of(openssl_action(kind, target)))
    if module is not None:
        node.place(MODULE, module)
    return read_by(node, openssl, reading, stock_config())


def own_tls_settings(settings: str) -> str:
    """Return the stock openssl.cnf as an administrator would extend it, with TLS settings for the whole host."""
    head = "[openssl_init]\n"
    stock = stock_config()
    assert stock.count(head) == 1
    return stock.replace(head, f"{head}ssl_conf = ssl_sect\n") + settings


@pytest.mark.parametrize(("kind", "target"), ANY_FRAGMENT)
@pytest.mark.parametrize("reading", READINGS)
class TestOnAnyVersionHostsKeep:
    """Under the right version and the wrong one, and with the stock file's config_diagnostics = 1."""

    def test_the_default_provider(
        self,
        node: NodeView,
        openssl: OpenSsl,
        reading: Reading,
        kind: RemediationKind,
        target: str,
        modules: dict[str, bytes],
    ) -> None:
        host = reading_host(node, openssl, reading, kind, target, modules["plain"])
        assert host.providers().get("default") == "active"

    def test_their_digests(
        self,
        node: NodeView,
        openssl: OpenSsl,
        reading: Reading,
        kind: RemediationKind,
        target: str,
        modules: dict[str, bytes],
    ) -> None:
        assert reading_host(node, openssl, reading, kind, target, modules["plain"]).digests()

    @pytest.mark.parametrize("groups", ["P-256", "x25519"])
    def test_servers_that_speak_one_classical_group(
        self,
        node: NodeView,
        openssl: OpenSsl,
        reading: Reading,
        kind: RemediationKind,
        target: str,
        modules: dict[str, bytes],
        groups: str,
        restricted_server: Callable[[str], Server],
    ) -> None:
        host = reading_host(node, openssl, reading, kind, target, modules["plain"])
        connection = host.connect(restricted_server(groups))
        assert connection.succeeded, connection.client.stderr

    def test_clients_that_speak_one_classical_group(
        self,
        node: NodeView,
        openssl: OpenSsl,
        reading: Reading,
        kind: RemediationKind,
        target: str,
        modules: dict[str, bytes],
        certificate: Certificate,
    ) -> None:
        host = reading_host(node, openssl, reading, kind, target, modules["plain"])
        classical = Host(node, openssl, "/dev/null")
        with tls_server(host, certificate) as server:
            connection = classical.connect(server, "-groups", "P-256")
        assert connection.succeeded, connection.client.stderr


@pytest.mark.parametrize(("kind", "target"), INJECTIONS)
@pytest.mark.parametrize("reading", READINGS)
def test_an_injected_provider_is_loaded(
    node: NodeView,
    openssl: OpenSsl,
    reading: Reading,
    kind: RemediationKind,
    target: str,
    modules: dict[str, bytes],
) -> None:
    host = reading_host(node, openssl, reading, kind, target, modules["plain"])
    assert host.providers() == {"default": "active", PROVIDER: "active"}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("variant", ["missing", "corrupt", "failing"])
class TestAModuleThatCannotBeLoaded:
    """Leaves the provider out and the host as it was."""

    def test_is_left_out_and_default_stays(
        self, node: NodeView, openssl: OpenSsl, reading: Reading, variant: str, modules: dict[str, bytes]
    ) -> None:
        host = reading_host(node, openssl, reading, INJECT, "ML-KEM", modules.get(variant))
        assert host.providers() == {"default": "active"}

    def test_costs_no_digest(
        self, node: NodeView, openssl: OpenSsl, reading: Reading, variant: str, modules: dict[str, bytes]
    ) -> None:
        assert reading_host(node, openssl, reading, INJECT, "ML-KEM", modules.get(variant)).digests()

    def test_costs_no_classical_handshake(
        self,
        node: NodeView,
        openssl: OpenSsl,
        reading: Reading,
        variant: str,
        modules: dict[str, bytes],
        restricted_server: Callable[[str], Server],
    ) -> None:
        host = reading_host(node, openssl, reading, INJECT, "ML-KEM", modules.get(variant))
        connection = host.connect(restricted_server("P-256"))
        assert connection.succeeded, connection.client.stderr


@pytest.mark.parametrize("reading", READINGS)
class TestConfigOnlyOn35:
    """What the CONFIG_ONLY fragment brings where it belongs."""

    def test_offers_the_hybrid_group_first_and_every_classical_one(
        self, node: NodeView, openssl_3_5: OpenSsl, reading: Reading, restricted_server: Callable[[str], Server]
    ) -> None:
        host = reading_host(node, openssl_3_5, reading, CONFIG_ONLY, "ML-KEM", None)
        (hello,) = host.connect(restricted_server("x25519")).exchange.client_hellos
        assert hello.groups == (HYBRID, *CLASSICAL)

    def test_costs_a_classical_server_no_extra_round_trip(
        self, node: NodeView, openssl_3_5: OpenSsl, reading: Reading, restricted_server: Callable[[str], Server]
    ) -> None:
        host = reading_host(node, openssl_3_5, reading, CONFIG_ONLY, "ML-KEM", None)
        exchange = host.connect(restricted_server("x25519")).exchange
        assert exchange.client_hellos[0].key_shares == (HYBRID, "x25519")
        assert not exchange.was_retried

    def test_reaches_a_server_that_speaks_only_the_hybrid_group(
        self, node: NodeView, openssl_3_5: OpenSsl, reading: Reading, restricted_server: Callable[[str], Server]
    ) -> None:
        host = reading_host(node, openssl_3_5, reading, CONFIG_ONLY, "ML-KEM", None)
        connection = host.connect(restricted_server(HYBRID))
        assert connection.succeeded, connection.client.stderr
        assert connection.exchange.group == HYBRID


# Where the fragment is read first, a Groups line of the host comes later and wins.
@pytest.mark.parametrize(
    ("with_fragment", "reading"),
    [
        pytest.param(False, Reading.INCLUDED_LAST, id="control-without-fragment"),
        pytest.param(True, Reading.INCLUDED_LAST, id="included-last"),
        pytest.param(True, Reading.POINTED_AT, id="pointed-at"),
    ],
)
class TestTheFragmentIsWhatBringsTheGroup:
    """On a 3.5 host whose own config offers nothing but x25519."""

    CLASSICAL_HOST = "[ssl_sect]\nsystem_default = system_default_sect\n[system_default_sect]\nGroups = x25519\n"

    def test_to_a_client(
        self,
        node: NodeView,
        openssl_3_5: OpenSsl,
        with_fragment: bool,
        reading: Reading,
        restricted_server: Callable[[str], Server],
    ) -> None:
        host = self._host(node, openssl_3_5, reading, with_fragment=with_fragment)
        assert host.connect(restricted_server(HYBRID)).succeeded is with_fragment

    def test_to_a_server(
        self,
        node: NodeView,
        openssl_3_5: OpenSsl,
        with_fragment: bool,
        reading: Reading,
        certificate: Certificate,
    ) -> None:
        host = self._host(node, openssl_3_5, reading, with_fragment=with_fragment)
        client = Host(node, openssl_3_5, "/dev/null")
        with tls_server(host, certificate) as server:
            connection = client.connect(server, "-groups", HYBRID)
        assert connection.exchange.group == (HYBRID if with_fragment else "")

    def _host(self, node: NodeView, openssl: OpenSsl, reading: Reading, *, with_fragment: bool) -> Host:
        if with_fragment:
            node.place_files(layout_of(openssl_action(CONFIG_ONLY, "ML-KEM")))
        return read_by(node, openssl, reading, own_tls_settings(self.CLASSICAL_HOST))


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    ("target", "group"),
    [pytest.param("ML-KEM", HYBRID, id="ml-kem"), pytest.param("Kyber", "X25519Kyber768Draft00", id="kyber")],
)
class TestInjectionOn30:
    """What the PROVIDER_INJECT fragment brings where it belongs, with a module that has the group."""

    def test_offers_the_providers_group_first_and_every_classical_one(
        self,
        node: NodeView,
        openssl_3_0: OpenSsl,
        reading: Reading,
        target: str,
        group: str,
        modules: dict[str, bytes],
        restricted_server: Callable[[str], Server],
    ) -> None:
        host = reading_host(node, openssl_3_0, reading, INJECT, target, modules["groups"])
        hello = host.connect(restricted_server("x25519")).exchange.client_hellos[0]
        assert hello.groups == (group, *CLASSICAL)

    def test_reaches_a_server_that_speaks_only_the_providers_group(
        self,
        node: NodeView,
        openssl_3_0: OpenSsl,
        reading: Reading,
        target: str,
        group: str,
        modules: dict[str, bytes],
        certificate: Certificate,
    ) -> None:
        host = reading_host(node, openssl_3_0, reading, INJECT, target, modules["groups"])
        with tls_server(host, certificate, "-groups", group) as server:
            connection = host.connect(server)
            control = Host(node, openssl_3_0, "/dev/null").connect(server)
        assert connection.exchange.group == group
        assert connection.succeeded
        assert not control.succeeded

    def test_still_reaches_classical_servers(
        self,
        node: NodeView,
        openssl_3_0: OpenSsl,
        reading: Reading,
        target: str,
        group: str,
        modules: dict[str, bytes],
        restricted_server: Callable[[str], Server],
    ) -> None:
        host = reading_host(node, openssl_3_0, reading, INJECT, target, modules["groups"])
        connection = host.connect(restricted_server("P-256"))
        assert connection.succeeded, connection.client.stderr
        assert connection.exchange.group == "secp256r1"


@pytest.mark.parametrize(("kind", "target"), ANY_FRAGMENT)
@pytest.mark.parametrize("reading", INCLUSIONS)
class TestIncludedAFragmentLeaves:
    """The settings of the file that includes it."""

    def test_certificate_requests_as_the_stock_file_shapes_them(
        self, node: NodeView, openssl: OpenSsl, reading: Reading, kind: RemediationKind, target: str
    ) -> None:
        host = reading_host(node, openssl, reading, kind, target, None)
        result = makes_certificate(host)
        assert "X509v3 Basic Constraints: critical" in result, result

    def test_names_that_the_stock_file_defines_outside_any_section(
        self, node: NodeView, openssl: OpenSsl, reading: Reading, kind: RemediationKind, target: str
    ) -> None:
        host = reading_host(node, openssl, reading, kind, target, None)
        result = makes_certificate(host, "/CN=localhost/tsa_policy1=defined")
        assert "tsa_policy1 = defined" in result, result

    def test_tls_settings_that_the_host_made_itself(
        self,
        node: NodeView,
        openssl: OpenSsl,
        reading: Reading,
        kind: RemediationKind,
        target: str,
        restricted_server: Callable[[str], Server],
    ) -> None:
        node.place_files(layout_of(openssl_action(kind, target)))
        host = read_by(node, openssl, reading, own_tls_settings(HOSTS_OWN_TLS))
        hello = host.connect(restricted_server("P-256:x25519")).exchange.client_hellos[0]
        assert set(hello.cipher_suites) - {RENEGOTIATION_SIGNAL} == {HOSTS_OWN_CIPHER_SUITE}


def makes_certificate(host: Host, subject: str = "/CN=localhost") -> str:
    """Return what ``openssl req`` of the host makes of its [req] settings, as text."""
    result = host.run(
        *(needs("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", subject, "-keyout", "/dev/null", "-text", "-noout"),
    )
    return result.stdout + result.stderr


def test_host_tls_settings_and_the_hybrid_group_go_together_on_3_5(
    node: NodeView, openssl_3_5: OpenSsl, restricted_server: Callable[[str], Server]
) -> None:
    node.place_files(layout_of(openssl_action(CONFIG_ONLY, "ML-KEM")))
    host = read_by(node, openssl_3_5, Reading.INCLUDED_LAST, own_tls_settings(HOSTS_OWN_TLS))
    exchange = host.connect(restricted_server(HYBRID)).exchange
    assert (exchange.group, exchange.client_hellos[0].cipher_suites) == (HYBRID, (HOSTS_OWN_CIPHER_SUITE,))


@pytest.mark.parametrize("reading", READINGS)
def test_removing_the_files_leaves_the_host_as_it_was_while_something_still_points_at_them(
    node: NodeView,
    openssl: OpenSsl,
    reading: Reading,
    modules: dict[str, bytes],
    restricted_server: Callable[[str], Server],
) -> None:
    before = Host(node, openssl, "/dev/null").connect(restricted_server("x25519")).exchange.client_hellos
    host = reading_host(node, openssl, reading, INJECT, "ML-KEM", modules["plain"])
    node.remove(FRAGMENT)
    node.remove(MODULE)
    assert host.providers() == {"default": "active"}
    assert [hello.groups for hello in host.connect(restricted_server("x25519")).exchange.client_hellos] == [
        hello.groups for hello in before
    ]


def test_split_fragments_each_load_their_own_provider(
    node: NodeView, openssl: OpenSsl, modules: dict[str, bytes]
) -> None:
    first = openssl_action(INJECT, "ML-KEM")
    second = replace(first, id="a-2", provider_choice="other-pqc")
    layout = layout_of(first, second)
    node.place_files(layout)
    for module in layout.modules:
        node.place(module.path, modules["plain"])
    listed = {file.path: Host(node, openssl, file.path).providers() for file in layout.files}
    assert listed == {
        "/etc/pqcota/openssl-pqc.a-1.cnf": {"default": "active", PROVIDER: "active"},
        "/etc/pqcota/openssl-pqc.a-2.cnf": {"default": "active", "other-pqc": "active"},
    }


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("client", CLIENTS)
def test_other_programs_of_a_3_5_host_get_the_hybrid_group_too(
    node: NodeView,
    openssl_3_5: OpenSsl,
    reading: Reading,
    client: Client,
    restricted_server: Callable[[str], Server],
) -> None:
    host = reading_host(node, openssl_3_5, reading, CONFIG_ONLY, "ML-KEM", None)
    connection = client.fetch(host, restricted_server("P-256:" + HYBRID))
    assert connection.succeeded, connection.client.stderr
    assert connection.exchange.client_hellos[0].groups == (HYBRID, *CLASSICAL)
    assert connection.exchange.group == HYBRID


def test_node_names_the_hybrid_group_that_the_fragment_brought(
    node: NodeView, openssl_3_5: OpenSsl, restricted_server: Callable[[str], Server]
) -> None:
    host = reading_host(node, openssl_3_5, Reading.POINTED_AT, CONFIG_ONLY, "ML-KEM", None)
    assert NODE.fetch(host, restricted_server(HYBRID)).client.stdout.strip() == HYBRID


class TestAKyberInjectionOnTheWrongVersion:
    """OpenSSL 3.5 lacks this group; the line cannot be marked, since 3.0 would drop a marked one."""

    @pytest.mark.parametrize("variant", ["plain", "groups"])
    @pytest.mark.parametrize("reading", INCLUSIONS)
    def test_stops_tls_under_diagnostics_unless_the_module_brings_the_group(
        self,
        node: NodeView,
        openssl_3_5: OpenSsl,
        reading: Reading,
        variant: str,
        modules: dict[str, bytes],
        restricted_server: Callable[[str], Server],
    ) -> None:
        host = reading_host(node, openssl_3_5, reading, INJECT, "Kyber", modules[variant])
        assert host.connect(restricted_server("x25519")).succeeded is (variant == "groups")

    def test_breaks_nothing_where_a_service_is_pointed_at_it(
        self,
        node: NodeView,
        openssl_3_5: OpenSsl,
        modules: dict[str, bytes],
        restricted_server: Callable[[str], Server],
    ) -> None:
        host = reading_host(node, openssl_3_5, Reading.POINTED_AT, INJECT, "Kyber", modules["plain"])
        assert host.connect(restricted_server("x25519")).succeeded

    def test_costs_no_digest(self, node: NodeView, openssl_3_5: OpenSsl, modules: dict[str, bytes]) -> None:
        host = reading_host(node, openssl_3_5, Reading.INCLUDED_LAST, INJECT, "Kyber", modules["plain"])
        assert host.digests()
