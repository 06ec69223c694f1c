"""Own pages with statuses of errors: of servers' answers by a rule, of HAProxy's own errors by a format and a map.

An error of HAProxy itself has one format for each status and frontend, and in a format every control character of a
looked-up value is encoded. So `maps/lb-1-pages.map` has a page line by line (`er3f2a…-503-1 <base64url>`), and the
format joins as many lines as the longest page has, rounded up; a shorter page ends in empty lines. The map is asked
only when there is an error. Requests that were never understood (400, and 408 of a connection) have no route: they get
HAProxy's short page.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable

from apps.compiler.model.policy import ErrorPages
from apps.compiler.targets.haproxy.writer import Opaque, Section, Value

TYPE = "text/html"
# What HAProxy may answer by itself once the route is known, with its own words for routes without a page.
OWN = {
    403: ("403 Forbidden", "Request forbidden by administrative rules."),
    408: ("408 Request Time-out", "Your browser didn't send a complete request in time."),
    413: ("413 Payload Too Large", "The request entity exceeds the maximum allowed."),
    429: ("429 Too Many Requests", "You have sent too many requests in a given amount of time."),
    500: ("500 Internal Server Error", "An internal server error occurred."),
    502: ("502 Bad Gateway", "The server returned an invalid or incomplete response."),
    503: ("503 Service Unavailable", "No server is available to handle this request."),
    504: ("504 Gateway Time-out", "The server didn't respond in time."),
}
_TYPE_HEADER = "x-spillway-type"
_STEPS = (4, 16, 64)


def add(section: Section, when: tuple[str, ...], said: ErrorPages) -> None:
    """Whose page it is, for errors that come later."""
    section.add("http-request", "set-var(txn.page)", f"str({_code(said)})", "if", *when)


def add_to_answers(section: Section, when: tuple[str, ...], said: ErrorPages) -> None:
    """Servers' answers with these statuses are replaced; after every other rule for responses, since this ends them."""
    if not said.intercept or not said.body:
        return
    for status in said.statuses or ():
        page = ("content-type", Value(said.content_type or TYPE), "string", Opaque(_page(said, status)))
        having = ("{", "status", Value(str(status)), "}")
        section.add("http-response", "return", "status", Value(str(status)), *page, "if", *when, *having)


def add_errors(section: Section, blocks: Iterable[ErrorPages], path: str) -> None:
    """The formats of HAProxy's own errors, of the statuses that any page is for; `path` is that of the map."""
    pages = [each for each in blocks if each.body]
    statuses = _own_statuses(pages)
    count = _lines_of(pages)
    for status in statuses:
        lines = "\n".join(_looked_up(status, str(number), path) for number in range(1, count + 1))
        section.add(
            "http-error", "status", str(status), "content-type", TYPE, "lf-string", lines,
            "hdr", "cache-control", "no-cache", "hdr", _TYPE_HEADER, _looked_up(status, "t", path),
        )  # fmt: skip
    if statuses:
        has_type = ("if", "{", f"res.hdr({_TYPE_HEADER})", "-m", "found", "}")
        new_type = f"%[res.hdr({_TYPE_HEADER})]"
        section.add("http-after-response", "set-header", "content-type", new_type, *has_type)
        section.add("http-after-response", "del-header", _TYPE_HEADER)


def pages_map(blocks: Iterable[ErrorPages]) -> dict[str, str]:
    """Code, status and number of the line → the line; without a code HAProxy's own page. Empty lines are left out."""
    pages = [each for each in blocks if each.body]
    found: dict[str, str] = {}
    for status in _own_statuses(pages):
        title, sentence = OWN[status]
        own = f"<html><body><h1>{title}</h1>\n{sentence}\n</body></html>"
        found |= _entries("", status, own, TYPE)
        for each in pages:
            if status in (each.statuses or ()):
                found |= _entries(_code(each), status, _page(each, status), each.content_type or TYPE)
            else:
                found |= _entries(_code(each), status, own, TYPE)
    return found


def _own_statuses(pages: Iterable[ErrorPages]) -> list[int]:
    return sorted({status for each in pages for status in each.statuses or () if status in OWN})


def _lines_of(pages: Iterable[ErrorPages]) -> int:
    """How many lines the format has: rounded up, so that few changes of a page take a reload."""
    longest = max((len(_split(each.body or "")) for each in pages), default=0)
    return next((step for step in _STEPS if longest <= step), longest)


def _split(body: str) -> list[str]:
    return body.rstrip("\n").split("\n")


def _code(said: ErrorPages) -> str:
    return "er" + hashlib.sha256(repr(said).encode()).hexdigest()[:10]


def _page(said: ErrorPages, status: int) -> str:
    return (said.body or "").replace("{status}", str(status))


def _looked_up(status: int, name: str, path: str) -> str:
    return f"%[var(txn.page,),concat(-{status}-{name}),map_str({path}),ub64dec]"


def _entries(code: str, status: int, page: str, content_type: str) -> dict[str, str]:
    lines = {str(number): line for number, line in enumerate(_split(page), 1) if line} | {"t": content_type}
    return {f"{code}-{status}-{name}": _encoded(line) for name, line in lines.items()}


def _encoded(line: str) -> str:
    return urlsafe_b64encode(line.encode()).decode().rstrip("=")
