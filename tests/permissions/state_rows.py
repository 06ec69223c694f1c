"""The table: the state of a stack is for runs of that stack; no session and no token of ours opens it."""

from __future__ import annotations

from tests.permissions.rows import Row
from tests.permissions.sign_in_rows import for_anybody

METHODS = ("GET", "POST", "DELETE", "LOCK", "UNLOCK")
STATE: tuple[Row, ...] = (
    *for_anybody("state", 401, 401, METHODS, stack_id="1"),
    *for_anybody("state-alive", 401, 401, ("POST",), stack_id="1"),
)
