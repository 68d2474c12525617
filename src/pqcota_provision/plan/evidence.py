"""When a reference from an action to its evidence is well formed (SPEC 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pqcota_provision.plan.model import ActionEvidenceSource, RemediationAction

CONTENT_FORMAT = "pqcota-snapshot-content/v1"

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class EvidenceProblem:
    """What is wrong with one evidence source (counted from 0); the reason is a clause."""

    index: int
    reason: str
    names_no_finding: bool = False


def evidence_problems(action: RemediationAction) -> Iterator[EvidenceProblem]:
    """Yield the first problem of each malformed evidence source of an action."""
    for index, source in enumerate(action.evidence_sources):
        if not source.finding_id:
            yield EvidenceProblem(index, "names no findingId", names_no_finding=True)
        elif index == 0 and source.finding_id != action.finding_id:
            yield EvidenceProblem(index, "comes first and yet names another finding than the action")
        elif reason := reference_problem(source):
            yield EvidenceProblem(index, reason)


def reference_problem(source: ActionEvidenceSource) -> str | None:
    """Tell why the snapshot reference of a source is malformed, or return None."""
    reference = source.snapshot
    if reference is None:
        return "has no snapshot reference"
    if not reference.source_node_id:
        return "has no sourceNodeId"
    if reference.content is not None:
        content = reference.content
        if not (content.format_version and content.digest and content.ruleset_version):
            return "lacks one of formatVersion, digest and rulesetVersion"
        if content.format_version != CONTENT_FORMAT:
            return f"has a formatVersion other than {CONTENT_FORMAT}"
        if _DIGEST.fullmatch(content.digest) is None:
            return "has a digest that is not 64 lowercase hexadecimal digits"
        return None
    if not reference.snapshot_id:
        return "names neither a snapshotId nor a content"
    return None
