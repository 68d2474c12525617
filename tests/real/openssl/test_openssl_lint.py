"""What is said about hand-written fragments is what real OpenSSL does with them (SPEC 11.10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet
from openssl_host import (
    FRAGMENT,
    MODULE,
    PROVIDER,
    SYSTEM_CONFIG,
    Host,
    OpenSsl,
    Server,
    layout_of,
    openssl_action,
)

from node_view import NodeView
from pqcota_provision.plan.model import RemediationKind
from pqcota_provision.playbook.fragments.artifact import artifact_flaws

pytestmark = pytest.mark.real
pytest_plugins = ["openssl_fixtures"]

CONFIG_ONLY, INJECT = RemediationKind.CONFIG_ONLY, RemediationKind.PROVIDER_INJECT
HARMFUL, INERT = True, False
HYBRID = "X25519MLKEM768"

INIT = "openssl_conf = openssl_init\n[openssl_init]\nproviders = provider_sect\n"
DEFAULT = "[default_sect]\nactivate = 1\n"
ACME = f"[acme_sect]\nactivate = 1\nmodule = {MODULE}\n"
LISTED = f"[provider_sect]\ndefault = default_sect\n{PROVIDER} = acme_sect\n"
INJECTS = INIT + LISTED + DEFAULT + ACME

TLS = (
    "openssl_conf = openssl_init\n[openssl_init]\nssl_conf = ssl_sect\n"
    "[ssl_sect]\nsystem_default = system_default_sect\n[system_default_sect]\n"
)


@dataclass(frozen=True)
class Bench:
    """A host that is pointed at one hand-written fragment, with servers to talk to."""

    host: Host
    serve: Callable[[str], Server]

    def loads_the_module(self) -> bool:
        """Tell whether the staged module is active beside the default provider."""
        return self.host.providers().items() >= {"default": "active", PROVIDER: "active"}.items()

    def reaches(self, groups: str) -> bool:
        """Tell whether a server that knows only these groups is reached."""
        return self.host.connect(self.serve(groups)).succeeded


def has_no_cryptography(bench: Bench) -> bool:
    return not bench.host.digests() and not bench.reaches("P-256:x25519")


def does_not_load_the_module(bench: Bench) -> bool:
    return not bench.loads_the_module() and bench.host.digests()


def loses_classical_peers(bench: Bench) -> bool:
    return not bench.reaches("P-256:x25519:x448:P-384:P-521:ffdhe2048")


def stops_programs_under_diagnostics(bench: Bench) -> bool:
    strict = "/etc/pqcota/strict.cnf"
    bench.host.node.place(strict, f"config_diagnostics = 1\n.include {FRAGMENT}\n")
    return not Host(bench.host.node, bench.host.openssl, strict).digests() and bench.host.digests()


def sets_no_groups(bench: Bench) -> bool:
    server = bench.serve("x25519")
    bare = Host(bench.host.node, bench.host.openssl, "/dev/null").connect(server).exchange.client_hellos[0]
    return bench.host.connect(server).exchange.client_hellos[0].groups == bare.groups


def works_as_injection(bench: Bench) -> bool:
    return bench.loads_the_module() and bench.host.digests() and bench.reaches("P-256")


def works_as_group_setting(bench: Bench) -> bool:
    hello = bench.host.connect(bench.serve("x25519:P-256")).exchange.client_hellos[0]
    return hello.groups[:1] == (HYBRID,) and bench.reaches("x25519:P-256") and bench.reaches(HYBRID)


Effect = Callable[[Bench], bool]
Case = tuple[RemediationKind, str, bool, Effect]

COMMENT_EATS_DEFAULT = "# the default provider stays \\\ndefault = default_sect"

FLAWED_ON_ANY_VERSION: dict[str, Case] = {
    "default-not-listed": (
        INJECT,
        INIT + f"[provider_sect]\n{PROVIDER} = acme_sect\n" + ACME,
        HARMFUL,
        has_no_cryptography,
    ),
    "default-without-activate": (
        INJECT,
        INIT + LISTED + "[default_sect]\nactivated = 1\n" + ACME,
        HARMFUL,
        has_no_cryptography,
    ),
    "default-under-another-name": (
        INJECT,
        INIT + LISTED.replace("default =", "built-in =") + DEFAULT + "identity = default\n" + ACME,
        HARMFUL,
        has_no_cryptography,
    ),
    "default-not-listed-and-providers-shortened": (
        INJECT,
        INIT.replace("providers =", "provider =") + f"[provider_sect]\n{PROVIDER} = acme_sect\n" + ACME,
        HARMFUL,
        has_no_cryptography,
    ),
    "default-swallowed-by-a-comment": (
        INJECT,
        INIT + LISTED.replace("default = default_sect", COMMENT_EATS_DEFAULT) + DEFAULT + ACME,
        HARMFUL,
        has_no_cryptography,
    ),
    "module-without-path": (
        INJECT,
        INIT + LISTED + DEFAULT + "[acme_sect]\nactivate = 1\n",
        HARMFUL,
        does_not_load_the_module,
    ),
    "module-relative": (
        INJECT,
        INJECTS.replace(MODULE, MODULE.removeprefix("/opt/")),
        HARMFUL,
        does_not_load_the_module,
    ),
    "module-relative-by-variable": (
        INJECT,
        "dir = pqcota\n" + INJECTS.replace("/opt/pqcota", "$dir"),
        HARMFUL,
        does_not_load_the_module,
    ),
    "groups-of-tls-1.2-only": (
        CONFIG_ONLY,
        TLS + "Groups = secp256k1:brainpoolP256r1\n",
        HARMFUL,
        loses_classical_peers,
    ),
    "tls-settings-empty": (
        CONFIG_ONLY,
        TLS + "# Groups = x25519\n",
        HARMFUL,
        stops_programs_under_diagnostics,
    ),
    "tls-settings-missing": (
        CONFIG_ONLY,
        TLS.replace("[ssl_sect]", "[tls_sect]") + "Groups = x25519\n",
        HARMFUL,
        stops_programs_under_diagnostics,
    ),
    "openssl-conf-missing": (
        INJECT,
        INJECTS.replace("openssl_conf = openssl_init\n", ""),
        INERT,
        does_not_load_the_module,
    ),
    "openssl-conf-inside-a-section": (
        INJECT,
        "[init]\n" + INJECTS,
        INERT,
        does_not_load_the_module,
    ),
    "openssl-conf-swallowed-by-a-comment": (
        INJECT,
        "# made by hand \\\n" + INJECTS,
        INERT,
        does_not_load_the_module,
    ),
    "openssl-conf-leads-nowhere": (
        CONFIG_ONLY,
        TLS.replace("[openssl_init]", "[init]") + f"Groups = {HYBRID}:x25519\n",
        INERT,
        sets_no_groups,
    ),
    "providers-not-reached": (
        INJECT,
        INJECTS.replace("providers =", "my_providers ="),
        INERT,
        does_not_load_the_module,
    ),
    "providers-in-a-section-that-nothing-reaches": (
        INJECT,
        INJECTS.replace("[openssl_init]\n", "[openssl_init]\nalg_section = none\n[other]\n"),
        INERT,
        does_not_load_the_module,
    ),
    "provider-section-empty": (
        INJECT,
        INJECTS.replace("[provider_sect]\n", "[provider_sect]\n[other]\n"),
        INERT,
        does_not_load_the_module,
    ),
    "provider-section-missing": (
        INJECT,
        INJECTS.replace("[provider_sect]\n", "[other]\n"),
        INERT,
        does_not_load_the_module,
    ),
    "module-without-activate": (
        INJECT,
        INJECTS.replace(ACME, ACME.replace("activate = 1\n", "")),
        INERT,
        does_not_load_the_module,
    ),
    "line-without-equal-sign": (
        INJECT,
        INJECTS.replace("providers = ", "providers "),
        INERT,
        does_not_load_the_module,
    ),
    "semicolon-for-a-comment": (
        INJECT,
        "; made by hand\n" + INJECTS,
        INERT,
        does_not_load_the_module,
    ),
    "bracket-not-closed": (
        INJECT,
        INJECTS.replace("[acme_sect]", "[acme_sect"),
        INERT,
        does_not_load_the_module,
    ),
    "variable-without-value": (
        INJECT,
        INJECTS.replace("/opt/pqcota", "$dir"),
        INERT,
        does_not_load_the_module,
    ),
}

FLAWED_ON_3_5: dict[str, Case] = {
    "default-deactivated": (
        INJECT,
        INJECTS.replace(DEFAULT, DEFAULT.replace("1", "0")),
        HARMFUL,
        has_no_cryptography,
    ),
    "groups-without-classical": (
        CONFIG_ONLY,
        TLS + f"Groups = {HYBRID}:SecP256r1MLKEM768\n",
        HARMFUL,
        loses_classical_peers,
    ),
    "curves-without-classical": (
        CONFIG_ONLY,
        TLS + f"mine.curves = ?*{HYBRID}\n",
        HARMFUL,
        loses_classical_peers,
    ),
    "classical-groups-taken-out-again": (
        CONFIG_ONLY,
        TLS + f"Groups = {HYBRID}:x25519:P-256:-x25519:-prime256v1\n",
        HARMFUL,
        loses_classical_peers,
    ),
    "module-activated-in-another-spelling": (
        INJECT,
        INJECTS.replace(ACME, ACME.replace("1", "Yes")),
        INERT,
        does_not_load_the_module,
    ),
}

SOUND_ON_ANY_VERSION = {
    "plain": INJECTS,
    "windows-line-ends": INJECTS.replace("\n", "\r\n"),
    "byte-order-mark": "\ufeff" + INJECTS,
    "quotes-and-comments": INJECTS.replace(MODULE, f'"{MODULE}" # staged').replace("[acme_sect]", "[ acme_sect ]"),
    "variable": "dir = /opt\n" + INJECTS.replace("/opt/pqcota", "${dir}/pqcota"),
    "variable-of-a-section": INJECTS.replace("/opt/pqcota", "$paths::staged").replace(
        "[openssl_init]", "[paths]\nstaged = /opt/pqcota\n[openssl_init]"
    ),
    "variable-of-the-environment": INJECTS.replace(MODULE, "$ENV::ACME_MODULE"),
    "continued-line": INJECTS.replace("/opt/pqcota/", "/opt/\\\npqcota/"),
    "prefixed-names": INJECTS.replace("default =", "1.default =").replace(f"{PROVIDER} =", f"2.{PROVIDER} ="),
    "beginning-of-a-module-name": INJECTS.replace("providers =", "provider.mine ="),
    "openssl-conf-at-the-end": INJECTS.replace("openssl_conf = openssl_init\n", "")
    + "[default]\nopenssl_conf=openssl_init",
    "openssl-conf-from-another-section": INJECTS.replace("openssl_conf", "[x]\ndefault::openssl_conf"),
    "openssl-conf-from-an-included-file": f".include {SYSTEM_CONFIG}\n"
    + INJECTS.replace("openssl_conf = openssl_init\n", ""),
    "another-spelling-of-yes": INJECTS.replace("activate = 1", "activate = on"),
    "classical-groups": INJECTS.replace("[openssl_init]\n", "[openssl_init]\nssl_conf = ssl_sect\n")
    + "[ssl_sect]\nsystem_default = tls\n[tls]\nMinProtocol = TLSv1.2\nGroups = x25519 : P-256\n",
}

SOUND_ON_3_5 = {
    "marked-groups": TLS + f"Groups = ?*{HYBRID}:*x25519:prime256v1\n",
    "curves": TLS + f"Curves = {HYBRID}:x25519:P-256\n",
    "default-groups": TLS + f"Groups = {HYBRID}:DEFAULT:-x448\n",
    "tuples": TLS + f"Groups = {HYBRID}/x25519:secp256r1\n",
}


def parameters(cases: dict[str, Case]) -> list[ParameterSet]:
    """Return the cases as parameters of a test."""
    return [pytest.param(*case, id=name) for name, case in cases.items()]


@pytest.fixture
def bench(
    node: NodeView, modules: dict[str, bytes], restricted_server: Callable[[str], Server]
) -> Callable[[OpenSsl, RemediationKind, str], Bench]:
    """Return a function that places an artifact like a playbook would, with its module, and points a host at it."""

    def make(openssl: OpenSsl, kind: RemediationKind, artifact: str) -> Bench:
        node.place_files(layout_of(openssl_action(kind, "ML-KEM", artifact)))
        node.place(MODULE, modules["plain"])
        environment = {**openssl.environment, "ACME_MODULE": MODULE}
        return Bench(Host(node, OpenSsl(openssl.version, environment), FRAGMENT), restricted_server)

    return make


Pointed = Callable[[OpenSsl, RemediationKind, str], Bench]


@pytest.mark.parametrize(("kind", "artifact", "harmful", "effect"), parameters(FLAWED_ON_ANY_VERSION))
class TestAFlawOnAnyVersion:
    """What makes a fragment inert or harmful on 3.0 and 3.5 alike."""

    def test_is_named(self, kind: RemediationKind, artifact: str, harmful: bool, effect: Effect) -> None:
        assert verdict(kind, artifact) is harmful

    def test_is_real(
        self,
        openssl: OpenSsl,
        bench: Pointed,
        kind: RemediationKind,
        artifact: str,
        harmful: bool,
        effect: Effect,
    ) -> None:
        assert effect(bench(openssl, kind, artifact))


@pytest.mark.parametrize(("kind", "artifact", "harmful", "effect"), parameters(FLAWED_ON_3_5))
class TestAFlawOn35:
    """What 3.0 passes over or forgives."""

    def test_is_named(self, kind: RemediationKind, artifact: str, harmful: bool, effect: Effect) -> None:
        assert verdict(kind, artifact) is harmful

    def test_is_real(
        self,
        openssl_3_5: OpenSsl,
        bench: Pointed,
        kind: RemediationKind,
        artifact: str,
        harmful: bool,
        effect: Effect,
    ) -> None:
        assert effect(bench(openssl_3_5, kind, artifact))


@pytest.mark.parametrize("artifact", SOUND_ON_ANY_VERSION.values(), ids=SOUND_ON_ANY_VERSION)
class TestASoundInjection:
    """A hand-written fragment that nothing is said about."""

    def test_is_not_complained_about(self, artifact: str) -> None:
        assert verdict(INJECT, artifact) is None

    def test_loads_the_module_and_keeps_the_host(self, openssl: OpenSsl, bench: Pointed, artifact: str) -> None:
        assert works_as_injection(bench(openssl, INJECT, artifact))


@pytest.mark.parametrize("artifact", SOUND_ON_3_5.values(), ids=SOUND_ON_3_5)
class TestASoundGroupSettingOn35:
    """A hand-written fragment that nothing is said about."""

    def test_is_not_complained_about(self, artifact: str) -> None:
        assert verdict(CONFIG_ONLY, artifact) is None

    def test_offers_the_hybrid_group_and_keeps_classical_peers(
        self, openssl_3_5: OpenSsl, bench: Pointed, artifact: str
    ) -> None:
        assert works_as_group_setting(bench(openssl_3_5, CONFIG_ONLY, artifact))


@pytest.mark.parametrize("target", ["ML-KEM", "Kyber", "ML-DSA"])
@pytest.mark.parametrize("kind", [pytest.param(CONFIG_ONLY, id="config-only"), pytest.param(INJECT, id="inject")])
def test_no_generated_fragment_is_complained_about(kind: RemediationKind, target: str) -> None:
    (fragment,) = layout_of(openssl_action(kind, target)).files
    assert verdict(kind, fragment.text) is None


def test_a_provider_list_that_only_an_including_file_reaches_is_as_harmful_as_said(
    node: NodeView, openssl: OpenSsl, modules: dict[str, bytes]
) -> None:
    artifact = f"[provider_sect]\n{PROVIDER} = acme_sect\n" + ACME
    assert verdict(INJECT, artifact) is HARMFUL
    node.place_files(layout_of(openssl_action(INJECT, "ML-KEM", artifact)))
    node.place(MODULE, modules["plain"])
    node.place(SYSTEM_CONFIG, INIT)
    assert Host(node, openssl).digests()
    node.place(SYSTEM_CONFIG, INIT + f".include {FRAGMENT}\n")
    assert not Host(node, openssl).digests()


def test_a_fragment_that_is_no_config_takes_the_file_that_includes_it_down_with_it(
    node: NodeView, openssl: OpenSsl, modules: dict[str, bytes]
) -> None:
    node.place(MODULE, modules["plain"])
    node.place(SYSTEM_CONFIG, INJECTS)
    assert PROVIDER in Host(node, openssl).providers()
    node.place_files(layout_of(openssl_action(CONFIG_ONLY, "ML-KEM", "no config")))
    node.place(SYSTEM_CONFIG, INJECTS + f".include {FRAGMENT}\n")
    assert PROVIDER not in Host(node, openssl).providers()


def verdict(kind: RemediationKind, artifact: str) -> bool | None:
    """Return what is said about an artifact: the worst of its flaws, or None."""
    return max((flaw.harmful for flaw in artifact_flaws(openssl_action(kind, "ML-KEM", artifact))), default=None)
