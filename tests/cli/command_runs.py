"""Plans for whole commands, and the two ways to run one: in this process, and as the script a user runs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple
from unittest import mock

import pytest

from available import needs, skip_or_fail
from pqcota_provision.plan.approvals import approve
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.protojson import dump_message, load_plan
from pqcota_provision.plan.timestamp import Timestamp

FINALIZED_AT = Timestamp.parse("2026-01-02T03:04:05.678901234Z")
ALICE = PrivateKey(bytes(range(32)))
BOB = PrivateKey(bytes(range(1, 33)))
MALLORY = PrivateKey(bytes(range(2, 34)))
ALICE_REGISTERED = f"alice={ALICE.public.to_text()}"
BOTH_REGISTERED = f"{ALICE_REGISTERED},bob={BOB.public.to_text()}"

SCRIPTS = ("pqcota-keygen", "pqcota-approve", "pqcota-provision")

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2

Document = dict[str, Any]


def action(**fields: object) -> Document:
    """Return an action that leaves nothing out, with some fields changed; None leaves a field out."""
    complete = {
        "id": "a1",
        "targetNodeId": "node-1.example.net",
        "findingId": "f-1",
        "cryptoRuntime": "CRYPTO_RUNTIME_OPENSSL",
        "kind": "REMEDIATION_KIND_PROVIDER_INJECT",
        "automationLevel": "DEPLOY_AUTOMATION_LEVEL_L2_STAGE_INSTALL",
        "targetAlgorithm": "ML-KEM",
        "providerChoice": "oqsprovider",
        "evidenceSources": [
            {"findingId": "f-1", "snapshot": {"sourceNodeId": "node-1.example.net", "snapshotId": "snap-1"}}
        ],
    }
    return _set(complete, fields)


def in_review(*actions: Document, **fields: object) -> Document:
    """Return a plan that waits for its first approval and leaves nothing out, with some fields changed."""
    complete = {
        "id": "plan-1",
        "status": "PLAN_STATUS_IN_REVIEW",
        "scope": "production",
        "actions": list(actions) or [action()],
        "rulesetVersion": "rules/1",
    }
    return _set(complete, fields)


def _set(complete: Document, fields: Mapping[str, object]) -> Document:
    return {key: value for key, value in {**complete, **fields}.items() if value is not None}


def text_of(document: Document) -> bytes:
    """Return a plan as the bytes of a file."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8")


def signed(document: Document | None = None, **keys: PrivateKey) -> bytes:
    """Return the plan approved at a fixed time by each approver named with a key; by alice where none is."""
    plan = load_plan(text_of(document or in_review()))
    for approver, key in (keys or {"alice": ALICE}).items():
        plan = approve(plan, approver, key, now=FINALIZED_AT)
    return dump_message(plan).encode("utf-8")


def altered(plan: bytes, **fields: object) -> bytes:
    """Return a plan's text with some fields changed behind its signatures; None takes one away."""
    return text_of(_set(json.loads(plan), fields))


class Ran(NamedTuple):
    """What a command left: its exit status, what it wrote to standard output and to standard error."""

    status: int
    out: bytes
    err: str

    @property
    def messages(self) -> list[str]:
        """The lines of standard error."""
        return self.err.splitlines()


def run(main: Callable[[list[str]], int], *arguments: str | Path, stdin: bytes = b"") -> Ran:
    """Run a command in this process on streams of its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.object(sys, "stdin", given):
        status = main([str(argument) for argument in arguments])
    written, said = (stream.detach().getvalue() for stream in (out, err))
    return Ran(status, written, said.decode("utf-8"))


def script(name: str) -> str:
    """Return the path of a console script, or skip the test."""
    return needs(name)


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without what would change how a command behaves, with these added."""
    kept = {name: value for name, value in os.environ.items() if "PQCOTA" not in name and name != "PYTHONUNBUFFERED"}
    return {**kept, **variables}


def run_script(
    name: str,
    *arguments: str | bytes | Path,
    stdin: bytes | IO[bytes] | int = b"",
    stdout: IO[bytes] | int = subprocess.PIPE,
    stderr: IO[bytes] | int = subprocess.PIPE,
    variables: Mapping[str, str] | None = None,
    **keywords: Any,
) -> Ran:
    """Run a console script in a process of its own."""
    given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    done = subprocess.run(
        [script(name), *arguments],
        stdout=stdout,
        stderr=stderr,
        env=environment(**(variables or {})),
        timeout=120,
        check=False,
        **given,
        **keywords,
    )
    return Ran(done.returncode, done.stdout or b"", (done.stderr or b"").decode("utf-8"))


def obey_file_modes() -> None:
    """Make this process heed the modes of files, root or not; for the child that a test is about to start."""
    if os.geteuid() != 0:
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "root's right to pass over file modes cannot be dropped")


def require_file_modes_to_count(directory: Path) -> None:
    """Skip the test where a process stays free to read and write what its mode forbids."""
    probe = directory / "forbidden"
    probe.touch(mode=0)
    try:
        done = subprocess.run(["cat", probe], preexec_fn=obey_file_modes, capture_output=True, check=False)
    except subprocess.SubprocessError:
        skip_or_fail("root's right to pass over file modes cannot be dropped here")
    probe.unlink()
    if done.returncode == 0:
        skip_or_fail("file modes do not bind a process here")


def assert_refused(ran: Ran, status: int = 1) -> str:
    """Check that a command refused: this status, nothing on standard output, and no traceback; return what it said."""
    if ran.status != status or ran.out or "Traceback" in ran.err or not ran.err.strip():
        pytest.fail(f"no refusal with status {status} and a reason: {ran}")
    return ran.err
