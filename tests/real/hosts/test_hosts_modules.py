"""Where a module comes from, and the hash it must have, before and after it is on the node."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import pytest
from ansible_project import MakeProject, Project
from approved_plans import action, playbook

from pqcota_provision import Level

pytest_plugins = ("host_fixtures",)
pytestmark = pytest.mark.real

NODE = "web-1"
STAGED = "/opt/pqcota/acme-pqc.so"
MODULE = bytes(range(256)) * 8
OTHER = b"not this one"
RIGHT = hashlib.sha256(MODULE).hexdigest()
WRONG = hashlib.sha256(OTHER).hexdigest()

STAGING = playbook(action(NODE, "PROVIDER_INJECT", providerChoice="acme-pqc"), level=Level.L1)


class Source(NamedTuple):
    """Files of the project, options of the run and lines of the inventory that together name the module."""

    files: dict[str, bytes]
    options: tuple[str, ...] = ()
    inventory: tuple[str, ...] = ()


SOURCES = {
    "files-folder": Source({"files/acme-pqc.so": MODULE}),
    "beside-the-playbook": Source({"acme-pqc.so": MODULE}),
    "files-folder-before-beside": Source({"files/acme-pqc.so": MODULE, "acme-pqc.so": OTHER}),
    "absolute": Source({"build/out.so": MODULE}, ("-e", "pqcota_module_src_acme_pqc={directory}/build/out.so")),
    "relative-to-files": Source({"files/out.so": MODULE}, ("-e", "pqcota_module_src_acme_pqc=out.so")),
    "relative-to-the-playbook": Source({"build/out.so": MODULE}, ("-e", "pqcota_module_src_acme_pqc=build/out.so")),
    "above-the-playbook": Source({"../out.so": MODULE}, ("-e", "pqcota_module_src_acme_pqc=../out.so")),
    "with-a-space": Source({"files/my out.so": MODULE}, ("-e", "pqcota_module_src_acme_pqc='my out.so'")),
    "for-every-module": Source({"files/out.so": MODULE}, ("-e", "pqcota_module_src=out.so")),
    "own-before-every": Source(
        {"files/out.so": MODULE, "files/every.so": OTHER},
        ("-e", "pqcota_module_src=every.so", "-e", "pqcota_module_src_acme_pqc=out.so"),
    ),
    "from-the-inventory": Source({"files/out.so": MODULE}, inventory=("pqcota_module_src_acme_pqc=out.so",)),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_the_module_is_found_where_the_operator_put_it(
    make_project: MakeProject, source: Source, tmp_path: Path
) -> None:
    project = make_project(NODE)
    for name, content in source.files.items():
        project.write(name, content)
    project.write("targets.ini", project.inventory(extra=source.inventory))
    options = [option.format(directory=project.directory) for option in source.options]
    # Paths are meant from the playbook's place, whatever directory the operator stands in.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    project.run(STAGING, "-e", f"pqcota_module_sha256={RIGHT}", *options, cwd=elsewhere).succeeded()
    assert project.hosts[NODE].read(STAGED) == MODULE


def test_without_an_expected_hash_any_module_is_taken(make_project: MakeProject) -> None:
    project = make_project(NODE)
    project.write("files/acme-pqc.so", OTHER)
    project.run(STAGING).succeeded()
    assert project.hosts[NODE].read(STAGED) == OTHER


def hashed(*pairs: str) -> tuple[str, ...]:
    return tuple(word for pair in pairs for word in ("-e", f"pqcota_module_sha256{pair}"))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(hashed(f"={RIGHT}"), id="right-for-every"),
        pytest.param(hashed(f"_acme_pqc={RIGHT}"), id="right"),
        pytest.param(hashed(f"_acme_pqc={RIGHT.upper()}"), id="uppercase"),
        pytest.param(("-e", f'{{"pqcota_module_sha256_acme_pqc": " {RIGHT}\\n"}}'), id="spaces-around"),
        pytest.param(hashed(f"={WRONG}", f"_acme_pqc={RIGHT}"), id="own-before-every"),
    ],
)
def test_a_module_with_the_expected_hash_is_staged(make_project: MakeProject, options: tuple[str, ...]) -> None:
    project = make_project(NODE)
    project.write("files/acme-pqc.so", MODULE)
    project.run(STAGING, *options).succeeded()
    assert project.hosts[NODE].read(STAGED) == MODULE


def assert_nothing_was_changed(project: Project, *options: str) -> str:
    before = project.hosts[NODE].snapshot()
    run = project.run(STAGING, *options).failed()
    assert project.hosts[NODE].snapshot() == before
    assert run.changed == []
    assert run.failure.startswith("Nothing was changed on this node.")
    return run.failure


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(hashed(f"={WRONG}"), id="wrong-for-every"),
        pytest.param(hashed(f"_acme_pqc={WRONG}"), id="wrong"),
        pytest.param(hashed("_acme_pqc="), id="empty"),
        pytest.param(hashed(f"_acme_pqc={RIGHT[:-1]}"), id="cut-short"),
        pytest.param(hashed(f"={RIGHT}", f"_acme_pqc={WRONG}"), id="own-before-every"),
    ],
)
def test_a_module_without_the_expected_hash_changes_nothing(
    make_project: MakeProject, options: tuple[str, ...]
) -> None:
    project = make_project(NODE)
    project.write("files/acme-pqc.so", MODULE)
    found = f"found {RIGHT} in {project.directory}/files/acme-pqc.so."
    assert assert_nothing_was_changed(project, *options).endswith(found)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="nowhere"),
        pytest.param(("-e", "pqcota_module_src_acme_pqc=/nonexistent/acme-pqc.so"), id="absolute"),
        pytest.param(("-e", "pqcota_module_src_acme_pqc="), id="empty-name"),
        pytest.param(("-e", "pqcota_module_src_acme_pqc=files"), id="directory"),
    ],
)
def test_a_module_missing_on_the_controller_changes_nothing(
    make_project: MakeProject, options: tuple[str, ...]
) -> None:
    project = make_project(NODE)
    project.write("files/another.so", MODULE)
    message = assert_nothing_was_changed(project, *options)
    assert "acme-pqc.so on the controller: no such file" in message
    assert message.endswith("or name it with pqcota_module_src_acme_pqc.")


def test_the_second_of_two_modules_missing_keeps_the_first_off_the_node(make_project: MakeProject) -> None:
    project = make_project(NODE)
    project.write("files/acme-pqc.so", MODULE)
    before = project.hosts[NODE].snapshot()
    text = playbook(
        action(NODE, "PROVIDER_INJECT", id="act-1", providerChoice="acme-pqc"),
        action(NODE, "PROVIDER_INJECT", id="act-2"),
        level=Level.L1,
    )
    project.run(text).failed()
    assert project.hosts[NODE].snapshot() == before


def test_a_module_that_changes_while_it_is_copied_stops_the_node(make_project: MakeProject) -> None:
    project = make_project(NODE)
    project.write("files/acme-pqc.so", MODULE)
    project.write("files/tampered.so", OTHER)
    # Once the source was measured, its variable names another file.
    source = "{{ 'tampered.so' if pqcota_module_source is defined else 'acme-pqc.so' }}"
    run = project.run(STAGING, "-e", f'{{"pqcota_module_src": "{source}", "pqcota_module_sha256": "{RIGHT}"}}').failed()
    assert f"The module on this node is not the expected one; its SHA-256 is {WRONG}." in run.failure
