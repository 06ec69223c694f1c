"""The sides of a split: a client keeps its number, 0 to 999, and the split's thresholds say whose side that is.

The number is what a split draws by chance otherwise. While the share of the last pool (or the first) grows, its range
only grows, so nobody who is in it is moved out of it. A client has the same number for all routes
that follow an equal block.
"""

from __future__ import annotations

import hashlib

from apps.compiler.model.policy import Split
from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

COOKIE = "spillway-side"
# Whoever changes the last half of an IPv6 address every day stays who he is.
_ADDRESS = "src,ipmask(32,64),xxh32,mod(1000)"
_NUMBER = "^[0-9][0-9]?[0-9]?$"


def add(section: Section, when: tuple[str, ...], said: Split) -> None:
    """The client's number instead of the drawn one, which stays for who has no header and gets its cookie."""
    if said.stick_by == "address":
        section.add("http-request", "set-var(txn.drawn)", _ADDRESS, "if", *when)
    elif said.stick_by == "header" and said.header:
        number = Call(("req.fhdr(", Value(said.header), "),xxh32,mod(1000)"))
        section.add("http-request", "set-var(txn.drawn)", number, "if", *when)
    elif said.stick_by == "cookie":
        _add_cookie(section, when, said)


def _add_cookie(section: Section, when: tuple[str, ...], said: Split) -> None:
    name = Value(said.cookie or COOKIE)
    kept = ("{", Call(("req.cook(", name, ")")), "-m", "reg", _NUMBER, "}")
    section.add("http-request", "set-var(txn.drawn)", Call(("req.cook(", name, "),mod(1000)")), "if", *when, *kept)
    # Once there is a response, the action is no split any more.
    code = hashlib.sha256(repr(said).encode()).hexdigest()[:10]
    section.add("http-request", "set-var(txn.new_side)", f"str({code})", "if", *when, "!", *kept)
    new = ("{", "var(txn.new_side)", "-m", "str", code, "}")
    section.add("http-after-response", "add-header", "Set-Cookie", _cookie(name, said), "if", *new)


def _cookie(name: Value, said: Split) -> Argument:
    rest = f"=%[var(txn.drawn)]; Path=/; SameSite={(said.same_site or 'lax').title()}"
    rest += f"; Max-Age={said.max_age_s}" if said.max_age_s is not None else ""
    rest += "; HttpOnly" if said.http_only is not False else ""
    return Call((name, rest + ("; Secure" if said.secure else "")))
