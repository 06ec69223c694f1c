"""Which servers a running HAProxy can be given or relieved of, so that no reload is needed; pure.

HAProxy 2.6 takes servers at run time where nothing else refers to them: no cookie, no table that names them, no twin
that tracks them, no order that a hash goes by. A server is told as the file says it, so it must be made of words that
`add server` takes, and have an address. Whatever is not known to be safe is left to a reload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address

from apps.compiler.model.operations import AddServer, DeleteServer
from apps.compiler.targets.haproxy.reader import Statement

_BALANCES = {"roundrobin", "leastconn", "random"}
_POOL, _TRACK = re.compile(r"backend (pool-[0-9]+)"), "track"
# Keyword → how many values follow it. Those of names that are looked up mean nothing for an address.
_WORDS: Mapping[str, int] = {
    "check": 0, "backup": 0, "disabled": 0, "weight": 1, "maxconn": 1, "minconn": 1, "maxqueue": 1,
    "inter": 1, "fastinter": 1, "rise": 1, "fall": 1, "port": 1, "observe": 1, "error-limit": 1, "on-error": 1,
    "pool-purge-delay": 1, "init-addr": 1, "resolvers": 1,
}  # fmt: skip


def compare_servers(
    before: Sequence[Statement], after: Sequence[Statement]
) -> tuple[list[AddServer], list[DeleteServer], list[Statement], list[Statement]] | None:
    """Servers to add and to delete, and both sides without them; None where the worker cannot be told of them."""
    old, new = _servers(before), _servers(after)
    came, went = new.keys() - old.keys(), old.keys() - new.keys()
    pools = {section for section, _ in came | went}
    if not all(_takes(section, side) for section in pools for side in (before, after)):
        return None
    if not all(_tellable(new[key], after) for key in came) or any(_tracked(key, before) for key in went):
        return None
    if _left_empty(pools, old, new):
        return None
    added = [AddServer(section.removeprefix("backend "), name) for section, name in sorted(came)]
    deleted = [DeleteServer(section.removeprefix("backend "), name) for section, name in sorted(went)]
    return added, deleted, _without(before, went), _without(after, came)


def _left_empty(pools: Iterable[str], old: Mapping[tuple[str, str], Statement], new: Iterable[tuple[str, str]]) -> bool:
    """Whether one of the pools had or has no server: it answers by other rules then."""
    return any(not any(section == pool for section, _ in side) for pool in pools for side in (list(old), list(new)))


def _servers(statements: Iterable[Statement]) -> dict[tuple[str, str], Statement]:
    return {(each.section, each.words[1]): each for each in statements if each.is_server}


def _without(statements: Iterable[Statement], names: Iterable[tuple[str, str]]) -> list[Statement]:
    left_out = set(names)
    return [each for each in statements if not (each.is_server and (each.section, each.words[1]) in left_out)]


def _takes(section: str, statements: Iterable[Statement]) -> bool:
    """Whether servers of this section may come and go at run time."""
    own = [each.words for each in statements if each.section == section]
    balances = any(words[0] == "balance" and words[1] in _BALANCES for words in own)
    refers = any(words[0] in ("cookie", "hash-type", "use-server") or words[0].startswith("stick") for words in own)
    return _POOL.fullmatch(section) is not None and balances and not refers


def _tracked(key: tuple[str, str], statements: Iterable[Statement]) -> bool:
    name = f"{key[0].removeprefix('backend ')}/{key[1]}"
    return any(each.is_server and _TRACK in each.words and name in each.words for each in statements)


def _tellable(server: Statement, statements: Sequence[Statement]) -> bool:
    """Whether `add server` takes all that the file says of it, with what its section and the defaults say of each."""
    try:
        ip_address(server.words[2].rpartition(":")[0].strip("[]"))
    except ValueError:
        return False
    head = next(each.words for each in statements if each.section == server.section)
    named = f"defaults {head[3]}" if len(head) > 3 and head[2] == "from" else ""
    own = [each.words for each in statements if each.section in (server.section, named)]
    said = [words[1:] for words in own if words[0] == "default-server"]
    return all(_known(words) for words in (*said, server.words[3:]))


def _known(words: Sequence[str]) -> bool:
    position = 0
    while position < len(words):
        if words[position] not in _WORDS:
            return False
        position += 1 + _WORDS[words[position]]
    return position == len(words)
