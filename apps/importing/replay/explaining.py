"""Which lines of the report say that a request is answered otherwise: they are of its sections, and may hold for it."""

from __future__ import annotations

from collections.abc import Mapping

from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.criteria.numbers import number_holds
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.answers import about_host, about_path
from apps.importing.logic.formulas import Atom, simplified
from apps.importing.replay.connecting import HTTP, RDP, SOCKS, SSH, UPGRADE
from apps.importing.replay.contract import Answer, Asked, Opening, Request
from apps.importing.verdicts import Line, LineReport, Verdict

SAYS = frozenset({Verdict.DIFFERENT, Verdict.NOT_POSSIBLE})
# Lines that decide who answers, and those that change what is asked or where a client is sent.
DECIDES = frozenset(
    {
        *("frontend", "backend", "listen", "use_backend", "default_backend", "use-server", "server", "redirect"),
        "server-template",
        *("block", "tcp-request", "errorfile", "monitor-uri", "reqdeny", "reqideny", "bind"),
    }
)
REFUSES = frozenset({"deny", "redirect", "return", "auth", "tarpit", "reject", "silent-drop", "use-service", "allow"})
# They may leave no path, which servers and HAProxy refuse.
REWRITES = frozenset({"set-path", "replace-path", "set-pathq", "replace-pathq", "set-uri", "replace-uri"})
OPTIONS = {"x-original-to": "originalto"}  # header, and the option that sets it
CHANGES = {
    "location": ("redirect", "rspirep", "rsprep", "location", "frontend", "listen"),
    "path of the server": ("path", "uri", "query", "reqrep", "reqirep", "frontend", "listen"),
}


class Explaining:
    """The lines of one report that say of a difference. `sections` are the frontends by their ports."""

    def __init__(self, context: Context, report: tuple[LineReport, ...], sections: Mapping[int, Section]) -> None:
        self.context = context
        self.sections = sections
        self._said = {line.number for line in report if line.verdict in SAYS}
        self._conditions: dict[int, Conditions] = {}

    def lines(self, request: Asked, before: Answer, after: Answer, *, encrypted: bool) -> tuple[int, ...] | None:
        """Numbers of the lines that together say every difference; None where one is said by none."""
        found: dict[int, None] = {}
        asked = [
            each
            for each in self._lines(request, before, after, encrypted=encrypted)
            if self._may_hold(*each, request, encrypted=encrypted)
        ]
        for difference in _first(before.differences(after)):
            name = difference.partition(":")[0]
            saying = [line.number for _, line in asked if _says(line, name)]
            if not saying:
                return None
            found |= dict.fromkeys(saying)
        return tuple(found)

    def _lines(self, request: Asked, before: Answer, after: Answer, *, encrypted: bool) -> list[tuple[Section, Line]]:
        """Lines of the frontend, and of the backends that answered, by a server or without one."""
        front = self.sections.get(request.port)
        backends = [self.context.configuration.proxy(name) for name in (before.pool, after.pool) if name]
        for line in front.all_lines() if front else ():
            named = self.context.configuration.proxy(line.words[1]) if _chooses(line) else None
            alone = named is not None and not any(each.keyword == "server" for each in named.all_lines())
            if (
                front
                and named
                and (alone or not before.pool)
                and self._may_hold(front, line, request, encrypted=encrypted)
            ):
                backends.append(named)
        sections = [front, *backends]
        return [
            (section, line)
            for section in {id(each): each for each in sections if each is not None}.values()
            for line in (section.header, *section.all_lines())
            if line.number in self._said
        ]

    def _may_hold(self, section: Section, line: Line, request: Asked, *, encrypted: bool) -> bool:
        """Whether the condition of the line holds for the request, or asks what a request does not show."""
        self.context.questions.reads_requests = isinstance(request, Request)
        if section.header.number not in self._conditions:
            self._conditions[section.header.number] = Conditions(section, self.context.questions, self.context.ledger)
        _, formula = self._conditions[section.header.number].of(line.words[1:])
        if isinstance(request, Opening):
            return simplified(formula, lambda atom: _answer_of_opening(atom, request, encrypted=encrypted)) is not False
        return simplified(formula, lambda atom: _answer(atom, request, encrypted=encrypted)) is not False


def _chooses(line: Line) -> bool:
    return line.keyword in ("use_backend", "default_backend") and len(line.words) > 1


def _first(differences: list[str]) -> list[str]:
    """Another status or server makes everything else different; it alone must be said."""
    deciding = [each for each in differences if each.startswith(("status:", "pool:"))]
    return deciding or differences


def _says(line: Line, name: str) -> bool:
    """Whether the line is one that makes this difference."""
    words = [word.lower() for word in line.words]
    if name in ("status", "pool"):
        return words[0] in DECIDES or (len(words) > 1 and words[1].partition("(")[0] in REFUSES | REWRITES)
    if name in CHANGES:
        return any(each in word for word in words[:3] for each in CHANGES[name])
    header = name.rpartition(" ")[2]
    return any(header in word or OPTIONS.get(header) == word for word in words)


def _answer(atom: Atom, request: Request, *, encrypted: bool) -> bool | None:
    """What a request answers; None for a question about what it does not show."""
    path = request.path.partition("?")[0]
    headers = {name.lower(): value for name, value in request.headers.items()}
    if atom.subject == "host":
        return about_host(atom, request.host.lower().partition(":")[0])
    if atom.subject == "path":
        return about_path(atom, path)
    if atom.subject == "method":
        return request.method in {value.upper() for value in atom.values}
    if atom.subject == "scheme":
        return encrypted
    if atom.subject == "port":
        return number_holds(atom.values, request.port)
    if atom.subject == "header" and atom.name not in headers:
        return False
    if atom.subject == "query" and f"{atom.name}=" not in request.path:
        return False
    return False if atom.subject == "cookie" and atom.name not in headers.get("cookie", "") else None


def _answer_of_opening(atom: Atom, opening: Opening, *, encrypted: bool) -> bool | None:
    """The same of a connection."""
    is_tls = opening.is_tls and not encrypted
    begins = {"tls": is_tls, "http": opening.sent in (HTTP, UPGRADE), "websocket": opening.sent == UPGRADE}
    begins |= {"ssh": opening.sent == SSH, "rdp": opening.sent == RDP, "socks5": opening.sent == SOCKS}
    begins |= {"silent": not opening.sent}
    if atom.subject == "sni":
        # A listener takes TLS without a name for TLS with one (choices.py).
        return bool(opening.name) or None if atom.match == "found" else about_host(atom, opening.name)
    if atom.subject == "port":
        return number_holds(atom.values, opening.port)
    if atom.match == "alpn":
        return opening.alpn in atom.values
    return begins[atom.match] and (atom.match == "tls" or not is_tls) if atom.match in begins else None
