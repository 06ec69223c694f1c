"""The servers of a port as a load balancer with its routes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.importing.logic.conditions import conditions_of
from apps.importing.logic.decisions import Decision, Effect, Program
from apps.importing.logic.formulas import Atom, atoms_of
from apps.importing.logic.outcomes import Outcome, Unsayable, outcome_of
from apps.importing.logic.paths import EXACT, PREFIX, REGEX, Key
from apps.importing.logic.regexes import checked, literal
from apps.importing.logic.solved import Frontend, indexed
from apps.importing.logic.solving import Draft
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.traffic.contents import Contents
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.nginx.traffic.listeners import is_encrypted, listener_of
from apps.importing.nginx.traffic.ports import Port, named_servers, ports_of
from apps.importing.nginx.traffic.programs import Programs
from apps.importing.nginx.traffic.saying import Saying
from apps.importing.verdicts import Verdict

Group = list[Port]
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
                nginx.ledger.impossible(each.directive.line, "No ssl_certificate is named for this port.")
            continue
        listeners.append(listener)
    if not listeners:
        return
    nginx.made.load_balancers[name] = {"fleets": list(nginx.context.options.fleets), "listeners": listeners}
    _routes(nginx, group, name)


def _routes(nginx: Nginx, group: Group, name: str) -> None:
    programs = Programs(nginx, Contents(nginx, nginx.variables))
    named = named_servers(nginx, group[0], nginx.context.questions.atoms)
    rules = [rule for each in named for rule in programs.read(each.server, each.host, each.name)]
    schemes = {is_encrypted(port) for port in group}
    answers: dict[Atom, bool] = {}
    for atom in {atom for rule in rules for atom in atoms_of(rule.condition)}:
        if atom.subject == "scheme" and len(schemes) == 1:
            answers[atom] = schemes == {True}
    _say_unnamed(nginx, group[0], {id(each.server) for each in named})
    program = Program(tuple(rules))
    frontend, said = Frontend(program, {}, answers), Saying(indexed(program.rules), answers)
    for found in frontend.routes():
        drafts = tuple(said.of_draft(found.hostname, draft) for draft in found.drafts)
        for draft, outcome in _sayable(nginx, found.hostname, drafts):
            _route(nginx, name, found.hostname, draft, outcome, both=len(schemes) == 2)
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
    names = [each for server in group[0].servers for each in server.each("server_name")]
    for value, why in frontend.hosts.odd.items():
        for each in names:
            if value.lstrip("*") in {arg.lower().lstrip("*") for arg in each.args}:
                nginx.ledger.impossible(each.line, f"{value} is no hostname here: {why}")
    if frontend.too_many:
        nginx.ledger.differs(group[0].default.line, "More than two of its many conditions at once are not told apart.")


def _route(nginx: Nginx, load_balancer: str, hostname: str, draft: Draft, outcome: Outcome, *, both: bool) -> None:
    spec: dict[str, Any] = {"load_balancer": load_balancer, "hostname": hostname}
    if (draft.key.kind, draft.key.text) != (PREFIX, "/"):
        spec |= {"path": draft.key.text, "path_kind": draft.key.kind}
    conditions = conditions_of(draft.conditions)
    redirect = outcome.action.get("redirect", {})
    if both and redirect.get("scheme") == "https" and "scheme" not in conditions and "host" not in redirect:
        conditions["scheme"] = "http"
    spec |= conditions | outcome.spec()
    rules = {block: said for block, said in outcome.rules.items() if said}
    if rules:
        spec["rules"] = rules
    text = f"{load_balancer}-{'any' if hostname == '*' else hostname.replace('*', 'any')}"
    text += f"-{draft.key.text}" if draft.key.text != "/" else ""
    name = nginx.context.name("Route", text + "-".join(["", *sorted(map(repr, draft.conditions))]))
    while name in nginx.made.routes:
        text += "-more"
        name = nginx.context.name("Route", text)
    nginx.made.routes[name] = json.loads(json.dumps(spec))
    for line in draft.decision.lines:
        nginx.ledger.belongs(line, f"Route {name}")


def _sayable(nginx: Nginx, hostname: str, drafts: tuple[Draft, ...]) -> Iterator[tuple[Draft, Outcome]]:
    """Drafts with the parts of their routes.

    A pattern that can only be a prefix becomes one. Prefixes come before patterns, so those below it become some too.
    """
    only = [draft for draft in drafts if _why_not(nginx, draft, hostname) and _can_be_prefix(nginx, draft, hostname)]
    above = [f"{_prefix_of(draft)}/" for draft in only]
    for draft in drafts:
        prefix = _as_prefix(draft)
        below = prefix is not None and any(f"{prefix.key.text}/".startswith(each) for each in above)
        found = prefix if prefix is not None and below else draft
        if why := _why_not(nginx, found, hostname):
            for line in found.decision.lines[-1:]:
                nginx.ledger.impossible(line, f"{hostname}{found.key.text}: {why}")
            continue
        for line in found.decision.lines[-1:] if below else ():
            why = f"{hostname}{found.key.text}: paths below it that an expression takes are answered alike."
            nginx.ledger.differs(line, why)
        yield found, _outcome(nginx, found.decision, found.key, hostname)


def _prefix_of(draft: Draft) -> str:
    prefix = _as_prefix(draft)
    return prefix.key.text if prefix is not None else draft.key.text


def _why_not(nginx: Nginx, draft: Draft, hostname: str) -> str:
    try:
        _outcome(nginx, draft.decision, draft.key, hostname)
    except Unsayable as error:
        return str(error)
    return ""


def _can_be_prefix(nginx: Nginx, draft: Draft, hostname: str) -> bool:
    prefix = _as_prefix(draft)
    return prefix is not None and not _why_not(nginx, prefix, hostname)


def _as_prefix(draft: Draft) -> Draft | None:
    prefix = draft.key.text.removesuffix("(/.*)?").replace("\\", "")
    is_one = draft.key.kind == REGEX and draft.key.text.endswith("(/.*)?") and is_path(prefix)
    return replace(draft, key=Key(PREFIX, prefix)) if is_one else None


def _outcome(nginx: Nginx, decision: Decision, key: Key, hostname: str) -> Outcome:
    """The parts of a route; where servers get another path, by prefix, as a whole, or by a pattern."""
    changes = _moved_once(decision)
    paths = [each for each in changes if each.data[0] == "path"]
    rest = replace(decision, changes=tuple(each for each in changes if each.data[0] != "path"))

    def pool(found: str) -> str:
        account = nginx.context.options.account
        return f"{account}/{nginx.made.names[found]}" if account else nginx.made.names[found]

    outcome = outcome_of(rest, key, hostname, pool)
    for each in paths if "pools" in outcome.action else ():
        _move(outcome, key, str(each.data[1]), str(each.data[2]))
    return outcome


def _moved_once(decision: Decision) -> list[Effect]:
    """A path that `rewrite` has changed is passed on as it is, whatever path proxy_pass says."""
    found: list[Effect] = []
    moved = ""
    for each in decision.changes:
        name = str(each.data[1])
        mover = "path" if each.data[0] == "path" else name if each.data[0] == "rewrite" else ""
        if mover not in ("path", "path_regex", "path_replacement"):
            found.append(each)
        elif not moved or (moved, mover) == ("path_regex", "path_replacement"):
            found.append(each)
            moved = mover
    return found


def _move(outcome: Outcome, key: Key, old: str, new: str) -> None:
    """What begins with `old` begins with `new`, as nginx replaces it: sign by sign, not by segment."""
    rewrite = outcome.rules.setdefault("rewrite", {})
    if key.kind == EXACT and key.text.startswith(old):
        rewrite["path"] = _plain(new + key.text[len(old) :])
    elif key.kind == PREFIX and (moved := _prefix(key.text, old, new)) is not None:
        outcome.prefix_rewrite = moved
    else:
        pattern = checked(literal(old) + "(.*)")
        try:
            replacement = rewriting.replacement(new + "\\1")
        except GrammarError as error:
            raise Unsayable("The new path cannot be said.") from error
        if pattern is None:
            raise Unsayable("The path cannot be rewritten here.")
        rewrite |= {"path_regex": pattern, "path_replacement": replacement}


def _prefix(text: str, old: str, new: str) -> str | None:
    """What takes the place of the whole prefix of a route; None where no prefix does."""
    if text == "/" and not new.endswith("/"):
        return None  # the slash of the path itself is replaced
    if text.rstrip("/") + "/" == old and new.endswith("/"):
        return _plain(new.rstrip("/") or "/")
    if not text.startswith(old):
        return None
    moved = new + text[len(old) :].lstrip("/") if new.endswith("/") else new + text[len(old) :]
    return _plain(moved.rstrip("/") or "/")


def is_path(text: str) -> bool:
    """Whether a route can have the path."""
    try:
        return bool(grammar.path(text))
    except GrammarError:
        return False


def _plain(text: str) -> str:
    try:
        return grammar.path(text)
    except GrammarError as error:
        raise Unsayable(error.message) from error
