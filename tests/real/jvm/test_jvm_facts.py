"""What the rules for JCA files rest on, seen on real JVMs 17 and 25."""

from __future__ import annotations

from pathlib import Path

import pytest
from jvm_build import PROVIDER_SOURCE, compile_java, make_jar
from jvm_host import (
    ARGUMENTS,
    EC,
    FRAGMENT,
    LISTED_NAME,
    MODULE,
    PROVIDER_CLASS,
    RSA,
    Finding,
    Hint,
    JvmHost,
    Program,
    jca_action,
    layout_of,
)

from pqcota_provision.plan.model import RemediationKind
from pqcota_provision.playbook.fragments.artifact import artifact_flaws

pytestmark = pytest.mark.real
pytest_plugins = ["jvm_fixtures"]

CONFIG_ONLY, INJECT = RemediationKind.CONFIG_ONLY, RemediationKind.PROVIDER_INJECT
PROPERTIES = f"-Djava.security.properties={FRAGMENT}"
ON_BOOT_PATH = f"-Xbootclasspath/a:{MODULE}"
REGISTRATION = f"security.provider.2={PROVIDER_CLASS}\n"


def test_only_version_25_has_ml_kem(java: str, java_25: str, stock_jvm: Finding) -> None:
    assert stock_jvm.has_ml_kem is (java == java_25)


def test_no_version_offers_a_hybrid_group_by_itself(stock_jvm: Finding) -> None:
    assert not [group for group in stock_jvm.groups if "MLKEM" in group]


def test_the_second_provider_of_a_stock_jvm_is_the_one_that_signs_with_rsa(stock_jvm: Finding) -> None:
    assert stock_jvm.names[:2] == ("SUN", "SunRsaSign")


class TestNamedGroups:
    """The property that sets the TLS groups."""

    @pytest.mark.parametrize(
        ("named", "offered"),
        [
            pytest.param("secp384r1,x25519", ("secp384r1", "x25519"), id="known"),
            pytest.param("X25519MLKEM768,no_such_group,secp384r1", ("secp384r1",), id="unknown-among-known"),
        ],
    )
    def test_is_obeyed_as_a_system_property_but_for_names_the_jvm_lacks(
        self, jvm: JvmHost, named: str, offered: tuple[str, ...]
    ) -> None:
        assert jvm.ask(f"-Djdk.tls.namedGroups={named}", key_stores=(EC,)).groups == offered

    def test_stops_the_first_use_of_tls_where_it_names_only_groups_the_jvm_lacks(self, jvm: JvmHost) -> None:
        finding = jvm.ask("-Djdk.tls.namedGroups=X25519MLKEM768,no_such_group", key_stores=(EC,))
        assert finding.exit_status == 0
        assert "ExceptionInInitializerError" in finding.failures[EC]

    def test_is_ignored_in_a_security_file_as_the_lint_says(self, jvm: JvmHost, stock_jvm: Finding) -> None:
        artifact = "jdk.tls.namedGroups=secp384r1\n"
        assert verdict(CONFIG_ONLY, artifact) is False
        jvm.place(layout_of(jca_action(CONFIG_ONLY, "ML-DSA", artifact=artifact)), {})
        assert jvm.ask(hint=Hint.ARGUMENT, key_stores=(EC,)).groups == stock_jvm.groups


class TestProviderNumbers:
    """What a hand-written registration may do, since the generated one always takes over the second place."""

    @pytest.fixture
    def registered(self, jvm: JvmHost, provider_jar: bytes, request: pytest.FixtureRequest) -> JvmHost:
        """A node whose fragment holds this text, with the provider's JAR."""
        artifact = request.param
        jvm.place(layout_of(jca_action(artifact=artifact)), {"acme-jce.jar": provider_jar})
        return jvm

    @pytest.mark.parametrize("registered", [f"security.provider.13={PROVIDER_CLASS}\n"], indirect=True, ids=["13"])
    def test_the_first_free_one_adds_the_provider_and_costs_nothing(
        self, registered: JvmHost, stock_jvm: Finding
    ) -> None:
        finding = registered.ask(hint=Hint.ARGUMENT)
        assert finding.providers == (*stock_jvm.providers, (LISTED_NAME, PROVIDER_CLASS))
        assert finding.handshakes.keys() == {RSA, EC}

    @pytest.mark.parametrize(
        "registered", [REGISTRATION + "security.provider.13=SunRsaSign\n"], indirect=True, ids=["2-and-13"]
    )
    def test_the_first_free_one_brings_the_displaced_provider_and_rsa_back(
        self, registered: JvmHost, stock_jvm: Finding
    ) -> None:
        finding = registered.ask(hint=Hint.ARGUMENT)
        assert finding.names == ("SUN", LISTED_NAME, *stock_jvm.names[2:], "SunRsaSign")
        assert finding.handshakes.keys() == {RSA, EC}, finding.failures

    @pytest.mark.parametrize("registered", [f"security.provider.14={PROVIDER_CLASS}\n"], indirect=True, ids=["14"])
    def test_one_after_a_gap_is_ignored(self, registered: JvmHost, stock_jvm: Finding) -> None:
        assert registered.ask(hint=Hint.ARGUMENT, key_stores=()).providers == stock_jvm.providers

    @pytest.mark.parametrize(
        ("artifact", "harmful"),
        [
            pytest.param(REGISTRATION, None, id="second"),
            pytest.param(f"security.provider.13={PROVIDER_CLASS}\n", None, id="first-free"),
            pytest.param(f"security.provider.13=X\nsecurity.provider.14={PROVIDER_CLASS}\n", None, id="one-by-one"),
            pytest.param(f"security.provider.14={PROVIDER_CLASS}\n", False, id="after-a-gap"),
            pytest.param(REGISTRATION + "security.provider.99=SunRsaSign\n", False, id="one-of-two-after-a-gap"),
            pytest.param("# security.provider.2=X\n", False, id="none"),
        ],
    )
    def test_are_judged_by_whether_the_jvm_gets_to_them(self, artifact: str, harmful: bool | None) -> None:
        assert verdict(INJECT, artifact) is harmful


class TestHowAJvmIsPointed:
    """Which settings of a host reach a JVM."""

    @pytest.fixture(autouse=True)
    def _placed(self, jvm: JvmHost, provider_jar: bytes) -> None:
        jvm.place(layout_of(jca_action()), {"acme-jce.jar": provider_jar})

    def test_java_tool_options_takes_options(self, jvm: JvmHost) -> None:
        environment = {"JAVA_TOOL_OPTIONS": f"{PROPERTIES} {ON_BOOT_PATH}"}
        assert jvm.ask(environment=environment, key_stores=()).names[1] == LISTED_NAME

    def test_java_tool_options_takes_no_argument_file(self, jvm: JvmHost) -> None:
        finding = jvm.ask(environment={"JAVA_TOOL_OPTIONS": f"@{ARGUMENTS}"}, key_stores=())
        assert finding.exit_status != 0
        assert f"@{ARGUMENTS}" in finding.stderr

    def test_the_boot_class_path_counts_with_java_jar(self, jvm: JvmHost) -> None:
        assert jvm.ask(PROPERTIES, ON_BOOT_PATH, program=Program.JAR, key_stores=()).names[1] == LISTED_NAME

    def test_the_class_path_counts_without_java_jar(self, jvm: JvmHost) -> None:
        assert jvm.ask(PROPERTIES, on_class_path=MODULE, key_stores=()).names[1] == LISTED_NAME

    def test_the_class_path_option_counts_nothing_with_java_jar(self, jvm: JvmHost) -> None:
        assert LISTED_NAME not in jvm.ask(PROPERTIES, "-cp", MODULE, program=Program.JAR, key_stores=()).names

    def test_the_class_path_variable_counts_nothing_with_java_jar(self, jvm: JvmHost) -> None:
        finding = jvm.ask(PROPERTIES, program=Program.JAR, environment={"CLASSPATH": MODULE}, key_stores=())
        assert finding.exit_status == 0
        assert LISTED_NAME not in finding.names


def test_the_boot_class_path_takes_the_oldest_classes_of_a_multi_release_jar(jvm: JvmHost, tmp_path: Path) -> None:
    newer_source = tmp_path / "AcmeProvider.java"
    newer_source.write_text(PROVIDER_SOURCE.read_text().replace(f'"{LISTED_NAME}"', '"AcmeOn17"'))
    jar = make_jar(
        tmp_path / "multi-release.jar",
        compile_java(PROVIDER_SOURCE, tmp_path / "oldest"),
        "Multi-Release: true\n",
        {17: compile_java(newer_source, tmp_path / "newer")},
    )
    jvm.place(layout_of(jca_action()), {"acme-jce.jar": jar.read_bytes()})
    assert jvm.ask(PROPERTIES, on_class_path=MODULE, key_stores=()).names[1] == "AcmeOn17"
    assert jvm.ask(hint=Hint.ARGUMENT, key_stores=()).names[1] == LISTED_NAME


def test_bouncy_castle_has_ml_kem_by_its_standard_name_from_1_80_on(
    jvm: JvmHost, java: str, java_17: str, bouncy_castle: bytes, bouncy_castle_version: tuple[int, ...]
) -> None:
    action = jca_action(
        provider="BC",
        provider_class="",
        artifact="security.provider.13=org.bouncycastle.jce.provider.BouncyCastleProvider\n",
    )
    jvm.place(layout_of(action), {"BC.jar": bouncy_castle})
    finding = jvm.ask(hint=Hint.ARGUMENT, key_stores=())
    assert finding.names[-1] == "BC"
    assert finding.has_ml_kem is (java != java_17 or bouncy_castle_version >= (1, 79))


def verdict(kind: RemediationKind, artifact: str) -> bool | None:
    """Return what is said about an artifact: harmful or not the worst of its flaws, or None."""
    return max((flaw.harmful for flaw in artifact_flaws(jca_action(kind, artifact=artifact))), default=None)
