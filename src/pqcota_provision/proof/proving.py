"""The pass: look before, let the change happen, then mint on what it left live.

What cannot be read or written never stops the change itself; it is said, and nothing is minted on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pqcota_provision.errors import PqcotaError, ProofAlreadyThere, ProofStoreUnavailable
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.census import Census
from pqcota_provision.proof.configuration import DEFAULT_AFTER_SECONDS, ProofPolicy, Proving, Service
from pqcota_provision.proof.look import Evidence, Look, is_still_live, look_at
from pqcota_provision.proof.node import Node
from pqcota_provision.proof.state import HealthyBuild, NodeState, Refusal
from pqcota_provision.proof.statement import Proof, dump_proof, sign_proof, whole_seconds
from pqcota_provision.proof.store import ProofStore, StoredProof
from pqcota_provision.proof.verification import judge
from pqcota_provision.text import quote

LIVE = "live"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the first step found: the policy, or None if it cannot be read, and a look at each service.

    ``usable`` is false where the state directory or the service registry was not, so that nothing was looked at.
    """

    policy: ProofPolicy | None
    looks: Mapping[Service, Look] = field(default_factory=dict)
    usable: bool = True


@dataclass(frozen=True, kw_only=True)
class ProvingPass:
    """One pass over a node.

    Everything it depends on is handed in: ``read_services`` and ``read_policy`` (each may raise a PqcotaError),
    ``take_census`` for the time it is given, ``read_key`` for the policy's key file, ``probe`` for ready probes,
    and ``say``, which receives one sentence at a time. ``hourly`` marks the run that a timer starts.
    """

    node: Node
    state: NodeState
    store: ProofStore
    read_services: Callable[[], Sequence[Service]]
    read_policy: Callable[[], ProofPolicy]
    take_census: Callable[[str], Census]
    read_key: Callable[[str], PrivateKey]
    probe: Callable[[str], str | None]
    platform: str
    say: Callable[[str], None]
    hourly: bool = False

    def around(self, change: Callable[[], int]) -> int:
        """Record, make the change, then mint and log, whether it failed or not; return the change's own status."""
        recorded = self.record()
        try:
            return change()
        finally:
            self.mint_and_log(recorded)

    def alone(self) -> bool:
        """Record, mint and log with no change between; return False if nothing could be looked at."""
        recorded = self.record()
        self.mint_and_log(recorded)
        return recorded.usable

    def record(self) -> Recorded:
        """Read the policy, look at every service, and keep each healthy build.

        This comes before the change, which may replace the build that has been running well: a later rollback
        must find it in the history.
        """
        policy: ProofPolicy | None = None
        try:
            policy = self.read_policy()
        except PqcotaError as error:
            self.say(f"nothing is minted until the proof policy can be read: {error}.")
        if not self._prepare_state():
            return Recorded(policy, usable=False)
        services = self._services()
        after = _after(policy)
        looks = {service: self._look_and_record(service, after) for service in services or ()}
        return Recorded(policy, looks, usable=services is not None)

    def mint_and_log(self, recorded: Recorded) -> None:
        """Look again at what the change touched, mint where this node proves, and leave or report markers."""
        # What stood in the way of the first step has been said.
        if not self._prepare_state(quiet=not recorded.usable):
            return
        policy = recorded.policy
        services = self._services(quiet=not recorded.usable)
        looks = [self._look_after(service, recorded) for service in services or ()]
        self._say_obstacles(looks, policy)
        census, census_problem = self._new_census()
        if policy is None:
            return
        if policy.prove:
            if services is not None:
                self._say_unknown_apps(policy.prove, services)
            if census is None:
                self.say(f"minting is paused until this node has a census: {census_problem}.")
            else:
                self._mint_all([look for look in looks if policy.proves(look.service.app)], policy.prove, census)
        for requirement in policy.require:
            self._mark_required(requirement.app)
        if self.hourly:
            self._say_what_is_off(policy)

    def _prepare_state(self, *, quiet: bool = False) -> bool:
        try:
            self.state.prepare(now=self._present())
        except PqcotaError as error:
            if not quiet:
                self.say(f"nothing is recorded and nothing minted: {error}.")
            return False
        return True

    def _services(self, *, quiet: bool = False) -> tuple[Service, ...] | None:
        try:
            return tuple(self.read_services())
        except PqcotaError as error:
            if not quiet:
                self.say(f"no service is looked at: {error}.")
            return None

    def _look_after(self, service: Service, recorded: Recorded) -> Look:
        look = recorded.looks.get(service)
        if look is not None and look.live is not None and is_still_live(look.live, self.node):
            return look
        return self._look_and_record(service, _after(recorded.policy))

    def _look_and_record(self, service: Service, after: int) -> Look:
        look = look_at(service, after, self.node, self.probe)
        if look.evidence is None:
            return look
        now = whole_seconds(self._present())
        build = HealthyBuild(
            service.app, service.provider, look.evidence.sha256, service.version, LIVE, at=now, last_at=now
        )
        try:
            is_new = self.state.record_healthy(build)
        except PqcotaError as error:
            return Look(service, look.live, obstacle=f"it could not be recorded as healthy: {error}")
        if is_new:
            since = whole_seconds(look.evidence.running_since)
            self.say(f"{service.app}: {_named(look.evidence, service)}, live since {since}, is recorded as healthy.")
        return look

    def _say_obstacles(self, looks: Iterable[Look], policy: ProofPolicy | None) -> None:
        for look in looks:
            if look.evidence is not None:
                continue
            if policy is not None and policy.proves(look.service.app):
                self.say(f"{look.service.app}: not minting yet: {look.obstacle}.")
            elif not self.hourly:
                self.say(f"{look.service.app}: not healthy yet: {look.obstacle}.")

    def _say_unknown_apps(self, proving: Proving, services: Iterable[Service]) -> None:
        known = {service.app for service in services}
        for app in proving.apps:
            if app not in known:
                self.say(f"{app}: not minting: the policy proves it, but the registry has no such service.")

    def _new_census(self) -> tuple[Census | None, str]:
        try:
            census = self.take_census(whole_seconds(self._present()))
            self.state.keep_census(census)
        except PqcotaError as error:
            return None, str(error)
        return census, ""

    def _mint_all(self, looks: Iterable[Look], proving: Proving, census: Census) -> None:
        try:
            refusals = self.state.refusals()
            key = self.read_key(proving.key_file)
        except PqcotaError as error:
            self.say(f"nothing is minted: {error}.")
            return
        for look in looks:
            service, evidence = look.service, look.evidence
            if evidence is None:
                continue
            try:
                objection = _refused(evidence, refusals) or census.objection_to(evidence.sha256)
                outcome = (
                    f"not minting {_named(evidence, service)}: {objection}"
                    if objection
                    else self._mint(service, evidence, proving, key)
                )
            except PqcotaError as error:
                outcome = f"not minting {_named(evidence, service)}: {error}"
            if outcome:
                self.say(f"{service.app}: {outcome}.")

    def _mint(self, service: Service, evidence: Evidence, proving: Proving, key: PrivateKey) -> str:
        """Return what happened, as a clause, or nothing where this prover's proof is there already."""
        build = _named(evidence, service)
        place = (service.app, evidence.sha256, proving.prover)
        there = self.store.get(*place)
        if there is not None:
            flaw = judge(StoredProof(*place, place="", data=there), {proving.prover: key.public}).flaw
            return flaw and f"not minting {build}: what lies in the store in its place {flaw}"
        since = whole_seconds(evidence.running_since)
        proof = Proof(
            app=service.app,
            provider=service.provider,
            platform=self.platform,
            sha256=evidence.sha256,
            version=service.version,
            prover=proving.prover,
            active_since=since,
            proven_at=whole_seconds(self._present()),
        )
        try:
            self.store.put(*place, dump_proof(sign_proof(key, proof)))
        except (ProofAlreadyThere, ProofStoreUnavailable):
            if self.store.get(*place) is None:
                raise
            return f"{build} was already minted by another pass"
        return f"minted a proof of {build} as {quote(proving.prover)}, live since {since}"

    def _mark_required(self, app: str) -> None:
        try:
            self.state.mark_required(app)
        except PqcotaError as error:
            self.say(f"{app}: the marker that a proof was required cannot be left: {error}.")

    def _say_what_is_off(self, policy: ProofPolicy) -> None:
        try:
            for app in self.state.required_apps():
                if not policy.requires(app) and (builds := len(self.state.healthy_builds(app))):
                    history = f"{builds} healthy build{'' if builds == 1 else 's'} on record"
                    self.say(
                        f"{app}: the requirement is off: this node once required a proof and no longer does; {history}."
                    )
        except PqcotaError as error:
            self.say(f"whether a requirement was switched off cannot be told: {error}.")

    def _present(self) -> Timestamp:
        return Timestamp.from_nanoseconds(self.node.now().wall)


def _after(policy: ProofPolicy | None) -> int:
    return policy.after if policy else DEFAULT_AFTER_SECONDS


def _named(evidence: Evidence, service: Service) -> str:
    version = f" {service.version}" if service.version else ""
    return f"{service.provider}{version} (sha256 {evidence.sha256})"


def _refused(evidence: Evidence, refusals: Iterable[Refusal]) -> str:
    for refusal in refusals:
        if refusal.sha256 == evidence.sha256:
            return f"this node refused it on {refusal.at} for {refusal.app}: {quote(refusal.reason)}"
    return ""
