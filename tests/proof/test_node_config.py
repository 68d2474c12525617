"""The registry and the policy: a mistyped line is found, and never read as something else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqcota_provision.errors import NodeConfigMalformed
from pqcota_provision.proof.configuration import load_policy, load_services, read_policy, read_services
from pqcota_provision.proof.durations import format_duration, parse_duration

SERVICE = "app: payments, unit: payments, module: oqsprovider.so, provider: oqsprovider"


def services(entry: str) -> str:
    return f"services: [{{{entry}}}]\n"


def test_a_service_is_read_with_its_defaults() -> None:
    (service,) = load_services(services(SERVICE))
    assert service.model_dump() == {
        "app": "payments",
        "unit": "payments.service",
        "module": "/opt/pqcota/oqsprovider.so",
        "provider": "oqsprovider",
        "version": "",
        "ready": "",
    }


def test_a_version_is_kept_as_it_was_written() -> None:
    (service,) = load_services(services(f"{SERVICE}, version: 1.10"))
    assert service.version == "1.10"


def test_one_app_may_run_as_several_units() -> None:
    text = (
        "services:\n"
        "  - {app: p, unit: p@1.service, module: /opt/pqcota/a.so, provider: a}\n"
        "  - {app: p, unit: p@2.service, module: /opt/pqcota/a.so, provider: a}\n"
    )
    assert [service.unit for service in load_services(text)] == ["p@1.service", "p@2.service"]


def test_an_empty_list_of_services_is_a_registry() -> None:
    assert load_services("services:\n") == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "services is missing", id="empty"),
        pytest.param("services: 3", "services must be a list", id="no list"),
        pytest.param("- a", "the file is no mapping of keys to values", id="no mapping"),
        pytest.param("services: [3]", "services[0] must be a mapping of keys to values", id="no service"),
        pytest.param("services: [a", "line 1, column 13: ", id="no YAML"),
        pytest.param("services: []\nservices: []", 'line 2, column 1: the key "services" stands twice', id="twice"),
        pytest.param("services: []\nservice: []", 'the file has an unknown key "service"', id="unknown key"),
        pytest.param("? [a]\n: b", "a key must be a plain word", id="list as key"),
        pytest.param("&a [*a]", "line 1, column 1: ", id="recursive"),
        pytest.param("\x00", "the file is no YAML text", id="control character"),
        pytest.param("[" * 5000, "the file is nested too deeply", id="deep"),
        pytest.param(services("app: p"), "services[0].unit is missing", id="missing field"),
        pytest.param(services(f"{SERVICE}, versio: 1"), 'services[0] has an unknown key "versio"', id="unknown field"),
        pytest.param(
            "services:\n- {app: p, unit: u, module: m.so, provider: p}\n- {app: p, unit: u, module: m.so, provider: q}",
            'the app "p" has the same unit and module twice',
            id="same binding twice",
        ),
    ],
)
def test_a_mistake_in_the_registry_is_named(text: str, problem: str) -> None:
    with pytest.raises(NodeConfigMalformed) as caught:
        load_services(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("app", "../payments", id="app that leaves its directory"),
        pytest.param("app", ".", id="app that is a directory"),
        pytest.param("provider", "a b", id="provider with a space"),
        pytest.param("unit", "'pay*'", id="unit pattern"),
        pytest.param("unit", "-H.service", id="unit that is an option"),
        pytest.param("unit", '"a\\nb"', id="unit of two lines"),
        pytest.param("unit", f"{'u' * 250}", id="unit that is too long"),
        pytest.param("module", "lib/oqsprovider.so", id="relative module"),
        pytest.param("module", "/opt/../etc/x.so", id="module with .."),
        pytest.param("module", "/opt//x.so", id="module with an empty part"),
        pytest.param("module", "/", id="module that is the root"),
        pytest.param("module", '"/opt/a\\tb.so"', id="module with a tab"),
        pytest.param("version", '"1\\e[0m"', id="version that steers a terminal"),
        pytest.param("ready", "8443", id="bare port"),
        pytest.param("ready", "tcp://127.0.0.1", id="probe without port"),
        pytest.param("ready", "tcp://127.0.0.1:0", id="probe of port 0"),
        pytest.param("ready", "tcp://127.0.0.1:99999", id="probe of no port"),
        pytest.param("ready", "tcp://127.0.0.1:80/x", id="TCP probe with a path"),
        pytest.param("ready", "ftp://127.0.0.1/", id="probe by another protocol"),
        pytest.param("ready", "http://root:secret@127.0.0.1/", id="probe with a password"),
        pytest.param("ready", "'http://127.0.0.1/a b'", id="probe with a space"),
        pytest.param("ready", "http://", id="probe without host"),
    ],
)
def test_a_field_that_cannot_mean_what_it_says_is_refused(field: str, value: str) -> None:
    entries = dict(entry.split(": ") for entry in SERVICE.split(", ")) | {field: value}
    with pytest.raises(NodeConfigMalformed) as caught:
        load_services(services(", ".join(f"{key}: {text}" for key, text in entries.items())))
    assert f"services[0].{field}" in str(caught.value)


@pytest.mark.parametrize(
    "probe",
    ["tcp://127.0.0.1:8443", "tcp://[::1]:8443", "http://127.0.0.1/", "https://localhost:8443/ready?full=1"],
)
def test_probes_of_the_documented_forms_are_accepted(probe: str) -> None:
    (service,) = load_services(services(f'{SERVICE}, ready: "{probe}"'))
    assert service.ready == probe


# The policy


def test_a_policy_says_what_is_proven_and_required() -> None:
    policy = load_policy(
        "after: 24h\n"
        "prove: {prover: canary-1, key_file: /etc/pqcota/proving.key, apps: [payments, ledger]}\n"
        "require:\n- {app: payments, provers: [canary-1, canary-2]}\n"
    )
    assert policy.after == 86_400
    assert policy.proves("ledger")
    assert not policy.proves("other")
    assert policy.requires("payments")
    assert not policy.requires("ledger")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "after: 1h\nprove:\nrequire:\n"])
def test_a_policy_may_leave_everything_out(text: str) -> None:
    policy = load_policy(text)
    assert (policy.after, policy.prove, policy.require) == (3600, None, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("after: 24", '"24" is no duration like 24h', id="bare number"),
        pytest.param("after: 1d", '"1d" is no duration', id="days"),
        pytest.param("after: 0s", "more than zero", id="zero"),
        pytest.param("after: -1h", "is no duration", id="negative"),
        pytest.param("after: 1h 30m", "is no duration", id="space"),
        pytest.param("after: 999999999h", "at most ten years", id="centuries"),
        pytest.param("after: [1h]", "after must be a duration", id="list"),
        pytest.param("aftr: 24h", 'the file has an unknown key "aftr"', id="unknown key"),
        pytest.param("prove: {prover: a, key_file: /k}", "prove.apps is missing", id="no apps"),
        pytest.param("prove: {prover: a, key_file: /k, apps: []}", "prove.apps must not be empty", id="empty apps"),
        pytest.param("prove: {prover: a, key_file: /k, apps: p}", "prove.apps must be a list", id="apps no list"),
        pytest.param("prove: {prover: a, key_file: k, apps: [p]}", "is no absolute path", id="relative key"),
        pytest.param("prove: {prover: a/b, key_file: /k, apps: [p]}", "prove.prover", id="prover that is a path"),
        pytest.param("prove: {prover: a, key_file: /k, apps: [p], x: 1}", 'prove has an unknown key "x"', id="extra"),
        pytest.param("require: [{app: p}]", "require[0].provers is missing", id="required by nobody"),
        pytest.param("require: [{app: p, provers: []}]", "require[0].provers must not be empty", id="no provers"),
        pytest.param("require: {app: p}", "require must be a list", id="require no list"),
        pytest.param('after: "\\UFFFFFFFF"', "an escape that is none of YAML's", id="escape beyond Unicode"),
        pytest.param(f"%YAML {'9' * 5000}.1\n--- {{}}", "a directive", id="directive with an endless number"),
        pytest.param('"\\ud800": 1', "the file has a key that holds half of a surrogate pair", id="half a character"),
    ],
)
def test_a_mistake_in_the_policy_is_named(text: str, problem: str) -> None:
    with pytest.raises(NodeConfigMalformed) as caught:
        load_policy(text)
    assert problem in str(caught.value)


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(NodeConfigMalformed) as caught:
        load_policy("after: x\nmint: y\nrequire: [{app: a b, provers: []}]\n")
    assert len(caught.value.problems) == 4


def test_an_absent_policy_is_no_policy_and_an_absent_registry_a_mistake(tmp_path: Path) -> None:
    assert read_policy(tmp_path / "proof.yml").prove is None
    with pytest.raises(NodeConfigMalformed, match=r"services\.yml"):
        read_services(tmp_path / "services.yml")


@pytest.mark.parametrize("data", [pytest.param(b"\xff\xfe\x00", id="no text"), pytest.param(b"- a", id="no mapping")])
def test_a_file_that_is_no_policy_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "proof.yml"
    path.write_bytes(data)
    with pytest.raises(NodeConfigMalformed, match=r"proof\.yml"):
        read_policy(path)


def test_a_policy_that_is_a_directory_is_not_taken_for_an_absent_one(tmp_path: Path) -> None:
    with pytest.raises(NodeConfigMalformed, match="cannot be read"):
        read_policy(tmp_path)


@pytest.mark.parametrize(
    ("text", "seconds"), [("24h", 86_400), ("90m", 5_400), ("1h30m", 5_400), ("30s", 30), ("1h0m1s", 3_601)]
)
def test_durations_mean_what_they_say(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("seconds", [0, 1, 60, 61, 3_600, 3_661, 86_400])
def test_a_shown_duration_is_the_one_that_was_meant(seconds: int) -> None:
    assert seconds == 0 or parse_duration(format_duration(seconds)) == seconds


_WORDS = ("services", "app", "unit", "after", "prove", "require", "provers", "1h", "!!python/object:os.system")
_PARTS = st.sampled_from((*_WORDS, ": ", "- ", "\n", "  ", *"{}[],!|>'\"?#%\t\\", "&a", "*a", "---", "<<"))


@given(st.text(max_size=200) | st.lists(_PARTS, max_size=40).map("".join) | st.binary(max_size=200))
def test_whatever_the_text_it_is_read_or_refused(text: str | bytes) -> None:
    for load in (load_services, load_policy):
        with contextlib.suppress(NodeConfigMalformed):
            load(text)
