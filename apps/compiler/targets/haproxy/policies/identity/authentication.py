"""Who asks: a name with a password, or an API key. What proves it does not reach servers unless it is kept.

Passwords are hashed (crypt) on the thread that serves everybody, so each request with one costs what the hash costs.
Keys are looked up by their SHA-256 in a map of whoever says them, which changes without a reload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from apps.compiler.grammars.authentication import API_KEY_HEADER, REALM
from apps.compiler.model.authentication import ApiKeys, BasicAuth
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import rules_followed
from apps.compiler.targets.haproxy.writer import Argument, Call, Document, Section, Value

TEXT = "text/plain; charset=utf-8"
KEY_MISSING = "Send a valid API key.\n"


def users_id(said: BasicAuth) -> str:
    """The userlist of these names and hashes."""
    return f"users-{hashlib.sha256(repr(said.users).encode()).hexdigest()[:10]}"


def add_basic(section: Section, when: tuple[str, ...], said: BasicAuth) -> None:
    """Ask whoever has no password that fits; without any user nobody has one."""
    known = ("!", "{", f"http_auth({users_id(said)})", "}") if said.users else ()
    section.add("http-request", "auth", "realm", Value(said.realm or REALM), "if", *when, *known)
    if not said.keep_header:
        section.add("http-request", "del-header", "Authorization", "if", *when)


def add_userlists(document: Document, fronts: Iterable[LoadBalancer]) -> None:
    """The users of every block that some route follows, once for equal ones."""
    blocks = [block for front in fronts for rules in rules_followed(front) if (block := rules.basic_auth)]
    for name, users in sorted({users_id(each): each.users for each in blocks}.items()):
        if users:
            section = document.section("userlist", name)
            for user, password in users:
                section.add("user", Value(user), "password", Value(password))


def keys_path(said: ApiKeys) -> str:
    """`maps/keys-7.map`."""
    return f"maps/{said.id}.map"


def what_is_written(said: ApiKeys) -> object:
    """All but the keys: they are in the map."""
    return said.id, said.header, said.name_header, said.keys is None


def add_api_keys(section: Section, when: tuple[str, ...], said: ApiKeys) -> None:
    """Whoever sends no key of the map is refused; its name goes to servers, the key does not."""
    refuse: list[Argument] = ["return", "status", "401", "content-type", TEXT, "string", Value(KEY_MISSING)]
    if said.keys is None:
        section.add("http-request", *refuse, "if", *when)
        return
    header = said.header or API_KEY_HEADER
    lookup = Call(("req.fhdr(", Value(header), f"),digest(sha256),hex,lower,map_str({keys_path(said)})"))
    section.add("http-request", "set-var(txn.api_key)", lookup, "if", *when)
    section.add("http-request", *refuse, "if", *when, "!", "{", "var(txn.api_key)", "-m", "found", "}")
    section.add("http-request", "del-header", Value(header), "if", *when)
    if said.name_header:
        section.add("http-request", "set-header", Value(said.name_header), "%[var(txn.api_key)]", "if", *when)


def key_maps(front: LoadBalancer) -> dict[str, dict[str, str]]:
    """Digest → name, a map for each who says keys that some route follows."""
    blocks = (rules.api_keys for rules in rules_followed(front))
    return {
        keys_path(each): {digest: name for name, digest in each.keys}
        for each in blocks
        if each and each.keys is not None
    }
