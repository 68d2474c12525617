#!/usr/bin/env bash
# Plays a rollout with one canary through on this machine, in a folder of its own: nothing outside it is touched.
#
# What is real: the service is a process that maps a module file, pqcota-prove reads what that process has mapped,
# the proof is signed and verified, the playbook insists on what was proven. What is not: there is no systemd here.
# stand-in-systemctl.sh stands before the real one on PATH, and answers for the one service that it started itself.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here

if [[ $(id -u) -ne 0 ]]; then
    echo 'play.sh: only root may look at what another process has mapped; run it as root.' >&2
    exit 1
fi
if ! command -v pqcota-prove >/dev/null; then
    PATH=$here/../../.venv/bin:$PATH
fi

PLAY=$(mktemp -d)
MODULE=$PLAY/opt/oqsprovider.so
PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
PATH=$PLAY/bin:$PATH
export PLAY MODULE PORT
mkdir -p "$PLAY/bin" "$PLAY/opt" "$PLAY/proofs"
ln -s "$here/stand-in-systemctl.sh" "$PLAY/bin/systemctl"
trap 'systemctl stop; rm -rf "$PLAY"' EXIT

step() {
    printf '\n== %s\n' "$*"
}

prove() {
    pqcota-prove run --services "$PLAY/services.yml" --policy "$PLAY/proof.yml" --state-dir "$PLAY/state" \
        --proofs "$PLAY/proofs" --staging-dir "$PLAY/opt" "$@" 2>&1
}

provision() {
    pqcota-provision --allow-incomplete --require-proof canary-1 --proofs "$PLAY/proofs" \
        --output "$PLAY/provision.yml" "$PLAY/plan.json" 2>&1
}

# Beside the old file and then in its place, so that a running service keeps the bytes that it has mapped.
stage="python3 '$here/stand-in-build.py' \"\$1\" '$PLAY/opt/.next' && mv '$PLAY/opt/.next' '$MODULE'"

key_of() {
    sed -n "s/^$1=//p"
}

step 'The canary has a proving key, a registry and a policy that asks for 2 seconds instead of 24 hours'
proving=$(pqcota-keygen)
(umask 077 && key_of PQCOTA_SIGN_KEY <<<"$proving" > "$PLAY/proving.key")
sed -e "s|/opt/pqcota|$PLAY/opt|" -e "s|18443|$PORT|" "$here/services.yml" > "$PLAY/services.yml"
sed -e "s|/etc/pqcota|$PLAY|" -e 's|24h|2s|' "$here/proof-canary.yml" > "$PLAY/proof.yml"
grep -v '^#' "$PLAY/services.yml" "$PLAY/proof.yml" --no-filename

step 'An approved plan activates the module on a node of the fleet; without a proof there is no playbook'
approving=$(pqcota-keygen)
PQCOTA_PROVER_KEYS="canary-1=$(key_of PQCOTA_VERIFY_KEY <<<"$proving")"
PQCOTA_APPROVAL_KEYS="reviewer-1=$(key_of PQCOTA_VERIFY_KEY <<<"$approving")"
export PQCOTA_PROVER_KEYS PQCOTA_APPROVAL_KEYS
python3 "$here/plan-for.py" web-001.example.net > "$PLAY/review.json"
PQCOTA_APPROVAL_KEY=$(key_of PQCOTA_SIGN_KEY <<<"$approving") \
    pqcota-approve --approver reviewer-1 --output "$PLAY/plan.json" "$PLAY/review.json" 2>&1
if provision; then
    exit 1
fi

step 'The canary runs build 0.8.0, but not for long enough yet'
sh -c "$stage" stage 0.8.0
systemctl start payments.service
prove

step 'Two seconds later it has, and the canary proves it'
sleep 2.5
prove

step 'Now there is a playbook, and it insists on the proven bytes'
provision
grep --max-count=1 --after-context=1 pqcota_pinned_hashes: "$PLAY/provision.yml"

step 'A change brings build 0.9.0: what ran before stays on record, what runs now is too young to be proven'
prove -- sh -c "$stage && sed -i 's|0\.8\.0|0.9.0|' '$PLAY/services.yml' && systemctl restart payments.service" change 0.9.0

step 'Build 0.9.0 turns out to leak: this node refuses it, and never proves it'
pqcota-prove refuse --state-dir "$PLAY/state" --app payments --reason 'leaks a file handle per connection' \
    --sha256 "$(sha256sum < "$MODULE" | cut -d' ' -f1)" 2>&1
sleep 2.5
prove

step 'What the node remembers'
pqcota-prove list --state-dir "$PLAY/state" --proofs "$PLAY/proofs"
