"""Every text of a plan arrives on the node byte for byte, over SSH, and is never expanded on the way.

The host's ``/bin/sh`` is replaced by one that writes down what an Ansible module hands it, so that even text that
is no shell command can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ansible_project import MakeProject, Project
from approved_plans import action, playbook, rollback
from fleet import Host
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pqcota_provision import Level

pytest_plugins = ("host_fixtures",)
pytestmark = pytest.mark.real

NODE = "web-1"
RECORD = "/var/log/hooks"
RECORDING_SHELL = f"""\
#!/usr/bin/python3 -IS
import os, sys
with open(f"/proc/{{os.getppid()}}/comm") as comm:
    is_hook = comm.read().startswith("python") and sys.argv[1] == "-c"
if is_hook:
    with open("{RECORD}", "ab") as record:
        record.write(os.fsencode(sys.argv[2]) + b"\\0")
else:
    os.execv("/usr/bin/dash", ["/bin/sh", *sys.argv[1:]])
"""

TAKEN_APART_AS_ARGUMENTS = (
    "don't",
    'say "it"',
    "'",
    '"',
    "echo 'a' \"b\" `c`",
    "touch /x creates=/x chdir=/ executable=/bin/false removes=/y",
    "cmd=true",
    "a=b",
    "argv=[1]",
    "warn=no",
)
TAKEN_FOR_TEMPLATES = (
    "echo ${#array[@]}",
    "docker ps --format '{{.Names}}'",
    "{{ 1 + 1 }}",
    "{{ undefined_variable }}",
    "{% raw %}x{% endraw %}",
    "{% for %}",
    "{# gone #}",
    "#jinja2: trim_blocks: true\n{{ x }}",
    "{{ lookup('pipe', 'touch /tmp/expanded') }}",
    "}}",
)
TAKEN_FOR_YAML = (
    "true",
    "no",
    "123",
    "2025-11-30",
    "- item",
    "key: value",
    "key: value # no comment",
    "# comment",
    "&anchor *alias",
    "!unsafe x",
    "!vault |\n  $ANSIBLE_VAULT",
    "---",
    "...\n---\n",
    "@at `tick",
    "| >",
    "[1, 2]",
    '{"a": 1}',
    "{'a': 1}",
)
LINES_AND_BLANKS = (
    "one \\\n  two \\\n\tthree",
    "ends with a backslash \\",
    "first\n\n\n  second\n",
    "inner   spaces\tand\ttabs",
    "a\r\nb\r\n",
    "carriage\rreturn",
    "x\n \n\t\ny",
    "cat <<'EOF' >/tmp/x\n  {{ a }}\n\tb'\"\nEOF",
)
BEYOND_ASCII = (
    "Grüße, naïve, 日本語, 🔐",
    "e\u0301 and é",
    "bidi \u202e mark, zero\u200bwidth, nbsp\u00a0here",
    "line\u2028separator\u2029paragraph",
    "bom\ufeffinside",
    "\U0010ffff astral end",
)
LONG = (
    "x" * 400 + " " + "y" * 400,
    "word " * 4000 + "end",
)
ENDS_THAT_HOOKS_ARE_TRIMMED_OF = (
    " leading space",
    "\ttab first",
    "trailing spaces   ",
    "trailing tab\t",
    "   \n  indented\n",
    "\n\nblank lines first",
    "\n",
    " ",
    "many newlines at the end\n\n\n\n",
    "ends with CR LF\r\n",
    "\ufeffbegins with a BOM",
)
HOOKS = (
    *TAKEN_APART_AS_ARGUMENTS,
    *TAKEN_FOR_TEMPLATES,
    *TAKEN_FOR_YAML,
    *LINES_AND_BLANKS,
    *BEYOND_ASCII,
    *LONG,
)
# Placing a file takes thrice the time of a hook: where only the middle of a text matters, one fragment has them all.
FRAGMENTS = (
    "\n".join(TAKEN_APART_AS_ARGUMENTS),
    "\n".join(BEYOND_ASCII),
    *TAKEN_FOR_TEMPLATES[-3:],
    "\n".join(TAKEN_FOR_TEMPLATES),
    *TAKEN_FOR_YAML,
    "\n".join(LINES_AND_BLANKS),
    LONG[0],
    *ENDS_THAT_HOOKS_ARE_TRIMMED_OF,
)
STEPS = ("pre", "activate", "deactivate", "restart")


def record_hooks(host: Host) -> None:
    host.path("/usr/bin/sh").unlink()
    host.write("/usr/bin/sh", RECORDING_SHELL, 0o755)


def recorded(host: Host) -> list[str]:
    """Return what hooks arrived since the last call, in order."""
    if not host.exists(RECORD):
        return []
    texts = host.read(RECORD).decode("utf-8", "surrogateescape").split("\0")
    host.path(RECORD).unlink()
    assert texts.pop() == ""
    return texts


def hook_actions(texts: Sequence[str]) -> list[dict[str, object]]:
    """Return actions that between them have each text as a hook, four an action."""
    return [
        action(NODE, id=f"act-{start}", activation=dict(zip(STEPS, texts[start : start + 4], strict=False)))
        for start in range(0, len(texts), 4)
    ]


def of_step(texts: Sequence[str], *steps: str) -> list[str]:
    """Return the texts that stand at some steps, in the order in which a run comes to them."""
    return [text.strip() for step in steps for index, text in enumerate(texts) if STEPS[index % 4] == step]


def fragment_actions(texts: Sequence[str]) -> list[dict[str, object]]:
    return [action(NODE, id=f"act-{index}", configArtifact=text) for index, text in enumerate(texts)]


def placed(host: Host, texts: Sequence[str]) -> list[str]:
    return [host.read(f"/etc/pqcota/openssl-pqc.act-{index}.cnf").decode() for index in range(len(texts))]


def expected_fragments(texts: Sequence[str]) -> list[str]:
    return [text.rstrip("\n") + "\n" for text in texts]


def run_all_hooks(project: Project, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Apply and roll back, and return the hooks that arrived in each."""
    actions = hook_actions(texts)
    host = project.hosts[NODE]
    project.run(playbook(*actions, level=Level.L3)).succeeded()
    forward = recorded(host)
    project.run(rollback(*actions, level=Level.L3)).succeeded()
    return forward, recorded(host)


def test_hooks_of_all_kinds_arrive_byte_for_byte(make_project: MakeProject) -> None:
    project = make_project(NODE)
    record_hooks(project.hosts[NODE])
    forward, backward = run_all_hooks(project, HOOKS)
    assert forward == of_step(HOOKS, "pre", "activate", "restart")
    assert backward == of_step(HOOKS, "pre", "deactivate", "restart")


def test_fragments_of_all_kinds_arrive_byte_for_byte(make_project: MakeProject) -> None:
    project = make_project(NODE)
    project.run(playbook(*fragment_actions(FRAGMENTS))).succeeded()
    assert placed(project.hosts[NODE], FRAGMENTS) == expected_fragments(FRAGMENTS)


PLAN_TEXT = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], include_characters="\n\t\r{}%#'\"\\$`=:|>&*![]-? "), min_size=1
)


@given(hooks=st.data())
@settings(
    max_examples=1,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_any_text_arrives_byte_for_byte(make_project: MakeProject, hooks: st.DataObject) -> None:
    texts = hooks.draw(st.lists(PLAN_TEXT, min_size=12, max_size=12, unique_by=lambda text: text.rstrip("\n")))
    commands = [text for text in dict.fromkeys(text.strip() for text in texts) if text]
    project = make_project(NODE)
    host = project.hosts[NODE]
    record_hooks(host)
    project.run(playbook(*fragment_actions(texts))).succeeded()
    assert placed(host, texts) == expected_fragments(texts)
    forward, backward = run_all_hooks(project, commands)
    assert forward == of_step(commands, "pre", "activate", "restart")
    assert backward == of_step(commands, "pre", "deactivate", "restart")


def test_no_text_of_a_plan_is_ever_expanded_not_even_by_a_syntax_check(make_project: MakeProject) -> None:
    project = make_project(NODE)
    mark = project.directory / "expanded"
    bait = f"{{{{ lookup('ansible.builtin.pipe', 'touch {mark}') }}}}"
    host = project.hosts[NODE]
    record_hooks(host)
    text = playbook(
        action(
            NODE, findingId=bait, targetAlgorithm=bait, configArtifact=bait, rollbackNote=bait,
            activation=dict.fromkeys(STEPS, bait),
        ),
        level=Level.L3, id=bait, scope=bait, rulesetVersion=bait, derivedFromSnapshotId=bait,
    )  # fmt: skip
    for option in ("--syntax-check", "--list-tasks", "--check"):
        project.run(text, option).succeeded()
    project.run(text, "--diff").succeeded()
    assert not mark.exists()
    assert recorded(host) == [bait, bait, bait]
    assert host.read("/etc/pqcota/openssl-pqc.cnf").decode() == bait + "\n"
