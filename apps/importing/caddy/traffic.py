"""Servers as load balancers with their routes, and the redirects to https that Caddy makes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.importing.caddy.context import HTTP, Caddy
from apps.importing.caddy.handlers.answers import EMPTY
from apps.importing.caddy.listeners import Server, listeners_of, server_at
from apps.importing.caddy.programs import OWN_PAGES, Programs
from apps.importing.logic.decisions import Effect, Program, Rule
from apps.importing.logic.formulas import Atom, Formula, any_of, atoms_of
from apps.importing.logic.saying import Saying
from apps.importing.logic.solved import LOST, TOO_MANY, Frontend, indexed
from apps.importing.logic.targets import HOST, Target
from apps.importing.results.routes import Routes
from apps.importing.values.parsing import Path
from apps.importing.verdicts import Line

SERVERS: Path = (*HTTP, "servers")


def read_servers(caddy: Caddy) -> None:
    """Every server, and port 80 where Caddy sends clients to https."""
    names = caddy.fields.at(*SERVERS)
    servers = [server_at(caddy, name, (*SERVERS, name)) for name in (names if isinstance(names, Mapping) else ())]
    redirected = {each.name: port for each in servers if (port := each.https_port(caddy))}
    plain = next((each for each in servers if caddy.http_port in dict(each.ports)), None)
    for server in servers:
        others = {name: port for name, port in redirected.items() if server is plain}
        _server(caddy, server, [each for each in servers if each.name in others])
    if redirected and plain is None:
        _redirecting(caddy, [each for each in servers if each.name in redirected])


def _server(caddy: Caddy, server: Server, redirected: list[Server]) -> None:
    listeners = [each for each in listeners_of(caddy, server) if _is_whole(caddy, server, each)]
    caddy.fields.impossible((*server.path, "errors"), OWN_PAGES)
    programs = Programs(caddy, (*server.path, "named_routes"))
    routes = (*server.path, "routes")
    behind = _last_with_host(caddy, routes) if redirected else 0
    programs.routes(routes, True, [])
    rules = _with_redirects(caddy, programs.rules, redirected, _first_line_of(caddy, (*routes, behind)))
    rules.append(Rule(caddy.line(server.path), True, EMPTY))
    if not listeners:
        return
    name = caddy.context.name("LoadBalancer", f"caddy-{listeners[0]['port']}")
    for line in caddy.fields.below((*server.path, "listen")):
        caddy.ledger.belongs(line, f"LoadBalancer {name}")
    _write(caddy, name, listeners, rules)


def _is_whole(caddy: Caddy, server: Server, listener: dict[str, Any]) -> bool:
    if listener["protocol"] == "http" or listener["certificates"]:
        return True
    for at, _ in caddy.fields.texts(*server.path, "listen"):
        caddy.fields.impossible(at, "No certificate is named for this port; Caddy orders one when a client comes.")
    return False


def _last_with_host(caddy: Caddy, routes: Path) -> int:
    """How many routes stand before the redirects: those with a host, and all above them."""
    with_host = [at[-1] for at, _ in caddy.fields.each(*routes)
                 if any("host" in matchers for _, matchers in caddy.fields.each(*at, "match"))]  # fmt: skip
    return int(with_host[-1]) + 1 if with_host else 0


def _first_line_of(caddy: Caddy, path: Path) -> Line | None:
    return next(iter(caddy.fields.below(path)), None)


def _with_redirects(caddy: Caddy, rules: list[Rule], redirected: list[Server], behind: Line | None) -> list[Rule]:
    """Redirects of named hosts stand before the routes for every host, that of all other hosts behind them."""
    if not redirected:
        return rules
    first = len(rules) if behind is None else next(
        (at for at, rule in enumerate(rules) if rule.line.position >= behind.position), len(rules)
    )  # fmt: skip
    return [*rules[:first], *_redirects(caddy, redirected), *rules[first:], _catch_all(caddy, redirected)]


def _redirects(caddy: Caddy, redirected: list[Server]) -> list[Rule]:
    """For each server, the hosts that no other one has at the port that clients need not name."""
    usual = {host for each in redirected if each.https_port(caddy) == caddy.https_port for host in each.hosts}
    found = []
    for server in redirected:
        port = server.https_port(caddy)
        hosts = [host for host in server.hosts if port == caddy.https_port or host not in usual]
        asked = [_any_of(caddy, hosts)] if hosts or not server.hosts else []
        found += [Rule(_line_of(caddy, server), each, _to_https(port)) for each in asked]
    return found


def _any_of(caddy: Caddy, hosts: list[str]) -> Formula:
    """Whether one of the hosts is asked for; a server that names none takes all."""
    atoms = caddy.context.questions.atoms
    whole = tuple(host for host in hosts if "*" not in host)
    wide = tuple(host.removeprefix("*.") for host in hosts if host.startswith("*."))
    asked: list[Formula] = [atoms.get("host", "str", whole)] if whole else []
    asked += [atoms.get("host", "label", wide)] if wide else []
    return any_of(asked) if hosts else True


def _catch_all(caddy: Caddy, redirected: list[Server]) -> Rule:
    return Rule(_line_of(caddy, redirected[0]), True, _to_https(caddy.https_port))


def _line_of(caddy: Caddy, server: Server) -> Line:
    return caddy.line((*server.path, "listen"))


def _to_https(port: int) -> Effect:
    target = Target(scheme="https", host=HOST, port=0 if port == 443 else port, keeps_path=True, keep_query=True)
    return Effect("redirect", (308, target))


def _redirecting(caddy: Caddy, redirected: list[Server]) -> None:
    """A load balancer that does nothing but send clients to https."""
    name = caddy.context.name("LoadBalancer", f"caddy-{caddy.http_port}")
    listener = {"name": f"http-{caddy.http_port}", "protocol": "http", "port": caddy.http_port}
    others = [each for each in redirected if each.https_port(caddy) != caddy.https_port]
    _write(caddy, name, [listener], [*_redirects(caddy, others), _catch_all(caddy, redirected)])


def _write(caddy: Caddy, name: str, listeners: list[dict[str, Any]], rules: list[Rule]) -> None:
    """The load balancer, and a route for each path that the rules tell apart."""
    caddy.made.load_balancers[name] = {"fleets": list(caddy.context.options.fleets), "listeners": listeners}
    schemes = {each["protocol"] == "https" for each in listeners}
    answers: dict[Atom, bool] = {}
    for atom in {atom for rule in rules for atom in atoms_of(rule.condition)}:
        if atom.subject == "scheme" and len(schemes) == 1:
            answers[atom] = schemes == {True}
    program = Program(tuple(rules))
    frontend, said = Frontend(program, {}, answers), Saying(indexed(program.rules), answers)
    routes = Routes(caddy.context, caddy.made, name, both=len(schemes) == 2)
    for found in frontend.routes():
        routes.add(found.hostname, tuple(said.of_draft(found.hostname, draft) for draft in found.drafts))
    routes.end_circles()
    for hostname, path, decision in frontend.differing:
        for line in said.lines(hostname, path, decision, frozenset())[-1:]:
            caddy.ledger.differs(line, f"Some requests of {hostname} such as {path} are decided by another line.")
    _say_hosts(caddy, rules, frontend)


def _say_hosts(caddy: Caddy, rules: list[Rule], frontend: Frontend) -> None:
    """Values that can be no hostname, and more conditions than are told apart."""
    for rule in rules:
        asked = {value for atom in atoms_of(rule.condition) if atom.subject == "host" for value in atom.values}
        for value in asked & frontend.hosts.odd.keys():
            caddy.ledger.impossible(rule.line, f"{value} is no hostname here: {frontend.hosts.odd[value]}")
    if frontend.too_many:
        caddy.ledger.differs(rules[-1].line, TOO_MANY)
    for line in frontend.lost():
        caddy.ledger.impossible(line, LOST)
