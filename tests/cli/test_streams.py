"""What goes in and out of the commands: streams that are closed, full or broken, files that cannot be read or written.

Whatever happens to them ends in one clear line, the right status, and nothing half written.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import resource
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_runs import (
    ALICE,
    ALICE_REGISTERED,
    SCRIPTS,
    Ran,
    altered,
    assert_refused,
    environment,
    in_review,
    obey_file_modes,
    require_file_modes_to_count,
    run,
    run_script,
    script,
    signed,
    text_of,
)

from available import needs
from pqcota_provision.cli.approve import main as approve_main
from pqcota_provision.cli.provision import main as provision_main

PLAN = signed()
OLD = b"what was there before\n"
VARIABLES = {"PQCOTA_APPROVAL_KEY": ALICE.to_text(), "PQCOTA_APPROVAL_KEYS": ALICE_REGISTERED}
ARGUMENTS = {"pqcota-keygen": (), "pqcota-approve": ("--approver", "alice"), "pqcota-provision": ()}
PLAN_READERS = ("pqcota-approve", "pqcota-provision")

Read = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def plan_path(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_bytes(PLAN)
    return path


@pytest.fixture(params=["approve", "provision"])
def read(request: pytest.FixtureRequest) -> Read:
    """Run a command that reads a plan, in this process."""
    if request.param == "approve":
        return lambda *arguments, stdin=b"": run(approve_main, "--approver", "alice", *arguments, stdin=stdin)
    return lambda *arguments, stdin=b"": run(provision_main, *arguments, stdin=stdin)


def _shell(command: str, cwd: Path) -> Ran:
    """Run a line of a shell that knows the scripts."""
    path = f"{Path(script('pqcota-provision')).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [needs("bash"), "-c", command],
        cwd=cwd,
        env=environment(PATH=path, **VARIABLES),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8"))


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def _one_line(ran: Ran) -> str:
    """Check that the last line alone is the complaint, and return it."""
    complaints = [line for line in ran.messages if "approved by" not in line]
    assert len(complaints) == 1, ran
    assert complaints[0].isprintable()
    return complaints[0]


class TestInput:
    @pytest.mark.parametrize(
        ("data", "place"),
        [
            pytest.param(b"", "line 1, column 1", id="empty"),
            pytest.param(b" \n\t\r\n ", "empty", id="white-space"),
            pytest.param(b"\xef\xbb\xbf" + PLAN, "byte order mark", id="byte-order-mark"),
            pytest.param(PLAN.decode().encode("utf-16"), "UTF-8", id="utf-16"),
            pytest.param(b'{\n "id": "\xff"}', "line 2, column 9", id="invalid-utf8"),
            pytest.param(b'{"id": "' + b"\xed\xa0\x80" + b'"}', "UTF-8", id="surrogate-in-utf8"),
            pytest.param(PLAN + b"{}", "line", id="something-after-the-plan"),
            pytest.param(PLAN[:-20], "line", id="cut-off"),
            pytest.param(b"[]", "object", id="a-list"),
            pytest.param(b"[" * 200_000, "nested", id="nested-lists"),
            pytest.param(b'{"a":' * 200_000, "nested", id="nested-objects"),
            pytest.param(b"9" * 200_000, "object", id="a-huge-number"),
            pytest.param(b'{"\x1b[31mred\n": 1}', "line 1", id="escape-character-in-a-key"),
            pytest.param(b'{"\\u001b[31mred\\n": 1}', "unknown field", id="escaped-escape-character-in-a-key"),
            pytest.param(b"\x7fELF\x02\x01\x01\x00", "line 1", id="a-program"),
            pytest.param(b"---\nid: plan-1\n", "line 1", id="yaml"),
        ],
    )
    def test_what_is_no_plan_is_refused_in_one_line(self, data: bytes, place: str, read: Read) -> None:
        ran = read("-", stdin=data)
        assert_refused(ran)
        assert place in _one_line(ran)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            pytest.param("missing.json", "No such file", id="missing"),
            pytest.param(".", "directory", id="directory"),
            pytest.param("plan.json/x", "Not a directory", id="a-file-taken-for-a-directory"),
            pytest.param("loop", "symbolic link", id="link-to-itself"),
            pytest.param("x" * 5000, "too long", id="name-too-long"),
            pytest.param("nul\0.json", "null", id="nul-in-the-name"),
        ],
    )
    def test_a_file_that_cannot_be_read_is_named_in_one_line(
        self, name: str, reason: str, read: Read, plan_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(plan_path.parent)
        Path("loop").symlink_to("loop")
        ran = read(name)
        assert_refused(ran)
        assert reason in _one_line(ran)
        assert len(ran.err) < 500

    def test_an_empty_name_is_wrong_usage(self, read: Read) -> None:
        assert_refused(read(""), status=2)

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            pytest.param("a\nb.json", '"a\\nb.json"', id="newline"),
            pytest.param("a\x1b[2Jb.json", '"a\\u001b[2Jb.json"', id="escape"),
            pytest.param("a\u202eb.json", '"a\\u202eb.json"', id="direction-mark"),
            pytest.param("a\udcffb.json", '"a\\udcffb.json"', id="no-utf8"),
            pytest.param('a"b.json', '"a\\"b.json"', id="quote"),
            pytest.param("größe 한국.json", '"größe 한국.json"', id="letters-of-the-world"),
        ],
    )
    def test_a_file_name_in_a_message_cannot_steer_the_terminal(self, name: str, shown: str, read: Read) -> None:
        assert shown in _one_line(read(name))

    @pytest.mark.parametrize("name", PLAN_READERS)
    def test_a_file_without_permission_is_named_in_one_line(self, name: str, plan_path: Path) -> None:
        require_file_modes_to_count(plan_path.parent)
        plan_path.chmod(0)
        ran = run_script(name, *ARGUMENTS[name], plan_path, variables=VARIABLES, preexec_fn=obey_file_modes)
        assert_refused(ran)
        assert "Permission denied" in _one_line(ran)

    @pytest.mark.parametrize("name", PLAN_READERS)
    def test_standard_input_that_is_closed_is_said_to_be(self, name: str, tmp_path: Path) -> None:
        ran = _shell(f"{name} {' '.join(ARGUMENTS[name])} - <&-", tmp_path)
        assert_refused(ran)
        assert "standard input cannot be read: it is closed" in _one_line(ran)

    @pytest.mark.parametrize("name", PLAN_READERS)
    def test_standard_input_that_nobody_fills_is_an_empty_plan(self, name: str) -> None:
        ran = run_script(name, *ARGUMENTS[name], "-", stdin=subprocess.DEVNULL, variables=VARIABLES)
        assert_refused(ran)
        assert "empty" in _one_line(ran)

    def test_a_plan_from_a_pipe_with_a_name_is_read_whole(self, tmp_path: Path) -> None:
        plan = signed(in_review(scope="x" * 300_000))
        (tmp_path / "plan.json").write_bytes(plan)
        ran = _shell("pqcota-provision <(cat plan.json)", tmp_path)
        assert (ran.status, ran.out) == (0, run(provision_main, "-", stdin=plan).out)

    @pytest.mark.parametrize("plan", ["/dev/zero", "-"])
    def test_an_endless_plan_is_given_up_on_before_memory_is(self, plan: str) -> None:
        with open("/dev/zero", "rb") as zeros:
            ran = run_script(
                "pqcota-provision",
                plan,
                stdin=zeros,
                variables=VARIABLES,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
            )
        assert_refused(ran)
        assert "larger than 256 MiB" in _one_line(ran)


class TestStandardOutput:
    @pytest.fixture(params=SCRIPTS)
    def name(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    def _arguments(self, name: str, plan_path: Path) -> tuple[str | Path, ...]:
        return ARGUMENTS[name] if name == "pqcota-keygen" else (*ARGUMENTS[name], plan_path)

    def test_a_full_disk_ends_in_1_and_one_line(self, name: str, plan_path: Path) -> None:
        with open("/dev/full", "wb") as full:
            ran = run_script(name, *self._arguments(name, plan_path), stdout=full, variables=VARIABLES)
        assert ran.status == 1
        assert "No space left" in _one_line(ran)

    @pytest.mark.parametrize("variables", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
    def test_a_product_that_is_cut_short_ends_in_1(
        self, variables: dict[str, str], name: str, plan_path: Path, tmp_path: Path
    ) -> None:
        with open(tmp_path / "product", "wb") as product:
            ran = run_script(
                name,
                *self._arguments(name, plan_path),
                stdout=product,
                variables={**VARIABLES, **variables},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
            )
        assert ran.status == 1
        assert "File too large" in _one_line(ran)

    def test_a_reader_that_went_away_ends_in_1_and_one_line(self, name: str, plan_path: Path) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "wb") as pipe:
            ran = run_script(name, *self._arguments(name, plan_path), stdout=pipe, variables=VARIABLES)
        assert ran.status == 1
        assert "was closed before all of it was written" in _one_line(ran)

    def test_a_closed_standard_output_ends_in_1_and_one_line(self, name: str, plan_path: Path) -> None:
        arguments = " ".join(map(str, self._arguments(name, plan_path)))
        ran = _shell(f"{name} {arguments} >&-", plan_path.parent)
        assert ran.status == 1
        assert "standard output cannot be written: it is closed" in _one_line(ran)

    @pytest.mark.parametrize("option", ["--help", "--version"])
    def test_what_click_prints_ends_in_1_on_a_full_disk(self, name: str, option: str) -> None:
        with open("/dev/full", "wb") as full:
            ran = run_script(name, option, stdout=full)
        assert ran.status == 1
        assert "No space left" in _one_line(ran)

    def test_help_for_a_reader_that_went_away_leaves_no_traceback(self, name: str) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "wb") as pipe:
            ran = run_script(name, "--help", stdout=pipe)
        assert ran.status == 1
        assert "Broken pipe" in _one_line(ran)

    def test_a_reader_that_takes_only_the_beginning_gets_it_and_no_traceback(self, tmp_path: Path) -> None:
        plan = json.loads(signed())
        first = plan["actions"][0]
        many = [{**first, "id": f"a{number}", "targetNodeId": f"node-{number}"} for number in range(400)]
        (tmp_path / "plan.json").write_bytes(signed(in_review(actions=many)))
        ran = _shell("pqcota-provision plan.json | head -n 1; exit ${PIPESTATUS[0]}", tmp_path)
        assert (ran.status, ran.out) == (1, b"---\n")
        assert "was closed before all of it was written" in _one_line(ran)


class TestStandardError:
    @pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
    def test_messages_that_cannot_be_shown_change_neither_bytes_nor_status(
        self, redirection: str, tmp_path: Path
    ) -> None:
        plan = signed(in_review(rulesetVersion=None))
        (tmp_path / "plan.json").write_bytes(plan)
        expected = run(provision_main, "-", stdin=plan)
        ran = _shell(f"pqcota-provision plan.json {redirection}", tmp_path)
        assert (ran.status, ran.out) == (3, expected.out)

    def test_a_reader_of_messages_that_went_away_changes_neither_bytes_nor_status(self, tmp_path: Path) -> None:
        (tmp_path / "plan.json").write_bytes(signed(in_review(rulesetVersion=None)))
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "wb") as pipe:
            ran = run_script("pqcota-provision", tmp_path / "plan.json", stderr=pipe, variables=VARIABLES)
        assert (ran.status, ran.out) == (3, run(provision_main, tmp_path / "plan.json").out)

    def test_a_refusal_that_cannot_be_shown_puts_nothing_on_standard_output(self, tmp_path: Path) -> None:
        ran = _shell("pqcota-provision missing.json 2>&-", tmp_path)
        assert (ran.status, ran.out) == (1, b"")

    def test_names_are_said_in_utf8_or_as_escapes_in_any_locale(self, tmp_path: Path) -> None:
        ran = _shell("PYTHONIOENCODING=ascii PYTHONUTF8=0 LC_ALL=C pqcota-provision größe-한국.json", tmp_path)
        assert_refused(ran)
        assert "No such file" in _one_line(ran)


class TestOutputFile:
    def test_it_gets_the_bytes_that_standard_output_would_get(self, tmp_path: Path) -> None:
        target = tmp_path / "playbook.yml"
        ran = run(provision_main, "--output", target, "-", stdin=PLAN)
        assert (ran.status, ran.out) == (0, b"")
        assert target.read_bytes() == run(provision_main, "-", stdin=PLAN).out
        assert _names(tmp_path) == ["playbook.yml"]

    def test_a_dash_means_standard_output(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert run(provision_main, "--output", "-", "-", stdin=PLAN) == run(provision_main, "-", stdin=PLAN)
        assert _names(tmp_path) == []

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
    def test_a_file_that_was_there_keeps_its_mode(self, mode: int, tmp_path: Path) -> None:
        target = tmp_path / "playbook.yml"
        target.write_bytes(OLD)
        target.chmod(mode)
        run(provision_main, "--output", target, "-", stdin=PLAN)
        assert target.stat().st_mode & 0o7777 == mode
        assert target.read_bytes().startswith(b"---\n")

    def test_a_file_that_was_there_keeps_its_owner(self, tmp_path: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can own a file of another user")
        target = tmp_path / "playbook.yml"
        target.write_bytes(OLD)
        os.chown(target, 65534, 65534)
        run(provision_main, "--output", target, "-", stdin=PLAN)
        assert (target.stat().st_uid, target.stat().st_gid) == (65534, 65534)

    @pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
    def test_a_new_file_gets_the_mode_that_the_umask_leaves(self, umask: int, mode: int, tmp_path: Path) -> None:
        previous = os.umask(umask)
        try:
            run(provision_main, "--output", tmp_path / "playbook.yml", "-", stdin=PLAN)
        finally:
            os.umask(previous)
        assert (tmp_path / "playbook.yml").stat().st_mode & 0o7777 == mode

    def test_a_link_stays_a_link_and_its_target_gets_the_text(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        target, link = tmp_path / "elsewhere" / "playbook.yml", tmp_path / "link"
        target.write_bytes(OLD)
        link.symlink_to(target)
        run(provision_main, "--output", link, "-", stdin=PLAN)
        assert link.is_symlink()
        assert target.read_bytes().startswith(b"---\n")

    def test_a_link_to_nothing_gets_its_target(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("playbook.yml")
        run(provision_main, "--output", tmp_path / "link", "-", stdin=PLAN)
        assert (tmp_path / "playbook.yml").read_bytes().startswith(b"---\n")

    def test_a_reader_of_the_old_file_keeps_all_of_it(self, tmp_path: Path) -> None:
        target = tmp_path / "playbook.yml"
        target.write_bytes(OLD)
        with open(target, "rb") as reader:
            run(provision_main, "--output", target, "-", stdin=PLAN)
            assert reader.read() == OLD

    @pytest.mark.parametrize(
        "plan",
        [
            pytest.param(b"{", id="malformed"),
            pytest.param(text_of(in_review()), id="in-review"),
            pytest.param(altered(PLAN, scope="x"), id="approval-that-does-not-hold"),
        ],
    )
    def test_a_refusal_leaves_the_file_as_it_was(self, plan: bytes, tmp_path: Path) -> None:
        target = tmp_path / "playbook.yml"
        target.write_bytes(OLD)
        assert_refused(run(provision_main, "--output", target, "-", stdin=plan))
        assert (target.read_bytes(), _names(tmp_path)) == (OLD, ["playbook.yml"])

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            pytest.param(".", "directory", id="directory"),
            pytest.param("new/", "directory", id="directory-to-be"),
            pytest.param("nowhere/playbook.yml", "No such file", id="directory-missing"),
            pytest.param("plan.json/playbook.yml", "Not a directory", id="file-taken-for-a-directory"),
            pytest.param("loop", "symbolic link", id="link-to-itself"),
            pytest.param("x" * 300, "too long", id="name-too-long"),
            pytest.param("nul\0.yml", "null", id="nul-in-the-name"),
            pytest.param("/dev/full", "No space left", id="full-device"),
        ],
    )
    @pytest.mark.parametrize("option", ["--output", "--report"])
    def test_a_target_that_cannot_be_written_is_named_and_nothing_is_left(
        self, option: str, name: str, reason: str, plan_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(plan_path.parent)
        Path("loop").symlink_to("loop")
        ran = run(provision_main, option, name, "plan.json")
        assert_refused(ran)
        assert reason in _one_line(ran)
        assert _names(plan_path.parent) == ["loop", "plan.json"]

    @pytest.mark.parametrize("name", PLAN_READERS)
    def test_a_directory_without_permission_keeps_the_file_that_is_in_it(self, name: str, tmp_path: Path) -> None:
        require_file_modes_to_count(tmp_path)
        directory = tmp_path / "closed"
        directory.mkdir()
        target = directory / "target"
        target.write_bytes(OLD)
        directory.chmod(0o555)
        ran = run_script(
            name,
            *ARGUMENTS[name],
            "--output",
            target,
            "-",
            stdin=PLAN,
            variables=VARIABLES,
            preexec_fn=obey_file_modes,
        )
        assert_refused(ran)
        assert "Permission denied" in _one_line(ran)
        assert (target.read_bytes(), _names(directory)) == (OLD, ["target"])

    def test_a_directory_that_was_removed_meanwhile_leaves_no_traceback(self, plan_path: Path) -> None:
        (plan_path.parent / "gone").mkdir()
        ran = _shell(
            "cd gone && rmdir ../gone && pqcota-provision --output out.yml - < " + str(plan_path), plan_path.parent
        )
        assert_refused(ran)
        assert "No such file" in _one_line(ran)

    @pytest.mark.parametrize("name", PLAN_READERS)
    def test_a_disk_that_fills_up_keeps_the_old_file(self, name: str, tmp_path: Path) -> None:
        target = tmp_path / "target"
        target.write_bytes(OLD)
        ran = run_script(
            name,
            *ARGUMENTS[name],
            "--output",
            target,
            "-",
            stdin=PLAN,
            variables=VARIABLES,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        )
        assert_refused(ran)
        assert "File too large" in _one_line(ran)
        assert (target.read_bytes(), _names(tmp_path)) == (OLD, ["target"])

    def test_dev_null_stays_a_device(self) -> None:
        ran = run(provision_main, "--output", "/dev/null", "--report", "/dev/null", "-", stdin=PLAN)
        assert (ran.status, ran.out) == (0, b"")
        assert Path("/dev/null").is_char_device()

    def test_a_named_pipe_passes_the_text_on(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        received: list[bytes] = []
        reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
        reader.start()
        ran = run(provision_main, "--output", pipe, "-", stdin=PLAN)
        reader.join(60)
        assert (ran.status, received) == (0, [run(provision_main, "-", stdin=PLAN).out])
        assert pipe.is_fifo()

    def test_the_name_of_standard_output_means_standard_output(self, plan_path: Path) -> None:
        ran = _shell("pqcota-provision plan.json --output /dev/stdout", plan_path.parent)
        assert (ran.status, ran.out) == (0, run(provision_main, plan_path).out)


class TestSeveralTargets:
    """Standard output, --output and --report come together, or none of them does."""

    @pytest.fixture
    def report(self, tmp_path: Path) -> Path:
        path = tmp_path / "report.json"
        path.write_bytes(OLD)
        return path

    def test_a_report_that_cannot_be_written_keeps_the_playbook_back(self, plan_path: Path) -> None:
        for target in ("/dev/full", plan_path.parent, plan_path.parent / "nowhere" / "report.json"):
            assert_refused(run(provision_main, "--report", target, plan_path))

    def test_an_output_that_cannot_be_written_keeps_the_report_back(self, report: Path) -> None:
        assert_refused(run(provision_main, "--report", report, "--output", report.parent, "-", stdin=PLAN))
        assert (report.read_bytes(), _names(report.parent)) == (OLD, ["report.json"])

    @pytest.mark.parametrize("had_report", [True, False])
    def test_a_standard_output_that_fails_leaves_the_report_as_it_was(
        self, had_report: bool, plan_path: Path, report: Path
    ) -> None:
        if not had_report:
            report.unlink()
        before = report.stat() if had_report else None
        with open("/dev/full", "wb") as full:
            ran = run_script("pqcota-provision", plan_path, "--report", report, stdout=full, variables=VARIABLES)
        assert ran.status == 1
        if before is None:
            assert _names(plan_path.parent) == ["plan.json"]
        else:
            assert (report.read_bytes(), report.stat().st_ino) == (OLD, before.st_ino)
            assert _names(plan_path.parent) == ["plan.json", "report.json"]

    def test_a_reader_that_went_away_leaves_the_report_as_it_was(self, plan_path: Path, report: Path) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "wb") as pipe:
            ran = run_script("pqcota-provision", plan_path, "--report", report, stdout=pipe, variables=VARIABLES)
        assert ran.status == 1
        assert (report.read_bytes(), _names(plan_path.parent)) == (OLD, ["plan.json", "report.json"])

    def test_all_that_is_asked_for_is_there_in_the_end(self, plan_path: Path, report: Path) -> None:
        ran = run(provision_main, plan_path, "--report", report)
        assert ran.status == 0
        assert ran.out.startswith(b"---\n")
        assert json.loads(report.read_bytes())["planId"] == "plan-1"
        assert _names(plan_path.parent) == ["plan.json", "report.json"]

    @pytest.mark.parametrize(
        ("output", "report"),
        [
            pytest.param("x.json", "x.json", id="same-name"),
            pytest.param("x.json", "./d/../x.json", id="same-file-by-another-path"),
            pytest.param("x.json", "link", id="same-file-by-a-link"),
            pytest.param("there", "hard", id="same-file-by-a-hard-link"),
            pytest.param("-", "-", id="both-standard-output"),
            pytest.param("-", "/dev/stdout", id="both-standard-output-by-name"),
            pytest.param("plan.json", "r.json", id="output-over-the-plan"),
            pytest.param("o.yml", "plan.json", id="report-over-the-plan"),
            pytest.param("pipe", "pipe", id="same-pipe"),
        ],
    )
    def test_one_file_for_two_purposes_is_wrong_usage(
        self, output: str, report: str, plan_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(plan_path.parent)
        Path("d").mkdir()
        Path("link").symlink_to("x.json")
        Path("there").write_bytes(OLD)
        Path("hard").hardlink_to("there")
        os.mkfifo("pipe")
        before = _names(plan_path.parent)
        ran = run(provision_main, "plan.json", "--output", output, "--report", report)
        assert_refused(ran, status=2)
        assert (_names(plan_path.parent), plan_path.read_bytes()) == (before, PLAN)

    @pytest.mark.parametrize(
        "command",
        [
            pytest.param(
                "pqcota-provision plan.json --report out.yml > out.yml", id="report-in-standard-output's-file"
            ),
            pytest.param("pqcota-provision plan.json --report /dev/stdout", id="report-on-standard-output"),
            pytest.param("pqcota-provision plan.json --report /dev/fd/1 | cat; exit ${PIPESTATUS[0]}", id="by-number"),
            pytest.param("pqcota-provision plan.json >> plan.json", id="playbook-appended-to-the-plan"),
        ],
    )
    def test_a_report_never_mixes_with_the_playbook(self, command: str, plan_path: Path) -> None:
        assert_refused(_shell(command, plan_path.parent), status=2)
        assert plan_path.read_bytes() == PLAN

    def test_a_report_can_go_to_another_process(self, plan_path: Path) -> None:
        ran = _shell("pqcota-provision plan.json --report >(cat > report.json); sleep 0.2", plan_path.parent)
        assert ran.out == run(provision_main, plan_path).out
        assert json.loads(_read_when_there(plan_path.parent / "report.json"))["planId"] == "plan-1"

    def test_a_report_can_go_to_standard_error_without_losing_what_is_there(self, plan_path: Path) -> None:
        _shell("pqcota-provision plan.json --report /dev/stderr > out.yml 2> log", plan_path.parent)
        log = (plan_path.parent / "log").read_text("utf-8")
        assert log.startswith('pqcota-provision: approved by "alice".\n{')
        assert '"planId": "plan-1"' in log

    def test_a_report_can_go_to_standard_output_beside_an_output_file(self, plan_path: Path) -> None:
        ran = _shell("pqcota-provision plan.json --report /dev/stdout --output out.yml", plan_path.parent)
        assert json.loads(ran.out)["planId"] == "plan-1"
        assert (plan_path.parent / "out.yml").read_bytes().startswith(b"---\n")


def _read_when_there(path: Path) -> bytes:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().endswith(b"}\n")):
        assert time.monotonic() < deadline, f"{path} never got its text"
        time.sleep(0.02)
    return path.read_bytes()


class TestInterrupt:
    @pytest.fixture
    def waiting(self, tmp_path: Path) -> Iterator[Callable[[str, str], Ran]]:
        """Start a script that reads a plan which never ends, send it a signal once it reads, return what it left."""
        started: list[subprocess.Popen[bytes]] = []

        def wait_and_signal(name: str, *options: str) -> Ran:
            process = subprocess.Popen(
                [script(name), *ARGUMENTS[name], *options, "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(**VARIABLES),
                cwd=tmp_path,
            )
            started.append(process)
            assert process.stdin is not None
            process.stdin.write(b"{")
            process.stdin.flush()
            deadline = time.monotonic() + 60
            unread = array.array("i", [1])
            while unread[0]:
                assert time.monotonic() < deadline, "the command never read its standard input"
                time.sleep(0.01)
                fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
            process.send_signal(signal.SIGINT)
            # Kept open: not the end of the plan ends the command.
            status = process.wait(60)
            assert process.stdout is not None
            assert process.stderr is not None
            return Ran(status, process.stdout.read(), process.stderr.read().decode("utf-8"))

        yield wait_and_signal
        for process in started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    @pytest.mark.parametrize("name", PLAN_READERS)
    def test_control_c_while_waiting_for_the_plan_ends_in_130_and_one_line(
        self, name: str, waiting: Callable[..., Ran], tmp_path: Path
    ) -> None:
        ran = waiting(name, "--output", "out")
        assert ran == (130, b"", f"{name}: interrupted\n")
        assert _names(tmp_path) == []

    def test_control_c_while_a_slow_reader_is_served_takes_the_report_back(self, tmp_path: Path) -> None:
        plan = json.loads(PLAN)
        first = plan["actions"][0]
        many = [{**first, "id": f"a{number}", "targetNodeId": f"node-{number}"} for number in range(400)]
        (tmp_path / "plan.json").write_bytes(signed(in_review(actions=many)))
        report = tmp_path / "report.json"
        with subprocess.Popen(
            [script("pqcota-provision"), "plan.json", "--report", "report.json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**VARIABLES),
            cwd=tmp_path,
        ) as process:
            # The report is in its place and the pipe is full: the command is stuck in standard output.
            _read_when_there(report)
            process.send_signal(signal.SIGINT)
            status = process.wait(60)
            said = process.stderr.read().decode("utf-8") if process.stderr else ""
        assert (status, said.splitlines()[-1]) == (130, "pqcota-provision: interrupted")
        assert _names(tmp_path) == ["plan.json"]
