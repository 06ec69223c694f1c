"""Which versions of the protocol this agent speaks; the console says in each push which ones it speaks.

1: until 0.1. 2: the state names the features and the TLS library of HAProxy's build, and these versions,
and `/v1/reading` tells state and samples at once, less what the reader knows.
Whoever adds one: both sides keep the version before it, and `apps/drivers/proxy/protocol.py` says what an older agent
lacks.
"""

from __future__ import annotations

from typing import Any

from apps.agent.errors import Malformed, Unavailable

OLDEST, NEWEST = 1, 2
SILENT = [1, 1]  # a console from before versions were told


def refuse_strangers(theirs: Any) -> None:
    """Raise Unavailable when a console speaks none of our versions, Malformed when it does not say which."""
    said = SILENT if theirs is None else theirs
    if not (isinstance(said, list) and len(said) == 2 and all(type(each) is int for each in said)):
        raise Malformed("protocols are the oldest and the newest version that the console speaks.")
    oldest, newest = said
    if oldest > NEWEST:
        raise Unavailable(f"This agent is too old: {_differ(oldest, newest)} Update it.", "validate")
    if newest < OLDEST:
        raise Unavailable(f"The console is too old: {_differ(oldest, newest)} Update the console.", "validate")


def _differ(oldest: int, newest: int) -> str:
    return f"the agent speaks versions {OLDEST} to {NEWEST} of the protocol, the console {oldest} to {newest}."
