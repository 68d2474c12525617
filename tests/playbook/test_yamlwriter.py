from __future__ import annotations

import io
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from playbook_reader import UnsafeText, load_yaml
from pqcota_provision.playbook.yamlwriter import LINE_LENGTH, Item, Unsafe, YamlWriter, comment_lines

texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\r\t '\"{}%#\\:-|>&*!?,[]@`"),
    max_size=60,
)
long_texts = st.lists(texts, max_size=8).map(" ".join)


def write(entries: dict[str, Any], **fields: Any) -> str:
    return "".join(YamlWriter().sequence([Item({"name": "Do it", **entries}, **fields)]))


@given(texts | long_texts)
def test_text_from_a_plan_is_read_back_letter_by_letter(text: str) -> None:
    assert load_yaml(write({"args": {"cmd": Unsafe(text)}}))[0]["args"]["cmd"] == text


@given(texts | long_texts)
def test_plain_text_is_read_back_letter_by_letter(text: str) -> None:
    assert load_yaml(write({"args": {"cmd": text}}))[0]["args"]["cmd"] == text


@given(st.lists(texts, min_size=1, max_size=4))
def test_a_list_of_texts_is_read_back_letter_by_letter(elements: list[str]) -> None:
    assert load_yaml(write({"loop": [Unsafe(text) for text in elements]}))[0]["loop"] == elements


@given(texts.filter(lambda text: "{{" in text) | texts.map(lambda text: "{{" + text))
def test_text_that_looks_like_a_template_is_never_left_untagged(text: str) -> None:
    assert isinstance(load_yaml(write({"cmd": Unsafe(text)}))[0]["cmd"], UnsafeText)


@pytest.mark.parametrize(
    "text", ["true", "no", "null", "~", "", "0644", "1e3", "1:30", "2026-01-02", ".inf", "0x1f", "=", "<<", "on", "Off"]
)
@pytest.mark.parametrize("kind", [str, Unsafe])
def test_text_that_yaml_could_take_for_another_type_stays_a_string(text: str, kind: type) -> None:
    loaded = load_yaml(write({"value": kind(text)}))[0]["value"]
    assert (type(loaded) in (str, UnsafeText), loaded) == (True, text)


@given(texts, texts)
def test_what_follows_a_text_is_not_swallowed_by_it(first: str, second: str) -> None:
    loaded = load_yaml(write({"a": Unsafe(first), "b": {"c": Unsafe(second)}, "d": True}))[0]
    assert loaded == {"name": "Do it", "a": first, "b": {"c": second}, "d": True}


@given(st.lists(st.text(max_size=300), max_size=4), st.integers(0, 12))
def test_no_text_breaks_out_of_a_comment(lines: list[str], indent: int) -> None:
    written = comment_lines(lines, indent)
    assert all(line.lstrip(" ").startswith("#") for line in written.splitlines())


@given(st.lists(st.text(max_size=400), max_size=4))
def test_comments_keep_to_the_line_length(lines: list[str]) -> None:
    assert all(len(line) <= LINE_LENGTH for line in comment_lines(lines, 12).splitlines())


@given(st.lists(st.text(max_size=80), max_size=3).map(tuple))
def test_comments_change_nothing_that_is_read(lines: tuple[str, ...]) -> None:
    assert load_yaml(write({"value": "x"}, comments=lines)) == [{"name": "Do it", "value": "x"}]


lines_of_shell = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.sampled_from("\n' "), max_size=150)


@given(lines_of_shell)
def test_plain_text_is_written_as_the_emitter_writes_it(text: str) -> None:
    class Tagged(str):
        __slots__ = ()

    class Dumper(yaml.SafeDumper):
        pass

    style = "|" if "\n" in text else None
    Dumper.add_representer(Tagged, lambda dumper, data: dumper.represent_scalar("!unsafe", str(data), style=style))
    stream = io.StringIO()
    # Keys around it, so that it ends where the next one begins.
    yaml.dump({"a": "x", "value": Tagged(text), "z": "x"}, stream, Dumper=Dumper, width=120)
    written = write({"value": Unsafe(text), "z": "x"})
    if "!unsafe" in written:
        lines = [line.removeprefix("  ") for line in written.splitlines() if "# yamllint" not in line]
        assert lines[1:] == stream.getvalue().splitlines()[1:]


def test_marks_that_steer_the_readers_eye_are_shown_as_escapes() -> None:
    assert "\u202e" not in write({"cmd": Unsafe("echo \u202etxt.exe")})


@given(st.integers(0, 3), texts)
def test_a_shared_item_is_written_the_same_each_time(indent: int, text: str) -> None:
    writer = YamlWriter()
    item = Item({"name": "Do it", "cmd": Unsafe(text)}, shared=True)
    first, second = ("".join(writer.sequence([item], indent * 2)) for _ in range(2))
    alone = "".join(YamlWriter().sequence([item._replace(shared=False)], indent * 2))
    assert first == second == alone
