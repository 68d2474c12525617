"""The OpenSSL fragment (SPEC 7)."""

from __future__ import annotations

from pqcota_provision.plan.model import RemediationAction, RemediationKind
from pqcota_provision.playbook.algorithms import hybrid_group
from pqcota_provision.playbook.fragments.comments import comment_block
from pqcota_provision.playbook.paths import Module, module_of
from pqcota_provision.text import quote

# Every classical group stays: a peer that speaks only P-256 must still be reached.
_CLASSICAL_AFTER_X25519 = "secp256r1:x448:secp384r1:secp521r1"

# OpenSSL 3 has no SSL 2 to switch off. The prefix, which OpenSSL drops, keeps a Protocol line of the host apart.
_NO_CHANGE = "pqcota.Protocol = -SSLv2"


def openssl_fragment(action: RemediationAction) -> str:
    """Return the generated fragment of a CONFIG_ONLY or PROVIDER_INJECT action on OpenSSL."""
    injects = action.kind == RemediationKind.PROVIDER_INJECT
    module = module_of(action)
    header = comment_block(_explanation(action, module if injects else None))
    groups = _groups_line(action, injects=injects)
    init = ["[openssl_init]", "ssl_conf = ssl_sect"]
    providers: list[str] = []
    if injects:
        init.insert(1, "providers = provider_sect")
        section = f"{module.provider}_sect"
        providers = [
            "[provider_sect]",
            "default = default_sect",
            f"{module.provider} = {section}",
            "",
            "[default_sect]",
            "activate = 1",
            "",
            f"[{section}]",
            "activate = 1",
            f"module = {module.path}",
            "",
        ]
    lines = [
        "[default]",
        "openssl_conf = openssl_init",
        "",
        *init,
        "",
        *providers,
        "[ssl_sect]",
        "system_default = system_default_sect",
        "",
        "[system_default_sect]",
        groups,
        "",
        "[default]",
    ]
    return header + "\n" + "\n".join(lines) + "\n"


def _groups_line(action: RemediationAction, *, injects: bool) -> str:
    group = hybrid_group(action.target_algorithm)
    if not group:
        explanation = comment_block(
            [
                "No Groups line: no hybrid TLS group is known for the target algorithm.",
                "The line below changes nothing: an empty section stops programs where config_diagnostics = 1 is set.",
            ]
        )
        return explanation + _NO_CHANGE
    if injects:
        # OpenSSL 3.0 understands neither "?" nor "*" and would drop the whole line.
        return f"Groups = {group}:x25519:{_CLASSICAL_AFTER_X25519}"
    return f"Groups = ?*{group}:*x25519:{_CLASSICAL_AFTER_X25519}"


def _explanation(action: RemediationAction, module: Module | None) -> list[str]:
    target = quote(action.target_algorithm) if action.target_algorithm else "not set"
    has_group = bool(hybrid_group(action.target_algorithm))
    if module is None:
        lines = [
            "OpenSSL 3.5 and later: "
            + ("offer a hybrid post-quantum group first in TLS." if has_group else "nothing to set for this target."),
            f"Made by pqcota-provision from a CONFIG_ONLY action; target algorithm: {target}.",
        ]
        if has_group:
            lines += [
                "Earlier versions do not understand the Groups line and pass over it; 3.4 stops all TLS instead",
                "where config_diagnostics = 1 is set.",
            ]
    else:
        lines = [
            f"OpenSSL 3.0 to 3.4: load the provider module {module.path} beside the default provider.",
            f"Made by pqcota-provision from a PROVIDER_INJECT action; target algorithm: {target}.",
            "The default provider has to stay listed: without it the host has no cryptography at all.",
        ]
        if has_group:
            lines += [
                "Where config_diagnostics = 1 is set, 3.4 and later stop all TLS if no loaded provider knows the",
                "group: check that the module loads before openssl.cnf includes this file.",
            ]
    return [
        *lines,
        "",
        "Nothing reads this file by itself. Either point OPENSSL_CONF at it for one service (it then replaces",
        "the system's openssl.cnf), or add a line to openssl.cnf that includes it by its absolute path.",
        "It must be readable by the service's user, or OpenSSL passes it over in silence.",
        "Undone by removing the file and what points at it; the rollback playbook removes the file.",
    ]
