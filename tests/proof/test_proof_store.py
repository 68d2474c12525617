"""The store: create-only, whole or not at all, and honest about what it cannot read."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from pqcota_provision.errors import ProofAlreadyThere, ProofStoreUnavailable
from pqcota_provision.proof.store import DirectoryProofStore

HASH = "0123456789abcdef" * 4
PLACE = ("payments", HASH, "canary-1")


@pytest.fixture
def store(tmp_path: Path) -> DirectoryProofStore:
    return DirectoryProofStore(tmp_path / "proofs", "acme")


def test_what_was_put_lies_where_other_tools_look_for_it(store: DirectoryProofStore, tmp_path: Path) -> None:
    store.put(*PLACE, b"proof")
    assert (tmp_path / "proofs" / "acme" / "payments" / HASH / "canary-1.json").read_bytes() == b"proof"
    assert store.get(*PLACE) == b"proof"


def test_a_proof_is_never_overwritten(store: DirectoryProofStore) -> None:
    store.put(*PLACE, b"first")
    with pytest.raises(ProofAlreadyThere, match="canary-1"):
        store.put(*PLACE, b"second")
    assert store.get(*PLACE) == b"first"


def test_another_prover_proves_the_same_build_beside_the_first(store: DirectoryProofStore) -> None:
    store.put(*PLACE, b"first")
    store.put("payments", HASH, "canary-2", b"second")
    assert [(stored.prover, stored.data) for stored in store.entries()] == [
        ("canary-1", b"first"),
        ("canary-2", b"second"),
    ]


def test_what_was_never_put_is_not_there(store: DirectoryProofStore) -> None:
    assert store.get(*PLACE) is None
    store.put(*PLACE, b"proof")
    assert store.get("ledger", HASH, "canary-1") is None


def test_organizations_do_not_see_each_others_proofs(store: DirectoryProofStore, tmp_path: Path) -> None:
    store.put(*PLACE, b"proof")
    other = DirectoryProofStore(tmp_path / "proofs", "globex")
    assert other.get(*PLACE) is None
    assert list(other.entries()) == []


def test_a_half_written_file_is_not_taken_for_a_proof(store: DirectoryProofStore, tmp_path: Path) -> None:
    store.put(*PLACE, b"proof")
    folder = tmp_path / "proofs" / "acme" / "payments" / HASH
    (folder / ".canary-2.json.abc.tmp").write_bytes(b"pro")
    assert [stored.prover for stored in store.entries()] == ["canary-1"]


def test_a_put_leaves_nothing_but_the_proof(store: DirectoryProofStore, tmp_path: Path) -> None:
    store.put(*PLACE, b"first")
    with pytest.raises(ProofAlreadyThere):
        store.put(*PLACE, b"second")
    assert os.listdir(tmp_path / "proofs" / "acme" / "payments" / HASH) == ["canary-1.json"]


def test_other_files_in_the_store_are_left_out(store: DirectoryProofStore, tmp_path: Path) -> None:
    store.put(*PLACE, b"proof")
    organization = tmp_path / "proofs" / "acme"
    (organization / "README").write_text("what this is")
    (organization / "payments" / "latest").mkdir()
    (organization / "payments" / HASH / "canary-1.json.sig").write_text("x")
    (organization / "payments" / HASH / "a b.json").write_text("x")
    assert [stored.prover for stored in store.entries()] == ["canary-1"]


def test_a_store_that_is_not_there_cannot_be_listed(store: DirectoryProofStore) -> None:
    with pytest.raises(ProofStoreUnavailable, match="No such file or directory"):
        list(store.entries())


def test_a_file_in_place_of_the_store_is_no_empty_store(store: DirectoryProofStore, tmp_path: Path) -> None:
    (tmp_path / "proofs").write_text("")
    with pytest.raises(ProofStoreUnavailable):
        list(store.entries())
    with pytest.raises(ProofStoreUnavailable):
        store.get(*PLACE)
    with pytest.raises(ProofStoreUnavailable):
        store.put(*PLACE, b"proof")


def _a_directory(path: Path) -> None:
    path.mkdir()


def _a_pipe(path: Path) -> None:
    os.mkfifo(path)


def _too_large(path: Path) -> None:
    path.write_bytes(bytes(1 << 17))


@pytest.mark.parametrize("make", [_a_directory, _a_pipe, _too_large])
def test_what_can_be_no_proof_neither_hangs_the_reader_nor_passes(
    store: DirectoryProofStore, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    store.put(*PLACE, b"proof")
    make(tmp_path / "proofs" / "acme" / "payments" / HASH / "canary-2.json")
    with pytest.raises(ProofStoreUnavailable, match=r"canary-2\.json"):
        list(store.entries())
    with pytest.raises(ProofStoreUnavailable, match=r"canary-2\.json"):
        store.get("payments", HASH, "canary-2")


_READER_WITHOUT_RIGHTS = """
import os, sys
from pathlib import Path
from pqcota_provision.errors import ProofStoreUnavailable
from pqcota_provision.proof.store import DirectoryProofStore

os.setuid(65534)
try:
    list(DirectoryProofStore(Path(sys.argv[1]), "acme").entries())
except ProofStoreUnavailable as error:
    print(error)
"""


def test_a_store_without_the_right_to_read_it_says_so(skip_or_fail: Callable[[str], NoReturn]) -> None:
    if os.geteuid() != 0:
        skip_or_fail("only root can run a reader as somebody else")
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        DirectoryProofStore(Path(directory), "acme").put(*PLACE, b"proof")
        os.chmod(f"{directory}/acme", 0o700)
        reader = subprocess.run(
            [sys.executable, "-c", _READER_WITHOUT_RIGHTS, directory], capture_output=True, text=True, check=True
        )
    assert "cannot be read: Permission denied" in reader.stdout


_WRITER = """
import sys
from pathlib import Path
from pqcota_provision.errors import ProofAlreadyThere
from pqcota_provision.proof.store import DirectoryProofStore

store = DirectoryProofStore(Path(sys.argv[1]), "acme")
sys.stdin.readline()
try:
    store.put("payments", sys.argv[2], "canary-1", sys.argv[3].encode() * 5000)
except ProofAlreadyThere:
    there = store.get("payments", sys.argv[2], "canary-1")
    print("lost", there is not None and len(there) == 5000 and len(set(there)) == 1)
else:
    print("won")
"""


def test_of_many_racing_writers_one_wins_and_the_others_find_a_whole_proof(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "proofs"), HASH, letter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for letter in "abcdefgh"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    answers = sorted(writer.communicate()[0].strip() for writer in writers)
    assert answers == ["lost True"] * 7 + ["won"]
