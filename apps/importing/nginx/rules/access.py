"""Who may ask, and how much: allow and deny, auth_basic, limit_req and limit_conn, sizes of bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apps.compiler.checks.access import MAX_NETWORKS
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication
from apps.importing.context import Context
from apps.importing.haproxy.rules.users import SHORTEST
from apps.importing.logic.decisions import Effect, change, fixed
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.values.networks import EVERYBODY, NOBODY, FirstMatch, Ranges, addresses, shorter

# What asks who somebody is in a way that nodes do not know. Without it the place would be open to everybody.
ASKS = ("auth_request", "auth_jwt", "auth_jwt_key_file", "secure_link", "secure_link_secret", "access_by_lua",
        "access_by_lua_block", "access_by_lua_file", "auth_pam", "auth_digest", "js_access", "auth_ldap",
        "auth_gss")  # fmt: skip
CLOSED = "Nodes cannot ask this, so they answer 403 here; protect the place in a policy, then change the route."
AS_WRITTEN = "Paths are compared as clients write them, with %2F, // and dots; let the server refuse as well."
REFUSED = fixed(403, "The request was refused (403).\n")


def refusal(context: Context, scope: Directive) -> Effect | None:
    """An answer that ends every request here, where who may ask is not known or nobody may."""
    found = None
    for name in ASKS:
        each = scope.inherited(name)
        if each is not None and value_of(each) != "off":
            context.ledger.impossible(each.line, CLOSED)
            found = REFUSED
    satisfy = scope.inherited("satisfy")
    if satisfy is not None and value_of(satisfy) == "any" and _rules_of(scope):
        context.ledger.impossible(satisfy.line, CLOSED)
        found = REFUSED
    elif satisfy is not None:
        context.ledger.mapped(satisfy.line)
    return found


def access(context: Context, scope: Directive) -> Iterator[Effect]:
    """`allow` and `deny`: the first that holds counts, so they become one list of networks."""
    rules = _rules_of(scope)
    if not rules:
        return
    found = FirstMatch()
    for each in rules:
        named = _addresses(context, each)
        if named is None:
            yield REFUSED
            return
        context.ledger.mapped(each.line)
        if any(one.name == "deny" for one in rules) and scope.name == "location" and scope.args[-1:] != ("/",):
            context.ledger.differs(each.line, AS_WRITTEN)
        found.add(named, denies=each.name == "deny")
    kind, networks = shorter(found.denied)
    if found.denied == EVERYBODY or len(networks) > MAX_NETWORKS:
        yield REFUSED
    elif found.denied:
        yield change("access", kind, context.network_list(networks, f"{kind}-{rules[0].args[0]}"))


def _rules_of(scope: Directive) -> list[Directive]:
    """Both words are one list: a block that has one of them forgets those around it."""
    block: Directive | None = scope
    while block is not None:
        if found := list(block.each("allow", "deny")):
            return found
        block = block.parent
    return []


def _addresses(context: Context, directive: Directive) -> Ranges | None:
    text = value_of(directive)
    if text == "all":
        return EVERYBODY
    if text == "unix:":
        return NOBODY
    try:
        return addresses((text,))
    except ValueError:
        context.ledger.impossible(directive.line, f"{text} is no network, so nodes answer 403 here.")
        return None


def basic_auth(context: Context, scope: Directive) -> Iterator[Effect]:
    """`auth_basic` with its file of users; without the file the place stays closed until it is given."""
    asked, file = scope.inherited("auth_basic"), scope.inherited("auth_basic_user_file")
    if asked is None or value_of(asked) == "off":
        return
    text = context.files.text(value_of(file)) if file is not None else None
    if file is None or text is None:
        context.ledger.differs(asked.line, "The file of its users was not given, so nodes answer 403 here.")
        if file is not None:
            context.ledger.differs(file.line, "This file was not given.")
            context.need(f"The file {value_of(file)} (--files).")
        yield REFUSED
        return
    users = [user for line in text.splitlines() if (user := _user(context, file, line.strip())) is not None]
    context.ledger.mapped(asked.line)
    context.ledger.mapped(file.line)
    if scope.name == "location" and scope.args[-1:] != ("/",):
        context.ledger.differs(asked.line, AS_WRITTEN)
    realm = value_of(asked)
    try:
        realm = authentication.realm(realm)
    except GrammarError:
        realm = "protected"
    yield change("basic_auth", "users", (tuple(users), realm)) if users else REFUSED


def _user(context: Context, file: Directive, line: str) -> tuple[str, str] | None:
    name, mark, stored = line.partition(":")
    if not mark or line.startswith("#"):
        return None
    try:
        authentication.user_name(name)
    except GrammarError as error:
        context.ledger.differs(file.line, f"A user is left out: {error.message}")
        return None
    stored = stored.partition(":")[0]
    plain = stored.removeprefix("{PLAIN}") if stored.startswith("{PLAIN}") else ""
    password = context.options.passwords.get(name, plain)
    if len(password) < SHORTEST:
        context.ledger.differs(file.line, "Hashes cannot be moved; say the passwords with --password USER=….")
        context.need(f"The password of user {name}, of at least {SHORTEST} characters (--password {name}=…).")
        return name, ""
    return name, password


def limits(context: Context, scope: Directive, zones: dict[str, Directive]) -> Iterator[Effect]:
    """`limit_req` and `limit_conn` as one limit per client."""
    block: dict[str, Any] = {}
    for each in scope.all_inherited("limit_req"):
        _limit_req(context, each, zones, block)
    for each in scope.all_inherited("limit_conn"):
        _limit_conn(context, each, zones, block)
    for said in ("limit_req_status", "limit_conn_status") if block else ():
        _status(context, scope.inherited(said))
    for field, value in block.items():
        yield change("client_limit", field, value)


def _status(context: Context, said: Directive | None) -> None:
    if said is None:
        return
    context.ledger.mapped(said.line)
    if value_of(said) != "429":
        context.ledger.differs(said.line, "Clients beyond a limit get 429.")


def _zone(
    context: Context, directive: Directive, zones: dict[str, Directive], block: dict[str, Any]
) -> Directive | None:
    """The zone that is counted in, if its key is a client; the block then says it."""
    name = next((arg.removeprefix("zone=") for arg in directive.args if arg.startswith("zone=")), value_of(directive))
    zone = zones.get(name)
    if zone is None:
        context.ledger.impossible(
            directive.line,
            f"No zone {name} is here: read the file that includes this one (--files).",
        )
        return None
    key = _key(value_of(zone))
    if key is None:
        why = "A client is known by its address, a header or a cookie; this zone counts something else."
        context.ledger.impossible(directive.line, why)
        context.ledger.impossible(zone.line, why)
        return None
    if block and any(block.get(part) != key.get(part) for part in ("key", "key_name")):
        context.ledger.impossible(directive.line, "A route has one limit per client; this is another one.")
        return None
    block |= key
    context.ledger.mapped(zone.line)
    return zone


def _key(text: str) -> dict[str, Any] | None:
    if text in ("$binary_remote_addr", "$remote_addr"):
        return {"ipv6_prefix": 128}
    for prefix, kind in (("$http_", "header"), ("$cookie_", "cookie")):
        if text.startswith(prefix) and re.fullmatch(r"\w+", text.removeprefix(prefix)):
            name = text.removeprefix(prefix)
            return {"key": kind, "key_name": name.replace("_", "-") if kind == "header" else name}
    return None


def _limit_req(context: Context, each: Directive, zones: dict[str, Directive], block: dict[str, Any]) -> None:
    if "requests" in block:
        context.ledger.impossible(each.line, "A route has one limit of requests per client; this is another one.")
        return
    zone = _zone(context, each, zones, block)
    rate = re.search(r"rate=([0-9]+)r/([sm])", " ".join(zone.args)) if zone is not None else None
    if zone is None or rate is None:
        return
    burst = re.search(r"burst=([0-9]+)", " ".join(each.args))
    number = max(1, int(rate[1]))
    block["requests"], block["per"] = number, "second" if rate[2] == "s" else "minute"
    block["burst"] = (number if rate[2] == "s" else 1) + (int(burst[1]) if burst else 0)
    waits = burst and "nodelay" not in each.args
    more = " Requests beyond the rate do not wait." if waits else ""
    context.ledger.differs(each.line, f"Clients beyond the limit get 429, counted in the whole region.{more}")


def _limit_conn(context: Context, each: Directive, zones: dict[str, Directive], block: dict[str, Any]) -> None:
    number = each.args[1] if len(each.args) > 1 and each.args[1].isdecimal() else ""
    if not number or "in_flight" in block:
        context.ledger.impossible(each.line, "A route has one limit of requests in flight; this is another one.")
        return
    if _zone(context, each, zones, block) is not None:
        block["in_flight"] = max(1, int(number))
        context.ledger.differs(each.line, "Requests in flight of a client are counted, and more get 429.")


def body(context: Context, scope: Directive) -> Iterator[Effect]:
    """`client_max_body_size`; 0 is no limit."""
    directive = scope.inherited("client_max_body_size")
    if directive is None:
        return
    found = re.fullmatch(r"([0-9]+)([kKmMgG]?)", value_of(directive))
    if found is None:
        context.ledger.impossible(directive.line, "This is no size, such as 10m.")
        return
    size = int(found[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[found[2].lower()]
    context.ledger.mapped(directive.line)
    if size:
        context.ledger.differs(directive.line, "A long body without Content-Length gets 411.")
        yield change("body", "max_bytes", min(size, 1_000_000_000_000))
