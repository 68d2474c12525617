"""What Ansible's own loader makes of text from a plan: the same string, and never a template."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.parsing.utils.yaml import from_yaml
from ansible.template import is_trusted_as_template, trust_as_template
from hypothesis import given
from hypothesis import strategies as st

from pqcota_provision.playbook.yamlwriter import Item, Unsafe, Value, YamlWriter

typed_words = st.sampled_from(
    [
        "true",
        "yes",
        "Off",
        "null",
        "~",
        "",
        "0755",
        "12",
        "1e3",
        "1_000",
        "1:30",
        "0x1f",
        ".inf",
        "2026-01-02",
        "=",
        "<<",
    ]
)
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\t '\"{}%#\\:-|>&*!?,[]@`"),
    max_size=60,
)


def read_by_ansible(value: Value) -> Any:
    written = "".join(YamlWriter().sequence([Item({"name": "Run", "args": {"cmd": value}})]))
    # A playbook file is trusted, so whatever it holds untagged is a template.
    return from_yaml(trust_as_template(written))[0]["args"]["cmd"]


@given(texts | st.builds(str.__add__, typed_words, st.sampled_from(["", "\n", "\n\n", " "])))
def test_a_hook_reaches_ansible_letter_by_letter(text: str) -> None:
    read = read_by_ansible(Unsafe(text))
    assert (isinstance(read, str), read) == (True, text)


@pytest.mark.parametrize("text", ["true", "false", "yes", "0755", "null", "2026-01-02", "=", "true\n", "1\n"])
def test_a_hook_of_one_word_is_not_taken_for_a_truth_value_or_a_number(text: str) -> None:
    read = read_by_ansible(Unsafe(text))
    assert (isinstance(read, str), read) == (True, text)


@given(texts, st.sampled_from(["{{ lookup('pipe', 'id') }}", "{% raw %}", "{# gone #}", "{{", "{%", "{#"]))
def test_a_template_in_a_hook_is_never_trusted(text: str, template: str) -> None:
    assert not is_trusted_as_template(read_by_ansible(Unsafe(text + template)))


def test_our_own_templates_are_trusted() -> None:
    assert is_trusted_as_template(read_by_ansible("{{ pqcota_unknown_nodes | sort }}"))
