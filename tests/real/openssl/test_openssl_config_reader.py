"""The reader of OpenSSL configs that judges hand-written ones, held against OpenSSL's own."""

from __future__ import annotations

import ctypes
import ctypes.util

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from available import skip_or_fail
from pqcota_provision.playbook.fragments.openssl_config import read_openssl_config

pytestmark = pytest.mark.real


class _Value(ctypes.Structure):
    _fields_ = (("section", ctypes.c_char_p), ("name", ctypes.c_char_p), ("value", ctypes.c_char_p))


class LibCrypto:
    """The few functions of libcrypto that read a config."""

    def __init__(self) -> None:
        name = ctypes.util.find_library("crypto")
        if name is None:
            skip_or_fail("libcrypto is not installed")
        library = ctypes.CDLL(name)
        pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
        signatures: dict[str, tuple[object, list[object]]] = {
            "NCONF_new": (pointer, [pointer]),
            "NCONF_free": (None, [pointer]),
            "NCONF_load_bio": (number, [pointer, pointer, ctypes.POINTER(ctypes.c_long)]),
            "NCONF_get_section": (pointer, [pointer, text]),
            "NCONF_get_section_names": (pointer, [pointer]),
            "BIO_new_mem_buf": (pointer, [text, number]),
            "BIO_free": (number, [pointer]),
            "ERR_clear_error": (None, []),
            "OPENSSL_sk_num": (number, [pointer]),
            "OPENSSL_sk_value": (pointer, [pointer, number]),
            "OPENSSL_sk_free": (None, [pointer]),
        }
        for function, (result, arguments) in signatures.items():
            found = getattr(library, function, None)
            if found is None:
                skip_or_fail(f"{name} has no {function}")
            found.restype, found.argtypes = result, arguments
        self._library = library

    def read(self, text: bytes, sections: list[str]) -> tuple[int, dict[str, dict[str, str]]]:
        """Return the number of the line that makes OpenSSL refuse the text, or 0 and the sections asked for."""
        library = self._library
        config = library.NCONF_new(None)
        source = library.BIO_new_mem_buf(text, len(text))
        line = ctypes.c_long(0)
        try:
            if library.NCONF_load_bio(config, source, ctypes.byref(line)) <= 0:
                library.ERR_clear_error()
                return line.value, {}
            return 0, {section: self._settings(config, section) for section in sections}
        finally:
            library.BIO_free(source)
            library.NCONF_free(config)

    def _settings(self, config: int, section: str) -> dict[str, str]:
        library = self._library
        stack = library.NCONF_get_section(config, section.encode())
        library.ERR_clear_error()
        found: dict[str, str] = {}
        for index in range(library.OPENSSL_sk_num(stack) if stack else 0):
            value = ctypes.cast(library.OPENSSL_sk_value(stack, index), ctypes.POINTER(_Value)).contents
            found[value.name.decode()] = value.value.decode()
        return found


@pytest.fixture(scope="module")
def libcrypto() -> LibCrypto:
    """The system's libcrypto."""
    return LibCrypto()


NAMES = st.sampled_from(["default", "openssl_conf", "providers", "dir", "Groups", "a.b", "x-1", "s"])
PIECES = st.one_of(
    NAMES,
    st.sampled_from(["$dir", "${dir}", "$(dir)", "${dir", "$s::dir", "$", "/opt", "1", "?*x25519:P-256", "é", ""]),
    st.sampled_from(['"', "'", "`", "\\", "\\\\", "#", "=", "[", "]", ":", "::", " ", "\t", "\r", "{{ x }}", "(", ";"]),
)
LINES = st.one_of(
    st.builds(lambda name, value: f"{name} = {value}", NAMES, st.lists(PIECES, max_size=3).map("".join)),
    st.builds(lambda section: f"[ {section} ]", NAMES),
    st.lists(PIECES, max_size=6).map("".join),
)


@given(lines=st.lists(LINES, max_size=8), ending=st.sampled_from(["\n", "\r\n"]))
@example(lines=["[a", "x=1"], ending="\n")
@example(lines=["[s]", "dir=/opt", "default::a=$s::dir"], ending="\n")
@example(lines=["# joined \\", "a = 1", "b = 2"], ending="\n")
def test_it_reads_what_openssl_reads(libcrypto: LibCrypto, lines: list[str], ending: str) -> None:
    text = ending.join(lines)
    ours = read_openssl_config(text)
    error_line, theirs = libcrypto.read(text.encode(), list(ours.sections))
    assert ours.error.partition(" ")[2].partition(" ")[0] == (str(error_line) if error_line else ""), ours.error
    if not ours.error:
        assert {name: settings for name, settings in ours.sections.items() if None not in settings.values()} == {
            name: settings for name, settings in theirs.items() if None not in ours.sections[name].values()
        }
