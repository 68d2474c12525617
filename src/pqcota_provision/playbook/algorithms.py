"""Which algorithm family a plan's target belongs to, and the hybrid TLS group it brings (SPEC 5)."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple


class Use(Enum):
    """What a family is for."""

    KEM = "key encapsulation"
    SIGNATURE = "signature"


class Maturity(Enum):
    """How far the standardization of a family has come."""

    FINAL = "final standard"
    DRAFT = "draft"
    EXPERIMENTAL = "experimental"
    BROKEN = "broken"


class Family(NamedTuple):
    """One algorithm family; ``group`` is its hybrid TLS group, or empty where none is known."""

    name: str
    token: str
    use: Use
    maturity: Maturity
    group: str = ""


REGISTRY: tuple[Family, ...] = (
    Family("ML-KEM", "MLKEM", Use.KEM, Maturity.FINAL, "X25519MLKEM768"),
    Family("ML-DSA", "MLDSA", Use.SIGNATURE, Maturity.FINAL),
    Family("SLH-DSA", "SLHDSA", Use.SIGNATURE, Maturity.FINAL),
    Family("Kyber", "KYBER", Use.KEM, Maturity.DRAFT, "X25519Kyber768Draft00"),
    Family("Dilithium", "DILITHIUM", Use.SIGNATURE, Maturity.DRAFT),
    Family("SPHINCS+", "SPHINCS", Use.SIGNATURE, Maturity.DRAFT),
    Family("Falcon", "FALCON", Use.SIGNATURE, Maturity.DRAFT),
    Family("HQC", "HQC", Use.KEM, Maturity.DRAFT),
    Family("BIKE", "BIKE", Use.KEM, Maturity.EXPERIMENTAL),
    Family("FrodoKEM", "FRODO", Use.KEM, Maturity.EXPERIMENTAL),
    Family("Classic-McEliece", "MCELIECE", Use.KEM, Maturity.EXPERIMENTAL),
    Family("NTRU-Prime", "SNTRUP", Use.KEM, Maturity.EXPERIMENTAL),
    Family("MAYO", "MAYO", Use.SIGNATURE, Maturity.EXPERIMENTAL),
    Family("CROSS", "CROSS", Use.SIGNATURE, Maturity.EXPERIMENTAL),
    Family("Rainbow", "RAINBOW", Use.SIGNATURE, Maturity.BROKEN),
    Family("GeMSS", "GEMSS", Use.SIGNATURE, Maturity.BROKEN),
    Family("SIKE", "SIKE", Use.KEM, Maturity.BROKEN),
)

# The order in which a target is matched: every KEM before any signature.
_MATCH_ORDER = tuple(family for use in (Use.KEM, Use.SIGNATURE) for family in REGISTRY if family.use is use)

_SEPARATORS = str.maketrans("", "", "-_ .")


@lru_cache(maxsize=1024)
def family_of(target_algorithm: str) -> Family | None:
    """Return the first family whose token the target contains, or None."""
    # Letter by letter, as the Go tools upper-case: "ß" stays one letter and never becomes "SS".
    upper = "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in target_algorithm).translate(
        _SEPARATORS
    )
    return next((family for family in _MATCH_ORDER if family.token in upper), None)


def hybrid_group(target_algorithm: str) -> str:
    """Return the hybrid TLS group of a target algorithm, or an empty string."""
    family = family_of(target_algorithm)
    return family.group if family else ""
