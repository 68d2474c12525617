"""A secret typed in the wrong place of a command line: no message repeats it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from command_runs import ALICE, assert_refused, run

from pqcota_provision.cli import approve, keygen, provision, records

Main = Callable[[list[str]], int]

KEY = ALICE.to_text()
URI = "postgresql://writer:hunter2@db.example.net/pqcota"


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        pytest.param(approve.main, ["--approver", "alice", KEY], id="key-as-plan"),
        pytest.param(approve.main, ["--approver", "alice", "plan.json", KEY], id="key-after-plan"),
        pytest.param(approve.main, ["--approver", KEY, "plan.json"], id="key-as-approver"),
        pytest.param(approve.main, ["--approver", f"alice={KEY}", "plan.json"], id="key-in-approver"),
        pytest.param(approve.main, ["--approver", "alice", "plan.json", "--output", f"{KEY}/x"], id="key-in-output"),
        pytest.param(keygen.main, [KEY], id="key-for-keygen"),
        pytest.param(provision.main, [URI], id="dsn-as-plan"),
        pytest.param(provision.main, ["plan.json", URI], id="dsn-after-plan"),
        pytest.param(provision.main, ["--dsn", "plan.json", URI], id="dsn-and-plan-swapped"),
        pytest.param(provision.main, ["plan.json", "--report", URI], id="dsn-as-report"),
        pytest.param(provision.main, ["plan.json", "--level", URI], id="dsn-as-level"),
        pytest.param(provision.main, ["host=db.example.net password=hunter2"], id="pairs-as-plan"),
        pytest.param(provision.main, ["postgresql://db.example.net/x?password=hunter2"], id="query-as-plan"),
        pytest.param(provision.main, ["postgresql://writer:hunter2/x@db.example.net/x"], id="slash-in-password"),
        pytest.param(records.main, ["node-1", URI], id="dsn-after-node"),
        pytest.param(records.main, ["--limit", URI], id="dsn-as-limit"),
        pytest.param(records.main, ["--since", URI], id="dsn-as-since"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(main: Main, arguments: list[str]) -> None:
    said = assert_refused(run(main, *arguments), 2)
    assert not any(secret in said for secret in ("hunter2", KEY[:16], KEY[-16:]))
