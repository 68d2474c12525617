"""What a snapshot of discovered cryptography tells about a node (SPEC 10).

Findings are another tool's protobuf JSON: only what is needed here is read, and the rest is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from pqcota_provision.plan.model import CryptoState

_LIBRARY_WITHOUT_NAME = "openssl"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of one node, reduced to what a record keeps of it.

    ``app_keys`` maps each finding in it to the apps it affects. ``unreadable`` counts the findings that were
    none, which are missing from the rest.
    """

    id: str
    node_id: str
    state: CryptoState
    app_keys: Mapping[str, tuple[str, ...]]
    unreadable: int = 0


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _OpenSsl(_Message):
    lib: str | None = None
    version: str | None = None

    def module(self) -> str:
        library = self.lib or _LIBRARY_WITHOUT_NAME
        return f"{library}@{self.version}" if self.version else library


class _Jca(_Message):
    provider_set: list[str] | None = Field(None, validation_alias=AliasChoices("providerSet", "provider_set"))


class _Finding(_Message):
    id: str | None = None
    app_keys: list[str] | None = Field(None, validation_alias=AliasChoices("appKeys", "app_keys"))
    openssl: _OpenSsl | None = None
    jca: _Jca | None = None


_FINDING = TypeAdapter(_Finding)
_FINDINGS = TypeAdapter(list[_Finding])


def read_snapshot(snapshot_id: str, node_id: str, findings_json: str | None) -> Snapshot:
    """Return the snapshot whose findings are this JSON array; None stands for no findings.

    A finding that is none is counted and left out: a mistake of another tool's must not keep a node from
    being looked after.
    """
    findings, unreadable = _read_findings(findings_json)
    app_keys: dict[str, tuple[str, ...]] = {}
    for finding in findings:
        if finding.id:
            app_keys[finding.id] = _distinct(app_keys.get(finding.id, ()), finding.app_keys or ())
    return Snapshot(snapshot_id, node_id, _capture_state(findings), app_keys, unreadable)


def _read_findings(text: str | None) -> tuple[list[_Finding], int]:
    if text is None:
        return [], 0
    try:
        return _FINDINGS.validate_json(text), 0
    except ValidationError:
        return _read_one_by_one(text)


def _read_one_by_one(text: str) -> tuple[list[_Finding], int]:
    try:
        items = from_json(text)
    except ValueError:
        return [], 1
    if items is None:
        return [], 0
    if not isinstance(items, list):
        return [], 1
    findings = []
    for item in items:
        try:
            findings.append(_FINDING.validate_python(item))
        except ValidationError:
            continue
    return findings, len(items) - len(findings)


def _capture_state(findings: Iterable[_Finding]) -> CryptoState:
    modules: set[str] = set()
    chain: list[str] = []
    for finding in findings:
        if finding.openssl is not None:
            modules.add(finding.openssl.module())
        if finding.jca is not None:
            providers = finding.jca.provider_set or []
            modules.update(f"jca:{provider}" for provider in providers)
            chain += providers
    return CryptoState(modules=tuple(sorted(modules)), provider_chain=_distinct((), chain))


def _distinct(first: tuple[str, ...], then: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *then]))
