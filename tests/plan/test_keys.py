"""Keys: nothing but a sound key pair signs or is registered, and no message shows a secret."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from pqcota_provision.errors import KeyUnusable
from pqcota_provision.plan.keys import PrivateKey, PublicKey, decode_base64, parse_key_map

seeds = st.binary(min_size=32, max_size=32)

ALICE = PrivateKey(bytes(range(32)))
BOB = PrivateKey(bytes(range(1, 33)))

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ORDER_EIGHT_Y = (
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def encode_y(y: int, sign: int = 0) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


Point = tuple[int, int]


def add(first: Point, second: Point) -> Point:
    """Add two points of edwards25519, in affine coordinates as the curve's equation gives it."""
    (x1, y1), (x2, y2) = first, second
    product = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + product, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - product, -1, P) % P,
    )


def multiply(point: Point, scalar: int) -> Point:
    result = (0, 1)
    for bit in bin(scalar)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def point_of(data: bytes) -> Point:
    number = int.from_bytes(data, "little")
    y = number & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    x = next(x for x in (root, root * pow(2, (P - 1) // 4, P) % P) if x * x % P == square)
    return (x if x & 1 == number >> 255 else -x % P, y)


def bytes_of(point: Point) -> bytes:
    return encode_y(point[1], point[0] & 1)


TORSION = [multiply(point_of(bytes.fromhex(ORDER_EIGHT_Y[0])), times) for times in range(8)]

UNSOUND = [
    *(pytest.param(bytes_of(point), id=f"small-order-{times}") for times, point in enumerate(TORSION)),
    pytest.param(encode_y(1, 1), id="identity-with-sign-bit"),
    pytest.param(encode_y(P - 1, 1), id="order-two-with-sign-bit"),
    *(
        pytest.param(encode_y(P + excess, sign), id=f"y-is-p-plus-{excess}-sign-{sign}")
        for excess in range(19)
        for sign in (0, 1)
    ),
    *(
        pytest.param(bytes_of(add(point_of(ALICE.public.data), point)), id=f"mixed-order-{times}")
        for times, point in enumerate(TORSION[1:], 1)
    ),
    pytest.param(encode_y(2), id="off-the-curve"),
    pytest.param(encode_y(2, 1), id="off-the-curve-with-sign-bit"),
]


def test_the_table_of_small_order_points_holds_all_eight() -> None:
    assert len(set(TORSION)) == 8
    assert all(multiply(point, 8) == (0, 1) for point in TORSION)
    assert {bytes_of(point).hex() for point in TORSION} >= {*ORDER_EIGHT_Y, "00" * 32, encode_y(1).hex()}


def test_without_the_check_of_the_point_one_signature_would_hold_for_every_plan() -> None:
    identity, forged = encode_y(1), encode_y(1) + bytes(32)
    for message in (b"one plan", b"another plan"):
        Ed25519PublicKey.from_public_bytes(identity).verify(forged, message)


@pytest.mark.parametrize("data", UNSOUND)
def test_a_public_key_that_is_no_sound_point_is_refused(data: bytes) -> None:
    with pytest.raises(KeyUnusable, match="no sound ed25519 point"):
        PublicKey.parse(encoded(data))


@pytest.mark.parametrize("data", [bytes(31), bytes(33), b"", ALICE.public.data + b"\0"])
def test_a_public_key_made_in_python_is_judged_as_one_that_is_read(data: bytes) -> None:
    with pytest.raises(KeyUnusable):
        PublicKey(data)


@given(seed=seeds)
def test_every_key_pair_that_is_made_is_sound_and_reads_back(seed: bytes) -> None:
    key = PrivateKey(seed)
    reference = Ed25519PrivateKey.from_private_bytes(seed)
    assert key.public.data == reference.public_key().public_bytes_raw()
    assert PublicKey.parse(key.public.to_text()) == key.public
    assert PrivateKey.parse(key.to_text()).to_text() == key.to_text() == encoded(seed + key.public.data)


@settings(max_examples=10)
@given(seed=seeds, times=st.integers(1, 7))
def test_a_public_key_shifted_by_a_small_order_point_is_refused(seed: bytes, times: int) -> None:
    shifted = bytes_of(add(point_of(PrivateKey(seed).public.data), TORSION[times]))
    with pytest.raises(KeyUnusable):
        PublicKey(shifted)


@given(data=st.binary(min_size=32, max_size=32))
def test_any_32_bytes_are_a_sound_key_or_are_refused(data: bytes) -> None:
    try:
        key = PublicKey(data)
    except KeyUnusable:
        return
    point = point_of(key.data)
    assert bytes_of(point) == data
    assert multiply(point, L) == (0, 1)
    assert point not in TORSION


BASE64_PROBLEMS = [
    pytest.param(lambda text: text.rstrip("="), id="missing-padding"),
    pytest.param(lambda text: text + "=", id="excess-padding"),
    pytest.param(lambda text: text[:-2] + chr(ord(text[-2]) + 1) + "=", id="trailing-bits"),
    pytest.param(lambda text: text[:20] + "\n" + text[20:], id="newline-inside"),
    pytest.param(lambda text: text[:20] + " " + text[20:], id="space-inside"),
    pytest.param(lambda text: text.replace("+", "-").replace("/", "_"), id="url-safe-alphabet"),
    pytest.param(lambda text: text[:20] + "!" + text[20:], id="character-outside"),
    pytest.param(lambda text: "\N{FULLWIDTH LATIN CAPITAL LETTER A}" + text[1:], id="not-ascii"),
    pytest.param(lambda text: text[:-4], id="too-short"),
    pytest.param(lambda text: text + text, id="twice"),
    pytest.param(lambda text: "", id="empty"),
    pytest.param(lambda text: base64.b64decode(text).hex(), id="hexadecimal"),
]


def key_with_marks() -> PrivateKey:
    """A key whose public half and whose whole text hold both characters that url-safe base64 replaces."""
    keys = (PrivateKey(bytes([number]) * 32) for number in range(256))
    return next(key for key in keys if {"+", "/"} <= set(key.public.to_text()))


@pytest.mark.parametrize("spoil", BASE64_PROBLEMS)
def test_a_public_key_has_one_spelling_only(spoil: Callable[[str], str]) -> None:
    text = key_with_marks().public.to_text()
    with pytest.raises(KeyUnusable):
        PublicKey.parse(spoil(text))


def test_a_private_key_registered_for_the_public_one_is_called_so() -> None:
    with pytest.raises(KeyUnusable) as refusal:
        PublicKey.parse(ALICE.to_text())
    assert str(refusal.value) == (
        "this is a private key; register the public one, and replace the pair, since it has been shown around"
    )


@given(data=st.binary(max_size=70))
def test_base64_is_read_in_its_canonical_form(data: bytes) -> None:
    assert decode_base64(encoded(data)) == data


@given(text=st.text(alphabet="ABab01+/=-_ \n", max_size=12))
def test_base64_has_one_spelling_for_each_value(text: str) -> None:
    data = decode_base64(text)
    assert data is None or encoded(data) == text


SEED, PUBLIC = bytes(range(32)), ALICE.public.data
NO_PRIVATE_KEY = "the private key is not base64 of 64 bytes, the seed and then the public key"
HALVES_APART = "the two halves of the private key do not belong together"
LIKE_A_PUBLIC_KEY = "this is no private key: it is 32 bytes long, as a public key is"
PRIVATE_KEY_PROBLEMS = [
    pytest.param(encoded(SEED + BOB.public.data), HALVES_APART, id="public-half-of-another-key"),
    pytest.param(encoded(PUBLIC + SEED), HALVES_APART, id="halves-swapped"),
    pytest.param(encoded(SEED + bytes(32)), HALVES_APART, id="public-half-zero"),
    pytest.param(
        encoded(SEED + encode_y(point_of(PUBLIC)[1], 1 - (point_of(PUBLIC)[0] & 1))),
        HALVES_APART,
        id="negated-public-half",
    ),
    pytest.param(encoded(SEED), LIKE_A_PUBLIC_KEY, id="seed-only"),
    pytest.param(encoded(SEED + PUBLIC)[:-4], NO_PRIVATE_KEY, id="cut-off"),
    pytest.param(encoded(SEED + PUBLIC + b"\0"), NO_PRIVATE_KEY, id="a-byte-too-many"),
    pytest.param(encoded(SEED + PUBLIC).rstrip("="), NO_PRIVATE_KEY, id="missing-padding"),
    pytest.param(encoded(SEED + PUBLIC)[:-3] + "B==", NO_PRIVATE_KEY, id="trailing-bits"),
    pytest.param(encoded(SEED + PUBLIC)[:40] + "\n" + encoded(SEED + PUBLIC)[40:], NO_PRIVATE_KEY, id="wrapped"),
    pytest.param(f'"{encoded(SEED + PUBLIC)}"', NO_PRIVATE_KEY, id="in-quotes"),
    pytest.param((SEED + PUBLIC).hex(), NO_PRIVATE_KEY, id="hexadecimal"),
    pytest.param("-----BEGIN PRIVATE KEY-----", NO_PRIVATE_KEY, id="pem"),
    pytest.param("", NO_PRIVATE_KEY, id="empty"),
]


@pytest.mark.parametrize(("text", "problem"), PRIVATE_KEY_PROBLEMS)
def test_a_private_key_that_is_not_whole_is_refused_without_being_shown(text: str, problem: str) -> None:
    with pytest.raises(KeyUnusable) as refusal:
        PrivateKey.parse(text)
    assert str(refusal.value) == problem
    shown = f"{refusal.value} {refusal.value.remedy} {refusal.value!r}"
    assert not any(text[start : start + 8] in shown for start in range(len(text) - 8))


def test_white_space_around_a_key_is_forgiven() -> None:
    assert PrivateKey.parse(f" {ALICE.to_text()}\n").public == ALICE.public
    assert PublicKey.parse(f"\t{ALICE.public.to_text()} ") == ALICE.public


def test_a_private_key_is_not_shown_by_its_text_or_repr() -> None:
    shown = f"{ALICE} {ALICE!r} {[ALICE]}"
    assert ALICE.to_text() not in shown
    assert encoded(SEED)[:-2] not in shown
    assert ALICE.public.to_text() in shown


@given(seed=seeds, message=st.binary(max_size=200))
def test_a_signature_is_that_of_any_ed25519_implementation(seed: bytes, message: bytes) -> None:
    signature = PrivateKey(seed).sign(message)
    reference = Ed25519PrivateKey.from_private_bytes(seed)
    assert signature == reference.sign(message)
    reference.public_key().verify(signature, message)
    assert PrivateKey(seed).public.verifies(signature, message)


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(b"", id="empty"),
        pytest.param(bytes(64), id="zeros"),
        pytest.param(ALICE.sign(b"message")[:-1], id="cut-off"),
        pytest.param(ALICE.sign(b"message") + b"\0", id="a-byte-too-many"),
        pytest.param(ALICE.sign(b"other message"), id="of-another-message"),
        pytest.param(BOB.sign(b"message"), id="by-another-key"),
        pytest.param(
            ALICE.sign(b"message")[:32]
            + (int.from_bytes(ALICE.sign(b"message")[32:], "little") + L).to_bytes(32, "little"),
            id="second-spelling-of-the-same-signature",
        ),
    ],
)
def test_a_signature_that_is_not_the_keys_own_does_not_verify(signature: bytes) -> None:
    assert ALICE.public.verifies(ALICE.sign(b"message"), b"message")
    assert not ALICE.public.verifies(signature, b"message")


A, B = ALICE.public.to_text(), BOB.public.to_text()
NO_PUBLIC_KEY = "the public key is not base64 of 32 bytes"


@pytest.mark.parametrize(
    ("text", "approvers"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(" , ,", [], id="empty-pairs-only"),
        pytest.param(f"alice={A}", ["alice"], id="one"),
        pytest.param(f"alice={A},bob={B}", ["alice", "bob"], id="two"),
        pytest.param(f"  alice =\t{A} ,\n bob= {B} ", ["alice", "bob"], id="spaces-around-parts"),
        pytest.param(f",alice={A},,bob={B},", ["alice", "bob"], id="empty-pairs-and-trailing-comma"),
        pytest.param(
            f"Ann Example <ann@example.org>={A}", ["Ann Example <ann@example.org>"], id="spaces-inside-the-id"
        ),
        pytest.param(f"한국={A}", ["한국"], id="any-language"),
    ],
)
def test_a_key_map_holds_each_approver_under_the_trimmed_id(text: str, approvers: list[str]) -> None:
    keys = parse_key_map(text)
    assert list(keys) == approvers
    assert [key.data for key in keys.values()] == [ALICE.public.data, BOB.public.data][: len(approvers)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("alice", "pair 1 of the key map has no '=' between approver and public key", id="no-equals-sign"),
        pytest.param(
            f"alice={A},bob",
            "pair 2 of the key map has no '=' between approver and public key",
            id="no-equals-sign-later",
        ),
        pytest.param(f"={A}", "pair 1 of the key map lacks its approver", id="no-approver"),
        pytest.param(f" \t={A}", "pair 1 of the key map lacks its approver", id="blank-approver"),
        pytest.param("alice=", "pair 1 of the key map lacks its public key", id="no-key"),
        pytest.param("alice= ,", "pair 1 of the key map lacks its public key", id="blank-key"),
        pytest.param("=", "pair 1 of the key map lacks its approver", id="equals-sign-only"),
        pytest.param(f"alice={A},alice={B}", 'the key map names the approver "alice" twice', id="id-twice"),
        pytest.param(f"alice={A},alice={A}", 'the key map names the approver "alice" twice', id="pair-twice"),
        pytest.param(f"alice={A}, alice ={B}", 'the key map names the approver "alice" twice', id="id-twice-trimmed"),
        pytest.param(
            f"alice={A},bob={A}",
            'the key map gives "alice" and "bob" the same public key; a signature would then pass under either name',
            id="key-under-two-ids",
        ),
        pytest.param(f"a:b={A}", "pair 1 of the key map names the approver with a ':' in it", id="colon-in-id"),
        pytest.param(f"alice={A.rstrip('=')}", f"pair 1 of the key map: {NO_PUBLIC_KEY}", id="unpadded"),
        pytest.param(f"alice={A}={B}", f"pair 1 of the key map: {NO_PUBLIC_KEY}", id="no-comma"),
        pytest.param(f"alice={A};bob={B}", f"pair 1 of the key map: {NO_PUBLIC_KEY}", id="semicolon"),
        pytest.param(
            f"alice={A},,bob={encoded(encode_y(1))}",
            "pair 3 of the key map: the public key is no sound ed25519 point",
            id="unsound-point",
        ),
    ],
)
def test_a_key_map_that_could_be_misread_is_refused(text: str, problem: str) -> None:
    with pytest.raises(KeyUnusable) as refusal:
        parse_key_map(text)
    assert str(refusal.value) == problem


def test_a_key_map_of_provers_speaks_of_provers() -> None:
    with pytest.raises(KeyUnusable, match=r"lacks its prover$"):
        parse_key_map(f"={A}", holder="prover")


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{0}", id="alone"),
        pytest.param("alice={0}", id="for-the-public-key"),
        pytest.param("{0}=alice", id="for-the-approver"),
        pytest.param("alice:{0}", id="after-a-colon"),
        pytest.param("PQCOTA_SIGN_KEY: {0}", id="pasted-as-yaml"),
        pytest.param("export PQCOTA_SIGN_KEY={0}", id="pasted-as-shell"),
        pytest.param("alice=" + A + ",{0}", id="as-a-second-pair"),
    ],
)
def test_a_private_key_in_the_key_map_is_not_shown(template: str) -> None:
    secret = BOB.to_text()
    with pytest.raises(KeyUnusable) as refusal:
        parse_key_map(template.format(secret))
    shown = f"{refusal.value} {refusal.value.remedy} {refusal.value!r}"
    assert not any(secret[start : start + 6] in shown for start in range(38))


def openssl_raw_ed25519(openssl: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([openssl, "pkeyutl", *arguments, "-rawin"], capture_output=True, text=True)


def test_openssl_verifies_what_we_sign(
    tmp_path: Path, needs: Callable[[str], str], skip_or_fail: Callable[[str], NoReturn]
) -> None:
    openssl = needs("openssl")
    reference = Ed25519PublicKey.from_public_bytes(ALICE.public.data)
    public, message, signature = tmp_path / "public.pem", tmp_path / "message", tmp_path / "signature"
    public.write_bytes(
        reference.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    message.write_bytes(b"canonical\0bytes\0")
    signature.write_bytes(ALICE.sign(b"canonical\0bytes\0"))
    arguments = ("-verify", "-pubin", "-inkey", public, "-in", message, "-sigfile", signature)
    result = openssl_raw_ed25519(openssl, *arguments)
    if "rawin" in result.stderr:
        skip_or_fail(f"this openssl cannot verify raw ed25519: {result.stderr.splitlines()[0]}")
    assert (result.returncode, result.stdout.strip()) == (0, "Signature Verified Successfully")
    message.write_bytes(b"canonical\0bytes!")
    assert openssl_raw_ed25519(openssl, *arguments).returncode == 1


def test_we_verify_what_openssl_signs(
    tmp_path: Path, needs: Callable[[str], str], skip_or_fail: Callable[[str], NoReturn]
) -> None:
    openssl = needs("openssl")
    private, message, signature = tmp_path / "private.pem", tmp_path / "message", tmp_path / "signature"
    subprocess.run([openssl, "genpkey", "-algorithm", "ed25519", "-out", private], check=True, capture_output=True)
    der = subprocess.run(
        [openssl, "pkey", "-in", private, "-pubout", "-outform", "DER"], check=True, capture_output=True
    ).stdout
    message.write_bytes(b"canonical\0bytes\0")
    result = openssl_raw_ed25519(openssl, "-sign", "-inkey", private, "-in", message, "-out", signature)
    if "rawin" in result.stderr:
        skip_or_fail(f"this openssl cannot sign raw ed25519: {result.stderr.splitlines()[0]}")
    key = PublicKey(der[-32:])
    assert key.verifies(signature.read_bytes(), b"canonical\0bytes\0")
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(key.data).verify(signature.read_bytes(), b"canonical\0bytes!")
