"""What a hand-written config_artifact would really do: nothing, or harm (SPEC 11.10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pqcota_provision.plan.model import CryptoRuntime, RemediationAction, RemediationKind
from pqcota_provision.playbook.fragments.openssl_config import DEFAULT_SECTION, OpenSslConfig, read_openssl_config
from pqcota_provision.text import quote

_PROVIDER_SECTION = "provider_sect"
_BUILT_IN_PROVIDERS = frozenset(("base", "legacy", "null", "fips"))
# OpenSSL 3.0 takes any value for yes; later versions refuse every other spelling.
_TRUE_WORDS = frozenset(("1", "yes", "YES", "true", "TRUE", "on", "ON"))
# Those that TLS 1.3 knows: with secp256k1 or brainpoolP256r1 alone no client gets as far as its first message.
_CLASSICAL_GROUP = re.compile(r"x25519|x448|secp(256|384|521)r1|ffdhe\d+|brainpoolp\d+r1tls13|default")
_SYNONYMS = {"prime256v1": "secp256r1", "p-256": "secp256r1", "p-384": "secp384r1", "p-521": "secp521r1"}
_GROUP_MARKS = "?*-"
# Since JDK 9 on Linux; others list up to one more.
_STOCK_PROVIDERS = 12
# A JVM counts up to the first number that is missing, so that one this long is never asked for.
_PROVIDER_KEY = re.compile(r"security\.provider\.([1-9]\d{0,8})", re.ASCII)
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


def _openssl_flaws(text: str, *, injects: bool) -> Iterator[ArtifactFlaw]:
    config = read_openssl_config(text)
    if config.error:
        yield ArtifactFlaw(
            False,
            f"is no OpenSSL config: {config.error}, so OpenSSL reads nothing of it nor of a file that includes it",
        )
        return
    init = config.get(DEFAULT_SECTION, "openssl_conf")
    if init == "" and not config.includes:
        yield ArtifactFlaw(False, "sets no openssl_conf before its first section, so OpenSSL reads nothing of it")
    elif init and not config.includes:
        if injects and not _reached_from_openssl_conf(config, "providers"):
            yield ArtifactFlaw(
                False, "reaches no provider section from openssl_conf, so the staged module is never loaded"
            )
        elif not config.sections.get(init):
            yield ArtifactFlaw(False, f"points openssl_conf at the section {quote(init)}, where nothing is set")
    for section in sorted(_reached_from_anywhere(config, "providers") | {_PROVIDER_SECTION} & config.sections.keys()):
        yield from _provider_flaws(config, section)
    yield from _tls_flaws(config)


def _reached_from_openssl_conf(config: OpenSslConfig, module: str) -> set[str]:
    """Return the sections that a config module, such as ``providers``, is set up from."""
    settings = config.sections.get(config.get(DEFAULT_SECTION, "openssl_conf") or "", {})
    # OpenSSL drops what stands after the last dot, and takes the beginning of a module's name for all of it.
    return {value for name, value in settings.items() if value and module.startswith(name.rpartition(".")[0] or name)}


def _reached_from_anywhere(config: OpenSslConfig, module: str) -> set[str]:
    """Return also what a file that includes this one may reach."""
    named = {value for settings in config.sections.values() if (value := settings.get(module))}
    return named | _reached_from_openssl_conf(config, module)


def _provider_flaws(config: OpenSslConfig, section: str) -> Iterator[ArtifactFlaw]:
    # OpenSSL drops what stands before the first dot of a provider's name.
    listed = {name.partition(".")[2] or name: target for name, target in config.sections.get(section, {}).items()}
    if not listed:
        yield ArtifactFlaw(False, f"lists no provider in {quote(section)}")
        return
    activation = config.get(listed.get("default", ""), "activate")
    if activation is not None and activation not in _TRUE_WORDS:
        yield ArtifactFlaw(
            True,
            f"lists providers in {quote(section)} without activating the default provider, "
            "which leaves the host with no cryptography, sshd included",
        )
    for name, target in listed.items():
        if name == "default" or not target:
            continue
        activation = config.get(target, "activate")
        if activation is not None and activation not in _TRUE_WORDS:
            yield ArtifactFlaw(
                False, f"does not activate the provider {quote(name)} with activate = 1, so OpenSSL does not load it"
            )
        module = config.get(target, "module")
        if name in _BUILT_IN_PROVIDERS or module is None:
            continue
        if not module:
            yield ArtifactFlaw(True, f"gives the provider {quote(name)} no module path")
        elif not module.startswith("/"):
            yield ArtifactFlaw(True, f"gives the provider {quote(name)} a module path that is not absolute")


def _tls_flaws(config: OpenSslConfig) -> Iterator[ArtifactFlaw]:
    for section in sorted(_reached_from_anywhere(config, "ssl_conf")):
        targets = config.sections.get(section, {})
        for name in targets.values() if targets else (section,):
            if name and not config.sections.get(name) and not config.includes:
                yield ArtifactFlaw(
                    True,
                    f"looks for TLS settings in {quote(name)}, where there are none, "
                    "which stops programs where config_diagnostics = 1 is set",
                )
    for section, settings in config.sections.items():
        for name, value in settings.items():
            # As OpenSSL does, to tell apart settings of one name.
            command = name.partition(".")[2] or name
            if command.lower() in ("groups", "curves") and value is not None and not _has_classical(value):
                yield ArtifactFlaw(
                    True,
                    f"has a {command} line in {quote(section)} without any classical group of TLS 1.3, "
                    "so classical peers are lost",
                )


def _has_classical(value: str) -> bool:
    groups: set[str] = set()
    for part in re.split("[:/]", value):
        name = part.strip().lstrip(_GROUP_MARKS)
        marks = part.strip()[: -len(name)] if name else ""
        group = _SYNONYMS.get(name.lower(), name.lower())
        if "-" in marks:
            groups.discard(group)
        else:
            groups.add(group)
    return any(_CLASSICAL_GROUP.fullmatch(group) for group in groups)


def _jca_flaws(text: str, *, injects: bool) -> Iterator[ArtifactFlaw]:
    keys = set(_property_keys(text))
    if "jdk.tls.namedGroups" in keys:
        yield ArtifactFlaw(
            False,
            "sets jdk.tls.namedGroups, which a JVM takes as a system property only and never from a security file",
        )
    numbers = {int(match.group(1)) for key in keys if (match := _PROVIDER_KEY.fullmatch(key))}
    if injects and not numbers:
        yield ArtifactFlaw(False, "has no security.provider line, so the staged JAR is never registered")
    reached = _STOCK_PROVIDERS + 1
    for number in sorted(numbers):
        if number > reached:
            yield ArtifactFlaw(
                False,
                f"registers provider {number} after a gap, where a JVM stops reading: a stock JDK lists "
                f"{_STOCK_PROVIDERS} providers, so the first free number is {_STOCK_PROVIDERS + 1}",
            )
            return
        reached += number == reached


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
