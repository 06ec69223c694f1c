"""Lines of HAProxy 1.x about requests and responses, in words of today: old configurations answer here as they did."""

from __future__ import annotations

import re

from apps.importing.replay.contract import NotReplayable

_HEADER = re.compile(r"\^?([A-Za-z0-9-]+):?\s*(.*)", re.DOTALL)
# What stands for the method: any text before the first space.
_METHOD = re.compile(r"\^?\((?:\[\^[ :]+\]|\.)[*+]\) (.*)", re.DOTALL)
_GROUP = re.compile(r"\\([1-9])")


def today(words: tuple[str, ...]) -> list[str]:
    """The rule that does the same now. Raises NotReplayable."""
    at = next((at for at, word in enumerate(words) if word in ("if", "unless")), len(words))
    keyword, said, rest = words[0], words[1:at], list(words[at:])
    if keyword == "block":
        return ["http-request", "deny", *rest]
    rule, action = "http-request" if keyword.startswith("req") else "http-response", keyword[3:]
    found = _HEADER.fullmatch(said[0]) if said else None
    if found and action == "add":
        return [rule, "add-header", found[1], found[2], *rest]
    if found and action in ("del", "idel"):
        return [rule, "del-header", found[1], *rest]
    changed = _changed(said) if action in ("rep", "irep") and len(said) == 2 else None
    if changed is None or (rule == "http-response" and changed[0] != "replace-header"):
        raise NotReplayable(f"HAProxy of today has no {keyword}.")
    *action_and_name, expression, text = changed
    return [rule, *action_and_name, f"(?i){expression}" if action == "irep" else expression, text, *rest]


def _changed(said: tuple[str, ...]) -> tuple[str, ...] | None:
    """The change of a request line or of one header; None for what is another."""
    expression, text = said
    if (line := _METHOD.fullmatch(expression)) and text.startswith("\\1 "):
        return _of_request_line(line[1], text.removeprefix("\\1 "))
    old, new = _HEADER.fullmatch(expression), _HEADER.fullmatch(text)
    if old and new and ":" in expression and old[1].lower() == new[1].lower():
        return "replace-header", old[1], f"^{old[2]}", new[2]
    return None


def _of_request_line(expression: str, text: str) -> tuple[str, ...] | None:
    """What the path becomes: the version stands behind it, in whatever takes the rest of the line."""
    if " " in expression + text or not re.search(r"\(\.[*+]\)\$?\Z", expression):
        return None
    uri = "^" + re.sub(r"\(\.\+\)(\$?)\Z", r"(.*)\1", expression)
    return "replace-uri", uri, _GROUP.sub(lambda found: f"\\{int(found[1]) - 1}", text)
