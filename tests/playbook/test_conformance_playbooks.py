"""Playbooks and notices against those of the Go tools, case by case, but for what differs on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

from conformance_cases import APPROVER, CLOCK, conformance_cases, fixed_key
from playbook_reader import Play, arguments, node_plays, regular_tasks
from pqcota_provision.errors import PlanNotActionable
from pqcota_provision.plan.approvals import approve
from pqcota_provision.plan.model import CryptoRuntime, FinalizedPlan, RemediationKind
from pqcota_provision.plan.names import refuse_file_name
from pqcota_provision.plan.protojson import load_plan
from pqcota_provision.playbook.generate import Direction, Playbook, generate
from pqcota_provision.playbook.levels import Level

Step = list[Any]

# Refused while reading or by the gates; tests/plan holds what becomes of these.
REFUSED_BEFORE = {
    "control characters are refused",
    "provider_choice is not a plain file name",
    "provider_class is not a class name",
    "target_node_id is not one host name",
    "unknown kind",
}
ID_REASONS = {"action id is not a plain file name", "actions of one node share an id"}
# The plans whose split fragments have no path of their own here.
WITHOUT_PATHS = {"x-idless-l1-l2", "x-ids-odd", "x-ids-printable", "x-split-path-collision"}

ADVICE = {"provider-slot-taken", "manual-step", "approval-label"}
ADDED_NOTICES = {
    "manual-step",
    "runtime-unsupported",
    "provider-shape",
    "variable-clash",
    "fragment-inert",
    "fragment-harmful",
}

# What the Go tools call the module of an action that chooses no provider, and what it is called here.
DEFAULT_MODULES = {"provider.so": "oqsprovider.so", "provider.jar": "BC.jar"}

PROVISIONED = [
    case
    for case in conformance_cases("playbooks")
    if case.get("provision") and not set(case["differs"]) & REFUSED_BEFORE and case["case"] != "x-final-manysigs"
]
GENERATED = [case for case in PROVISIONED if case["case"] not in WITHOUT_PATHS]
READABLE = [case for case in GENERATED if any(run["plays"] is not None for run in case["provision"].values())]

Case = dict[str, Any]


def named(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case["case"]) for case in cases]


@lru_cache(maxsize=4)
def signed_plan(text: str) -> FinalizedPlan:
    return approve(load_plan(text), APPROVER, fixed_key(), now=CLOCK)


def playbook_of(case: Case, run: str) -> Playbook:
    level, direction = run.split(" ")
    return generate(signed_plan(case["plan"]), level=Level[level.upper()], direction=Direction(direction))


def steps_of(play: Play) -> Iterator[Step]:
    """Yield a play's steps in the notation of the cases; our own checks and the JVM argument file are left out."""
    for task in regular_tasks(play):
        file, copy, shell = (arguments(task, module) for module in ("file", "copy", "shell"))
        if file is not None and file["state"] == "directory":
            yield ["directory", file["path"], file["mode"]]
        elif file is not None and not file["path"].startswith("/etc/pqcota/jvm."):
            yield ["remove", file["path"]]
        elif copy is not None and "content" in copy:
            if not copy["dest"].startswith("/etc/pqcota/jvm."):
                yield ["fragment", copy["dest"], fragment_lines(copy["content"])]
        elif copy is not None and not copy.get("remote_src"):
            yield ["module", copy["dest"], copy["src"].split("default('")[1].split("'")[0]]
            suffix = copy["src"].split("pqcota_module_src_")[1].split(" ")[0]
        elif task["name"].startswith("Check the hash of"):
            assert arguments(task, "assert") is not None
            yield ["verify", suffix]
        elif shell is not None:
            yield ["hook", without_carriage_returns(shell["cmd"])]


def our_steps(playbook: Playbook) -> list[Step]:
    return [step for play in node_plays(playbook.text) for step in steps_of(play)]


def fragment_lines(content: str) -> list[str]:
    lines = without_carriage_returns(content).split("\n")
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def without_carriage_returns(text: str) -> str:
    # The Go tools' YAML turned them into newlines; here they reach the node.
    return text.replace("\r\n", "\n")


def comparable(steps: list[Step]) -> Iterator[Step]:
    """Yield the steps without what generated fragments have otherwise on purpose, and with our default modules."""
    provider = ""
    for kind, *rest in steps:
        if kind == "fragment":
            yield [kind, rest[0], [line for line in map(comparable_line, rest[1]) if line]]
        elif kind in ("module", "remove"):
            folder, _, name = rest[0].rpartition("/")
            name = DEFAULT_MODULES.get(name, name)
            provider = name.rpartition(".")[0]
            yield [kind, f"{folder}/{name}", *(DEFAULT_MODULES.get(source, source) for source in rest[1:])]
        elif kind == "verify":
            yield [kind, provider if rest == ["provider"] else rest[0]]
        else:
            yield [kind, *rest]


def comparable_line(line: str) -> str:
    # The last one keeps a section without Groups from being empty, which stops programs on some hosts.
    if line in ("[default]", "pqcota.Protocol = -SSLv2") or line.startswith("jdk.tls.namedGroups="):
        return ""
    if line.startswith("Groups = "):
        names = [name.lstrip("?*") for name in line.removeprefix("Groups = ").split(":")]
        return "Groups = " + ":".join(names[:2])
    if line.startswith("security.provider.2=<"):
        return "security.provider.2=<placeholder>"
    # Spaces at either end got lost in the Go tools' YAML.
    return line.strip()


def nodes_left_out(case: Case) -> set[str]:
    """Return the nodes about which the case's reasons leave nothing to compare."""
    reasons = set(case["differs"])
    actions = signed_plan(case["plan"]).actions
    left_out = set()
    if "runtime unsupported" in reasons:
        config = (RemediationKind.CONFIG_ONLY, RemediationKind.PROVIDER_INJECT)
        known = (CryptoRuntime.OPENSSL, CryptoRuntime.JCA)
        left_out |= {
            action.target_node_id for action in actions if action.kind in config and action.crypto_runtime not in known
        }
    if reasons & ID_REASONS:
        counts = Counter((action.target_node_id, action.id) for action in actions)
        left_out |= {
            action.target_node_id
            for action in actions
            if refuse_file_name(action.id) or counts[action.target_node_id, action.id] > 1
        }
    return left_out


def test_no_case_goes_uncompared() -> None:
    cases = conformance_cases("playbooks")
    without_playbook = [case for case in cases if not case.get("provision")]
    refused = [case for case in cases if case.get("provision") and set(case["differs"]) & REFUSED_BEFORE]
    assert len(cases) == len(without_playbook) + len(refused) + len(PROVISIONED) + 1
    assert all(case["approve"]["status"] == 1 for case in without_playbook)


@pytest.mark.parametrize("case", named(GENERATED))
def test_the_notices_are_those_of_the_go_tools(case: Case) -> None:
    for run, theirs in case["provision"].items():
        playbook = playbook_of(case, run)
        ours = [
            [notice.id.value, notice.node if notice.id.value == "fragments-split" else notice.action]
            for notice in playbook.notices
            if notice.id.value not in ADDED_NOTICES
        ]
        split = [notice for notice in theirs["notices"] if notice[0] == "fragments-split"]
        if split and not any(step[0] == "fragment" for step in our_steps(playbook)):
            # Nobody has to be told about split fragments where none is placed.
            ours += split
        assert (run, sorted(ours)) == (run, sorted(theirs["notices"]))


@pytest.mark.parametrize("case", named(GENERATED))
def test_the_exit_status_is_that_of_the_go_tools_or_follows_from_an_added_notice(case: Case) -> None:
    for run, theirs in case["provision"].items():
        playbook = playbook_of(case, run)
        ours = {notice.id.value for notice in playbook.notices}
        gone = {notice[0] for notice in theirs["notices"]} - ours
        added = (ours & ADDED_NOTICES) - ADVICE
        if not gone and not added:
            assert (run, 3 if playbook.has_blanks else 0) == (run, theirs["status"])
        elif added:
            assert (run, playbook.has_blanks) == (run, True)
        else:
            assert (run, gone, playbook.has_blanks) == (run, {"fragments-split"}, bool(ours - ADVICE))


@pytest.mark.parametrize("case", named(READABLE))
def test_the_steps_on_each_node_are_those_of_the_go_tools(case: Case) -> None:
    left_out = nodes_left_out(case)
    for run, theirs in case["provision"].items():
        if theirs["plays"] is None:
            continue
        ours = {
            play["hosts"]: list(comparable(list(steps_of(play)))) for play in node_plays(playbook_of(case, run).text)
        }
        expected = {play["hosts"][0]: list(comparable(play["steps"])) for play in theirs["plays"]}
        assert (run, list(ours)) == (run, list(expected))
        for node in expected.keys() - left_out:
            assert (run, node, ours[node]) == (run, node, expected[node])


@pytest.mark.parametrize("case", named([case for case in PROVISIONED if case["case"] in WITHOUT_PATHS]))
def test_a_fragment_without_a_path_of_its_own_is_refused_and_not_lost(case: Case) -> None:
    assert set(case["differs"]) & ID_REASONS
    for run in case["provision"]:
        with pytest.raises(PlanNotActionable, match=r"path of its own|same id"):
            playbook_of(case, run)


@pytest.mark.parametrize(
    "case", named([case for case in GENERATED if any(run["plays"] is None for run in case["provision"].values())])
)
def test_a_playbook_that_the_go_tools_left_unreadable_is_readable_here(case: Case) -> None:
    for run, theirs in case["provision"].items():
        if theirs["plays"] is None:
            nodes = list(dict.fromkeys(action.target_node_id for action in signed_plan(case["plan"]).actions))
            assert [play["hosts"] for play in node_plays(playbook_of(case, run).text)] == nodes
