"""pqcota-prove beside a real systemd: a canary from its first start to the proof of its second build."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from proving_lab import CANARY_KEY, compile_modules

from booted_systemd import BootedSystemd, boot
from pqcota_provision.proof.node import UNIT_PROPERTIES, UnitState, parse_unit
from pqcota_provision.proof.statement import load_proof

pytestmark = pytest.mark.real

MODULE = "/opt/pqcota/oqsprovider.so"
PROOFS = "var/lib/pqcota/proofs/default/payments"

_DAEMON = "import ctypes, signal, sys\nctypes.CDLL(sys.argv[1])\nsignal.pause()\n"
_UNIT = f"[Service]\nExecStart={sys.executable} -I -S /opt/pqcota/payments.py {MODULE}\nExecReload=/bin/true\n"
_SERVICES = "services: [{app: payments, unit: payments.service, module: oqsprovider.so, provider: oqsprovider}]\n"
_POLICY = "after: 2s\nprove: {prover: canary-1, key_file: /etc/pqcota/proving.key, apps: [payments]}\n"


@pytest.fixture
def system(needs: Callable[[str], str], skip_or_fail: Callable[[str], NoReturn]) -> Iterator[BootedSystemd]:
    with boot(needs, skip_or_fail) as system:
        yield system


def answer(system: BootedSystemd, name: str) -> str:
    return system.systemctl("show", f"--property={','.join(UNIT_PROPERTIES)}", "--", name)


def unit(system: BootedSystemd, name: str) -> UnitState:
    return parse_unit(answer(system, name))


def prove(system: BootedSystemd, *change: str) -> str:
    done = system.run("pqcota-prove", "run", "--", *change) if change else system.run("pqcota-prove", "run")
    assert done.returncode == 0, done.stderr
    return done.stderr


def prove_until(system: BootedSystemd, said: str) -> str:
    """Run passes until one says it; the unit has to be active for as long as the policy asks."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        lines = prove(system)
        if said in lines:
            return lines
        assert "not minting yet: " in lines, lines
        time.sleep(0.5)
    raise AssertionError(f"no pass said {said!r}; the last one said: {lines}")


def test_a_canary_proves_one_build_after_the_other(
    system: BootedSystemd, tmp_path_factory: pytest.TempPathFactory, needs: Callable[[str], str]
) -> None:
    modules = compile_modules(tmp_path_factory, needs("gcc"))
    hashes = {build: hashlib.sha256(path.read_bytes()).hexdigest() for build, path in modules.items()}
    system.write("/etc/systemd/system/payments.service", _UNIT)
    system.write("/etc/pqcota/services.yml", _SERVICES)
    system.write("/etc/pqcota/proof.yml", _POLICY)
    system.write("/etc/pqcota/proving.key", CANARY_KEY.to_text(), 0o600)
    system.write("/opt/pqcota/payments.py", _DAEMON)
    system.write(MODULE, modules["first"].read_bytes())
    system.write("/opt/pqcota/next/oqsprovider.so", modules["second"].read_bytes())

    assert "payments.service is inactive, not active" in prove(system)

    system.systemctl("daemon-reload")
    system.systemctl("start", "payments.service")
    minted = prove_until(system, "minted a proof")
    assert hashes["first"] in minted

    # A reload is no restart: the same invocation goes on, and nothing has to be proven anew.
    before = unit(system, "payments.service")
    system.systemctl("reload", "payments.service")
    assert unit(system, "payments.service") == before
    assert prove(system) == ""

    deploy = f"mv /opt/pqcota/next/oqsprovider.so {MODULE} && systemctl restart payments.service"
    assert "not minting yet: " in prove(system, "sh", "-c", deploy)
    assert unit(system, "payments.service").invocation_id != before.invocation_id
    assert hashes["second"] in prove_until(system, "minted a proof")

    proofs = {path.parent.name: load_proof(path.read_bytes()) for path in (system.root / PROOFS).glob("*/*.json")}
    assert proofs.keys() == {hashes["first"], hashes["second"]}
    assert all(proof.holds_under(CANARY_KEY.public) for proof in proofs.values())
    assert proofs[hashes["first"]].active_since < proofs[hashes["second"]].active_since

    system.systemctl("stop", "payments.service")
    assert "payments.service is inactive, not active" in prove(system)


def test_a_unit_that_does_not_exist_and_one_that_failed_are_told_apart(system: BootedSystemd) -> None:
    system.write("/etc/systemd/system/broken.service", "[Service]\nType=notify\nExecStart=/bin/false\n")
    system.systemctl("daemon-reload")
    system.run("systemctl", "start", "broken.service")
    assert unit(system, "broken.service").active_state == "failed"
    assert unit(system, "nowhere.service").load_state == "not-found"


def test_the_recorded_answers_are_what_this_systemd_says(system: BootedSystemd) -> None:
    """The recorded text in the test data has the properties of a real answer, no more and no fewer."""
    system.write("/etc/systemd/system/sleeper.service", "[Service]\nExecStart=/bin/sleep 1000\n")
    system.systemctl("daemon-reload")
    system.systemctl("start", "sleeper.service")
    recorded = Path(__file__).parent.parent / "data" / "proof"
    for name, kind in (("sleeper.service", "active"), ("nowhere.service", "not-found")):
        names = [line.partition("=")[0] for line in answer(system, name).splitlines()]
        text = (recorded / f"systemctl-show-{kind}.txt").read_text()
        assert names == [line.partition("=")[0] for line in text.splitlines()]
