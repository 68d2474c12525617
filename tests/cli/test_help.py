"""What every command says about itself: --help, which the docs show word for word, and --version."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from command_runs import run

from pqcota_provision import __version__
from pqcota_provision.cli import common

COMMANDS = ("keygen", "approve", "provision", "records", "prove")
HELP_PAGES = [(name, ()) for name in COMMANDS] + [("prove", (sub,)) for sub in ("run", "refuse", "list")]
STATUSES = {
    "keygen": ["0", "1", "2"],
    "approve": ["0", "1", "2"],
    "provision": ["0", "1", "2", "3"],
    "records": ["0", "1", "2", "3"],
}
VARIABLES = {
    "keygen": set(),
    "approve": {"PQCOTA_APPROVAL_KEY", "PQCOTA_APPROVAL_KEYS"},
    "provision": {
        "PQCOTA_APPROVAL_KEYS",
        "PQCOTA_PROVER_KEYS",
        "PQCOTA_REQUIRE_APPROVAL",
        "PQCOTA_ORG",
        "PQCOTA_REQUIRE_ORG",
        "PQCOTA_AUTO_DDL",
    },
    "records": {"PQCOTA_DSN", "PQCOTA_ORG", "PQCOTA_REQUIRE_ORG"},
}


def _module(name: str) -> Any:
    return import_module(f"pqcota_provision.cli.{name}")


@pytest.mark.parametrize("columns", ["80", "200", None])
@pytest.mark.parametrize(("name", "subcommands"), HELP_PAGES, ids=str)
def test_the_help_of_the_docs_is_what_the_command_prints(
    name: str, subcommands: tuple[str, ...], columns: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    module = _module(name)
    expected = common.help_text(module.command, *subcommands)
    assert run(module.main, *subcommands, "--help") == (0, expected.encode(), "")


@pytest.mark.parametrize(("name", "subcommands"), HELP_PAGES, ids=str)
def test_the_help_of_the_docs_depends_on_no_terminal_and_fits_any(
    name: str, subcommands: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = common.help_text(_module(name).command, *subcommands)
    monkeypatch.setenv("COLUMNS", "30")
    assert common.help_text(_module(name).command, *subcommands) == text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", STATUSES)
def test_the_help_states_every_exit_status(name: str) -> None:
    stated = common.help_text(_module(name).command).partition("Exit status:")[2]
    assert re.findall(r"^    (\d+) ", stated, re.MULTILINE) == STATUSES[name]


@pytest.mark.parametrize("name", VARIABLES)
def test_the_help_names_every_variable_that_is_read(name: str) -> None:
    stated = common.help_text(_module(name).command).partition("Environment:")[2]
    assert set(re.findall(r"^    (PQCOTA_\w+) ", stated, re.MULTILINE)) == VARIABLES[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_version_is_printed(name: str) -> None:
    assert run(_module(name).main, "--version") == (0, f"pqcota-{name} {__version__}\n".encode(), "")
