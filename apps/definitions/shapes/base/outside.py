"""The grammars of what is not ours: servers that we reach, and where credentials for them are kept.

A credential itself is never part of a definition: `env:NAME` ends the names of variables in the environment of the
process that calls (`SPILLWAY_CLOUD_NAME_…`, `SPILLWAY_DNS_NAME`), `profile:NAME` is in its AWS configuration,
`role:ARN` is assumed. Whatever looks like anything else is refused, and is never repeated in the refusal. At which
servers it may be used is not for a definition to say either: the same environment names them, and a push asks it.
"""

from __future__ import annotations

import ipaddress
import re

from apps.compiler import grammar
from apps.compiler.addresses import refusal_of_address
from apps.compiler.grammar import GrammarError
from apps.core.called_urls import Refused, read_url

_PROFILE = re.compile(r"profile:[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_ROLE = re.compile(r"role:arn:aws(?:-[a-z]{2,10}){0,3}:iam::[0-9]{12}:role(?:/[A-Za-z0-9_+=,.@-]{1,64}){1,8}")
_MEMORY = re.compile(r"memory://[a-z0-9-]{1,63}")
_PORT = re.compile(r"[1-9][0-9]{0,4}")


def environment_reference(value: object) -> str:
    """`env:NAME`; the name is an end, never a whole, so that it reaches no other secret of the process."""
    return f"env:{grammar.environment_name(value)}"


def credentials_reference(value: object) -> str:
    """`env:NAME`, `profile:NAME` or `role:ARN`."""
    if isinstance(value, str) and (_PROFILE.fullmatch(value) or _ROLE.fullmatch(value)):
        return value
    if isinstance(value, str) and value.startswith("env:"):
        return environment_reference(value)
    raise GrammarError(
        "credentials",
        "Write a reference to the secret, never the secret itself: "
        "env:NAME, profile:NAME or role:arn:aws:iam::123456789012:role/name.",
    )


def server(value: object) -> str:
    """A server that operators run, `host:port`: a name or an address (`[2001:db8::1]:53`), loopback as well."""
    text = value if isinstance(value, str) else ""
    host, _, port = text.rpartition(":")
    if not host or not _PORT.fullmatch(port) or int(port) > 65535:
        raise GrammarError("server", "Write the server as host:port, such as ns1.example.com:53 or [2001:db8::1]:53.")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if (":" in bare) != (bare != host):
        raise GrammarError("server", "Use brackets only for an IPv6 address: [2001:db8::1]:53.")
    grammar.server_address(bare, local_development=True)
    return text


def resolver(value: object) -> str:
    """A resolver that is asked what is served: an address, with `:port` where that is not 53."""
    text = value if isinstance(value, str) else ""
    host = text
    if text.startswith("[") or text.count(":") == 1:
        host = server(text).rpartition(":")[0].strip("[]")
    address = grammar.listen_address(host)
    reason = refusal_of_address(ipaddress.ip_address(address), local_development=True)
    if reason:
        raise GrammarError("address_refused", f"Choose another resolver; {address} {reason}.")
    return text


def web_server(value: object) -> str:
    """The URL of an API on a server that operators run: private networks and loopback are usual."""
    text = value if isinstance(value, str) else ""
    try:
        host = read_url(text, schemes=("https", "http")).host
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    grammar.server_address(host, local_development=True)
    return _short(text)


def endpoint(value: object) -> str:
    """The URL of a cloud's API; whether the installation calls it is asked when it is stored."""
    text = value if isinstance(value, str) else ""
    try:
        if not _MEMORY.fullmatch(text):
            read_url(text, schemes=("https", "http"))
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return _short(text)


def _short(url: str) -> str:
    if len(url) > 400 or "?" in url:
        raise GrammarError("url", "Use a URL of at most 400 characters, without a query.")
    return url
