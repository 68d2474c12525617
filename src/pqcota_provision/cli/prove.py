"""pqcota-prove: watch what a node really runs, and prove what has run well."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from pqcota_provision.cli import common
from pqcota_provision.cli.organization import organization, organization_help
from pqcota_provision.errors import NotPermitted, ProofMalformed, UsageProblem
from pqcota_provision.plan.names import refuse_file_name
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.playbook.paths import CONFIG_DIRECTORY, STAGING_DIRECTORY
from pqcota_provision.proof.state import HealthyBuild, NodeState, Refusal
from pqcota_provision.proof.statement import Proof, load_proof, platform_name, refuse_sha256, whole_seconds
from pqcota_provision.proof.store import DirectoryProofStore, StoredProof
from pqcota_provision.text import printable, quote

if TYPE_CHECKING:
    from pqcota_provision.proof.node import Moment
    from pqcota_provision.proof.proving import ProvingPass

COMMAND = "pqcota-prove"

STATE_DIRECTORY = "/var/lib/pqcota"
SERVICES_FILE = f"{CONFIG_DIRECTORY}/services.yml"
POLICY_FILE = f"{CONFIG_DIRECTORY}/proof.yml"

NOT_EXECUTABLE = 126
NOT_FOUND = 127
KILLED = 128

_MAX_REASON = 500
_FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

_VARIABLES = organization_help("history and proofs")
_RUN_EPILOG = common.epilog(
    _VARIABLES,
    {
        common.DONE: "done; with COMMAND: COMMAND ended in 0",
        common.REFUSED: "not root, or without COMMAND nothing could be looked at; with COMMAND also its own status",
        common.USAGE: "wrong usage; with COMMAND also its own status",
        NOT_EXECUTABLE: "COMMAND cannot be executed",
        NOT_FOUND: "COMMAND is not there",
        KILLED: "plus N: signal N ended COMMAND",
    },
)
_EPILOG = common.epilog(_VARIABLES, {common.DONE: "done", common.REFUSED: "failed", common.USAGE: "wrong usage"})

_STATE_OPTION = click.option(
    "--state-dir",
    metavar="DIR",
    default=STATE_DIRECTORY,
    show_default=True,
    help="Where this node keeps history, refusals, census and markers.",
)
_PROOFS_OPTION = click.option(
    "--proofs", metavar="DIR", help="The proof store.  [default: proofs in the state directory]"
)


@click.group(COMMAND, epilog=_EPILOG, no_args_is_help=False)
@common.version_option(COMMAND)
def command() -> None:
    """Watch which provider modules the services of this node really run, and prove those that ran well."""


@command.command("run", epilog=_RUN_EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("--hourly", is_flag=True, help="The run of a timer: say also which requirements are off.")
@click.option("--services", metavar="FILE", default=SERVICES_FILE, show_default=True, help="The service registry.")
@click.option(
    "--policy", metavar="FILE", default=POLICY_FILE, show_default=True, help="The proof policy; it may be absent."
)
@_STATE_OPTION
@_PROOFS_OPTION
@click.option(
    "--staging-dir", metavar="DIR", default=STAGING_DIRECTORY, show_default=True, help="Where the modules are staged."
)
@click.argument("change", metavar="[-- COMMAND ...]", nargs=-1, type=click.UNPROCESSED)
def run_command(
    *,
    hourly: bool,
    services: str,
    policy: str,
    state_dir: str,
    proofs: str | None,
    staging_dir: str,
    change: tuple[str, ...],
) -> int:
    """Record the healthy builds, run COMMAND, then mint proofs. Needs root.

    COMMAND is what changes this node, as a rule an ansible run; its exit status is the result. Without it,
    builds are recorded and proofs minted. Everything that happens is said on standard error.
    """
    if os.geteuid() != 0:
        raise NotPermitted(f"{COMMAND} run reads the memory maps of other users' processes, which only root may")
    proving = _proving_pass(
        services=Path(services),
        policy=Path(policy),
        staging=_folder("--staging-dir", staging_dir),
        state=_state(state_dir),
        store=_store(proofs, state_dir),
        hourly=hourly,
    )
    if change:
        return proving.around(lambda: _run_change(change))
    return common.DONE if proving.alone() else common.REFUSED


@command.command("refuse", epilog=_EPILOG)
@click.option("--app", metavar="APP", required=True, help="The app that ran the build.")
@click.option("--sha256", metavar="HASH", required=True, help="The SHA-256 of the module, 64 hexadecimal digits.")
@click.option("--reason", metavar="TEXT", required=True, help="Why, in one line.")
@_STATE_OPTION
def refuse_command(*, app: str, sha256: str, reason: str, state_dir: str) -> int:
    """Refuse a build, so that this node never proves it."""
    if problem := refuse_file_name(app):
        raise UsageProblem(f"the app {quote(app)} {problem}")
    if problem := refuse_sha256(sha256):
        raise UsageProblem(f"the hash {quote(sha256)} {problem}")
    reason = reason.strip()
    if not reason or len(reason) > _MAX_REASON or not reason.isprintable():
        raise UsageProblem(f"the reason is no line of 1 to {_MAX_REASON} visible characters")
    state, now = _state(state_dir), Timestamp.from_nanoseconds(time.time_ns())
    state.prepare(now=now)
    state.refuse(Refusal(app, sha256, reason, whole_seconds(now)))
    common.say(
        COMMAND,
        f"{app}: this node refuses {sha256} and will not prove it. A proof of it that exists already goes on "
        "holding; remove it from the store to withdraw it.",
    )
    return common.DONE


@command.command("list", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@_STATE_OPTION
@_PROOFS_OPTION
def list_command(*, as_json: bool, state_dir: str, proofs: str | None) -> int:
    """List this node's healthy history, proofs, refusals and markers."""
    state, store = _state(state_dir), _store(proofs, state_dir)
    builds, refusals, required = state.healthy_builds(), state.refusals(), state.required_apps()
    stored = tuple(_readable(entry) for entry in store.entries()) if store.exists() else ()
    if as_json:
        document = {
            "healthy": [build.document() for build in builds],
            "proofs": [proof.document() for proof in stored if isinstance(proof, Proof)],
            "noProofs": [problem for problem in stored if isinstance(problem, str)],
            "refusals": [refusal.document() for refusal in refusals],
            "required": list(required),
        }
        common.write_output([json.dumps(document, ensure_ascii=False, indent=2), "\n"])
        return common.DONE
    common.write_output(
        _sections(
            {
                "Healthy history": (
                    f"{_build(build)}  {build.how}, first {build.at}, last {build.last_at}" for build in builds
                ),
                "Proofs": (_proof_line(proof) for proof in stored),
                "Refusals": (
                    f"{refusal.app}  sha256 {refusal.sha256}  {refusal.at}  {refusal.reason}" for refusal in refusals
                ),
                "Apps that once required a proof": required,
            }
        )
    )
    return common.DONE


def _readable(stored: StoredProof) -> Proof | str:
    """Return the proof in an entry of the store, or what is wrong with it."""
    try:
        return load_proof(stored.data)
    except ProofMalformed as error:
        return f"{stored.place} is no proof: {error}"


def _proof_line(proof: Proof | str) -> str:
    if isinstance(proof, str):
        return proof
    return (
        f"{_build(proof)}  by {proof.prover} on {proof.platform}, "
        f"active since {proof.active_since}, proven at {proof.proven_at}"
    )


def _build(about: HealthyBuild | Proof) -> str:
    name = f"{about.provider} {about.version}".rstrip()
    return f"{about.app}  {name}  sha256 {about.sha256}"


def _sections(sections: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for title, lines in sections.items():
        shown = [f"  {printable(line)}\n" for line in lines]
        yield from (f"{title}:\n", *(shown or ["  none\n"]))


def _proving_pass(
    *, services: Path, policy: Path, staging: Path, state: NodeState, store: DirectoryProofStore, hourly: bool
) -> ProvingPass:
    from pqcota_provision.proof import configuration
    from pqcota_provision.proof.census import take_census
    from pqcota_provision.proof.node import LinuxNode
    from pqcota_provision.proof.probes import probe
    from pqcota_provision.proof.proving import ProvingPass
    from pqcota_provision.proof.provingkey import read_proving_key

    system = os.uname()
    return ProvingPass(
        node=LinuxNode(clock=_present),
        state=state,
        store=store,
        read_services=lambda: configuration.read_services(services, staging_directory=str(staging)),
        read_policy=lambda: configuration.read_policy(policy),
        take_census=lambda taken_at: take_census(staging, taken_at=taken_at),
        read_key=lambda path: read_proving_key(Path(path)),
        probe=probe,
        platform=platform_name(system.sysname, system.machine),
        say=lambda sentence: common.say(COMMAND, sentence),
        hourly=hourly,
    )


def _present() -> Moment:
    from pqcota_provision.proof.node import Moment

    return Moment(
        time.time_ns(), time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    )


def _state(directory: str) -> NodeState:
    return NodeState(_folder("--state-dir", directory), organization())


def _store(directory: str | None, state_directory: str) -> DirectoryProofStore:
    folder = _folder("--state-dir", state_directory) / "proofs" if directory is None else _folder("--proofs", directory)
    return DirectoryProofStore(folder, organization())


def _folder(option: str, path: str) -> Path:
    if not path:
        raise UsageProblem(f"{option} is empty", remedy="Name a directory, or leave it out.")
    return Path(os.path.abspath(path))


def _run_change(change: Sequence[str]) -> int:
    """Run the change and return its exit status, as a shell would give it."""
    with _signals_go_to_the_change() as processes:
        try:
            process = subprocess.Popen(change)  # noqa: S603 - running it is what the command is asked for
        except OSError as error:
            common.say(COMMAND, f"{quote(change[0])} cannot be run: {error.strerror or type(error).__name__}.")
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        except ValueError:
            common.say(COMMAND, f"{quote(change[0])} cannot be run: an argument holds a NUL character.")
            return NOT_EXECUTABLE
        processes.append(process)
        status = process.wait()
    if status < 0:
        common.say(COMMAND, f"{quote(change[0])} was ended by signal {-status}.")
        return KILLED - status
    return status


@contextlib.contextmanager
def _signals_go_to_the_change() -> Iterator[list[subprocess.Popen[bytes]]]:
    """While the change runs, a signal is for it: what comes after the change has to happen in any case."""
    processes: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: FrameType | None) -> None:
        for process in processes:
            process.send_signal(number)

    def leave_to_terminal(_number: int, _frame: FrameType | None) -> None:
        """A terminal sends an interrupt to the change as well; it only must not end this process."""

    handlers = {number: signal.signal(number, forward) for number in _FORWARDED_SIGNALS}
    handlers[signal.SIGINT] = signal.signal(signal.SIGINT, leave_to_terminal)
    try:
        yield processes
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return common.run(command, argv)
