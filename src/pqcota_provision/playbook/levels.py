"""How far an action goes (SPEC 1 and 8)."""

from __future__ import annotations

from enum import IntEnum

from pqcota_provision.plan.model import DeployAutomationLevel, RemediationAction


class Level(IntEnum):
    """L1 stages the module, L2 also places the fragment, L3 also activates and restarts."""

    L1 = 1
    L2 = 2
    L3 = 3

    @property
    def option(self) -> str:
        """The value of ``--level`` that means this level."""
        return self.name.lower()


def level_of(action: RemediationAction, default: Level) -> Level:
    """Return the action's own level, or the default where it sets none."""
    if action.automation_level == DeployAutomationLevel.UNSPECIFIED:
        return default
    return Level(action.automation_level)
