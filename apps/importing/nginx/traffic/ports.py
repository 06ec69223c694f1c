"""Which servers listen at which ports, and which of them answers for hosts that none of them names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.importing.logic.formulas import Atoms, Formula, any_of
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.verdicts import Verdict

MOST_PORTS = 256
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
ANYWHERE = frozenset({"", "*", "0.0.0.0", "::"})  # noqa: S104 - what a line of the old file says
LOOPBACK = ("127.", "::1", "localhost")
FLAGS = frozenset({"ssl", "http2", "default_server", "default", "proxy_protocol"})
TUNING = ("backlog=", "rcvbuf=", "sndbuf=", "fastopen=", "so_keepalive=", "setfib=", "accept_filter=", "ipv6only=",
          "reuseport", "deferred", "bind", "spdy")  # fmt: skip
HTTP3 = "Clients speak HTTP/2 until tls.http3 of the listener is on, where all nodes run HAProxy 2.8 or later."
QUIC = frozenset(("quic", "http3"))
ONLY_HERE = "Only its own machine could connect here; nodes have no such listener."


@dataclass(frozen=True, slots=True)
class Listen:
    """One `listen`: a port of an address, and its words."""

    directive: Directive
    address: str
    port: int
    words: frozenset[str]


@dataclass(slots=True)
class Port:
    """A port of ours with the servers that listen there, in order; `static_ip` is empty for nodes' own address."""

    static_ip: str
    number: int
    listens: list[tuple[Directive, Listen]] = field(default_factory=list)

    @property
    def servers(self) -> list[Directive]:
        """Each server once."""
        return list({id(server): server for server, _ in self.listens}.values())

    @property
    def default(self) -> Directive:
        """The one that says so, or else the first."""
        said = (server for server, each in self.listens if each.words & {"default_server", "default"})
        return next(said, self.listens[0][0])

    def has(self, word: str) -> bool:
        """Whether some `listen` of the port says it."""
        return any(word in each.words for _, each in self.listens)


def ports_of(nginx: Nginx, servers: list[Directive]) -> list[Port]:
    """All ports of these servers."""
    found: dict[tuple[str, int], Port] = {}
    for server in servers:
        for each in _listens(nginx, server):
            static_ip = nginx.context.options.addresses.get(each.address, "")
            port = found.setdefault((static_ip, each.port), Port(static_ip, each.port))
            _say_address(nginx, each, static_ip)
            port.listens.append((server, each))
    for port in found.values():
        _say_other_addresses(nginx, port)
    return list(found.values())


def _say_address(nginx: Nginx, each: Listen, static_ip: str) -> None:
    if not static_ip and each.address not in ANYWHERE:
        why = f"The listener is on each node's own address; for {each.address} say --address {each.address}=STATIC_IP."
        nginx.ledger.differs(each.directive.line, why)


def _say_other_addresses(nginx: Nginx, port: Port) -> None:
    """nginx asks only the servers of the address; here those of all addresses share the port."""
    addresses = {"" if each.address in ANYWHERE else each.address for _, each in port.listens}
    for _, each in port.listens if len(addresses) > 1 else ():
        why = f"Servers of several addresses share port {port.number}; give each address a static IP (--address)."
        nginx.ledger.differs(each.directive.line, why)


def _listens(nginx: Nginx, server: Directive) -> Iterator[Listen]:
    said = list(server.each("listen"))
    if not said:
        yield Listen(server, "", 80, frozenset())
    for each in said:
        address, numbers = endpoints_of(value_of(each))
        if not numbers:
            why = f"Listeners have ports, {MOST_PORTS} of a range; a socket of the machine is none."
            nginx.ledger.impossible(each.line, why)
            continue
        if address.startswith(LOOPBACK):
            nginx.ledger.impossible(each.line, ONLY_HERE)
            continue
        nginx.ledger.mapped(each.line)
        _options(nginx, each)
        words = frozenset(each.args[1:])
        # QUIC is never without TLS.
        yield from (Listen(each, address, at, words | {"ssl"} if words & QUIC else words) for at in numbers)


def endpoints_of(text: str) -> tuple[str, range]:
    """Address and ports of `listen`; none for what is no port, or for more than a listener may be made of."""
    if text.startswith("unix:"):
        return "", range(0)
    address, mark, numbers = text.rpartition(":")
    if text.endswith("]") or not (mark or _PORTS.fullmatch(text)):
        address, numbers = text, "80"
    found = _PORTS.fullmatch(numbers)
    ports = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
    right = ports.start > 0 and ports.stop <= 65536 and len(ports) <= MOST_PORTS
    return address.strip("[]"), ports if right else range(0)


def _options(nginx: Nginx, each: Directive) -> None:
    for word in each.args[1:]:
        if word in QUIC:
            nginx.ledger.differs(each.line, HTTP3)
        elif word == "udp":
            nginx.ledger.impossible(each.line, "Nodes take connections of TCP, no datagrams.")
        elif word not in FLAGS and not word.startswith(TUNING):
            nginx.ledger.impossible(each.line, f"nginx has no option {word} of listen.")


@dataclass(frozen=True, slots=True)
class Named:
    """A server and the hosts that it is for; `rank` sorts as nginx chooses: whole names, then the longest wildcard."""

    server: Directive
    host: Formula
    rank: tuple[int, int]
    name: str = ""


def named_servers(nginx: Nginx, port: Port, atoms: Atoms) -> list[Named]:
    """The servers of a port in the order in which they are chosen; the default one, for all other hosts, last."""
    found: list[Named] = []
    taken: set[str] = set()
    for server in port.servers:
        first = _first_name(server)
        exact: list[str] = []
        for line, name in _names(server):
            if name in taken:
                nginx.ledger.note(line.line, Verdict.DEAD, f"An earlier server has the name {name}; nginx ignores it.")
                continue
            taken.add(name)
            formula, domain = _host(nginx, line, name, atoms)
            if formula is None:
                continue
            if domain:
                found.append(Named(server, formula, (1, -len(domain)), first))
            else:
                exact.append(name)
                if name.startswith("."):
                    found.append(Named(server, formula, (1, -len(name)), first))
        whole = tuple(name.removeprefix(".") for name in exact)
        if whole:
            found.append(Named(server, any_of([atoms.get("host", "str", (name,)) for name in whole]), (0, 0), first))
    found.sort(key=lambda each: each.rank)
    return [*found, Named(port.default, True, (2, 0), _first_name(port.default))]


def _names(server: Directive) -> Iterator[tuple[Directive, str]]:
    for each in server.each("server_name"):
        for name in each.args:
            yield each, name.lower().rstrip(".")


def _first_name(server: Directive) -> str:
    """What `$server_name` is."""
    names = [name for _, name in _names(server) if name]
    return names[0].removeprefix(".") if names and not names[0].startswith(("~", "*")) and names[0] != "_" else ""


def _host(nginx: Nginx, line: Directive, name: str, atoms: Atoms) -> tuple[Formula | None, str]:
    """The question for a name; the domain of a wildcard behind it."""
    nginx.ledger.mapped(line.line)
    if name in ("", "_", "--", "localhost") or name.startswith("!"):
        return None, ""
    if name.startswith("~"):
        nginx.ledger.impossible(line.line, f"Hosts are named, not matched by {name}; name each of them in a route.")
        return None, ""
    if name == "$hostname":
        nginx.ledger.impossible(
            line.line, "Nodes have other names than the machine; write the one that clients ask for."
        )
        return None, ""
    if name.endswith(".*"):
        nginx.ledger.impossible(line.line, f"Hosts end with a known domain; name each host of {name} in a route.")
        return None, ""
    if name.startswith("*."):
        return atoms.get("host", "end", (name[1:],)), name
    if name.startswith("."):
        return atoms.get("host", "end", (name,)), ""
    return atoms.get("host", "str", (name,)), ""
