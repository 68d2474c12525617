"""An Ansible callback that writes what became of every task, one JSON object a line."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: pqcota_events
type: notification
short_description: writes task results as JSON lines
description: Appends one object a task and host to the file that PQCOTA_EVENTS names.
"""

RESULT_KEYS = ("msg", "stdout", "stderr", "rc")


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Appends to the file that PQCOTA_EVENTS names."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "pqcota_events"
    CALLBACK_NEEDS_ENABLED = True

    def _write(self, status: str, result: Any, *, ignored: bool = False) -> None:
        returned = result.result
        event = {
            "task": result.task.get_name(),
            "host": result.host.get_name(),
            "status": status,
            "changed": bool(returned.get("changed")),
            "ignored": ignored,
            **{key: str(returned[key]) for key in RESULT_KEYS if key in returned},
        }
        with open(os.environ["PQCOTA_EVENTS"], "a", encoding="utf-8") as events:
            events.write(json.dumps(event) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task succeeded."""
        self._write("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed, perhaps on purpose."""
        self._write("failed", result, ignored=ignore_errors)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A task was skipped."""
        self._write("skipped", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host could not be reached."""
        self._write("unreachable", result)
