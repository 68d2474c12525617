"""Plans whose every text is one that YAML, Jinja, a linter or a terminal could take for something else."""

from __future__ import annotations

from pqcota_provision.plan.model import (
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
)

TEXTS = (
    # Jinja
    "docker ps --format '{{.Names}}'",
    "a=(1 2); echo ${#a[@]} {# not a comment #}",
    'echo {{x}} {{ x|default("y")}} {%if a%}b{%endif%}',
    "{% raw %}echo{% endraw %} {{ lookup('pipe', 'id') }}",
    "{{ x }}\n{{ y}}\n{{z }}",
    # blanks, tabs and lines
    "printf 'a\tb'\t&& echo\tc",
    "set -e\n\techo a\n\t\techo b\n",
    "set -e\n    echo a\n  echo b",
    "   echo a\n echo b",
    "echo a   \necho b\t \n  echo c \\\n  d",
    "echo a\n   \n\t\necho b",
    "echo a\n\n\n\n\necho b",
    "\n\n\n\n[default]\nopenssl_conf = x\n\n\n\n",
    "echo a\r\necho b\r\n",
    "echo a\rb",
    "cat > /x <<'EOF'\n[Service]\n  Environment=A=b\n\n\tx\nEOF\nsystemctl daemon-reload",
    "\n".join(f"echo {number}" for number in range(100)),
    # length
    "echo " + "x" * 400,
    "echo " + "word " * 120,
    "set -e\necho " + "y" * 300 + "\necho " + "word " * 60,
    "echo " + "a\t" * 120,
    "echo " + "検証 " * 120,
    "echo " + "\u202e a" * 120,
    # Unicode
    "echo 'Überprüfung – 検証 🔐'",
    "echo safe \u202e echo evil \u2066 x \u2069",
    "echo one\necho safe \u202e evil\necho \u200b zero",
    "echo \ufeff bom",
    "echo a\u2028b\u2029c\nd",
    "echo \u00a0x\ue000\U0010fffd e\u0301\u034f",
    # YAML
    "yes",
    "true",
    "null",
    "~",
    "0755",
    "1:30",
    "2026-01-02",
    "=",
    "<<",
    "- a",
    "*a",
    "&a b",
    "%a",
    "@a",
    "!a b",
    "| a",
    "> a",
    "? a",
    "[a, b]",
    "{a: b}",
    ", a",
    "`a`",
    "echo a: b # comment",
    "# only a comment\necho a",
    "---\n...\n--- !x\n",
    'echo "it\'s" \'a "b"\'',
    "echo it's",
    "!!python/object/apply:os.system ['id']",
    "!vault |\n $ANSIBLE_VAULT;1.1;AES256\n 6161",
    '!unsafe "x"',
    # what linters look for
    "echo creates=/tmp/x chdir=/ removes=/y warn=no",
    "ps aux | grep x | tail -1",
    "git clone https://example.org/x",
    "rm -rf /x; curl http://example.org/x; systemctl restart y; sed -i s/a/b/ z; apt-get install x; chmod 777 y",
    "systemctl restart x",
    "FOO=bar cmd",
    "sudo -u x ls",
    "ls",
    "mysql --password=hunter2 -e 'select 1'",
    "echo a # noqa: all",
    "# yamllint disable-file\necho a\n# yamllint disable\n",
    "# yamllint enable rule:line-length\necho " + "z" * 300,
)

HOSTS = ("2001:db8::17", "::1", "10.0.0.1", "true", "null", "0755", "1e3", "_x", "UPPER.example", "a" * 253)
_L2 = DeployAutomationLevel.L2_STAGE_INSTALL

PROVIDERS = ("p" * 64, "true", "null", "0", "1.5", "+x", "__", "a.b+c_d-e", "item", "omit")


def plan(*actions: RemediationAction, text: str = "p1") -> FinalizedPlan:
    """Return a plan in review with these actions."""
    return FinalizedPlan(id=text, status=PlanStatus.IN_REVIEW, scope=text, ruleset_version=text, actions=tuple(actions))


def _action(**fields: object) -> RemediationAction:
    defaults: dict[str, object] = {
        "id": "a1",
        "target_node_id": "n1",
        "crypto_runtime": CryptoRuntime.OPENSSL,
        "kind": RemediationKind.CONFIG_ONLY,
        "automation_level": DeployAutomationLevel.L3_FULL_AUTO,
        "target_algorithm": "ML-KEM",
    }
    return RemediationAction(**{**defaults, **fields})  # type: ignore[arg-type]


def _hooks() -> FinalizedPlan:
    return plan(
        *(
            _action(activation=ActivationHooks(**{("pre", "activate", "deactivate", "restart")[index % 4]: text}))
            for index, text in enumerate(TEXTS)
        )
    )


def _fragments() -> FinalizedPlan:
    return plan(
        *(
            _action(id=f"a{index}", automation_level=_L2, config_artifact=text, crypto_runtime=CryptoRuntime.JCA)
            for index, text in enumerate(TEXTS)
        ),
        *(_action(id=f"a{index}", automation_level=_L2, target_algorithm=text) for index, text in enumerate(TEXTS)),
    )


def _comments() -> FinalizedPlan:
    return plan(
        *(
            _action(id=text, kind=RemediationKind.REBUILD, automation_level=_L2, finding_id=text, rollback_note=text)
            for text in TEXTS
        ),
        text="---\n...\n# yamllint disable\n- hosts: all {{ x }} \u202e" + "x" * 300,
    )


def _names() -> FinalizedPlan:
    hooks = ActivationHooks(pre="stop x", activate="on", deactivate="off", restart="start x")
    return plan(
        *(
            _action(
                id=provider,
                target_node_id=host,
                kind=RemediationKind.PROVIDER_INJECT,
                provider_choice=provider,
                activation=hooks,
            )
            for host, provider in zip(HOSTS, PROVIDERS, strict=True)
        ),
        *(
            _action(id=provider, target_node_id="split", config_artifact=f"a = {provider}", activation=hooks)
            for provider in PROVIDERS
        ),
    )


AWKWARD_PLANS = {"hooks": _hooks(), "fragments": _fragments(), "comments": _comments(), "names": _names()}
