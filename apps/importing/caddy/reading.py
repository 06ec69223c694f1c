"""The JSON of Caddy in, documents and a verdict for each value out. It never guesses, and stores nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from apps.importing.caddy.certificates import TLS, hidden
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.traffic import SERVERS, read_servers
from apps.importing.context import Context
from apps.importing.contract import Import
from apps.importing.files import Files
from apps.importing.logic.questions import Questions
from apps.importing.masking import HIDDEN
from apps.importing.naming import Names
from apps.importing.options import ImportOptions
from apps.importing.results.made import Made, documents_of
from apps.importing.results.owners import owned
from apps.importing.values.fields import Fields, mapping, names_secret, shown_path, shown_value
from apps.importing.values.parsing import Count, Document, Leaf, Path, Refused, documents
from apps.importing.verdicts import Ledger, Line, LineReport, Verdict

NO_JSON = "This is a Caddyfile. Import its JSON: caddy adapt --pretty --config Caddyfile > caddy.json"
NOTHING = "The file has no servers of http (apps.http.servers)."
ORDERED = "Spillway orders certificates itself, from its own authorities."
OF_CADDY = {
    "admin": "It is about Caddy's own API.", "logging": "Every request is logged.",
    "storage": "Where Caddy keeps files.",
}  # fmt: skip
OF_SERVER = {
    "logs": "Every request is logged.", "metrics": "Nodes count every request.",
    "protocols": "The listener says which versions of HTTP it speaks (tls).", "automatic_https": ORDERED,
    "max_header_bytes": "A setting of the fleet's nodes.", "keepalive_interval": "A setting of the fleet's nodes.",
    "enable_full_duplex": "Nodes pass on what comes as it comes.", "strict_sni_host": "See tls.same_certificate.",
    "trusted_proxies_strict": "Of the header the last address that is no such proxy is believed.",
    "tls_connection_policies": "The listener has settings of its own (tls).",
}  # fmt: skip


def read_caddy(text: str, files: Mapping[str, str], options: ImportOptions) -> Import:
    """The whole file.

    1. Values become fields, each of which waits for a verdict; a file of one line is laid out first.
    2. Each server becomes a load balancer; its routes, in the order of their handlers, become routes of ours.
    3. What `reverse_proxy` passes requests to becomes a pool.
    4. Fields that no reader took are judged by their place.
    """
    if not text.lstrip().startswith("{") or not re.search(r'"(?:apps|admin|logging|storage)"', text):
        return _refused(1, text.strip().partition("\n")[0], NO_JSON)
    try:
        caddy = opened(text, files, options)
    except Refused as refused:
        lines = in_lines(text).splitlines()
        shown = lines[refused.line - 1].strip()[:80] if refused.line <= len(lines) else ""  # a file that breaks off
        return _refused(refused.line, shown, refused.why)
    if not mapping(caddy.fields.at(*SERVERS)):
        return _refused(1, text.strip().partition("\n")[0], NOTHING)
    read_servers(caddy)
    _close(caddy)
    made, context = caddy.made, caddy.context
    documents = owned(options.account, documents_of(context, made))
    return Import(documents, context.ledger.report(), tuple(context.needs))


def opened(text: str, files: Mapping[str, str], options: ImportOptions) -> Caddy:
    """The values of a file, none of them read yet. Raises Refused."""
    found = next(documents(in_lines(text), Count()), Document({}))
    context = Context(Ledger(), Files(files), options, Questions(), Names(options.prefix))
    return Caddy(_fields(found, context.ledger), context, Made())


def in_lines(text: str) -> str:
    """A file of one line as `caddy adapt --pretty` writes it: lines of a report need lines."""
    try:
        return text if text.strip().count("\n") else json.dumps(json.loads(text), indent="\t")
    except (ValueError, RecursionError):
        return text  # whoever reads it next says where it is wrong


def _refused(line: int, shown: str, why: str) -> Import:
    return Import((), (LineReport(line, shown, "", Verdict.NOT_POSSIBLE, (why,)),))


def _fields(found: Document, ledger: Ledger) -> Fields:
    made = Fields(data=mapping(found.value), ledger=ledger)
    for leaf in found.leaves:
        line = _line(made, leaf)
        ledger.add(line)
        if leaf.again:
            ledger.note(line, Verdict.DEAD, "The same key stands here once more further down; that one counts.")
        else:
            made.lines[leaf.path] = line
    return made


def _line(fields: Fields, leaf: Leaf) -> Line:
    """A value, by its place in the handler or matcher that it is of; the section is its server and hosts."""
    path = leaf.path
    secret = path[-1:] != ("handler",) and path[:2] != TLS and any(names_secret(str(part)) for part in path)
    text = HIDDEN if secret else hidden(path, shown_value(leaf.value))
    if path[:3] != SERVERS or len(path) < 5:
        return Line(leaf.line, (), f"{shown_path(path)}: {text}", at=leaf.column)
    within = [at for at, part in enumerate(path) if part in ("handle", "match")]
    last = within[-1] if within else 2
    handler = fields.at(*path[: last + 2], "handler") if path[last] == "handle" else ""
    shown = shown_path(path[last + 2 :] if path[last] != "match" else ("match", *path[last + 2 :]))
    hosts = fields.at(*path[:6], "match", 0, "host") if path[4] == "routes" else None
    section = f"server {path[3]}" + (f", {', '.join(map(str, hosts[:3]))}" if isinstance(hosts, list) else "")
    return Line(leaf.line, (), f"{f'{handler} ' if handler else ''}{shown}: {text}", section, at=leaf.column)


def _close(caddy: Caddy) -> None:
    """Give every open field its verdict."""
    for path, line in caddy.fields.open_lines():
        verdict, reason = _verdict(path)
        caddy.ledger.note(line, verdict, reason)


def _verdict(path: Path) -> tuple[Verdict, str]:
    if path[:3] == SERVERS and len(path) > 4 and str(path[4]) in OF_SERVER:
        return Verdict.NODE_SETTING, OF_SERVER[str(path[4])]
    if path[:2] == TLS and path[2:4] == ("automation", "on_demand"):
        return Verdict.NOT_POSSIBLE, "Certificates are ordered for names that are known."
    if path[:2] in (TLS, ("apps", "pki")):
        return Verdict.NODE_SETTING, ORDERED
    if path[:2] == ("apps", "http") and path[2:3] != ("servers",):
        return Verdict.NODE_SETTING, "How Caddy itself starts and ends."
    if path and path[0] in OF_CADDY:
        return Verdict.NODE_SETTING, OF_CADDY[str(path[0])]
    return Verdict.NOT_POSSIBLE, "This field is not read."
