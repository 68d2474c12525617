"""Every generated pair of JCA files in front of real JVMs 17 and 25, in each way a JVM may be given it (SPEC 7)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from jvm_host import (
    ARGUMENTS,
    EC,
    FRAGMENT,
    LISTED_NAME,
    MODULE,
    PROVIDER,
    PROVIDER_CLASS,
    RSA,
    Finding,
    Hint,
    JvmHost,
    Program,
    jca_action,
    layout_of,
)

from pqcota_provision.errors import PlanNotActionable
from pqcota_provision.plan.model import (
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.playbook.generate import generate
from pqcota_provision.playbook.levels import Level

pytestmark = pytest.mark.real
pytest_plugins = ["jvm_fixtures"]

CONFIG_ONLY, INJECT = RemediationKind.CONFIG_ONLY, RemediationKind.PROVIDER_INJECT
POINTED = [pytest.param(Hint.ENVIRONMENT, id="jdk-java-options"), pytest.param(Hint.ARGUMENT, id="argument")]
PROGRAMS = [pytest.param(Program.CLASS_PATH, id="class-path"), pytest.param(Program.JAR, id="jar")]
CLASSICAL = ("x25519", "secp256r1", "secp384r1", "secp521r1", "x448")
FINITE_FIELD = ("ffdhe2048", "ffdhe3072", "ffdhe4096", "ffdhe6144", "ffdhe8192")
BC_CLASS = "org.bouncycastle.jce.provider.BouncyCastleProvider"


def injected(stock: Finding) -> tuple[tuple[str, str], ...]:
    """Return the stock provider list with this test's provider in the place of the second."""
    return (stock.providers[0], (LISTED_NAME, PROVIDER_CLASS), *stock.providers[2:])


class TestInjection:
    """A provider JAR, the fragment and the argument file, as a plan places them."""

    @pytest.fixture(autouse=True)
    def _placed(self, jvm: JvmHost, provider_jar: bytes) -> None:
        jvm.place(layout_of(jca_action()), {f"{PROVIDER}.jar": provider_jar})

    @pytest.mark.parametrize("program", PROGRAMS)
    @pytest.mark.parametrize("hint", POINTED)
    def test_registers_the_provider_in_the_second_place(
        self, jvm: JvmHost, stock_jvm: Finding, hint: Hint, program: Program
    ) -> None:
        assert jvm.ask(hint=hint, program=program, key_stores=()).providers == injected(stock_jvm)

    def test_keeps_tls_with_ec_certificates(self, jvm: JvmHost) -> None:
        finding = jvm.ask(hint=Hint.ARGUMENT, key_stores=(EC,))
        assert finding.handshakes.keys() == {EC}, finding.failures

    def test_offers_every_classical_group(self, jvm: JvmHost) -> None:
        assert jvm.ask(hint=Hint.ENVIRONMENT, key_stores=(EC,)).groups == CLASSICAL + FINITE_FIELD

    def test_costs_tls_with_rsa_certificates_where_the_provider_brings_no_rsa(
        self, jvm: JvmHost, stock_jvm: Finding
    ) -> None:
        assert stock_jvm.names[1] == "SunRsaSign"
        finding = jvm.ask(hint=Hint.ARGUMENT, key_stores=(RSA,))
        assert "No available authentication scheme" in finding.failures[RSA]

    def test_does_nothing_to_a_jvm_that_is_not_pointed_at_it(self, jvm: JvmHost, stock_jvm: Finding) -> None:
        assert jvm.ask(key_stores=()).providers == stock_jvm.providers

    def test_is_undone_by_deactivation_and_removal(self, jvm: JvmHost, stock_jvm: Finding) -> None:
        for path in (FRAGMENT, ARGUMENTS, MODULE):
            jvm.node.remove(path)
        finding = jvm.ask()
        assert (finding.providers, finding.groups) == (stock_jvm.providers, stock_jvm.groups)
        assert finding.handshakes.keys() == {RSA, EC}

    @pytest.mark.parametrize("hint", POINTED)
    def test_removed_without_deactivation_stops_the_jvm(self, jvm: JvmHost, hint: Hint) -> None:
        jvm.node.remove(ARGUMENTS)
        finding = jvm.ask(hint=hint, key_stores=())
        assert finding.exit_status != 0
        assert ARGUMENTS in finding.stderr

    def test_costs_nothing_where_only_the_fragment_is_missing(self, jvm: JvmHost, stock_jvm: Finding) -> None:
        jvm.node.remove(FRAGMENT)
        assert jvm.ask(hint=Hint.ARGUMENT, key_stores=()).providers == stock_jvm.providers

    def test_costs_sun_rsa_sign_and_nothing_else_where_the_jar_is_missing(
        self, jvm: JvmHost, stock_jvm: Finding
    ) -> None:
        jvm.node.remove(MODULE)
        finding = jvm.ask(hint=Hint.ARGUMENT)
        assert finding.exit_status == 0
        assert finding.providers == (stock_jvm.providers[0], *stock_jvm.providers[2:])
        assert finding.failures.keys() == {RSA}
        assert finding.handshakes.keys() == {EC}


class TestConfigOnly:
    """The fragment and the argument file of a JVM whose own providers suffice."""

    @pytest.fixture(autouse=True)
    def _placed(self, jvm: JvmHost) -> None:
        jvm.place(layout_of(jca_action(CONFIG_ONLY)), {})

    def test_keeps_providers_and_tls(self, jvm: JvmHost, stock_jvm: Finding) -> None:
        finding = jvm.ask(hint=Hint.ENVIRONMENT)
        assert finding.providers == stock_jvm.providers
        assert finding.handshakes.keys() == {RSA, EC}, finding.failures

    def test_is_obeyed_in_the_groups_it_names(self, jvm: JvmHost, stock_jvm: Finding) -> None:
        """The generated list names what a stock JVM offers too, so a shorter one has to show that it counts."""
        (_, arguments) = layout_of(jca_action(CONFIG_ONLY)).files
        kept = "secp384r1,x448"
        shorter = re.sub(r"(?m)^(-Djdk.tls.namedGroups=X25519MLKEM768),.*$", rf"\1,{kept}", arguments.text)
        assert shorter != arguments.text
        jvm.node.place(ARGUMENTS, shorter)
        assert jvm.ask(hint=Hint.ARGUMENT, key_stores=(EC,)).groups == tuple(kept.split(","))

    def test_offers_no_hybrid_group_yet_and_loses_no_classical_one(self, jvm: JvmHost, stock_jvm: Finding) -> None:
        groups = jvm.ask(hint=Hint.ARGUMENT, key_stores=(EC,)).groups
        assert groups == stock_jvm.groups == CLASSICAL + FINITE_FIELD


@pytest.mark.parametrize("kind", [pytest.param(CONFIG_ONLY, id="config-only"), pytest.param(INJECT, id="inject")])
def test_a_target_without_a_group_leaves_the_groups_alone(
    jvm: JvmHost, stock_jvm: Finding, provider_jar: bytes, kind: RemediationKind
) -> None:
    jvm.place(layout_of(jca_action(kind, "ML-DSA-65")), {f"{PROVIDER}.jar": provider_jar})
    finding = jvm.ask("-Djdk.tls.namedGroups=secp521r1", hint=Hint.ARGUMENT, key_stores=(EC,))
    assert finding.groups == ("secp521r1",)


def test_split_files_each_register_their_own_provider(jvm: JvmHost, provider_jar: bytes) -> None:
    first = jca_action()
    second = jca_action(action_id="a-2", provider="other_jce")
    third = jca_action(action_id="a-3", provider="third", provider_class="com.acme.jce.Missing")
    layout = layout_of(first, second, third)
    jvm.place(layout, {module.file_name: provider_jar for module in layout.modules})
    listed = {
        action_id: jvm.ask(hint=Hint.ENVIRONMENT, arguments=f"/etc/pqcota/jvm.{action_id}.pqcota", key_stores=()).names[
            1
        ]
        for action_id in ("a-1", "a-2", "a-3")
    }
    assert listed == {"a-1": LISTED_NAME, "a-2": LISTED_NAME, "a-3": "SunEC"}


class TestAProviderWhoseClassNobodyNamed:
    """Gets a placeholder in angle brackets instead of a guess."""

    ACTION = jca_action(provider_class="")

    def test_reaches_no_jvm_by_way_of_l3(self) -> None:
        own_level = replace(self.ACTION, automation_level=DeployAutomationLevel.L3_FULL_AUTO)
        for action, level in ((own_level, Level.L1), (self.ACTION, Level.L3)):
            with pytest.raises(PlanNotActionable, match="providerClass"):
                generate(finalized(action), level=level)

    def test_registers_nothing_where_an_administrator_activates_it_by_hand(
        self, jvm: JvmHost, stock_jvm: Finding, provider_jar: bytes
    ) -> None:
        assert generate(finalized(self.ACTION), level=Level.L2).has_blanks
        jvm.place(layout_of(self.ACTION), {f"{PROVIDER}.jar": provider_jar})
        finding = jvm.ask(hint=Hint.ARGUMENT, key_stores=())
        assert finding.exit_status == 0
        assert finding.providers == (stock_jvm.providers[0], *stock_jvm.providers[2:])


class TestBouncyCastle:
    """The default provider, which has what a JDK has and is asked first for all that comes after its place."""

    def test_in_the_second_place_costs_tls_altogether(
        self, jvm: JvmHost, stock_jvm: Finding, bouncy_castle: bytes
    ) -> None:
        jvm.place(layout_of(jca_action(provider="", provider_class="")), {"BC.jar": bouncy_castle})
        finding = jvm.ask(hint=Hint.ARGUMENT)
        assert finding.providers == (stock_jvm.providers[0], ("BC", BC_CLASS), *stock_jvm.providers[2:])
        assert finding.failures.keys() == {RSA, EC}

    def test_in_the_first_free_place_costs_nothing(
        self, jvm: JvmHost, stock_jvm: Finding, bouncy_castle: bytes
    ) -> None:
        artifact = f"security.provider.13={BC_CLASS}\n"
        jvm.place(layout_of(jca_action(provider="", provider_class="", artifact=artifact)), {"BC.jar": bouncy_castle})
        finding = jvm.ask(hint=Hint.ARGUMENT)
        assert finding.providers == (*stock_jvm.providers, ("BC", BC_CLASS))
        assert finding.handshakes.keys() == {RSA, EC}, finding.failures


def finalized(action: RemediationAction) -> FinalizedPlan:
    """Return a plan of one action that has been through approval."""
    return FinalizedPlan(
        id="p-1", status=PlanStatus.FINALIZED, actions=(action,), approval_signatures=("approved by hand",)
    )
