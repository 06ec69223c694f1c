"""A client stays with its server.

A cookie names the region and the server (`2-17`), so it means the same to every node, across reloads, and to a drained
server, which keeps the clients that it has. A header or an address is looked up in a table, which the nodes of the
region share as peers, and which a new worker gets from the old one in the same way. The table has a digest of a header.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Pool
from apps.compiler.model.servers import CookieMode, PersistBy, Persistence, ProxyProtocol
from apps.compiler.model.shared import Protocol, Server
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.servers.own_region import OwnRegion
from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

REMEMBERED_S = 1800
TABLE_SIZE = "100k"


def add_persistence(section: Section, pool: Pool, region: OwnRegion, peers: str, *, twin: bool = False) -> None:
    """The backend's own lines; a twin of the pool shares its table."""
    persistence = pool.persistence
    if persistence is None:
        return
    if persistence.by is PersistBy.COOKIE:
        section.add("cookie", *_cookie(persistence))
        return
    by_source = persistence.by is PersistBy.SOURCE
    if not twin:
        kind = ("type", "ipv6") if by_source else ("type", "binary", "len", "20")
        expire = Call((Value(str(persistence.idle_s or REMEMBERED_S)), "s"))
        shared = ("peers", peers) if region.nodes else ()
        section.add("stick-table", *kind, "size", TABLE_SIZE, "expire", expire, *shared)
    what: Argument = "src" if by_source else Call(("req.fhdr(", Value(persistence.header), "),sha1"))
    section.add("stick", "on", what, *(("table", pool.id) if twin else ()))


def _cookie(persistence: Persistence) -> list[Argument]:
    name = Value(persistence.cookie)
    if persistence.mode is CookieMode.PREFIX:
        return [name, "prefix", "nocache"]
    words: list[Argument] = [name, "insert", "indirect", "nocache"]
    words += ["httponly"] if persistence.http_only else []
    words += ["secure"] if persistence.secure else []
    words += ["attr", f"SameSite={persistence.same_site.capitalize()}"]
    return [*words, "maxidle", Call((Value(str(persistence.idle_s)), "s"))] if persistence.idle_s else words


def cookie_of(pool: Pool, server: Server, region: OwnRegion) -> tuple[str, ...]:
    """The words by which a server line says what its cookie is."""
    if pool.persistence is None or pool.persistence.by is not PersistBy.COOKIE:
        return ()
    return ("cookie", f"{region.number}-{number_of(server.id)}")


def needs_client_address(pool: Pool) -> bool:
    """Whether another region has to be told the client's address with a request; connections bring it along."""
    by_source = pool.persistence is not None and pool.persistence.by is PersistBy.SOURCE
    return pool.protocol is not Protocol.TCP and (by_source or pool.proxy_protocol is not ProxyProtocol.NONE)
