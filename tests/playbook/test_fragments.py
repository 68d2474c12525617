from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbook_plans import action, injection, jca_injection

from pqcota_provision.plan.model import CryptoRuntime, RemediationAction
from pqcota_provision.playbook.fragments.comments import comment_block
from pqcota_provision.playbook.fragments.jca import (
    BOUNCY_CASTLE,
    BOUNCY_CASTLE_FIPS,
    jca_fragment,
    jvm_arguments,
    jvm_options,
)
from pqcota_provision.playbook.fragments.openssl import openssl_fragment

CONFIG_ONLY = """\
[default]
openssl_conf = openssl_init

[openssl_init]
ssl_conf = ssl_sect

[ssl_sect]
system_default = system_default_sect

[system_default_sect]
Groups = ?*X25519MLKEM768:*x25519:secp256r1:x448:secp384r1:secp521r1

[default]
"""

PROVIDER_INJECT = """\
[default]
openssl_conf = openssl_init

[openssl_init]
providers = provider_sect
ssl_conf = ssl_sect

[provider_sect]
default = default_sect
oqsprovider = oqsprovider_sect

[default_sect]
activate = 1

[oqsprovider_sect]
activate = 1
module = /opt/pqcota/oqsprovider.so

[ssl_sect]
system_default = system_default_sect

[system_default_sect]
Groups = X25519MLKEM768:x25519:secp256r1:x448:secp384r1:secp521r1

[default]
"""

NAMED_GROUPS = (
    "-Djdk.tls.namedGroups=X25519MLKEM768,x25519,secp256r1,secp384r1,secp521r1,x448,"
    "ffdhe2048,ffdhe3072,ffdhe4096,ffdhe6144,ffdhe8192"
)


def directives(text: str) -> str:
    """Return the text below the explaining comment at its head."""
    return text.split("\n\n", 1)[1]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(action(), CONFIG_ONLY, id="config-only"),
        pytest.param(injection(), PROVIDER_INJECT, id="provider-inject"),
        pytest.param(injection(provider_choice=""), PROVIDER_INJECT, id="the-default-provider"),
        pytest.param(
            injection(provider_choice="acme-pqc"),
            PROVIDER_INJECT.replace("oqsprovider", "acme-pqc"),
            id="own-provider",
        ),
        pytest.param(
            action(target_algorithm="Kyber"),
            CONFIG_ONLY.replace("X25519MLKEM768", "X25519Kyber768Draft00"),
            id="kyber",
        ),
    ],
)
def test_openssl_reads_exactly_the_directives_of_the_contract(subject: RemediationAction, expected: str) -> None:
    assert directives(openssl_fragment(subject)) == expected


@pytest.mark.parametrize("target", ["HQC", "ML-DSA", ""])
def test_no_group_is_made_up_for_a_target_that_has_none(target: str) -> None:
    lines = openssl_fragment(action(target_algorithm=target)).splitlines()
    assert not [line for line in lines if line.startswith("Groups")]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40))
def test_no_target_text_breaks_out_of_the_explaining_comment(target: str) -> None:
    head = openssl_fragment(action(target_algorithm=target)).split("\n[default]\n", 1)[0]
    assert all(line.startswith("#") for line in head.splitlines() if line)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=3))
def test_no_comment_line_continues_into_a_directive(lines: list[str]) -> None:
    assert not any(line.endswith("\\") for line in comment_block(lines).splitlines())


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        pytest.param(jca_injection(), f"security.provider.2={BOUNCY_CASTLE}", id="BC"),
        pytest.param(jca_injection(provider_choice=""), f"security.provider.2={BOUNCY_CASTLE}", id="default"),
        pytest.param(jca_injection(provider_choice="BCFIPS"), f"security.provider.2={BOUNCY_CASTLE_FIPS}", id="BCFIPS"),
        pytest.param(jca_injection(provider_choice="BC-FJA"), f"security.provider.2={BOUNCY_CASTLE_FIPS}", id="BC-FJA"),
        pytest.param(
            jca_injection(provider_choice="acme", provider_class="com.acme.Pqc"),
            "security.provider.2=com.acme.Pqc",
            id="own-class",
        ),
    ],
)
def test_the_jvm_is_told_to_register_the_right_class(subject: RemediationAction, line: str) -> None:
    assert directives(jca_fragment(subject)) == line + "\n"


def test_an_unknown_class_is_a_placeholder_that_names_the_provider() -> None:
    (line,) = directives(jca_fragment(jca_injection(provider_choice="acme"))).splitlines()
    assert line.startswith("security.provider.2=<")
    assert "acme" in line


def test_config_only_registers_nothing() -> None:
    text = jca_fragment(action(crypto_runtime=CryptoRuntime.JCA))
    assert all(line.startswith("#") for line in text.splitlines())


@pytest.mark.parametrize(
    ("subject", "options"),
    [
        pytest.param(jca_injection(), (NAMED_GROUPS, "-Xbootclasspath/a:/opt/pqcota/BC.jar"), id="inject"),
        pytest.param(action(crypto_runtime=CryptoRuntime.JCA), (NAMED_GROUPS,), id="config-only"),
        pytest.param(
            jca_injection(target_algorithm="HQC"), ("-Xbootclasspath/a:/opt/pqcota/BC.jar",), id="no-group-known"
        ),
    ],
)
def test_the_jvm_argument_file_holds_the_options_that_a_jvm_obeys(
    subject: RemediationAction, options: tuple[str, ...]
) -> None:
    text = jvm_arguments("/etc/pqcota/java.security.pqcota", "/etc/pqcota/jvm.pqcota", jvm_options(subject))
    assert tuple(directives(text).splitlines()) == (
        "-Djava.security.properties=/etc/pqcota/java.security.pqcota",
        *options,
    )
