"""A node with one JVM, which is asked what it is made of under a given way of starting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from node_view import NodeView
from pqcota_provision.plan.model import CryptoRuntime, FinalizedPlan, RemediationAction, RemediationKind
from pqcota_provision.playbook.layout import NodeLayout, lay_out
from pqcota_provision.playbook.levels import Level
from pqcota_provision.playbook.paths import jca_fragment_path, jvm_arguments_path
from tls_wire import ClientHello, client_hellos

FRAGMENT = jca_fragment_path()
ARGUMENTS = jvm_arguments_path()
PROVIDER = "acme-jce"
PROVIDER_CLASS = "com.acme.jce.AcmeProvider"
MODULE = f"/opt/pqcota/{PROVIDER}.jar"
LISTED_NAME = "AcmePQC"
RSA, EC = "rsa.p12", "ec.p12"

# Start-up is most of what a probe does, so the JVM need not prepare for a long life.
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class Program(Enum):
    """How the program is named on the command line."""

    CLASS_PATH = "java -cp CLASSES Probe"
    JAR = "java -jar probe.jar"


class Hint(Enum):
    """How a JVM is pointed at the argument file."""

    NONE = "not at all"
    ENVIRONMENT = "JDK_JAVA_OPTIONS=@FILE"
    ARGUMENT = "java @FILE"


@dataclass(frozen=True)
class Toolbox:
    """The programs and key stores that a probe uses, as files."""

    classes: Path
    jar: Path
    key_stores: Mapping[str, Path]


@dataclass(frozen=True)
class Finding:
    """What a JVM said about itself before it ended."""

    exit_status: int
    stderr: str
    providers: tuple[tuple[str, str], ...] = ()
    has_ml_kem: bool = False
    hellos: Mapping[str, ClientHello] = field(default_factory=dict)
    handshakes: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The providers' names in order."""
        return tuple(name for name, _ in self.providers)

    @property
    def groups(self) -> tuple[str, ...]:
        """The TLS groups that a client offers; the key in use makes no difference to them."""
        (groups,) = {hello.groups for hello in self.hellos.values()}
        return groups


@dataclass(frozen=True)
class JvmHost:
    """A node, its JVM, and what is needed to ask it."""

    node: NodeView
    java: str
    toolbox: Toolbox

    def place(self, layout: NodeLayout, modules: Mapping[str, bytes]) -> None:
        """Put a layout's files and modules where its playbook would."""
        self.node.place_files(layout)
        for module in layout.modules:
            if module.file_name in modules:
                self.node.place(module.path, modules[module.file_name])

    def ask(
        self,
        *options: str,
        hint: Hint = Hint.NONE,
        arguments: str = ARGUMENTS,
        program: Program = Program.CLASS_PATH,
        on_class_path: str = "",
        key_stores: Sequence[str] = (RSA, EC),
        environment: Mapping[str, str] | None = None,
    ) -> Finding:
        """Start the probe and return what it found; without key stores it leaves TLS alone."""
        pointer = (f"@{arguments}",) if hint is Hint.ARGUMENT else ()
        variables = {"JDK_JAVA_OPTIONS": f"@{arguments}"} if hint is Hint.ENVIRONMENT else {}
        target = ["-jar", str(self.toolbox.jar)]
        if program is Program.CLASS_PATH:
            target = ["-cp", f"{self.toolbox.classes}:{on_class_path}", "Probe"]
        stores = [str(self.toolbox.key_stores[name]) for name in key_stores]
        result = self.node.run(
            [self.java, *_SHORT_LIVED, *pointer, *options, *target, *stores],
            environment={**variables, **(environment or {})},
        )
        return _finding(result.returncode, result.stdout, result.stderr)


def _finding(exit_status: int, stdout: str, stderr: str) -> Finding:
    facts: dict[str, dict[str, str]] = {}
    for line in stdout.splitlines():
        kind, name, detail = f"{line}  ".split(" ", 2)
        facts.setdefault(kind, {})[name] = detail.strip()
    return Finding(
        exit_status,
        stderr,
        tuple(facts.get("provider", {}).items()),
        "true" in facts.get("ml-kem", {}),
        {name: client_hellos(bytes.fromhex(message))[0] for name, message in facts.get("hello", {}).items()},
        facts.get("handshake", {}),
        facts.get("failure", {}),
    )


def jca_action(
    kind: RemediationKind = RemediationKind.PROVIDER_INJECT,
    target: str = "ML-KEM",
    *,
    action_id: str = "a-1",
    provider: str = PROVIDER,
    provider_class: str = PROVIDER_CLASS,
    artifact: str = "",
) -> RemediationAction:
    """Return an action on the node ``node-a``; unless told otherwise it injects this test's provider."""
    return RemediationAction(
        id=action_id,
        target_node_id="node-a",
        crypto_runtime=CryptoRuntime.JCA,
        kind=kind,
        target_algorithm=target,
        provider_choice=provider,
        provider_class=provider_class,
        config_artifact=artifact,
    )


def layout_of(*actions: RemediationAction) -> NodeLayout:
    """Return what a plan of these actions places on their one node."""
    (layout,) = lay_out(FinalizedPlan(actions=actions), Level.L2)
    return layout
