"""Words of HAProxy 1.x that change requests: `reqadd`, `reqrep`, `reqdel`, and their kin."""

from __future__ import annotations

import re

from apps.importing.haproxy.rules.requests import Read, read_request
from apps.importing.haproxy.rules.rewriting import read_replace_path
from apps.importing.logic.decisions import Effect

_HEADER = re.compile(r"\^?([A-Za-z0-9-]+):?(?:\\?\s)*(.*)", re.DOTALL)
# `^(Server|Via):.*`: headers whatever they say.
_WHOLE = re.compile(r"\^\(?([A-Za-z0-9-]+(?:\|[A-Za-z0-9-]+)*)\)?:(?:\\?\s)*(?:\.[*+]|\(\.[*+]\))?\$?")
_HOST = re.compile(r"\^?Host:(?:\\?\s)*(.*)", re.IGNORECASE | re.DOTALL)
_ANYTHING = frozenset({"", ".*", ".+", "(.*)", "(.+)", ".*$", ".+$", "(.*)$", "(.+)$", "$", "\\S*", "[^\\ ]*", "[^ ]*"})
ONE_NAME = "different:Only the header of just this name is removed."
BY_VALUE = "Headers are removed by their name, whatever they say; this one is removed for what it says."
# `^([^\ :]*)\ /api/(.*)`: the method, a space, and the path.
_REQUEST_LINE = re.compile(r"\^\((?:\[\^[\s\\:]*\]\*|\[A-Z\]\+|\\w\+|GET|POST|\.\*)\)[\s\\]+(/.*)", re.DOTALL)
# `^([^\ ]*\ /)old[/]?(.*)`: the first group holds the beginning of the path as well.
_WITH_SLASH = re.compile(r"\^\((?:\[\^[\s\\:]*\]\*|\[A-Z\]\+|\\w\+|\.\*)[\s\\]+/\)(.*)", re.DOTALL)
# `^(X-Date:)(.*)$`: a header that gets another spelling.
_SPELLING = re.compile(r"\^\(?([A-Za-z0-9-]+):\)?\s*\(\.\*\)\$?")
KEYWORDS = frozenset(
    {"reqadd", "reqrep", "reqirep", "reqdel", "reqidel", "reqdeny", "reqideny", "reqtarpit", "reqitarpit", "block"}
)


def read_old_request(keyword: str, words: tuple[str, ...]) -> Read | None:
    """The same as rules of today; None where no reader of today takes it."""
    if keyword == "block":
        return read_request("deny", ())
    if not words:
        return None
    found = _HEADER.fullmatch(words[0])
    if keyword == "reqadd" and found:
        return read_request("add-header", (found[1], found[2]))
    if keyword in ("reqdel", "reqidel"):
        return _removed(words[0])
    if keyword in ("reqrep", "reqirep") and len(words) > 1:
        return _replaced(words[0], words[1])
    return None


def removed_by(expression: str) -> tuple[tuple[str, ...], str]:
    """Names of the headers that `reqdel` and `rspdel` remove, and what differs; no name, and why, for some values."""
    if whole := _WHOLE.fullmatch(expression):
        return tuple(whole[1].split("|")), ""
    found = _HEADER.fullmatch(expression)
    if found is None or found[2] not in _ANYTHING:
        return (), BY_VALUE
    return (found[1],), ONE_NAME


def host_asked(keyword: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The criterion of the hosts that a `reqrep` changes; empty where it asks for none."""
    found = _HOST.fullmatch(words[0]) if keyword in ("reqrep", "reqirep") and words else None
    if found is None or found[1] in _ANYTHING:
        return ()
    if re.fullmatch(r"(?:[A-Za-z0-9-]|\\?\.)+\$?", found[1]):
        return ("hdr(host)", "-i", found[1].replace("\\", "").rstrip("$"))
    return ("hdr_reg(host)", "-i", f"^{found[1]}")


def header_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Name and value of the header that `reqadd` adds."""
    found = _HEADER.fullmatch(words[0]) if words else None
    return (found[1], found[2]) if found else ()


def _removed(expression: str) -> Read | None:
    names, said = removed_by(expression)
    effects: list[Effect] = []
    for name in names:
        each = read_request("del-header", (name,))
        if each is None or (each[1] and not each[0]):
            return each
        effects += each[0]
    return effects, said


def _replaced(expression: str, text: str) -> Read | None:
    new = re.fullmatch(r"Host:(?:\\?\s)*([^\\\s]+)", text, re.IGNORECASE)
    if _HOST.fullmatch(expression) and new:
        return read_request("set-header", ("Host", new[1]))
    spelled = _SPELLING.fullmatch(expression)
    if spelled and re.fullmatch(rf"{re.escape(spelled[1])}:\s*\\[12]", text, re.IGNORECASE):
        return [], "different:Headers have the spelling of nodes, which is lower case; HTTP does not tell cases apart."
    expression = expression.replace("[/]?", "/?")
    within = _WITH_SLASH.fullmatch(expression)
    if within and text.startswith("\\1"):
        shifted = re.sub(r"\\([2-9])", lambda group: f"\\{int(group[1]) - 1}", text.removeprefix("\\1"))
        return read_replace_path((f"^/{within[1]}", f"/{shifted}"))
    line = _REQUEST_LINE.fullmatch(expression)
    target = re.fullmatch(r"\\1[\s\\]+(.*)", text, re.DOTALL)
    if line and target:
        shifted = re.sub(r"\\([2-9])", lambda group: f"\\{int(group[1]) - 1}", target[1])
        effects: list[Effect]
        effects, said = read_replace_path((f"^{line[1]}", shifted))
        return effects, said
    return None
