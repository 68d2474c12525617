"""The two files that a JVM obeys: security properties, and an argument file for the launcher (SPEC 7)."""

from __future__ import annotations

from pqcota_provision.plan.model import RemediationAction, RemediationKind
from pqcota_provision.playbook.algorithms import hybrid_group
from pqcota_provision.playbook.fragments.comments import comment_block
from pqcota_provision.playbook.paths import module_of, provider_of
from pqcota_provision.text import quote

BOUNCY_CASTLE = "org.bouncycastle.jce.provider.BouncyCastleProvider"
BOUNCY_CASTLE_FIPS = "org.bouncycastle.jcajce.provider.BouncyCastleFipsProvider"
BOUNCY_CASTLE_OLD_PQC = "org.bouncycastle.pqc.jcajce.provider.BouncyCastlePQCProvider"

_CLASSES = {"BC": BOUNCY_CASTLE, "BCFIPS": BOUNCY_CASTLE_FIPS, "BC-FJA": BOUNCY_CASTLE_FIPS}

# The JVM's own default list, so that naming a hybrid group takes no classical one away.
_CLASSICAL_GROUPS = "x25519,secp256r1,secp384r1,secp521r1,x448,ffdhe2048,ffdhe3072,ffdhe4096,ffdhe6144,ffdhe8192"

PROVIDER_SLOT = 2


def known_provider_class(action: RemediationAction) -> str:
    """Return the provider's class, from the plan or by its well-known name, or an empty string."""
    return action.provider_class or _CLASSES.get(provider_of(action), "")


def jca_fragment(action: RemediationAction) -> str:
    """Return the security properties of a CONFIG_ONLY or PROVIDER_INJECT action on JCA.

    Without a known class the registration line holds a placeholder in angle brackets, never a guess.
    """
    if action.kind == RemediationKind.PROVIDER_INJECT:
        provider_class = known_provider_class(action)
        value = provider_class or f"<class name of provider {provider_of(action)}: see its documentation>"
        return (
            comment_block(_inject_explanation(action, provider_class))
            + f"\nsecurity.provider.{PROVIDER_SLOT}={value}\n"
        )
    return comment_block(_config_only_explanation(action))


def jvm_options(action: RemediationAction) -> tuple[str, ...]:
    """Return the options of the argument file that do not depend on where the fragment is placed."""
    options = []
    group = hybrid_group(action.target_algorithm)
    if group:
        options.append(f"-Djdk.tls.namedGroups={group},{_CLASSICAL_GROUPS}")
    if action.kind == RemediationKind.PROVIDER_INJECT:
        options.append(f"-Xbootclasspath/a:{module_of(action).path}")
    return tuple(options)


def jvm_arguments(fragment_path: str, arguments_path: str, options: tuple[str, ...]) -> str:
    """Return the JVM argument file: the security properties' path, then the options, one a line."""
    header = comment_block(
        [
            "JVM options, one a line, made by pqcota-provision. A JVM of version 9 or later takes them with",
            f"JDK_JAVA_OPTIONS=@{arguments_path} in its environment, or with @{arguments_path} as an argument",
            "of java. JDK 8 has no argument files: put the options below on its command line.",
            "TLS groups are a system property; a JVM never reads them from a security properties file.",
            "Undone by taking that setting away and removing this file; the rollback playbook removes the file.",
        ]
    )
    return header + "\n" + "\n".join((f"-Djava.security.properties={fragment_path}", *options)) + "\n"


def _made_from(action: RemediationAction, kind: str) -> str:
    target = quote(action.target_algorithm) if action.target_algorithm else "not set"
    return f"Made by pqcota-provision from a {kind} action; target algorithm: {target}."


def _config_only_explanation(action: RemediationAction) -> list[str]:
    return [
        "Security properties for a JVM whose own providers suffice: nothing is registered here.",
        _made_from(action, "CONFIG_ONLY"),
        "TLS groups are set in the JVM argument file beside this one, the only place where a JVM obeys them.",
        "Undone by removing both files; the rollback playbook removes them.",
    ]


def _inject_explanation(action: RemediationAction, provider_class: str) -> list[str]:
    provider = provider_of(action)
    lines = [
        f"Security properties that register the JCA provider {provider}.",
        _made_from(action, "PROVIDER_INJECT"),
    ]
    if not provider_class:
        lines.append("The class of this provider is not known here: set providerClass in the plan before use.")
    elif provider_class == BOUNCY_CASTLE and not action.provider_class:
        lines += [
            "This class assumes BouncyCastle 1.80 or later. Older releases keep their post-quantum algorithms in",
            f"{BOUNCY_CASTLE_OLD_PQC}.",
        ]
    lines += [
        f"Slot {PROVIDER_SLOT} is taken over, not inserted: whatever was provider {PROVIDER_SLOT} drops off the list,",
        "on a stock JDK that is SunRsaSign. TLS with RSA certificates then fails unless this provider brings RSA;",
        "to keep SunRsaSign, list it again under the first free number, 13 on a stock JDK 9 or later for Linux.",
        "A JVM reads no number after a gap.",
    ]
    if provider_class == BOUNCY_CASTLE:
        lines += [
            f"In slot {PROVIDER_SLOT} BouncyCastle is asked before SunEC and SunJCE. With releases 1.72 and 1.80 JSSE",
            "then fails on x25519, and key stores made by keytool do not open. A configArtifact that registers it",
            "under the first free number instead has neither effect; try TLS before a service relies on this file.",
        ]
    return [
        *lines,
        "A staged JAR is not loaded by itself: the JVM argument file puts it on the boot class path.",
        "Undone by removing both files; the rollback playbook removes them.",
    ]
