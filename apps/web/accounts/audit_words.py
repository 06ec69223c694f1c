"""What the pages of the audit log call an action and a kind, also those that entries recorded under older names."""

from __future__ import annotations

import re

from apps.webhooks.events import DONE

# Entries are chained by digests and stay as they were written: what was renamed since is translated when it is shown.
RENAMED_ACTIONS = {
    "prove": "verify",
    "lose_proof": "lose_verification",
    "end_rest": "end_cooldown",
    "view_as": "impersonate",
    "stop_viewing": "stop_impersonating",
}
RENAMED_KINDS = {"Fire": "ScheduleRun"}


def action_of(action: str) -> str:
    """What the action is called today: `prove` → `verify`."""
    return RENAMED_ACTIONS.get(action, action)


def word_of(action: str) -> str:
    """What somebody did, as people say it: `rolled back`."""
    action = action_of(action)
    return "changed" if action == "update" else DONE.get(action, action).replace("_", " ")


def kind_of(kind: str) -> str:
    """What it was done to, as people say it: `Load balancer`, `Static IP`."""
    first, *others = re.split(r"(?<=[a-z])(?=[A-Z])", RENAMED_KINDS.get(kind, kind))
    return " ".join([first, *(word if word.isupper() else word.lower() for word in others)])
