"""Where things are on a node: the paths and names that the Go tools, the docs and the inventories also use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playbook_plans import injection

from pqcota_provision.plan.model import CryptoRuntime
from pqcota_provision.playbook.paths import (
    jca_fragment_path,
    jvm_arguments_path,
    module_of,
    openssl_fragment_path,
    provider_of,
)

JCA = {"crypto_runtime": CryptoRuntime.JCA}


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        pytest.param(openssl_fragment_path, (), "/etc/pqcota/openssl-pqc.cnf", id="openssl"),
        pytest.param(openssl_fragment_path, ("a1",), "/etc/pqcota/openssl-pqc.a1.cnf", id="openssl-split"),
        pytest.param(jca_fragment_path, (), "/etc/pqcota/java.security.pqcota", id="jca"),
        pytest.param(jca_fragment_path, ("a1",), "/etc/pqcota/java.security.a1.pqcota", id="jca-split"),
        pytest.param(jvm_arguments_path, (), "/etc/pqcota/jvm.pqcota", id="jvm"),
        pytest.param(jvm_arguments_path, ("a1",), "/etc/pqcota/jvm.a1.pqcota", id="jvm-split"),
    ],
)
def test_a_hook_finds_each_config_file_where_the_contract_says(
    path: Callable[..., str], arguments: tuple[str, ...], expected: str
) -> None:
    assert path(*arguments) == expected


@pytest.mark.parametrize(
    ("fields", "provider", "path"),
    [
        pytest.param({"provider_choice": ""}, "oqsprovider", "/opt/pqcota/oqsprovider.so", id="openssl-default"),
        pytest.param({"provider_choice": "acme-pqc"}, "acme-pqc", "/opt/pqcota/acme-pqc.so", id="openssl-chosen"),
        pytest.param({"provider_choice": "", **JCA}, "BC", "/opt/pqcota/BC.jar", id="jca-default"),
        pytest.param({"provider_choice": "BCFIPS", **JCA}, "BCFIPS", "/opt/pqcota/BCFIPS.jar", id="jca-chosen"),
    ],
)
def test_a_module_is_staged_under_its_providers_name(fields: dict[str, Any], provider: str, path: str) -> None:
    action = injection(**fields)
    assert (provider_of(action), module_of(action).path) == (provider, path)
