"""Prints a plan in review that injects oqsprovider into the payments service of each node named.

Usage: plan-for.py NODE [NODE …]
"""

import json
import sys

DROP_IN = "/etc/systemd/system/payments.service.d/pqcota.conf"
HOOKS = {
    "activate": f"mkdir -p {DROP_IN.rpartition('/')[0]} && "
    f"printf '[Service]\\nEnvironment=OPENSSL_CONF=/etc/pqcota/openssl-pqc.cnf\\n' > {DROP_IN} && "
    "systemctl daemon-reload",
    "deactivate": f"rm -f {DROP_IN} && systemctl daemon-reload",
    "restart": "systemctl restart payments.service",
}


def action(node: str) -> dict[str, object]:
    """Return the action on one node: stage the module, place the fragment, activate it, restart the service."""
    finding = f"finding-{node}-openssl"
    snapshot = {"sourceNodeId": node, "snapshotId": f"snap-{node}"}
    return {
        "id": f"inject-{node}",
        "targetNodeId": node,
        "findingId": finding,
        "cryptoRuntime": "CRYPTO_RUNTIME_OPENSSL",
        "kind": "REMEDIATION_KIND_PROVIDER_INJECT",
        "automationLevel": "DEPLOY_AUTOMATION_LEVEL_L3_FULL_AUTO",
        "targetAlgorithm": "ML-KEM",
        "providerChoice": "oqsprovider",
        "activation": HOOKS,
        "evidenceSources": [{"findingId": finding, "snapshot": snapshot}],
    }


plan = {
    "id": f"plan-payments-{len(sys.argv) - 1}",
    "status": "PLAN_STATUS_IN_REVIEW",
    "scope": "payments",
    "actions": [action(node) for node in sys.argv[1:]],
    "rulesetVersion": "rules-2026.03",
}
print(json.dumps(plan, indent=2))
