"""Proofs: what a prover signs, how it is written, and what makes one hold."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from pqcota_provision.errors import ProofMalformed
from pqcota_provision.plan.keys import SIGNATURE_SIZE, PrivateKey, PublicKey, decode_base64
from pqcota_provision.plan.names import refuse_file_name
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.text import quote

SIGNED_FORM = "pqcota-proof/v1"
MAX_PROOF_BYTES = 1 << 16

_SIGNATURE_PREFIX = "ed25519:"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLATFORM = re.compile(r"[a-z0-9]{1,32}/[a-z0-9_]{1,32}")
_WHOLE_SECONDS = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")

_GO_SYSTEMS = {"linux": "linux", "darwin": "darwin", "freebsd": "freebsd"}
_GO_MACHINES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "i386": "386",
    "i486": "386",
    "i586": "386",
    "i686": "386",
    "armv6l": "arm",
    "armv7l": "arm",
    "armv8l": "arm",
    "loongarch64": "loong64",
}


@dataclass(frozen=True, slots=True)
class Proof:
    """A prover's statement that this app has run this module on this platform since then.

    Times are UTC in whole seconds, as text; the signature is empty until ``sign_proof`` made one.
    """

    app: str
    provider: str
    platform: str
    sha256: str
    version: str
    prover: str
    active_since: str
    proven_at: str
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """Return what the signature covers: the form's name, then each field, each followed by NUL."""
        covered = (getattr(self, field.name) for field in fields(self) if field.name != "signature")
        return b"".join(part.encode("utf-8") + b"\0" for part in (SIGNED_FORM, *covered))

    def document(self) -> dict[str, str]:
        """Return the proof as it is written, its fields in the order in which they are signed."""
        return {json_name: getattr(self, name) for name, json_name in _JSON_NAMES.items()}

    def holds_under(self, key: PublicKey) -> bool:
        """Tell whether the signature is this key's over this very statement."""
        signature = decode_base64(self.signature.removeprefix(_SIGNATURE_PREFIX))
        return (
            self.signature.startswith(_SIGNATURE_PREFIX)
            and signature is not None
            and len(signature) == SIGNATURE_SIZE
            and key.verifies(signature, self.signed_bytes())
        )


_JSON_NAMES = {
    "app": "app",
    "provider": "provider",
    "platform": "platform",
    "sha256": "sha256",
    "version": "version",
    "prover": "prover",
    "active_since": "activeSince",
    "proven_at": "provenAt",
    "signature": "signature",
}
_FIELD_NAMES = {json_name: name for name, json_name in _JSON_NAMES.items()}


def sign_proof(key: PrivateKey, proof: Proof) -> Proof:
    """Return the proof with the key's signature; raises ProofMalformed for a statement that could not be read back."""
    _refuse_problems(proof)
    encoded = base64.b64encode(key.sign(proof.signed_bytes())).decode("ascii")
    return replace(proof, signature=_SIGNATURE_PREFIX + encoded)


def dump_proof(proof: Proof) -> bytes:
    """Write a proof as JSON."""
    return (json.dumps(proof.document(), ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def load_proof(data: bytes) -> Proof:
    """Read a proof from JSON: exactly its fields, each once, each well formed; the signature is not judged here.

    Raises ProofMalformed.
    """
    if len(data) > MAX_PROOF_BYTES:
        raise ProofMalformed(f"it is larger than {MAX_PROOF_BYTES} bytes")
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_refuse_duplicates)
    except UnicodeDecodeError:
        raise ProofMalformed("it is no UTF-8 text") from None
    except (ValueError, RecursionError):
        raise ProofMalformed("it is no JSON") from None
    if not isinstance(document, dict):
        raise ProofMalformed("it is no JSON object")
    problems = [f"it has an unknown field {quote(key)}" for key in document if key not in _FIELD_NAMES]
    problems += [f"its {key} is missing" for key in _FIELD_NAMES if key not in document]
    problems += [
        f"its {key} is no text" for key in _FIELD_NAMES if key in document and not isinstance(document[key], str)
    ]
    if problems:
        raise ProofMalformed(problems)
    proof = Proof(**{name: document[json_name] for name, json_name in _JSON_NAMES.items()})
    _refuse_problems(proof)
    return proof


def refuse_sha256(text: str) -> str | None:
    """Tell why a text is no SHA-256 in hexadecimal."""
    return None if _SHA256.fullmatch(text) else "is not 64 lowercase hexadecimal digits"


def refuse_platform(text: str) -> str | None:
    """Tell why a text names no platform such as ``linux/amd64``."""
    return None if _PLATFORM.fullmatch(text) else "is no platform like linux/amd64"


def platform_name(system: str, machine: str) -> str:
    """Return the platform of a system and machine as uname gives them: ``linux/amd64`` for Linux and x86_64."""
    lower = machine.lower()
    return f"{_GO_SYSTEMS.get(system.lower(), system.lower())}/{_GO_MACHINES.get(lower, lower)}"


def whole_seconds(time: Timestamp) -> str:
    """Return a time the way proofs hold it: UTC, cut to whole seconds."""
    return Timestamp(time.seconds).to_canonical_text()


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ProofMalformed("it has a field twice")
    return document


def _refuse_problems(proof: Proof) -> None:
    problems = tuple(_problems(proof))
    if problems:
        raise ProofMalformed(problems)


def _problems(proof: Proof) -> Iterator[str]:
    for name, json_name in _JSON_NAMES.items():
        value = getattr(proof, name)
        if _CONTROL.search(value):
            yield f"its {json_name} holds a control character"
    for name in ("app", "provider", "prover"):
        if reason := refuse_file_name(getattr(proof, name)):
            yield f"its {name} {quote(getattr(proof, name))} {reason}"
    if reason := refuse_platform(proof.platform):
        yield f"its platform {quote(proof.platform)} {reason}"
    if reason := refuse_sha256(proof.sha256):
        yield f"its sha256 {reason}"
    times = [_whole_seconds_of(text) for text in (proof.active_since, proof.proven_at)]
    for json_name, time in zip(("activeSince", "provenAt"), times, strict=True):
        if time is None:
            yield f"its {json_name} is no UTC time in whole seconds like 2026-01-02T03:04:05Z"
    active_since, proven_at = times
    if active_since is not None and proven_at is not None and active_since > proven_at:
        yield "it was proven before it became active"


def _whole_seconds_of(text: str) -> Timestamp | None:
    if not _WHOLE_SECONDS.fullmatch(text):
        return None
    try:
        return Timestamp.parse(text)
    except ValueError:
        return None
