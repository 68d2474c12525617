"""Where things are on a node and what Ansible variables are called (SPEC 6): the one definition of both."""

from __future__ import annotations

import re
from typing import NamedTuple

from pqcota_provision.plan.model import CryptoRuntime, RemediationAction

STAGING_DIRECTORY = "/opt/pqcota"
CONFIG_DIRECTORY = "/etc/pqcota"
DIRECTORY_MODE = "0755"
FILE_MODE = "0644"

SOURCE_VARIABLE = "pqcota_module_src"
HASH_VARIABLE = "pqcota_module_sha256"
OPENSSL_VARIABLE = "pqcota_openssl"
JAVA_VARIABLE = "pqcota_java"

_DEFAULT_PROVIDERS = {CryptoRuntime.OPENSSL: "oqsprovider", CryptoRuntime.JCA: "BC"}
_MODULE_EXTENSIONS = {CryptoRuntime.OPENSSL: ".so", CryptoRuntime.JCA: ".jar"}
_NOT_IN_VARIABLE = re.compile(r"[^A-Za-z0-9]")


class Module(NamedTuple):
    """A provider module: its file name, which is also its default source on the controller."""

    provider: str
    file_name: str

    @property
    def path(self) -> str:
        """Where the module is staged on the node."""
        return f"{STAGING_DIRECTORY}/{self.file_name}"

    @property
    def suffix(self) -> str:
        """What distinguishes the module's Ansible variables."""
        return _NOT_IN_VARIABLE.sub("_", self.provider)

    @property
    def source_variable(self) -> str:
        """The variable that names the module's source on the controller."""
        return f"{SOURCE_VARIABLE}_{self.suffix}"

    @property
    def hash_variable(self) -> str:
        """The variable that holds the module's expected SHA-256."""
        return f"{HASH_VARIABLE}_{self.suffix}"


def provider_of(action: RemediationAction) -> str:
    """Return the action's provider, or its runtime's default where it chooses none."""
    return action.provider_choice or _DEFAULT_PROVIDERS[CryptoRuntime(action.crypto_runtime)]


def module_of(action: RemediationAction) -> Module:
    """Return the provider module of an action on OpenSSL or JCA."""
    provider = provider_of(action)
    return Module(provider, provider + _MODULE_EXTENSIONS[CryptoRuntime(action.crypto_runtime)])


def openssl_fragment_path(action_id: str = "") -> str:
    """Return the OpenSSL fragment's path; with an action id, the path it has when split."""
    return _config_path("openssl-pqc", action_id, "cnf")


def jca_fragment_path(action_id: str = "") -> str:
    """Return the JCA fragment's path; with an action id, the path it has when split."""
    return _config_path("java.security", action_id, "pqcota")


def jvm_arguments_path(action_id: str = "") -> str:
    """Return the JVM argument file's path; with an action id, the path it has when split."""
    return _config_path("jvm", action_id, "pqcota")


def _config_path(stem: str, action_id: str, extension: str) -> str:
    middle = f".{action_id}" if action_id else ""
    return f"{CONFIG_DIRECTORY}/{stem}{middle}.{extension}"
