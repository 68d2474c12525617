"""Ed25519 keys: reading, making and judging them, and the map of registered public keys (SPEC 3).

The library checks no point of a public key, and a small-order point would let one signature hold for
every plan, so the point is decoded and judged here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pqcota_provision.errors import KeyMapMalformed, KeyUnusable
from pqcota_provision.text import quote

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED_SIZE = 32
PUBLIC_SIZE = 32
SIGNATURE_SIZE = 64

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_SQRT_MINUS_ONE = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
_IDENTITY: _Point = (0, 1, 1, 0)


def decode_base64(text: str) -> bytes | None:
    """Decode padded standard base64, or return None where it is not in its one canonical form."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An ed25519 public key that is a sound point: canonical, on the curve, of prime order.

    Raises KeyUnusable for any other 32 bytes.
    """

    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != PUBLIC_SIZE or not _is_sound_point(self.data):
            raise KeyUnusable("the public key is no sound ed25519 point")

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """Read base64 of 32 bytes; raises KeyUnusable."""
        data = decode_base64(text.strip())
        if data is not None and len(data) == SEED_SIZE + PUBLIC_SIZE:
            raise KeyUnusable(
                "this is a private key; register the public one, and replace the pair, since it has been shown around"
            )
        if data is None or len(data) != PUBLIC_SIZE:
            raise KeyUnusable("the public key is not base64 of 32 bytes")
        return cls(data)

    def to_text(self) -> str:
        """Return the key as base64."""
        return base64.b64encode(self.data).decode("ascii")

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Tell whether the signature is this key's over the message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.data).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class PrivateKey:
    """An ed25519 private key; its text and repr never show the secret."""

    __slots__ = ("_key", "_seed", "public")

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._seed = seed
        self._key: Ed25519PrivateKey = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = PublicKey(self._key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"PrivateKey(public={self.public.to_text()!r})"

    @classmethod
    def parse(cls, text: str) -> PrivateKey:
        """Read base64 of the seed and the public key, which must belong together; raises KeyUnusable."""
        data = decode_base64(text.strip())
        if data is not None and len(data) == PUBLIC_SIZE:
            raise KeyUnusable("this is no private key: it is 32 bytes long, as a public key is")
        if data is None or len(data) != SEED_SIZE + PUBLIC_SIZE:
            raise KeyUnusable("the private key is not base64 of 64 bytes, the seed and then the public key")
        key = cls(data[:SEED_SIZE])
        if key.public.data != data[SEED_SIZE:]:
            raise KeyUnusable("the two halves of the private key do not belong together")
        return key

    def to_text(self) -> str:
        """Return the secret as base64 of seed and public key."""
        return base64.b64encode(self._seed + self.public.data).decode("ascii")

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature over the message."""
        return self._key.sign(message)


def parse_key_map(text: str, *, holder: str = "approver") -> Mapping[str, PublicKey]:
    """Read ``<holder>=<base64 public key>`` pairs joined by commas into an id-to-key map (SPEC 3).

    Raises KeyMapMalformed, naming the pair by its place, for a pair without ``=``, an empty side, an id twice,
    one key under two ids, or a key that is no sound point. An empty text gives an empty map.
    """
    keys: dict[str, PublicKey] = {}
    owners: dict[bytes, str] = {}
    for number, pair in enumerate(text.split(","), 1):
        if not pair.strip():
            continue
        name, separator, encoded = pair.partition("=")
        name, encoded = name.strip(), encoded.strip()
        if not separator:
            raise KeyMapMalformed(f"pair {number} of the key map has no '=' between {holder} and public key")
        if not name or not encoded:
            raise KeyMapMalformed(f"pair {number} of the key map lacks its {'public key' if name else holder}")
        if ":" in name:
            raise KeyMapMalformed(f"pair {number} of the key map names the {holder} with a ':' in it")
        if name in keys:
            raise KeyMapMalformed(f"the key map names the {holder} {quote(name)} twice")
        try:
            key = PublicKey.parse(encoded)
        except KeyUnusable as error:
            # The place only: a private key put here by mistake has its text before the first '='.
            raise KeyMapMalformed(f"pair {number} of the key map: {error}") from None
        owner = owners.setdefault(key.data, name)
        if owner != name:
            raise KeyMapMalformed(shared_key_problem(owner, name))
        keys[name] = key
    return MappingProxyType(keys)


def shared_key_problem(owner: str, other: str) -> str:
    """Return the sentence about one public key that is registered for two ids."""
    return (
        f"the key map gives {quote(owner)} and {quote(other)} the same public key; "
        "a signature would then pass under either name"
    )


def _is_sound_point(data: bytes) -> bool:
    point = _decompress(data)
    return point is not None and not _is_identity(point) and _is_identity(_multiply(point, _L))


def _decompress(data: bytes) -> _Point | None:
    # The sign bit is left aside: a point and its negative have the same order, which is all that is judged here.
    y = int.from_bytes(data, "little") & (2**255 - 1)
    if y >= _P:
        return None
    y_squared = y * y % _P
    u, v = (y_squared - 1) % _P, (_D * y_squared + 1) % _P
    x = u * pow(v, 3, _P) * pow(u * pow(v, 7, _P), (_P - 5) // 8, _P) % _P
    if v * x * x % _P != u:
        x = x * _SQRT_MINUS_ONE % _P
        if v * x * x % _P != u:
            return None
    return (x, y, 1, x * y % _P)


def _add(first: _Point, second: _Point) -> _Point:
    a = (first[1] - first[0]) * (second[1] - second[0]) % _P
    b = (first[1] + first[0]) * (second[1] + second[0]) % _P
    c = 2 * first[3] * second[3] * _D % _P
    d = 2 * first[2] * second[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _multiply(point: _Point, scalar: int) -> _Point:
    result = _IDENTITY
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _is_identity(point: _Point) -> bool:
    return point[0] % _P == 0 and (point[1] - point[2]) % _P == 0
