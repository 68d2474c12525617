from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbook_plans import action, injection, jca_injection

from pqcota_provision.plan.model import CryptoRuntime, RemediationAction
from pqcota_provision.playbook.fragments.artifact import artifact_flaws
from pqcota_provision.playbook.fragments.jca import jca_fragment
from pqcota_provision.playbook.fragments.openssl import openssl_fragment
from pqcota_provision.playbook.fragments.openssl_config import read_openssl_config

SOUND = """\
openssl_conf = init
[init]
providers = prov
ssl_conf = ssl
[prov]
default = def
acme = acme_sect
[def]
activate = yes
[acme_sect]
activate = 1
module = /opt/pqcota/acme.so
[ssl]
system_default = tls
[tls]
Groups = X25519MLKEM768:P-256
"""
JCA = {"crypto_runtime": CryptoRuntime.JCA}


def flaws(subject: RemediationAction) -> list[tuple[bool, str]]:
    return [(flaw.harmful, flaw.reason) for flaw in artifact_flaws(subject)]


@pytest.mark.parametrize(
    "artifact",
    [
        pytest.param(SOUND, id="whole"),
        pytest.param(SOUND.replace("\n", "\r\n"), id="dos-lines"),
        pytest.param("# comment \\\nx\n" + SOUND, id="comment-with-continuation"),
        pytest.param("[default]\n" + SOUND, id="default-section-named"),
        pytest.param(SOUND.replace("Groups = X25519MLKEM768:P-256", "Groups = ?*X25519MLKEM768/*x25519"), id="tuples"),
        pytest.param(SOUND.replace("module = /opt", "module = \\\n/opt"), id="continued-line"),
        pytest.param(SOUND.replace("/opt/pqcota/acme.so", '"/opt/pqcota/acme.so"  # ours'), id="quoted-with-comment"),
    ],
)
def test_a_sound_openssl_artifact_is_let_through(artifact: str) -> None:
    assert flaws(injection(config_artifact=artifact)) == []


@pytest.mark.parametrize(
    ("artifact", "harmful", "words"),
    [
        pytest.param(SOUND.replace("openssl_conf = init\n", ""), False, "no openssl_conf", id="nothing-is-read"),
        pytest.param(
            SOUND.replace("openssl_conf = init\n[init]", "[init]\nopenssl_conf = init"),
            False,
            "no openssl_conf",
            id="openssl-conf-behind-a-section",
        ),
        pytest.param(SOUND.replace("providers = prov\n", ""), False, "no provider section", id="module-never-loaded"),
        pytest.param(SOUND.replace("default = def\n", ""), True, "default provider", id="default-not-listed"),
        pytest.param(
            SOUND.replace("activate = yes", "activate = 0"), True, "default provider", id="default-not-active"
        ),
        pytest.param(SOUND.replace("module = /opt/pqcota/acme.so\n", ""), True, "no module path", id="no-module"),
        pytest.param(SOUND.replace("/opt/pqcota/acme.so", "acme.so"), True, "not absolute", id="relative-module"),
        pytest.param(SOUND.replace(":P-256", ""), True, "classical group", id="classical-peers-lost"),
        pytest.param("[provider_sect]\nx = y\n" + SOUND, True, "default provider", id="stock-section-merged"),
    ],
)
def test_what_a_bad_openssl_artifact_would_do_is_said(artifact: str, harmful: bool, words: str) -> None:
    found = flaws(injection(config_artifact=artifact))
    assert [flaw for flaw in found if flaw[0] is harmful and words in flaw[1]], found


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        pytest.param(action(config_artifact="jdk.tls.namedGroups = x25519", **JCA), "namedGroups", id="named-groups"),
        pytest.param(action(config_artifact="jdk.tls.namedGroups\\\n:x", **JCA), "namedGroups", id="continued-line"),
        pytest.param(jca_injection(config_artifact="# security.provider.2=x"), "security.provider", id="commented-out"),
        pytest.param(jca_injection(config_artifact="zzz"), "security.provider", id="registers-nothing"),
    ],
)
def test_what_a_jvm_would_ignore_is_said(subject: RemediationAction, words: str) -> None:
    (flaw,) = flaws(subject)
    assert flaw[0] is False
    assert words in flaw[1]


def test_a_sound_jca_artifact_is_let_through() -> None:
    text = "# a comment that ends in \\\nsecurity.provider.2=com.acme.Pqc\n"
    assert flaws(jca_injection(config_artifact=text)) == []


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(action(config_artifact=openssl_fragment(action())), id="openssl-config-only"),
        pytest.param(injection(config_artifact=openssl_fragment(injection())), id="openssl-inject"),
        pytest.param(jca_injection(config_artifact=jca_fragment(jca_injection())), id="jca-inject"),
    ],
)
def test_what_the_suite_generates_passes_its_own_judgement(subject: RemediationAction) -> None:
    assert flaws(subject) == []


def test_a_provider_with_an_endless_number_is_none() -> None:
    ((harmful, reason),) = flaws(jca_injection(config_artifact=f"security.provider.{'3' * 5000} = x"))
    assert (harmful, reason.startswith("has no security.provider line")) == (False, True)


def test_lines_that_each_double_the_one_before_do_not_fill_the_memory() -> None:
    ((harmful, reason),) = flaws(injection(config_artifact="a = 12345678\n" + "a = $a$a\n" * 60 + SOUND))
    assert (harmful, "line 14 grows beyond 65536 characters" in reason) == (False, True)


def test_lines_that_all_repeat_a_long_one_do_not_fill_the_memory() -> None:
    text = "a = 12345678\n" + "a = $a$a\n" * 12 + "".join(f"b{number} = x$a\n" for number in range(20_000))
    config = read_openssl_config(text)
    assert config.error == ""
    assert sum(len(value or "") for value in config.sections["default"].values()) < 1 << 23


def test_a_long_value_without_variables_is_no_reason_to_complain() -> None:
    assert flaws(injection(config_artifact=f"a = {'x' * 70_000}\n{SOUND}")) == []


@given(st.text(st.sampled_from("[]=\\\"'#`: \t\n\rabc.providersGroups/")))
def test_no_artifact_breaks_the_judgement(artifact: str) -> None:
    for runtime in (CryptoRuntime.OPENSSL, CryptoRuntime.JCA):
        assert all(reason for _, reason in flaws(injection(config_artifact=artifact, crypto_runtime=runtime)))
