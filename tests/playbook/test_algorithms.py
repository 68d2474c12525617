from __future__ import annotations

import pytest

from pqcota_provision.playbook.algorithms import REGISTRY, Maturity, family_of, hybrid_group


@pytest.mark.parametrize(
    ("target", "family", "group"),
    [
        ("ML-KEM", "ML-KEM", "X25519MLKEM768"),
        ("ml_kem 768", "ML-KEM", "X25519MLKEM768"),
        ("ML.KEM", "ML-KEM", "X25519MLKEM768"),
        ("SecP256r1MLKEM768", "ML-KEM", "X25519MLKEM768"),
        ("kyber768", "Kyber", "X25519Kyber768Draft00"),
        ("ML-DSA and ML-KEM", "ML-KEM", "X25519MLKEM768"),
        ("HQC", "HQC", ""),
        ("FrodoKEM-640", "FrodoKEM", ""),
        ("Classic-McEliece", "Classic-McEliece", ""),
        ("sntrup761x25519", "NTRU-Prime", ""),
        ("SIKE", "SIKE", ""),
        ("ML-DSA-65", "ML-DSA", ""),
        ("SPHINCS+", "SPHINCS+", ""),
    ],
)
def test_a_target_gets_the_group_of_its_family(target: str, family: str, group: str) -> None:
    found = family_of(target)
    assert found is not None
    assert (found.name, hybrid_group(target)) == (family, group)


@pytest.mark.parametrize("target", ["", "RSA", "x25519", "ML\u2011KEM", "ML\u00a0KEM", "cro\u00df", "gem\u00df"])
def test_a_target_of_no_family_gets_none(target: str) -> None:
    assert family_of(target) is None


@pytest.mark.parametrize(
    ("maturity", "names"),
    [
        (Maturity.FINAL, ["ML-KEM", "ML-DSA", "SLH-DSA"]),
        (Maturity.DRAFT, ["Kyber", "Dilithium", "SPHINCS+", "Falcon", "HQC"]),
        (Maturity.EXPERIMENTAL, ["BIKE", "FrodoKEM", "Classic-McEliece", "NTRU-Prime", "MAYO", "CROSS"]),
        (Maturity.BROKEN, ["Rainbow", "GeMSS", "SIKE"]),
    ],
)
def test_the_registry_says_how_far_a_family_has_come(maturity: Maturity, names: list[str]) -> None:
    assert [family.name for family in REGISTRY if family.maturity is maturity] == names
