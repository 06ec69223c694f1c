"""The `stream` blocks of an old nginx.conf so that they run here: ports of tcp, with stub servers behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.text.words import shown
from apps.importing.nginx.traffic.ports import LOOPBACK, endpoints_of
from apps.importing.replay.contract import NotReplayable, Opening

KEPT = frozenset({"ssl_preread", "preread_timeout", "proxy_timeout", "proxy_connect_timeout", "allow", "deny"})
LONG_ENOUGH = 5  # bytes from which nginx tells whether it is TLS
SELECTORS = frozenset({"default", "hostnames", "volatile"})


class OldStreams:
    """`pools_of` a directive are the pools of ours that the report names beside it."""

    def __init__(self, streams: Sequence[Directive], pools_of: Callable[[Directive], list[str]]) -> None:
        self._streams = streams
        self._pools_of = pools_of
        self._servers: dict[int, Directive] = {}
        self.ports: dict[int, int] = {}
        self.encrypted: dict[int, bool] = {}

    def words(self) -> list[str]:
        """What maps compare names with."""
        return [each.name.removeprefix("*") for entries in self._maps() for each in entries.block or ()]

    def lines(self, stubs: Mapping[str, int], spare: Iterator[int], certificate: Path) -> list[str]:
        """The block; from here on it is known where its ports are. Raises NotReplayable."""
        written = ["stream {"]
        for each in (one for stream in self._streams for one in stream.block or ()):
            if each.name == "map":
                written += self._map(each, stubs)
            elif each.name == "server" and each.last("proxy_pass") is not None:
                written += self._server(each, stubs, spare, certificate)
            elif each.name in KEPT:
                written.append(_said(each))
        return [*written, "}"] if self.ports else []

    def _server(
        self, server: Directive, stubs: Mapping[str, int], spare: Iterator[int], certificate: Path
    ) -> Iterator[str]:
        listens = list(self._listens(server, spare))
        if not listens:
            return
        yield from ("server {", *listens)
        if any(listen.endswith(" ssl;") for listen in listens):
            yield f"ssl_certificate {certificate};\nssl_certificate_key {certificate};"
        for each in server.block or ():
            if each.name == "proxy_pass":
                yield f"proxy_pass {self._target(each, value_of(each), stubs)};"
            elif each.name in KEPT:
                yield _said(each)
        yield "}"

    def _listens(self, server: Directive, spare: Iterator[int]) -> Iterator[str]:
        for each in server.each("listen"):
            address, numbers = endpoints_of(value_of(each))
            if address.startswith(LOOPBACK) or "udp" in each.args:
                continue
            if "proxy_protocol" in each.args or server.inherited("ssl_verify_client") is not None:
                raise NotReplayable("Clients would have to speak the PROXY protocol or show certificates.")
            for port in (number for number in numbers if number not in self.ports):
                self.ports[port], self.encrypted[port] = next(spare), "ssl" in each.args
                self._servers[port] = server
                yield f"listen 127.0.0.1:{self.ports[port]}{' ssl' if self.encrypted[port] else ''};"

    def _map(self, block: Directive, stubs: Mapping[str, int]) -> Iterator[str]:
        yield shown("map", block.args) + " {"
        for each in block.block or ():
            target = (self._target(each, each.args[0], stubs),) if each.args else ()
            yield shown(each.name if each.name in SELECTORS else json.dumps(each.name), target) + ";"
        yield "}"

    def _target(self, directive: Directive, target: str, stubs: Mapping[str, int]) -> str:
        """A stub; nobody answers at port 9, where all that became no pool leads: nothing of old is ever called."""
        pools = self._pools_of(directive) or self._pools_beside(directive, target)
        if not target or target.startswith("$"):
            return target
        if len(pools) > 1:
            raise NotReplayable(f"Line {directive.line.number} passes connections to several pools.")
        return f"127.0.0.1:{stubs[pools[0]] if pools else 9}"

    def _pools_beside(self, entry: Directive, target: str) -> list[str]:
        """Of several entries of a map with one target the report names one."""
        beside = (entry.parent.block or ()) if entry.parent is not None and entry.parent.name == "map" else ()
        return next((pools for each in beside if target in each.args and (pools := self._pools_of(each))), [])

    def asked(self, opening: Opening) -> Iterator[Directive]:
        """Directives that choose its server: of the one that takes it, and entries of its maps that it may meet."""
        server = self._servers[opening.port]
        is_passed_on = opening.is_tls and not self.encrypted[opening.port]
        short = ["ssl_preread"] if len(opening.sent) < LONG_ENOUGH and not is_passed_on else []
        for name in ("listen", "proxy_pass", "allow", "deny", *short):
            yield from server.all_inherited(name)
        wanted = [value_of(server.last("proxy_pass"))]
        for variable in wanted:
            for block in (each for each in self._maps() if each.args[1:] == (variable,)):
                yield block
                meeting = [each for each in block.block or () if _may_meet(each.name, opening, value_of(block))]
                yield from meeting
                wanted += [target for each in meeting for target in each.args if target.startswith("$")]

    def _maps(self) -> Iterator[Directive]:
        return (each for stream in self._streams for each in stream.each("map"))


def _said(each: Directive) -> str:
    return shown(each.name, each.args) + ";"


def _may_meet(key: str, opening: Opening, source: str) -> bool:
    """Whether it may be the entry that is chosen."""
    name = opening.name
    if source not in ("$ssl_preread_server_name", "$ssl_server_name"):
        return True
    if key.startswith("~"):
        try:
            return re.search(key.lstrip("~*"), name, re.IGNORECASE) is not None
        except re.error:  # it is written for PCRE
            return True
    if key.startswith(("*", ".")):
        return name.endswith(key.lstrip("*.").lower())
    return key in SELECTORS or key.lower() == name or key.endswith(".*")
