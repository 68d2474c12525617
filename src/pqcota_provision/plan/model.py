"""The messages of the plan contract as immutable values (SPEC 2).

Enum fields are open: they hold a member of the enum, or the bare number where this version knows no name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from pqcota_provision.plan.timestamp import Timestamp


class WireEnum(IntEnum):
    """An enum of the contract; its value names carry a prefix on the wire."""

    @classmethod
    def prefix(cls) -> str:
        """Return the prefix of the wire names, such as ``PLAN_STATUS_``."""
        return _PREFIXES[cls]

    @property
    def wire_name(self) -> str:
        """The name as it stands in JSON and in the canonical bytes."""
        return _PREFIXES[type(self)] + self.name


class PlanStatus(WireEnum):
    """Where a plan stands on its way to execution."""

    UNSPECIFIED = 0
    DRAFT = 1
    IN_REVIEW = 2
    FINALIZED = 3


class DeployAutomationLevel(WireEnum):
    """How far an action goes: stage, also place the fragment, also activate and restart."""

    UNSPECIFIED = 0
    L1_STAGE_ONLY = 1
    L2_STAGE_INSTALL = 2
    L3_FULL_AUTO = 3


class RemediationKind(WireEnum):
    """What an action does to a node's cryptography."""

    UNSPECIFIED = 0
    CONFIG_ONLY = 1
    PROVIDER_INJECT = 2
    FORK_REPLACE = 3
    PROXY_FRONT = 4
    REBUILD = 5
    JDK_UPGRADE = 6
    APP_RECONFIG = 7
    DECOMMISSION = 8


class CryptoRuntime(WireEnum):
    """The cryptographic runtime an action is about."""

    UNSPECIFIED = 0
    OPENSSL = 1
    JCA = 2
    WIN_CNG = 3


class ProvisioningStatus(WireEnum):
    """What a provisioning record says has happened."""

    UNSPECIFIED = 0
    STAGED = 1
    INSTALLED = 2
    ACTIVATED = 3
    ROLLED_BACK = 4
    FAILED = 5


_PREFIXES: dict[type[WireEnum], str] = {
    PlanStatus: "PLAN_STATUS_",
    DeployAutomationLevel: "DEPLOY_AUTOMATION_LEVEL_",
    RemediationKind: "REMEDIATION_KIND_",
    CryptoRuntime: "CRYPTO_RUNTIME_",
    ProvisioningStatus: "PROVISIONING_STATUS_",
}


def wire_name(value: int) -> str:
    """Return an enum value's wire name, or the decimal number where it has none."""
    return value.wire_name if isinstance(value, WireEnum) else str(int(value))


def open_enum(kind: type[WireEnum], number: int) -> int:
    """Return the member of an enum that a number names, or the bare number where it names none."""
    try:
        return kind(number)
    except ValueError:
        return number


def _name_enums(message: object, **kinds: type[WireEnum]) -> None:
    """Let a number given for an enum field be the member it names: names are what is signed."""
    for name, kind in kinds.items():
        value = getattr(message, name)
        if not isinstance(value, kind):
            object.__setattr__(message, name, open_enum(kind, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotContentReference:
    """Names a snapshot by the digest of its content."""

    format_version: str = ""
    digest: str = ""
    ruleset_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReference:
    """Names a snapshot of a source node, by id or by content; None means that member is not set."""

    source_node_id: str = ""
    snapshot_id: str | None = None
    content: SnapshotContentReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvidenceSource:
    """A finding that an action answers to, and the snapshot it was found in."""

    finding_id: str = ""
    snapshot: SnapshotReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationHooks:
    """The shell commands an L3 action runs on the node."""

    pre: str = ""
    activate: str = ""
    deactivate: str = ""
    restart: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationAction:
    """One remediation on one node."""

    id: str = ""
    target_node_id: str = ""
    finding_id: str = ""
    crypto_runtime: CryptoRuntime | int = CryptoRuntime.UNSPECIFIED
    kind: RemediationKind | int = RemediationKind.UNSPECIFIED
    automation_level: DeployAutomationLevel | int = DeployAutomationLevel.UNSPECIFIED
    target_algorithm: str = ""
    provider_choice: str = ""
    config_artifact: str = ""
    rollback_note: str = ""
    priority: int = 0
    provider_class: str = ""
    activation: ActivationHooks | None = None
    evidence_sources: tuple[ActionEvidenceSource, ...] = ()

    def __post_init__(self) -> None:
        _name_enums(self, crypto_runtime=CryptoRuntime, kind=RemediationKind, automation_level=DeployAutomationLevel)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedPlan:
    """Which node's cryptography changes to what, with the approvals of it."""

    id: str = ""
    status: PlanStatus | int = PlanStatus.UNSPECIFIED
    scope: str = ""
    actions: tuple[RemediationAction, ...] = ()
    approval_signatures: tuple[str, ...] = ()
    derived_from_snapshot_id: str = ""
    ruleset_version: str = ""
    finalized_at: Timestamp | None = None

    def __post_init__(self) -> None:
        _name_enums(self, status=PlanStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class CryptoState:
    """A node's cryptography as a record keeps it."""

    modules: tuple[str, ...] = ()
    config_digest: str = ""
    provider_chain: tuple[str, ...] = ()
    config_snapshot_ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResolution:
    """What a snapshot reference was found as, or the reason it was not."""

    submitted: SnapshotReference | None = None
    legacy_plan_snapshot_id: str | None = None
    resolved_snapshot_id: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisioningRecord:
    """One append-only row: what a node looked like before an action."""

    id: str = ""
    node_id: str = ""
    app_keys: tuple[str, ...] = ()
    action_id: str = ""
    plan_id: str = ""
    before: CryptoState | None = None
    after: CryptoState | None = None
    status: ProvisioningStatus | int = ProvisioningStatus.UNSPECIFIED
    note: str = ""
    at: Timestamp | None = None
    snapshot_resolutions: tuple[SnapshotResolution, ...] = ()

    def __post_init__(self) -> None:
        _name_enums(self, status=ProvisioningStatus)


class Field(NamedTuple):
    """One field of a message as the contract fixes it."""

    number: int
    name: str
    kind: type
    repeated: bool = False
    oneof: str = ""

    @property
    def json_name(self) -> str:
        """The field's lowerCamelCase name."""
        head, *rest = self.name.split("_")
        return head + "".join(part.capitalize() for part in rest)


FIELDS: dict[type, tuple[Field, ...]] = {
    SnapshotContentReference: (
        Field(1, "format_version", str),
        Field(2, "digest", str),
        Field(3, "ruleset_version", str),
    ),
    SnapshotReference: (
        Field(1, "source_node_id", str),
        Field(2, "snapshot_id", str, oneof="reference"),
        Field(3, "content", SnapshotContentReference, oneof="reference"),
    ),
    ActionEvidenceSource: (
        Field(1, "finding_id", str),
        Field(2, "snapshot", SnapshotReference),
    ),
    ActivationHooks: (
        Field(1, "pre", str),
        Field(2, "activate", str),
        Field(3, "deactivate", str),
        Field(4, "restart", str),
    ),
    RemediationAction: (
        Field(1, "id", str),
        Field(2, "target_node_id", str),
        Field(3, "finding_id", str),
        Field(4, "crypto_runtime", CryptoRuntime),
        Field(5, "kind", RemediationKind),
        Field(6, "automation_level", DeployAutomationLevel),
        Field(7, "target_algorithm", str),
        Field(8, "provider_choice", str),
        Field(9, "config_artifact", str),
        Field(10, "rollback_note", str),
        Field(11, "priority", int),
        Field(12, "provider_class", str),
        Field(13, "activation", ActivationHooks),
        Field(14, "evidence_sources", ActionEvidenceSource, repeated=True),
    ),
    FinalizedPlan: (
        Field(1, "id", str),
        Field(2, "status", PlanStatus),
        Field(3, "scope", str),
        Field(4, "actions", RemediationAction, repeated=True),
        Field(5, "approval_signatures", str, repeated=True),
        Field(6, "derived_from_snapshot_id", str),
        Field(7, "ruleset_version", str),
        Field(8, "finalized_at", Timestamp),
    ),
    CryptoState: (
        Field(1, "modules", str, repeated=True),
        Field(2, "config_digest", str),
        Field(3, "provider_chain", str, repeated=True),
        Field(4, "config_snapshot_ref", str),
    ),
    SnapshotResolution: (
        Field(1, "submitted", SnapshotReference, oneof="what"),
        Field(2, "legacy_plan_snapshot_id", str, oneof="what"),
        Field(3, "resolved_snapshot_id", str),
        Field(4, "reason", str),
    ),
    ProvisioningRecord: (
        Field(1, "id", str),
        Field(2, "node_id", str),
        Field(3, "app_keys", str, repeated=True),
        Field(4, "action_id", str),
        Field(5, "plan_id", str),
        Field(6, "before", CryptoState),
        Field(7, "after", CryptoState),
        Field(8, "status", ProvisioningStatus),
        Field(9, "note", str),
        Field(10, "at", Timestamp),
        Field(11, "snapshot_resolutions", SnapshotResolution, repeated=True),
    ),
}
"""The fields of every message, in field-number order; reader, writer and schema test share them."""
