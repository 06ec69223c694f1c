"""Whom a secret may be shown to: the environment that holds it names the servers, and nobody else does.

A definition says which secret to use (`env:NAME`) and at which server. Whoever may write definitions could so send
somebody else's secret to a server of their own; therefore the server must stand in the environment, beside the secret.
Names are compared as they are written, before anything is resolved or sent. What has more than one reading (user
names, escapes, dot segments, final dots, short and octal addresses, IPv6 without brackets) is refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass

from apps.compiler.address_spelling import spelled

# What a server without a scheme speaks (`ns1.example.com:53`), and the ports that may be left out. A server in memory
# has none.
DNS, MEMORY = "dns", "memory"
DEFAULT_PORTS = {DNS: 53, "https": 443, "http": 80, MEMORY: 0}
_URL = re.compile(r"([A-Za-z]{1,10})://([^/]*)((?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*)/?")
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9.-]{1,253}))(?::([1-9][0-9]{0,4}))?")
_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")


class Unreadable(ValueError):
    """This is no server in the one spelling that we compare."""


class NotNamed(Exception):
    """The environment does not let a secret be used there; `message` says what to set, and never what is set."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server to which a secret would travel: `host` in lower case or a canonical address, `path` without a final /.

    Its text is the only spelling that a driver is given, so that what was compared is what is called.
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    def holds(self, other: Endpoint) -> bool:
        """Whether the other is this one or below its path."""
        here, there = (self.scheme, self.host, self.port), (other.scheme, other.host, other.port)
        return here == there and f"{other.path}/".startswith(f"{self.path}/")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.scheme == DNS:
            return f"{host}:{self.port}"
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def read_endpoint(text: str) -> Endpoint:
    """An endpoint from `host[:port]` (a name server) or an absolute URL. Raises Unreadable; resolves nothing."""
    url = _URL.fullmatch(text)
    scheme, authority, path = (url[1].lower(), url[2], url[3]) if url else (DNS, text, "")
    found = _AUTHORITY.fullmatch(authority)
    if found is None or scheme not in DEFAULT_PORTS or (url is not None and scheme == DNS):
        raise Unreadable
    port = int(found[3] or DEFAULT_PORTS[scheme])
    if port > 65535:
        raise Unreadable
    return Endpoint(scheme, _address(found[1]) if found[1] else _host(found[2].lower()), port, path)


def named_endpoint(server: str, *, variable: str, whose: str, given: Mapping[str, str]) -> Endpoint:
    """The server as an endpoint, when the variable of the environment `given` names it. Raises NotNamed.

    `whose` says in words whose secret it is. The variable has endpoints separated by commas; one with a path stands for
    what is below that path, one without for the whole server.
    """
    try:
        endpoint = read_endpoint(server)
    except Unreadable:
        raise NotNamed(
            f"{variable} cannot allow {whose} at this server: write host:port, or a plain URL without user name, "
            "query, escapes and dot segments."
        ) from None
    if not any(each.holds(endpoint) for each in _endpoints(given.get(variable, ""), variable)):
        raise NotNamed(
            f"Nothing was sent. Set {variable} in the environment of the process to allow {whose} at {endpoint}: "
            "a secret is shown only to servers that are named there."
        )
    return endpoint


def _endpoints(text: str, variable: str) -> list[Endpoint]:
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(read_endpoint(entry))
        except Unreadable:
            # Never repeated: whoever mixed up two variables may have written a secret here.
            raise NotNamed(
                f"Nothing was sent. Entry {number} of {variable} is no host:port and no plain URL."
            ) from None
    return found


def _address(text: str) -> str:
    try:
        return spelled(ipaddress.IPv6Address(text))
    except ValueError:
        raise Unreadable from None


def _host(text: str) -> str:
    """A lower-case name, or an IPv4 address in the one form that everybody reads alike."""
    if _NUMBER.fullmatch(text.rpartition(".")[2]):
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise Unreadable from None
    if not _NAME.fullmatch(text):
        raise Unreadable
    return text
