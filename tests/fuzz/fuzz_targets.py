"""Every input of the suite that somebody else writes, and what must hold whatever stands in it.

Only an error of the suite's own family may come out, each of its sentences on one line that a terminal shows as it is.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from unittest import mock
from urllib.parse import quote as percent_encoded

from fuzz_inputs import (
    SECRETS,
    config_texts,
    edited,
    json_files,
    key_maps,
    key_texts,
    long_lines,
    name_texts,
    passwords,
    plan_bytes,
    texts,
    time_texts,
    yaml_texts,
)
from hypothesis import strategies as st

from conformance_cases import CLOCK
from playbook_reader import load_plays, load_yaml
from pqcota_provision.cli import approve as approve_command
from pqcota_provision.cli import provision as provision_command
from pqcota_provision.errors import PqcotaError
from pqcota_provision.plan.approvals import approve, normalize_approver, signature_labels, verify_approvals
from pqcota_provision.plan.canonical import canonical_bytes
from pqcota_provision.plan.gates import check_approvable, check_executable
from pqcota_provision.plan.keys import PrivateKey, PublicKey, parse_key_map
from pqcota_provision.plan.model import (
    CryptoRuntime,
    FinalizedPlan,
    PlanStatus,
    ProvisioningRecord,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.plan.names import refuse_class_name, refuse_file_name, refuse_host_name
from pqcota_provision.plan.protojson import dump_message, load_message, load_plan
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.playbook.fragments.artifact import artifact_flaws
from pqcota_provision.playbook.generate import Direction, Playbook, generate
from pqcota_provision.playbook.levels import Level
from pqcota_provision.playbook.yamlwriter import LINE_LENGTH, Item, Unsafe, YamlWriter, comment_lines
from pqcota_provision.proof.configuration import load_policy, load_services
from pqcota_provision.proof.durations import parse_duration
from pqcota_provision.proof.statement import load_proof, refuse_platform
from pqcota_provision.records.organization import check_organization
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.dsn import Dsn
from pqcota_provision.records.snapshot import read_snapshot
from pqcota_provision.text import printable

Result = TypeVar("Result")

LONGEST_SENTENCE = 1500

ALICE, BOB, MALLORY = (PrivateKey(bytes(range(start, start + 32))) for start in range(3))
REGISTERED = {"alice": ALICE.public, "bob": BOB.public}
KEY_MAP = ",".join(f"{name}={key.to_text()}" for name, key in REGISTERED.items())


@dataclass(frozen=True)
class Target:
    """One way into the suite: what is put in, and a check that raises where something else comes out than may."""

    name: str
    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], object]


def require_sentence(text: str) -> None:
    """Raise unless a text is fit for one line of a terminal."""
    assert text.strip() == text != "", f"no sentence: {text!r}"
    assert printable(text) == text, f"not printable on one line: {text!r}"
    assert len(text) <= LONGEST_SENTENCE, f"a sentence of {len(text)} characters: {text[:200]!r}"


def answer(function: Callable[..., Result], *arguments: Any, **keywords: Any) -> Result | None:
    """Return what a function returns, or None where it refuses as it may: with an error of the family, well said."""
    try:
        return function(*arguments, **keywords)
    except PqcotaError as error:
        _require_explanation(error)
        return None


def _require_explanation(error: PqcotaError) -> None:
    assert error.problems
    for problem in error.problems:
        require_sentence(problem)
        assert not problem.endswith("."), problem
    require_sentence(error.remedy)
    assert error.exit_status in (1, 2)


def check_plan(data: bytes) -> None:
    """A plan is refused, or read, judged, signed and turned into playbooks at every level and direction."""
    plan = answer(load_plan, data)
    if plan is None:
        return
    assert load_plan(dump_message(plan)) == plan
    assert canonical_bytes(load_plan(dump_message(plan, indent=None))) == canonical_bytes(plan)
    answer(check_approvable, plan)
    answer(check_executable, plan)
    signed = answer(approve, plan, "alice", ALICE, now=CLOCK)
    if signed is not None:
        assert "alice" in verify_approvals(load_plan(dump_message(signed)), REGISTERED).approved
    finalized = replace(plan, status=PlanStatus.FINALIZED, approval_signatures=("label",))
    for level in Level:
        for direction in Direction:
            playbook = answer(generate, finalized, level=level, direction=direction, verify=level is Level.L3)
            if playbook is not None:
                # Reading it back takes far longer than writing it.
                _require_playbook(playbook, finalized, read=level is Level.L3)


def _require_playbook(playbook: Playbook, plan: FinalizedPlan, *, read: bool) -> None:
    assert playbook.text.endswith("\n")
    playbook.text.encode("utf-8")
    for notice in playbook.notices:
        require_sentence(notice.sentence)
        require_sentence(notice.remedy)
    if read:
        nodes = list(dict.fromkeys(action.target_node_id for action in plan.actions))
        assert [play["hosts"] for play in load_plays(playbook.text)] == ["localhost", *nodes]


def check_private_key(text: str) -> None:
    """A key is read or refused, and no message holds a part of it."""
    for parse in (PrivateKey.parse, PublicKey.parse):
        answer(parse, text)
        _require_unsaid(text, parse, text)
    key = answer(PrivateKey.parse, text)
    if key is not None:
        assert key.to_text() == text.strip()
        assert key.to_text()[:43] not in repr(key)


def _require_unsaid(secret: str, function: Callable[[str], object], argument: str) -> None:
    try:
        function(argument)
    except PqcotaError as error:
        said = f"{error!r} {error} {error.remedy}"
        assert not any(secret[start : start + 12] in said for start in range(0, len(secret) - 11, 4)), said


def check_key_map(text: str) -> None:
    """A key map is read or refused, and a private key put there by mistake is not shown."""
    for holder in ("approver", "prover"):
        keys = answer(parse_key_map, text, holder=holder)
        if keys is not None:
            assert len({key.data for key in keys.values()}) == len(keys)
            assert all(name and name == name.strip() and ":" not in name for name in keys)
    for private in (ALICE.to_text(), MALLORY.to_text()):
        _require_unsaid(private, parse_key_map, f"{text},{private}")
        _require_unsaid(private, parse_key_map, f"{private},{text}")


_FINALIZED = approve(
    load_plan('{"id":"p","status":2,"actions":[{"targetNodeId":"n","kind":1}]}'), "alice", ALICE, now=CLOCK
)
_SIGNATURES = {
    name: base64.b64encode(key.sign(canonical_bytes(_FINALIZED))).decode()
    for name, key in {"alice": ALICE, "bob": BOB, "mallory": MALLORY}.items()
}
_entries = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(("alice", "bob", "mallory", " alice", "alice\t", "Alice", "", "a\n")) | texts,
    st.sampled_from((":", ":", ":", " :", "", "::")),
    st.sampled_from(("ed25519", "ed25519", "ed25519", "ED25519", "rsa")) | texts,
    st.sampled_from((":", ":", ": ", "")),
    st.sampled_from(tuple(_SIGNATURES.values())) | edited(tuple(_SIGNATURES.values()), ("=", "A", "+", "-", " ", "\n")),
)


def check_signatures(entries: list[str]) -> None:
    """Nobody counts as an approver without the very signature that his own key gives."""
    plan = replace(_FINALIZED, approval_signatures=tuple(entries))
    verification = verify_approvals(plan, REGISTERED)
    genuine = {
        name
        for name in REGISTERED
        if any(
            entry.partition(":")[0].strip() == name and entry.partition(":")[2] == f"ed25519:{_SIGNATURES[name]}"
            for entry in entries
        )
    }
    assert set(verification.approved) == genuine
    assert len(verification.approved) == len(genuine)
    assert verification.labels == signature_labels(plan)
    answer(verification.require)
    answer(approve, plan, "bob", BOB, now=CLOCK)
    answer(approve, plan, "bob", BOB, now=CLOCK, registered=REGISTERED)


_DSN_FORMS: tuple[Callable[[str], str], ...] = (
    lambda password: f"postgresql://user:{password}@127.0.0.1:1/records",
    lambda password: f"postgres://user:{password}@127.0.0.1:1",
    lambda password: f"postgresql://user:{password}@127.0.0.1:1,127.0.0.1:2/records?sslmode=disable",
    lambda password: f"postgresql://user:{percent_encoded(password, safe='')}@127.0.0.1:1/records",
    lambda password: f"postgresql://127.0.0.1:1/records?user=user&password={percent_encoded(password)}",
    lambda password: f"postgresql://127.0.0.1:{_without_user(password)}/records",
    lambda password: f"postgresql://127.0.0.1:1/records?password={password}",
    lambda password: f"host=127.0.0.1 port=1 user=user password={password}",
    lambda password: f"password = {password} host=127.0.0.1 port=1",
    lambda password: f"host=127.0.0.1 port=1 password='{_in_quotes(password)}' dbname=records",
    lambda password: f"host=127.0.0.1 port=1 password='{password}' dbname=records",
)


def _without_user(password: str) -> str:
    # With an @ the host before it is a user's name; with a / or a comma in front the rest is a database's or a host's.
    return password.replace("@", "").lstrip("/,")


def _in_quotes(password: str) -> str:
    return password.replace("\\", "\\\\").replace("'", "\\'")


_dsns = st.builds(lambda form, password: form(password), st.sampled_from(_DSN_FORMS), passwords)
_LIBPQ_VARIABLES = re.compile(r"PG[A-Z]+")


@contextlib.contextmanager
def _without_variables(pattern: re.Pattern[str]) -> Iterator[None]:
    kept = {name: value for name, value in os.environ.items() if not pattern.match(name)}
    absent = f"{os.devnull}/none"
    with mock.patch.dict(os.environ, {**kept, "PGPASSFILE": absent, "PGSERVICEFILE": absent}, clear=True):
        yield


def check_dsn(text: str) -> None:
    """However a DSN is written or miswritten, no piece of its password is in anything that is said about it."""
    with _without_variables(_LIBPQ_VARIABLES):
        said: list[str] = []
        try:
            dsn = Dsn.parse(text)
            said += [repr(dsn), str(dsn), dsn.target()]
            require_sentence(dsn.target())
            # Nothing listens there, and no name has to be looked up.
            if set(dsn.parameters.get("host", "").split(",")) == {"127.0.0.1"} and "hostaddr" not in dsn.parameters:
                Connection.open(text, connect_timeout=2).close()
        except PqcotaError as error:
            said += [repr(error), str(error), error.remedy]
            require_sentence(str(error))
            require_sentence(error.remedy)
    assert not [secret for secret in SECRETS if any(secret in each for each in said)], said


def check_any_dsn(text: str) -> None:
    """Any text is a DSN or refused."""
    with _without_variables(_LIBPQ_VARIABLES):
        dsn = answer(Dsn.parse, text)
        if dsn is not None:
            require_sentence(dsn.target())


def check_time(text: str) -> None:
    """A time is read and written back as the same, or refused with a sentence."""
    try:
        time = Timestamp.parse(text)
    except ValueError as error:
        require_sentence(str(error))
        return
    assert Timestamp.parse(time.to_json_text()) == time == Timestamp.parse(time.to_canonical_text())


def check_artifact(text: str) -> None:
    """A hand-written fragment is judged, whatever it holds."""
    for runtime in CryptoRuntime:
        for kind in (RemediationKind.CONFIG_ONLY, RemediationKind.PROVIDER_INJECT):
            for flaw in artifact_flaws(RemediationAction(crypto_runtime=runtime, kind=kind, config_artifact=text)):
                require_sentence(flaw.reason)


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def check_name(text: str) -> None:
    """A name that is accepted can neither leave its directory, nor mean several hosts, nor begin an option."""
    accepted = {
        refuse: frozenset(also)
        for refuse, also in (
            (refuse_file_name, "._+-"),
            (refuse_class_name, "._$"),
            (refuse_host_name, "._-:"),
            (refuse_platform, "_/"),
        )
    }
    for refuse, also in accepted.items():
        reason = refuse(text)
        if reason is None:
            assert text[:1] not in {"", "-", "."}, text
            assert _PLAIN | also >= set(text), text
        else:
            require_sentence(reason)
    for parse in (check_organization, normalize_approver):
        answer(parse, text)
    try:
        assert parse_duration(text) > 0
    except ValueError as error:
        require_sentence(str(error))


def check_yaml_text(elements: list[str]) -> None:
    """Any text comes back letter by letter from the YAML, and no comment is broken out of."""
    shown = [element for element in elements if not _SURROGATE.search(element)]
    loop = [Unsafe(element) for element in shown] or [Unsafe("")]
    arguments = {"first": Unsafe("".join(shown)), "plain": "".join(shown)}
    item = Item({"name": "Do it", "args": arguments, "loop": loop}, tuple(elements))
    written = "".join(YamlWriter().sequence([item]))
    [read] = load_yaml(written)
    assert read["args"] == {"first": "".join(shown), "plain": "".join(shown)}
    assert read["loop"] == [element.text for element in loop]
    for line in comment_lines(elements, 4).splitlines():
        assert line.startswith("    #")
        assert len(line) <= LINE_LENGTH
        assert printable(line) == line


_SURROGATE = re.compile("[\ud800-\udfff\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def check_node_file(text: str) -> None:
    """The YAML files of a node are read or refused, given as text or as bytes."""
    for load in (load_services, load_policy):
        answer(load, text)
        answer(load, text.encode("utf-8", "surrogatepass"))


def check_json_file(data: bytes) -> None:
    """Proofs, stored records and snapshots are read or refused."""
    answer(load_proof, data)
    record = answer(load_message, ProvisioningRecord, data, ignore_unknown=True)
    if record is not None:
        assert load_message(ProvisioningRecord, dump_message(record)) == record
    answer(load_message, ProvisioningRecord, data)
    with contextlib.suppress(UnicodeDecodeError):
        read_snapshot("s", "n", data.decode("utf-8"))


def check_command(main: Callable[[list[str]], int], arguments: list[str], data: bytes) -> None:
    """A command ends in a status of the table; it prints a product or says on one line each what is wrong."""
    variables = {"PQCOTA_APPROVAL_KEY": ALICE.to_text(), "PQCOTA_APPROVAL_KEYS": KEY_MAP}
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(data), "utf-8")
    with (
        mock.patch.dict(os.environ, variables),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", given),
    ):
        status = main([*arguments, "-"])
    product, said = (stream.detach().getvalue() for stream in (out, err))
    assert status in (0, 1, 3)
    assert (status == 1) == (product == b"")
    for line in said.decode("utf-8").removesuffix("\n").split("\n"):
        require_sentence(line or "-")


def check_provision(data: bytes) -> None:
    """pqcota-provision answers any plan."""
    for arguments in (["--allow-incomplete"], ["--level=l3", "--verify"], ["--rollback"]):
        check_command(provision_command.main, arguments, data)


def check_approve(data: bytes) -> None:
    """pqcota-approve answers any plan."""
    check_command(approve_command.main, ["--approver=alice"], data)


TARGETS = (
    Target("plan", plan_bytes, check_plan),
    Target("approve", plan_bytes, check_approve),
    Target("provision", plan_bytes, check_provision),
    Target("key", key_texts, check_private_key),
    Target("key-map", key_maps | texts, check_key_map),
    Target("signature", st.lists(_entries | texts, max_size=4), check_signatures),
    Target("dsn-password", _dsns, check_dsn),
    Target("dsn", _dsns.flatmap(lambda text: edited((text,), tuple(":/@?&= '\\%,"))) | texts, check_any_dsn),
    Target("timestamp", time_texts, check_time),
    Target("artifact", config_texts, check_artifact),
    Target("name", name_texts, check_name),
    Target("yaml-writer", st.lists(texts | long_lines, max_size=4), check_yaml_text),
    Target("node-file", yaml_texts, check_node_file),
    Target("json-file", json_files, check_json_file),
)
