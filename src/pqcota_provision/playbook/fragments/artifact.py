"""What a hand-written config_artifact would really do: nothing, or harm (SPEC 11.10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pqcota_provision.plan.model import CryptoRuntime, RemediationAction, RemediationKind

_DEFAULT_SECTION = "default"
_PROVIDER_SECTION = "provider_sect"
_BUILT_IN_PROVIDERS = frozenset(("default", "base", "legacy", "null", "fips"))
_TRUE_WORDS = frozenset(("1", "yes", "true", "on"))
_CLASSICAL_GROUP = re.compile(
    r"(x25519|x448|prime256v1|secp(256|384|521)r1|secp256k1|p-(256|384|521)|ffdhe\d+|brainpoolp\d+[rt]1(tls13)?|default)",
    re.IGNORECASE,
)
_SECTION = re.compile(r"\[\s*([^\]]*?)\s*\]")
_PROPERTY = re.compile(r"(?:\\.|[^=:\s\\])+")


@dataclass(frozen=True, slots=True)
class ArtifactFlaw:
    """One flaw: ``harmful`` breaks the host, otherwise the text is inert; the reason is a sentence's start."""

    harmful: bool
    reason: str


def artifact_flaws(action: RemediationAction) -> Iterator[ArtifactFlaw]:
    """Yield what is wrong with an action's hand-written fragment, for OpenSSL and JCA."""
    injects = action.kind == RemediationKind.PROVIDER_INJECT
    if action.crypto_runtime == CryptoRuntime.OPENSSL:
        yield from _openssl_flaws(action.config_artifact, injects=injects)
    elif action.crypto_runtime == CryptoRuntime.JCA:
        yield from _jca_flaws(action.config_artifact, injects=injects)


@dataclass(slots=True)
class _Config:
    """An OpenSSL config as OpenSSL reads it: section name to its (key, value) pairs in order."""

    sections: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def get(self, section: str, key: str) -> str:
        return dict(self.sections.get(section, ())).get(key, "")


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for line in re.split(r"\r?\n", text):
        # A lone backslash at the end joins the next line, even to a comment.
        if line.endswith("\\") and not line.endswith("\\\\"):
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _parse_openssl(text: str) -> _Config:
    config = _Config()
    section = _DEFAULT_SECTION
    for line in _logical_lines(text):
        content = _without_comment(line).strip()
        if not content:
            continue
        if content.startswith("["):
            match = _SECTION.match(content)
            section = match.group(1) if match else section
            config.sections.setdefault(section, [])
            continue
        name, separator, value = content.partition("=")
        if not separator:
            continue
        name = name.strip()
        target = section
        if "::" in name:
            target, _, name = (part.strip() for part in name.partition("::"))
        config.sections.setdefault(target, []).append((name, _unquote(value.strip())))
    return config


def _without_comment(line: str) -> str:
    quoted = ""
    escaped = False
    for index, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quoted:
            quoted = "" if character == quoted else quoted
        elif character in "\"'`":
            quoted = character
        elif character == "#":
            return line[:index]
    return line


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'`" else value


def _openssl_flaws(text: str, *, injects: bool) -> Iterator[ArtifactFlaw]:
    config = _parse_openssl(text)
    init = config.get(_DEFAULT_SECTION, "openssl_conf")
    if not init:
        yield ArtifactFlaw(False, "sets no openssl_conf before its first section, so OpenSSL reads nothing of it")
    provider_sections = {
        value for pairs in config.sections.values() for key, value in pairs if key == "providers" and value
    }
    if _PROVIDER_SECTION in config.sections:
        provider_sections.add(_PROVIDER_SECTION)
    if init and injects and not config.get(init, "providers"):
        yield ArtifactFlaw(False, "reaches no provider section from openssl_conf, so the staged module is never loaded")
    for section in sorted(provider_sections):
        yield from _provider_flaws(config, section)
    for name, pairs in config.sections.items():
        for key, value in pairs:
            if key.lower() in ("groups", "curves") and not _has_classical(value):
                yield ArtifactFlaw(
                    True,
                    f"has a {key} line in [{name}] without any classical group, so classical peers are lost",
                )


def _provider_flaws(config: _Config, section: str) -> Iterator[ArtifactFlaw]:
    listed = dict(config.sections.get(section, ()))
    default = listed.get("default", "")
    if not default or config.get(default, "activate").lower() not in _TRUE_WORDS:
        yield ArtifactFlaw(
            True,
            f"lists providers in [{section}] without activating the default provider, "
            "which leaves the host with no cryptography, sshd included",
        )
    for name, target in listed.items():
        if name in _BUILT_IN_PROVIDERS or not target:
            continue
        module = config.get(target, "module")
        if not module:
            yield ArtifactFlaw(True, f"gives the provider {name} no module path")
        elif not module.startswith("/"):
            yield ArtifactFlaw(True, f"gives the provider {name} a module path that is not absolute")


def _has_classical(value: str) -> bool:
    names = (name.lstrip("?*-") for name in re.split(r"[:/]", value.replace(" ", "")))
    return any(_CLASSICAL_GROUP.fullmatch(name) for name in names)


def _jca_flaws(text: str, *, injects: bool) -> Iterator[ArtifactFlaw]:
    keys = set(_property_keys(text))
    if "jdk.tls.namedGroups" in keys:
        yield ArtifactFlaw(
            False,
            "sets jdk.tls.namedGroups, which a JVM takes as a system property only and never from a security file",
        )
    if injects and not any(key.startswith("security.provider.") for key in keys):
        yield ArtifactFlaw(False, "has no security.provider line, so the staged JAR is never registered")


def _property_keys(text: str) -> Iterator[str]:
    continued = False
    for line in re.split(r"\r\n|\r|\n", text):
        content = line.lstrip(" \t\f")
        starts_entry = not continued
        if starts_entry and (not content or content[0] in "#!"):
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        match = _PROPERTY.match(content)
        if starts_entry and match:
            yield match.group().replace("\\", "")
