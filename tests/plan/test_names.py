"""Names from a plan: one host, one file, one class, or a refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqcota_provision.plan.names import refuse_class_name, refuse_file_name, refuse_host_name

HOSTS = [
    pytest.param("web-1", id="plain"),
    pytest.param("web_1.example.com", id="qualified"),
    pytest.param("WEB", id="capitals"),
    pytest.param("7", id="digit"),
    pytest.param("1e3", id="number-like"),
    pytest.param("true", id="yaml-boolean"),
    pytest.param("null", id="yaml-null"),
    pytest.param("localhost", id="localhost"),
    pytest.param("192.0.2.7", id="ipv4"),
    pytest.param("_service", id="leading-underscore"),
    pytest.param("allocator", id="begins-like-a-group"),
    pytest.param("a" * 253, id="longest"),
    pytest.param("::1", id="ipv6-loopback"),
    pytest.param("2001:db8::7", id="ipv6"),
    pytest.param("2001:DB8::ABCD", id="ipv6-capitals"),
    pytest.param("2001:0db8:0000:0000:0000:0000:0000:0007", id="ipv6-in-full"),
    pytest.param("fe80::1", id="ipv6-link-local"),
    pytest.param("::ffff:192.0.2.7", id="ipv6-of-an-ipv4"),
    pytest.param("0:0:0:0:0:FFFF:192.0.2.7", id="ipv6-of-an-ipv4-in-full"),
]

PATTERNS = [
    pytest.param("all", id="group-all"),
    pytest.param("ALL", id="group-all-in-capitals"),
    pytest.param("ungrouped", id="group-ungrouped"),
    pytest.param("*", id="star"),
    pytest.param("web*", id="prefix-star"),
    pytest.param("web-?", id="question-mark"),
    pytest.param("!web", id="exclusion"),
    pytest.param("&web", id="intersection"),
    pytest.param("a,b", id="comma"),
    pytest.param("a;b", id="semicolon"),
    pytest.param("a:b", id="colon"),
    pytest.param("web:&prod", id="colon-intersection"),
    pytest.param("web:2222", id="port"),
    pytest.param("[2001:db8::7]:22", id="ipv6-with-port"),
    pytest.param("[2001:db8::7]", id="ipv6-in-brackets"),
    pytest.param("192.0.2.7:22", id="ipv4-with-port"),
    pytest.param("~web.*", id="regular-expression"),
    pytest.param("web[0:9]", id="range"),
    pytest.param("web[0]", id="subscript"),
    pytest.param("@hosts.txt", id="file"),
    pytest.param("web 1", id="space"),
    pytest.param(" web", id="leading-space"),
    pytest.param("web\n", id="trailing-newline"),
    pytest.param("web\tdb", id="tab"),
    pytest.param("{{ lookup('pipe', 'id') }}", id="template"),
    pytest.param("web/1", id="slash"),
    pytest.param("user@web", id="user"),
    pytest.param("web'1", id="apostrophe"),
    pytest.param('web"1', id="quote"),
    pytest.param("web#1", id="comment"),
    pytest.param("$web", id="dollar"),
    pytest.param("-web", id="leading-dash"),
    pytest.param("web-", id="trailing-dash"),
    pytest.param(".web", id="leading-dot"),
    pytest.param("web.", id="trailing-dot"),
    pytest.param("wëb", id="not-ascii"),
    pytest.param("web\u200b", id="zero-width-space"),
    pytest.param("\N{CYRILLIC SMALL LETTER A}ll", id="look-alike"),
    pytest.param("\N{FULLWIDTH DIGIT ONE}", id="wide-digit"),
    pytest.param("a" * 254, id="too-long"),
    pytest.param("fe80::1%eth0", id="ipv6-zone"),
    pytest.param("fe80::1%", id="ipv6-empty-zone"),
    pytest.param("fe80::1%eth0,all", id="ipv6-zone-with-pattern"),
    pytest.param("64:ff9b::192.0.2.7", id="ipv6-that-ansible-splits"),
    pytest.param("1:2:3:4:5:6:7::", id="ipv6-with-lone-gap-at-the-end"),
    pytest.param("::2:3:4:5:6:7:8", id="ipv6-with-lone-gap-at-the-start"),
    pytest.param("1:2:3:4:5:6:7", id="ipv6-too-short"),
    pytest.param("1::2::3", id="ipv6-with-two-gaps"),
    pytest.param("2001:db8::g", id="ipv6-with-a-letter"),
    pytest.param("::ffff:\N{FULLWIDTH DIGIT ONE}.2.3.4", id="ipv6-with-a-wide-digit"),
    pytest.param(":", id="colon-only"),
]


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_name_or_address_is_accepted(name: str) -> None:
    assert refuse_host_name(name) is None


@pytest.mark.parametrize("name", PATTERNS)
def test_what_could_mean_several_hosts_or_none_is_refused(name: str) -> None:
    assert refuse_host_name(name)


TAKEN_APART = "is an IPv6 address in a form that Ansible takes apart into several hosts; write it in full"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("all", "is an Ansible group of many hosts, not one host", id="group"),
        pytest.param("web:2222", "is no host name and no IPv6 address (a port belongs into the inventory)", id="port"),
        pytest.param(
            "fe80::1%eth0",
            "has an IPv6 zone, which Ansible takes apart into two hosts; name the host in the inventory instead",
            id="zone",
        ),
        pytest.param("64:ff9b::192.0.2.7", TAKEN_APART, id="dotted-part"),
        pytest.param("1:2:3:4:5:6:7::", TAKEN_APART, id="lone-gap"),
        pytest.param("a" * 254, "is longer than 253 characters", id="long"),
        pytest.param(
            "web*",
            "is not one host name (letters, digits and . _ -); Ansible patterns are not accepted",
            id="pattern",
        ),
    ],
)
def test_the_reason_says_how_to_mend_a_host_name(name: str, reason: str) -> None:
    assert refuse_host_name(name) == reason


def ipv6_forms() -> list[str]:
    """Every way to write eight groups: with a gap anywhere or none, and with a dotted tail or none."""
    forms = {"::ffff:192.0.2.7", "::FFFF:192.0.2.7", "0:0:0:0:0:ffff:192.0.2.7", "0:0:0:0:ffff:0:192.0.2.7"}
    for filler in ("0", "1", "ffff", "0DB8"):
        for tail in ([], ["192.0.2.7"]):
            for before in range(9):
                for after in range(9):
                    head, rest = [filler] * before, [filler] * after + tail
                    forms.add(":".join(head) + "::" + ":".join(rest))
                forms.add(":".join([filler] * before + tail))
    return sorted(form for form in forms if ":" in form)


SPLIT_SCRIPT = """
import json, sys
try:
    from ansible.inventory.manager import split_host_pattern
except ImportError:
    sys.exit(3)
print(json.dumps([split_host_pattern(name) for name in json.load(sys.stdin)]))
"""


def ansible_patterns(names: list[str], skip_or_fail: Callable[[str], NoReturn]) -> list[list[str]]:
    """What Ansible itself makes of each name as the hosts of a play."""
    result = subprocess.run(
        [sys.executable, "-c", SPLIT_SCRIPT], input=json.dumps(names), capture_output=True, text=True
    )
    if result.returncode == 3:
        skip_or_fail("ansible-core is not installed")
    patterns: list[list[str]] = json.loads(result.stdout)
    return patterns


def test_ansible_takes_every_accepted_host_for_one_host(skip_or_fail: Callable[[str], NoReturn]) -> None:
    names = [*ipv6_forms(), *(str(parameter.values[0]) for parameter in (*HOSTS, *PATTERNS))]
    accepted = [name for name in names if refuse_host_name(name) is None]
    assert len(accepted) > 100
    assert ansible_patterns(accepted, skip_or_fail) == [[name] for name in accepted]


def test_no_ipv6_address_is_refused_that_ansible_takes_for_one_host(skip_or_fail: Callable[[str], NoReturn]) -> None:
    refused = [name for name in ipv6_forms() if "takes apart" in (refuse_host_name(name) or "")]
    assert refused
    assert [
        name for name, split in zip(refused, ansible_patterns(refused, skip_or_fail), strict=True) if len(split) == 1
    ] == []


@pytest.mark.parametrize(
    "name", ["oqsprovider", "acme-pqc", "libacme_pqc.2", "c++", "+x", "_x", "7", "a..b", "BC-FJA", "a" * 64]
)
def test_a_plain_file_name_is_accepted(name: str) -> None:
    assert refuse_file_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param(".", id="dot"),
        pytest.param("..", id="dot-dot"),
        pytest.param(".hidden", id="leading-dot"),
        pytest.param("-rf", id="leading-dash"),
        pytest.param("../x", id="parent"),
        pytest.param("/etc/x", id="absolute"),
        pytest.param("a/b", id="slash"),
        pytest.param("a\\b", id="backslash"),
        pytest.param("a b", id="space"),
        pytest.param("a\nb", id="newline"),
        pytest.param("a\n", id="trailing-newline"),
        pytest.param("a\0b", id="nul"),
        pytest.param("{{x}}", id="template"),
        pytest.param("$x", id="dollar"),
        pytest.param("a;b", id="semicolon"),
        pytest.param("a*", id="star"),
        pytest.param("~x", id="tilde"),
        pytest.param("é", id="not-ascii"),
        pytest.param("\N{FULLWIDTH DIGIT ONE}", id="wide-digit"),
        pytest.param("a" * 65, id="too-long"),
    ],
)
def test_what_could_leave_the_staging_directory_is_refused(name: str) -> None:
    assert refuse_file_name(name)


@pytest.mark.parametrize(
    ("refuse", "name", "reason"),
    [
        pytest.param(refuse_file_name, "a" * 65, "is longer than 64 characters", id="file-too-long"),
        pytest.param(
            refuse_file_name,
            "../x",
            "is no plain file name (letters, digits and . _ + -, not beginning with . or -)",
            id="file",
        ),
        pytest.param(refuse_class_name, "a b", "is no Java class name such as com.example.ExampleProvider", id="class"),
    ],
)
def test_the_reason_says_how_to_mend_a_name(refuse: Callable[[str], str | None], name: str, reason: str) -> None:
    assert refuse(name) == reason


@given(name=st.text(max_size=70))
def test_an_accepted_file_name_is_one_part_of_a_path(name: str) -> None:
    if refuse_file_name(name) is None:
        assert name.isascii()
        assert name.isprintable()
        assert 0 < len(name) <= 64
        assert name[0] not in ".-"
        assert not set(name) & set("/\\ '\"$`{}()[]<>|&;*?~!#%=:,@^")


@pytest.mark.parametrize(
    "name",
    [
        "BouncyCastleProvider",
        "org.bouncycastle.jce.provider.BouncyCastleProvider",
        "com.example.Outer$Inner",
        "_a.$b.C1",
    ],
)
def test_a_java_class_name_is_accepted(name: str) -> None:
    assert refuse_class_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param(".A", id="leading-dot"),
        pytest.param("a.", id="trailing-dot"),
        pytest.param("a..B", id="two-dots"),
        pytest.param("a.1B", id="part-begins-with-a-digit"),
        pytest.param("a b", id="space"),
        pytest.param("a.B\nsecurity.provider.1=x", id="second-property"),
        pytest.param("a.B\n", id="trailing-newline"),
        pytest.param("a.B\\", id="continued-line"),
        pytest.param("a.B arg", id="argument"),
        pytest.param("a/B", id="slash"),
        pytest.param("a-b.C", id="dash"),
        pytest.param("<class of acme>", id="placeholder"),
        pytest.param("${java.home}", id="property-expansion"),
        pytest.param("a.É", id="not-ascii"),
    ],
)
def test_what_could_inject_a_security_property_is_refused(name: str) -> None:
    assert refuse_class_name(name)
