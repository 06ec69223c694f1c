"""The servers of a port as a load balancer with its routes."""

from __future__ import annotations

from apps.importing.context import FORWARDED_PROTO, believe
from apps.importing.logic.decisions import Program
from apps.importing.logic.formulas import Atom, atoms_of
from apps.importing.logic.saying import Saying
from apps.importing.logic.solved import LOST, TOO_MANY, Frontend, indexed
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.traffic.contents import Contents
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.nginx.traffic.listeners import is_encrypted, listener_of
from apps.importing.nginx.traffic.ports import Port, named_servers, ports_of
from apps.importing.nginx.traffic.programs import Programs
from apps.importing.results.routes import Routes
from apps.importing.verdicts import Verdict

Group = list[Port]
NO_CERTIFICATE = "No ssl_certificate is named for its port, so nginx would not start; name one, or let it speak http."
NOWHERE = "Its server listens nowhere that clients of nodes can connect to."


def read_servers(nginx: Nginx, http: Directive) -> None:
    """All servers of `http`, by the ports at which the same servers listen."""
    servers = list(http.each("server"))
    groups: dict[tuple[object, ...], Group] = {}
    for port in ports_of(nginx, servers):
        key = (tuple(id(each) for each in port.servers), id(port.default))
        groups.setdefault(key, []).append(port)
    for group in groups.values():
        _group(nginx, group)
    listening = {id(server) for group in groups.values() for port in group for server in port.servers}
    for server in servers:
        if id(server) not in listening:
            for each in (server, *server.everything()):
                nginx.ledger.note(each.line, Verdict.DEAD, NOWHERE)


def _group(nginx: Nginx, group: Group) -> None:
    name = nginx.context.name("LoadBalancer", f"nginx-{group[0].number}")
    listeners = []
    for port in group:
        listener = listener_of(nginx, port)
        for server, each in port.listens:
            nginx.ledger.belongs(each.directive.line, f"LoadBalancer {name}")
            nginx.ledger.belongs(server.line, f"LoadBalancer {name}")
        if listener["protocol"] == "https" and not listener.get("certificates"):
            for _, each in port.listens:
                nginx.ledger.impossible(each.directive.line, NO_CERTIFICATE)
            continue
        listeners.append(listener)
    if not listeners:
        for server in group[0].servers:
            nginx.ledger.impossible(server.line, NO_CERTIFICATE)
        return
    nginx.made.load_balancers[name] = {"fleets": list(nginx.context.options.fleets), "listeners": listeners}
    _routes(nginx, group, name)


def _routes(nginx: Nginx, group: Group, name: str) -> None:
    programs = Programs(nginx, Contents(nginx, nginx.variables))
    named = named_servers(nginx, group[0], nginx.context.questions.atoms)
    rules = [rule for each in named for rule in programs.read(each.server, each.host, each.name)]
    asking = (
        each.line for server in group[0].servers for each in server.everything()
        if each.name == "if" and any(f"$http_{FORWARDED_PROTO.replace('-', '_')}" in arg for arg in each.args)
    )  # fmt: skip
    is_told = believe(nginx.context, nginx.made.load_balancers[name]["listeners"], asking)
    schemes = {is_encrypted(port) for port in group}
    answers: dict[Atom, bool] = {}
    for atom in {atom for rule in rules for atom in atoms_of(rule.condition)}:
        if atom.subject == "scheme" and len(schemes) == 1 and not is_told:
            answers[atom] = schemes == {True}
    _say_unnamed(nginx, group[0], {id(each.server) for each in named})
    program = Program(tuple(rules))
    frontend, said = Frontend(program, {}, answers), Saying(indexed(program.rules), answers)
    routes = Routes(nginx.context, nginx.made, name, both=is_told or len(schemes) == 2)
    for found in frontend.routes():
        drafts = tuple(said.of_draft(found.hostname, draft) for draft in found.drafts)
        routes.add(found.hostname, drafts)
    routes.end_circles()
    _say(nginx, group, frontend, said)


def _say_unnamed(nginx: Nginx, port: Port, named: set[int]) -> None:
    """Servers that no host leads to."""
    for server in port.servers:
        if id(server) in named:
            continue
        lost = any(nginx.ledger.verdict_of(each.line) is Verdict.NOT_POSSIBLE for each in server.each("server_name"))
        for each in (server, *server.everything()):
            if lost:
                nginx.ledger.impossible(each.line, "None of the names of its server can be said.")
            else:
                nginx.ledger.note(each.line, Verdict.DEAD, "No host leads to its server.")


def _say(nginx: Nginx, group: Group, frontend: Frontend, said: Saying) -> None:
    """Examples that are decided otherwise, and values that can be no hostname."""
    for hostname, path, decision in frontend.differing:
        for line in said.lines(hostname, path, decision, frozenset())[-1:]:
            nginx.ledger.differs(line, f"Some requests of {hostname} such as {path} are decided by another line.")
    names = [(server, each) for server in group[0].servers for each in server.each("server_name")]
    for value, why in frontend.hosts.odd.items():
        for server, each in names:
            # The default server answers for all hosts that no other server names, and so for this one.
            answers = all(port.default is server for port in group)
            if not answers and value.lstrip("*") in {arg.lower().lstrip("*") for arg in each.args}:
                nginx.ledger.impossible(each.line, f"{value} is no hostname here: {why}")
    if frontend.too_many:
        nginx.ledger.differs(group[0].default.line, TOO_MANY)
    for line in frontend.lost():
        nginx.ledger.impossible(line, LOST)
