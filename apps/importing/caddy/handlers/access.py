"""Who may ask, and how much: `authentication` by passwords, and `request_body`."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication
from apps.importing.caddy.context import Caddy
from apps.importing.haproxy.rules.users import SHORTEST
from apps.importing.logic.decisions import Effect, change
from apps.importing.nginx.rules.access import CLOSED, REFUSED
from apps.importing.values.fields import mapping
from apps.importing.values.parsing import Path

NO_HASHES = "Hashes cannot be moved; say the passwords with --password USER=…."


def basic_auth(caddy: Caddy, path: Path) -> Iterator[Effect]:
    """`http_basic` with its accounts; any other provider leaves the place closed."""
    caddy.fields.mapped((*path, "handler"))
    providers = mapping(caddy.fields.at(*path, "providers"))
    known = next((name for name in ("http_basic", "basic_auth") if name in providers), "")
    if not known or len(providers) > 1:
        caddy.fields.impossible((*path, "providers"), CLOSED)
        yield REFUSED
        return
    at = (*path, "providers", known)
    caddy.fields.node_setting((*at, "hash"), "Passwords are hashed when they are saved.")
    caddy.fields.node_setting((*at, "hash_cache"), "Nodes remember whom they let in.")
    users = [user for each, _ in caddy.fields.each(*at, "accounts") if (user := _user(caddy, each)) is not None]
    realm = caddy.fields.at(*at, "realm")
    if realm is not None:
        caddy.fields.mapped((*at, "realm"))
    yield change("basic_auth", "users", (tuple(users), _realm(realm))) if users else REFUSED


def _user(caddy: Caddy, at: Path) -> tuple[str, str] | None:
    name = str(caddy.fields.at(*at, "username"))
    caddy.fields.mapped(at)
    try:
        authentication.user_name(name)
    except GrammarError as error:
        caddy.fields.differs(at, f"A user is left out: {error.message}")
        return None
    password = caddy.context.options.passwords.get(name, "")
    if len(password) < SHORTEST:
        caddy.fields.differs((*at, "password"), NO_HASHES)
        caddy.context.need(f"The password of user {name}, of at least {SHORTEST} characters (--password {name}=…).")
        return name, ""
    return name, password


def _realm(said: object) -> str:
    try:
        return authentication.realm(str(said or "restricted"))
    except GrammarError:
        return "restricted"


def body_limit(caddy: Caddy, path: Path) -> Iterator[Effect]:
    """`request_body`: the largest body."""
    caddy.fields.mapped((*path, "handler"))
    most = caddy.fields.at(*path, "max_size")
    if isinstance(most, int) and most > 0:
        caddy.fields.differs((*path, "max_size"), "A long body without Content-Length gets 411.")
        yield change("body", "max_bytes", min(most, 1_000_000_000_000))
