"""What the rules for OpenSSL fragments rest on, seen on real OpenSSL 3.0 and 3.5."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from openssl_clients import CLIENTS, Client
from openssl_host import (
    FRAGMENT,
    MODULE,
    PROVIDER,
    SYSTEM_CONFIG,
    Host,
    OpenSsl,
    Reading,
    Server,
    layout_of,
    openssl_action,
    read_by,
    stock_config,
)

from available import needs, skip_or_fail
from node_view import NodeView
from pqcota_provision.plan.model import RemediationKind

pytestmark = pytest.mark.real
pytest_plugins = ["openssl_fixtures"]

CONFIG = "/etc/pqcota/facts.cnf"
HYBRID = "X25519MLKEM768"
DIAGNOSTICS = "config_diagnostics = 1\n"
NOBODY = "65534"
DEFAULT_PROVIDER = "default = default_sect\n"


def groups_config(groups: str, *, diagnostics: bool = False) -> str:
    """Return a whole config file that sets nothing but the TLS groups."""
    return (
        f"{DIAGNOSTICS if diagnostics else ''}openssl_conf = openssl_init\n[openssl_init]\nssl_conf = ssl_sect\n"
        f"[ssl_sect]\nsystem_default = system_default_sect\n[system_default_sect]\nGroups = {groups}\n"
    )


def providers_config(listed: str) -> str:
    """Return a whole config file that loads this test's provider beside the ones listed."""
    return (
        "openssl_conf = openssl_init\n[openssl_init]\nproviders = provider_sect\n"
        f"[provider_sect]\n{listed}{PROVIDER} = {PROVIDER}_sect\n[default_sect]\nactivate = 1\n"
        f"[{PROVIDER}_sect]\nactivate = 1\nmodule = {MODULE}\n"
    )


def host_with(node: NodeView, openssl: OpenSsl, config: str) -> Host:
    """Return a host whose only config is this one."""
    return Host(node, openssl, node.place(CONFIG, config))


def offered(host: Host, server: Server) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the groups a host's client offers, and those of its first key shares."""
    hello = host.connect(server).exchange.client_hellos[0]
    return hello.groups, hello.key_shares


class TestRuntimes:
    """The runtimes that the other tests believe they run on."""

    def test_the_system_runtime_is_one_that_provider_injection_is_for(
        self, node: NodeView, openssl_3_0: OpenSsl
    ) -> None:
        assert (3, 0) <= openssl_3_0.version <= (3, 4)

    def test_the_bundled_runtime_is_one_that_config_only_is_for(self, node: NodeView, openssl_3_5: OpenSsl) -> None:
        assert (3, 5) <= openssl_3_5.version < (4, 0)

    def test_the_bundled_runtime_knows_the_hybrid_group_by_itself(self, node: NodeView, openssl_3_5: OpenSsl) -> None:
        listed = Host(node, openssl_3_5, "/dev/null").run(needs("openssl"), "list", "-kem-algorithms").stdout
        assert f"{HYBRID} @ default" in listed

    @pytest.mark.parametrize("client", CLIENTS)
    def test_other_programs_run_on_the_bundled_runtime_too(
        self, node: NodeView, openssl_3_5: OpenSsl, client: Client
    ) -> None:
        result = Host(node, openssl_3_5, "/dev/null").run(*client.version_command())
        assert client.version_in(result.stdout) >= (3, 5), result.stdout + result.stderr


@pytest.mark.parametrize("groups", [f"no-such-group:{HYBRID}:secp384r1", "secp384r1:no-such-group"])
class TestAnUnknownGroup:
    """Among known ones."""

    def test_drops_the_whole_line_in_silence(
        self, node: NodeView, openssl: OpenSsl, groups: str, restricted_server: Callable[[str], Server]
    ) -> None:
        server = restricted_server("x25519")
        bare = offered(Host(node, openssl, "/dev/null"), server)
        assert offered(host_with(node, openssl, groups_config(groups)), server) == bare

    def test_drops_the_whole_line_under_diagnostics_on_3_0(
        self, node: NodeView, openssl_3_0: OpenSsl, groups: str, restricted_server: Callable[[str], Server]
    ) -> None:
        if openssl_3_0.version >= (3, 4):
            skip_or_fail("the system's OpenSSL is no longer lenient")
        server = restricted_server("x25519")
        bare = offered(Host(node, openssl_3_0, "/dev/null"), server)
        assert offered(host_with(node, openssl_3_0, groups_config(groups, diagnostics=True)), server) == bare

    @pytest.mark.parametrize("client", CLIENTS)
    def test_stops_every_tls_client_under_diagnostics_on_3_5(
        self,
        node: NodeView,
        openssl_3_5: OpenSsl,
        groups: str,
        client: Client,
        restricted_server: Callable[[str], Server],
    ) -> None:
        server = restricted_server("x25519")
        lenient = host_with(node, openssl_3_5, groups_config(groups))
        assert client.reaches(lenient, server)
        strict = host_with(node, openssl_3_5, groups_config(groups, diagnostics=True))
        assert not client.reaches(strict, server)


class TestMarksOnGroups:
    """The question mark and the asterisk."""

    @pytest.mark.parametrize("groups", ["?no-such-group:secp384r1", "*x25519:*secp384r1"])
    def test_are_not_understood_by_3_0(
        self, node: NodeView, openssl_3_0: OpenSsl, groups: str, restricted_server: Callable[[str], Server]
    ) -> None:
        if openssl_3_0.version >= (3, 3):
            skip_or_fail("the system's OpenSSL understands the question mark")
        server = restricted_server("x25519")
        bare = offered(Host(node, openssl_3_0, "/dev/null"), server)
        assert offered(host_with(node, openssl_3_0, groups_config(groups)), server) == bare

    def test_let_3_5_pass_over_a_group_it_lacks(
        self, node: NodeView, openssl_3_5: OpenSsl, restricted_server: Callable[[str], Server]
    ) -> None:
        host = host_with(node, openssl_3_5, groups_config("?no-such-group:x25519:secp384r1", diagnostics=True))
        assert offered(host, restricted_server("x25519")) == (("x25519", "secp384r1"), ("x25519",))

    def test_let_3_5_send_one_more_key_share(
        self, node: NodeView, openssl_3_5: OpenSsl, restricted_server: Callable[[str], Server]
    ) -> None:
        host = host_with(node, openssl_3_5, groups_config("*x25519:*secp384r1:secp256r1", diagnostics=True))
        assert offered(host, restricted_server("x25519"))[1] == ("x25519", "secp384r1")


class TestWhatAPlainListCosts:
    """On 3.5, with the hybrid group in front."""

    def test_a_peer_that_speaks_only_p_256_is_lost_unless_it_is_listed(
        self, node: NodeView, openssl_3_5: OpenSsl, restricted_server: Callable[[str], Server]
    ) -> None:
        server = restricted_server("P-256")
        assert not host_with(node, openssl_3_5, groups_config(f"{HYBRID}:x25519")).connect(server).succeeded
        assert host_with(node, openssl_3_5, groups_config(f"{HYBRID}:x25519:secp256r1")).connect(server).succeeded

    @pytest.mark.parametrize(
        ("groups", "was_retried"),
        [
            pytest.param(f"{HYBRID}:x25519", True, id="without-marks"),
            pytest.param(f"?*{HYBRID}:*x25519", False, id="with-marks"),
        ],
    )
    def test_an_x25519_server_answers_with_a_retry_unless_it_gets_its_key_share(
        self,
        node: NodeView,
        openssl_3_5: OpenSsl,
        groups: str,
        was_retried: bool,
        restricted_server: Callable[[str], Server],
    ) -> None:
        connection = host_with(node, openssl_3_5, groups_config(groups)).connect(restricted_server("x25519"))
        assert connection.succeeded
        assert connection.exchange.was_retried is was_retried

    def test_a_hybrid_handshake_alone_shows_nothing_since_3_5_offers_the_group_by_itself(
        self, node: NodeView, openssl_3_5: OpenSsl, restricted_server: Callable[[str], Server]
    ) -> None:
        server = restricted_server(HYBRID)
        assert Host(node, openssl_3_5, "/dev/null").connect(server).exchange.group == HYBRID
        assert not host_with(node, openssl_3_5, groups_config("x25519")).connect(server).succeeded


class TestAProviderSectionWithoutDefault:
    """Takes every other algorithm away, whether the module loads or not."""

    @pytest.fixture(params=["plain", "missing"])
    def host(self, request: pytest.FixtureRequest, node: NodeView, openssl: OpenSsl, modules: dict[str, bytes]) -> Host:
        """A host whose provider section does not list the default provider."""
        if request.param in modules:
            node.place(MODULE, modules[request.param])
        return host_with(node, openssl, providers_config(""))

    def test_no_digest_is_left(self, host: Host) -> None:
        assert not host.digests()

    def test_no_tls_is_left(self, host: Host, restricted_server: Callable[[str], Server]) -> None:
        assert not host.connect(restricted_server("x25519")).succeeded

    @pytest.mark.parametrize("arguments", [("ssh", "-G", "localhost"), ("sshd", "-t", "-f", "/dev/null")])
    def test_neither_ssh_nor_sshd_starts(self, host: Host, arguments: tuple[str, ...]) -> None:
        program = (
            "/usr/sbin/sshd" if arguments[0] == "sshd" and Path("/usr/sbin/sshd").exists() else needs(arguments[0])
        )
        complaint = "PRNG is not seeded"
        assert complaint not in Host(host.node, host.openssl, "/dev/null").run(program, *arguments[1:]).stderr
        result = host.run(program, *arguments[1:])
        assert result.returncode != 0
        assert complaint in result.stderr


@pytest.mark.parametrize("variant", ["missing", "corrupt", "failing"])
def test_exit_status_and_stderr_say_nothing_about_a_module_that_was_passed_over(
    node: NodeView, openssl: OpenSsl, variant: str, modules: dict[str, bytes]
) -> None:
    if variant in modules:
        node.place(MODULE, modules[variant])
    host = host_with(node, openssl, DIAGNOSTICS + providers_config(DEFAULT_PROVIDER))
    result = host.run(needs("openssl"), "dgst", "-sha256", stdin="abc")
    assert (result.returncode, result.stderr) == (0, "")
    assert host.providers() == {"default": "active"}


def test_a_copy_of_another_provider_is_listed_under_the_name_the_config_gives_it(
    node: NodeView, openssl_3_0: OpenSsl
) -> None:
    directory = Host(node, openssl_3_0, "/dev/null").run(needs("openssl"), "version", "-m").stdout.split('"')[1]
    legacy = Path(directory) / "legacy.so"
    if not legacy.exists():
        skip_or_fail(f"{legacy} is not there")
    node.place(MODULE, legacy.read_bytes())
    host = host_with(node, openssl_3_0, providers_config(DEFAULT_PROVIDER))
    assert host.providers() == {"default": "active", PROVIDER: "active"}


@pytest.mark.parametrize(
    ("provider", "listed"),
    [
        pytest.param("Acme_pqc+2-x", "Acme_pqc+2-x", id="without-dot"),
        pytest.param("acme-0.8.1", "8.1", id="with-dots"),
    ],
)
def test_a_provider_is_listed_without_what_stands_before_the_first_dot_of_its_name(
    node: NodeView, openssl: OpenSsl, provider: str, listed: str, modules: dict[str, bytes]
) -> None:
    action = replace(openssl_action(RemediationKind.PROVIDER_INJECT, "ML-KEM"), provider_choice=provider)
    layout = layout_of(action)
    node.place_files(layout)
    node.place(layout.modules[0].path, modules["plain"])
    assert Host(node, openssl, FRAGMENT).providers() == {"default": "active", listed: "active"}


@pytest.mark.parametrize("path", ["/etc/pqcota/missing.cnf", "missing.cnf"])
def test_an_include_of_a_missing_file_is_passed_over(node: NodeView, openssl: OpenSsl, path: str) -> None:
    node.place(SYSTEM_CONFIG, f".include {path}\n{stock_config()}.include {path}\n")
    host = Host(node, openssl)
    assert host.providers() == {"default": "active"}
    assert makes_ca_certificate(host)


def test_openssl_conf_replaces_the_systems_file(
    node: NodeView, openssl_3_0: OpenSsl, modules: dict[str, bytes]
) -> None:
    node.place(SYSTEM_CONFIG, stock_config())
    node.place(MODULE, modules["plain"])
    node.place_files(layout_of(openssl_action(RemediationKind.PROVIDER_INJECT, "ML-KEM")))
    assert makes_ca_certificate(Host(node, openssl_3_0))
    assert not makes_ca_certificate(Host(node, openssl_3_0, FRAGMENT))


@pytest.mark.parametrize("reading", [pytest.param(reading, id=reading.name.lower()) for reading in Reading])
class TestAFragmentThatTheServicesUserCannotRead:
    """Mode 0600, and the service is not root."""

    @pytest.fixture
    def host(self, node: NodeView, openssl: OpenSsl, reading: Reading, modules: dict[str, bytes]) -> Host:
        """A host whose fragment only root can read."""
        if os.geteuid() != 0:
            skip_or_fail("only root can run a command as another user")
        (fragment,) = layout_of(openssl_action(RemediationKind.PROVIDER_INJECT, "ML-KEM")).files
        node.place(fragment.path, fragment.text, mode=0o600)
        node.place(MODULE, modules["plain"])
        return read_by(node, openssl, reading, stock_config())

    def test_is_silently_inactive(self, host: Host) -> None:
        assert host.providers() == {"default": "active", PROVIDER: "active"}
        result = host.run(needs("openssl"), "list", "-providers", user=NOBODY)
        assert result.stderr == ""
        assert PROVIDER not in result.stdout

    def test_costs_that_user_neither_digest_nor_tls(
        self, host: Host, restricted_server: Callable[[str], Server]
    ) -> None:
        assert host.digests(user=NOBODY)
        assert host.connect(restricted_server("P-256"), user=NOBODY).succeeded


class TestTheFirstAndLastLineOfAFragment:
    """The two [default] lines, which keep what is around an include and the fragment apart."""

    @pytest.mark.parametrize(("keeps_line", "works"), [(True, True), (False, False)], ids=["kept", "taken-away"])
    def test_the_first_keeps_the_fragment_alive_at_the_end_of_a_file(
        self, node: NodeView, openssl: OpenSsl, keeps_line: bool, works: bool, modules: dict[str, bytes]
    ) -> None:
        (fragment,) = layout_of(openssl_action(RemediationKind.PROVIDER_INJECT, "ML-KEM")).files
        text = fragment.text if keeps_line else fragment.text.replace("[default]\n", "", 1)
        node.place(MODULE, modules["plain"])
        node.place(fragment.path, text)
        host = read_by(node, openssl, Reading.INCLUDED_LAST, "[ req ]\ndefault_bits = 2048\n")
        assert (PROVIDER in host.providers()) is works

    @pytest.mark.parametrize(("keeps_line", "works"), [(True, True), (False, False)], ids=["kept", "taken-away"])
    def test_the_last_keeps_settings_outside_any_section_alive_after_an_include(
        self, node: NodeView, openssl: OpenSsl, keeps_line: bool, works: bool
    ) -> None:
        (fragment,) = layout_of(openssl_action(RemediationKind.PROVIDER_INJECT, "ML-KEM")).files
        text = fragment.text if keeps_line else fragment.text.removesuffix("[default]\n")
        node.place(fragment.path, text)
        host = read_by(node, openssl, Reading.INCLUDED_FIRST, stock_config())
        made = host.run(*self_signed("/CN=localhost/tsa_policy1=defined"))
        assert ("tsa_policy1 = defined" in made.stdout) is works


def self_signed(subject: str) -> tuple[str, ...]:
    """Return the command that shows a new self-signed certificate as the config in force shapes it."""
    return (
        *(needs("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", subject, "-keyout", "/dev/null", "-text", "-noout"),
    )


def makes_ca_certificate(host: Host) -> bool:
    """Tell whether the stock file's settings for certificates are in force."""
    return "X509v3 Basic Constraints: critical" in host.run(*self_signed("/CN=localhost")).stdout
