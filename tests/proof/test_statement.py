"""A proof says exactly what its prover signed, or nothing."""

from __future__ import annotations

import base64
import json
from dataclasses import fields, replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from proving_lab import CANARY_KEY, OTHER_KEY

from pqcota_provision.errors import ProofMalformed
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.statement import (
    Proof,
    dump_proof,
    load_proof,
    platform_name,
    refuse_platform,
    sign_proof,
    whole_seconds,
)

PROOF = Proof(
    app="payments",
    provider="oqsprovider",
    platform="linux/amd64",
    sha256="0123456789abcdef" * 4,
    version="0.8.0",
    prover="canary-1",
    active_since="2026-01-01T00:00:00Z",
    proven_at="2026-01-02T03:04:05Z",
)
SIGNED = sign_proof(CANARY_KEY, PROOF)


def test_the_signature_covers_the_bytes_that_other_tools_expect() -> None:
    message = (
        b"pqcota-proof/v1\0payments\0oqsprovider\0linux/amd64\0"
        + b"0123456789abcdef" * 4
        + b"\x000.8.0\0canary-1\x002026-01-01T00:00:00Z\x002026-01-02T03:04:05Z\0"
    )
    signature = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).sign(message)
    assert SIGNED.signature == "ed25519:" + base64.b64encode(signature).decode()


def test_the_json_has_the_fields_that_other_tools_expect() -> None:
    assert json.loads(dump_proof(SIGNED)) == {
        "app": "payments",
        "provider": "oqsprovider",
        "platform": "linux/amd64",
        "sha256": "0123456789abcdef" * 4,
        "version": "0.8.0",
        "prover": "canary-1",
        "activeSince": "2026-01-01T00:00:00Z",
        "provenAt": "2026-01-02T03:04:05Z",
        "signature": SIGNED.signature,
    }


def test_a_proof_reads_back_as_it_was_written() -> None:
    assert load_proof(dump_proof(SIGNED)) == SIGNED
    assert SIGNED.holds_under(CANARY_KEY.public)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("app", "ledger", id="app"),
        pytest.param("provider", "acme", id="provider"),
        pytest.param("platform", "linux/arm64", id="platform"),
        pytest.param("sha256", "f" * 64, id="sha256"),
        pytest.param("version", "0.8.1", id="version"),
        pytest.param("version", "", id="version left out"),
        pytest.param("prover", "canary-2", id="prover"),
        pytest.param("active_since", "2025-01-01T00:00:00Z", id="activeSince"),
        pytest.param("proven_at", "2026-01-02T03:04:06Z", id="provenAt"),
    ],
)
def test_a_proof_with_one_field_changed_does_not_hold(field: str, value: str) -> None:
    assert not replace(SIGNED, **{field: value}).holds_under(CANARY_KEY.public)


def test_every_field_is_among_those_whose_change_is_noticed() -> None:
    assert {field.name for field in fields(Proof)} == {
        "app", "provider", "platform", "sha256", "version", "prover", "active_since", "proven_at", "signature"
    }  # fmt: skip


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(sign_proof(OTHER_KEY, PROOF).signature, id="another key"),
        pytest.param("", id="none"),
        pytest.param(SIGNED.signature.removeprefix("ed25519:"), id="no algorithm"),
        pytest.param(SIGNED.signature.replace("ed25519:", "ed448:"), id="another algorithm"),
        pytest.param(SIGNED.signature[:-4], id="cut"),
        pytest.param(SIGNED.signature + "\n", id="with a newline"),
        pytest.param("ed25519:" + base64.b64encode(bytes(64)).decode(), id="zeros"),
    ],
)
def test_a_signature_that_is_not_the_provers_does_not_hold(signature: str) -> None:
    assert not replace(SIGNED, signature=signature).holds_under(CANARY_KEY.public)


def changed(**values: object) -> bytes:
    return json.dumps({**json.loads(dump_proof(SIGNED)), **values}).encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"", "no JSON", id="empty"),
        pytest.param(b"\xff", "no UTF-8", id="no UTF-8"),
        pytest.param(b"[]", "no JSON object", id="list"),
        pytest.param(b"[" * 100_000, "larger than", id="large"),
        pytest.param(b"[" * 60_000, "no JSON", id="deep"),
        pytest.param(dump_proof(SIGNED)[:-10], "no JSON", id="cut"),
        pytest.param(dump_proof(SIGNED) * 2, "no JSON", id="two"),
        pytest.param(changed(note="x"), 'unknown field "note"', id="unknown field"),
        pytest.param(b'{"app": "a", "app": "b"}', "a field twice", id="field twice"),
        pytest.param(b'{"app": "a"}', "its provider is missing", id="missing"),
        pytest.param(changed(version=8), "its version is no text", id="number"),
        pytest.param(changed(version=None), "its version is no text", id="null"),
        pytest.param(changed(version="0.8\0"), "its version holds a control character", id="NUL"),
        pytest.param(changed(version="0.8\n"), "its version holds a control character", id="newline"),
        pytest.param(changed(version="0.8\x85"), "its version holds a control character", id="C1"),
        pytest.param(changed(version="\ud800"), "its version holds a control character", id="half a pair"),
        pytest.param(changed(app="../x"), 'its app "../x" is no plain file name', id="app"),
        pytest.param(changed(prover="a=b"), "its prover", id="prover"),
        pytest.param(changed(platform="linux"), 'its platform "linux" is no platform', id="platform"),
        pytest.param(changed(platform="Linux/AMD64"), "is no platform", id="platform in capitals"),
        pytest.param(changed(sha256="F" * 64), "its sha256 is not 64 lowercase", id="hash in capitals"),
        pytest.param(changed(activeSince="2026-01-01T00:00:00.5Z"), "its activeSince is no UTC", id="fraction"),
        pytest.param(changed(activeSince="2026-01-01T01:00:00+01:00"), "its activeSince is no UTC", id="offset"),
        pytest.param(changed(provenAt="2026-02-30T00:00:00Z"), "its provenAt is no UTC", id="no such day"),
        pytest.param(changed(activeSince="2027-01-01T00:00:00Z"), "proven before it became active", id="order"),
    ],
)
def test_what_is_no_proof_is_not_read_as_one(data: bytes, problem: str) -> None:
    with pytest.raises(ProofMalformed) as caught:
        load_proof(data)
    assert problem in str(caught.value)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_make_the_reader_fail_in_another_way(data: bytes) -> None:
    with pytest.raises(ProofMalformed):
        load_proof(data)


@given(st.integers(min_value=0, max_value=len(dump_proof(SIGNED)) - 1), st.integers(min_value=1, max_value=255))
def test_no_single_changed_byte_leaves_a_proof_that_holds_and_says_something_else(place: int, change: int) -> None:
    data = bytearray(dump_proof(SIGNED))
    data[place] ^= change
    try:
        proof = load_proof(bytes(data))
    except ProofMalformed:
        return
    assert proof == SIGNED or not proof.holds_under(CANARY_KEY.public)


def test_nothing_is_signed_that_could_not_be_read_back() -> None:
    with pytest.raises(ProofMalformed, match="control character"):
        sign_proof(CANARY_KEY, replace(PROOF, version="a\0b"))


def test_an_empty_version_can_be_proven() -> None:
    signed = sign_proof(CANARY_KEY, replace(PROOF, version=""))
    assert load_proof(dump_proof(signed)).holds_under(CANARY_KEY.public)


@pytest.mark.parametrize(
    ("system", "machine", "platform"),
    [
        ("Linux", "x86_64", "linux/amd64"),
        ("Linux", "aarch64", "linux/arm64"),
        ("Linux", "i686", "linux/386"),
        ("Linux", "armv7l", "linux/arm"),
        ("Linux", "ppc64le", "linux/ppc64le"),
        ("Linux", "s390x", "linux/s390x"),
        ("Linux", "riscv64", "linux/riscv64"),
        ("Darwin", "arm64", "darwin/arm64"),
    ],
)
def test_platforms_are_named_as_the_proofs_name_them(system: str, machine: str, platform: str) -> None:
    assert platform_name(system, machine) == platform
    assert refuse_platform(platform) is None


def test_times_are_cut_to_whole_seconds() -> None:
    assert whole_seconds(Timestamp.parse("2026-01-02T03:04:05.999999999Z")) == "2026-01-02T03:04:05Z"
