"""Untrusted text in a message: on one line, and nothing in it that a terminal obeys or a reader cannot see."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pqcota_provision.text import join_names, printable, quote

HOSTILE = [
    pytest.param("\n", r"\n", id="newline"),
    pytest.param("\r", r"\r", id="carriage-return"),
    pytest.param("\t", r"\t", id="tab"),
    pytest.param("\0", r"\u0000", id="nul"),
    pytest.param("\x1b[2J", r"\u001b[2J", id="terminal-sequence"),
    pytest.param("\x7f", r"\u007f", id="delete"),
    pytest.param("\x85", r"\u0085", id="next-line"),
    pytest.param("\x9b", r"\u009b", id="one-byte-csi"),
    pytest.param("\u2028", r"\u2028", id="line-separator"),
    pytest.param("\u2029", r"\u2029", id="paragraph-separator"),
    pytest.param("\u202e", r"\u202e", id="right-to-left-override"),
    pytest.param("\u2066", r"\u2066", id="left-to-right-isolate"),
    pytest.param("\u200b", r"\u200b", id="zero-width-space"),
    pytest.param("\ufeff", r"\ufeff", id="byte-order-mark"),
    pytest.param("\u00ad", r"\u00ad", id="soft-hyphen"),
    pytest.param("\u3164", r"\u3164", id="hangul-filler"),
    pytest.param("\u034f", r"\u034f", id="grapheme-joiner"),
    pytest.param("\ufe0f", r"\ufe0f", id="variation-selector"),
    pytest.param("\ud800", r"\ud800", id="half-of-a-surrogate-pair"),
    pytest.param("\ue000", r"\ue000", id="private-use"),
    pytest.param("\U000e0041", r"\U000e0041", id="tag-letter"),
    pytest.param("\U000e0100", r"\U000e0100", id="variation-selector-supplement"),
    pytest.param("\U0010ffff", r"\U0010ffff", id="noncharacter"),
]
any_text = st.text(st.characters()) | st.text(st.sampled_from('ab"\\\n\r\t\0\x1b\x85\u2028\u202e\u3164\ud800…'))


def is_safe(text: str) -> bool:
    return len(text.splitlines()) <= 1 and not any(
        unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp") for character in text
    )


@given(text=any_text)
def test_no_text_breaks_a_message_into_lines_or_steers_a_terminal(text: str) -> None:
    assert is_safe(printable(text))
    assert is_safe(quote(text))


@given(names=st.lists(any_text, max_size=20), limit=st.integers(1, 15))
def test_no_name_in_a_list_breaks_a_message_into_lines_or_steers_a_terminal(names: list[str], limit: int) -> None:
    assert is_safe(join_names(names, limit))


@given(text=any_text)
def test_what_is_printable_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    if is_safe(text) and not any(character in "\u3164" for character in text):
        assert printable(text) == text or any(unicodedata.category(c) in ("Lo", "Mn") for c in text)


@given(first=any_text, second=any_text)
def test_two_different_quoted_texts_never_look_the_same(first: str, second: str) -> None:
    assume(first != second)
    assert quote(first, limit=10**6) != quote(second, limit=10**6)


@given(text=any_text)
def test_a_quoted_text_never_seems_to_end_before_its_end(text: str) -> None:
    inner = quote(text)[1:-1]
    while inner:
        assert inner[0] != '"'
        inner = inner[2:] if inner[0] == "\\" else inner[1:]


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_what_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(f"a{text}b") == f"a{shown}b"


@pytest.mark.parametrize("text", ["é", "한국", "日本語", "\U0001f600", "a b", "naïve “quotes”", "עברית", "ß\u0301"])
def test_text_in_any_language_is_shown_as_it_is(text: str) -> None:
    assert quote(text) == f'"{text}"'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("", '""', id="empty"),
        pytest.param('a"b', r'"a\"b"', id="quote"),
        pytest.param("a\\b", r'"a\\b"', id="backslash"),
        pytest.param("a\\", r'"a\\"', id="trailing-backslash"),
        pytest.param("a\nb", r'"a\nb"', id="newline"),
        pytest.param("a" * 81, f'"{"a" * 80}…"', id="long"),
        pytest.param("a" * 80, f'"{"a" * 80}"', id="just-short-enough"),
    ],
)
def test_a_quoted_text_is_cut_and_escaped(text: str, shown: str) -> None:
    assert quote(text) == shown


@pytest.mark.parametrize(
    ("names", "phrase"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["a"], "a", id="one"),
        pytest.param(["a", "b"], "a and b", id="two"),
        pytest.param(("a", "b", "c"), "a, b and c", id="three"),
        pytest.param(["a", "b", "c", "d", "e"], "a, b, c and 2 more", id="more-than-the-limit"),
        pytest.param(["a\nb", "c\u202e"], r"a\nb and c\u202e", id="hostile"),
    ],
)
def test_names_are_joined_into_one_phrase(names: list[str] | tuple[str, ...], phrase: str) -> None:
    assert join_names(names, limit=4 if len(names) < 5 else 3) == phrase
