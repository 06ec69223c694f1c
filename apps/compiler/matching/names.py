"""The grammars of what routes match besides paths: hostnames with their wildcards, parameters, client networks."""

from __future__ import annotations

import re
from ipaddress import ip_network

from apps.compiler.address_spelling import spelled
from apps.compiler.grammar import MAX_HOSTNAME, GrammarError, hostname, printable

_PARAMETER_NAME = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+")


def hostname_of_claim(value: object) -> str:
    """What an account claims: a host, or `**.` and a name for one label or more."""
    if isinstance(value, str) and value.startswith("**.") and len(value) <= MAX_HOSTNAME:
        return "*" + hostname(value[1:])
    return hostname(value)


def hostname_of_route(value: object) -> str:
    """What a route is for: what may be claimed, or `*` for any host; who may say that is for services to know."""
    if isinstance(value, str) and value[:1] != "*":
        return hostname(value)
    return "*" if value == "*" else hostname_of_claim(value)


def parameter_name(value: object) -> str:
    """A query parameter or a cookie that a route may look at."""
    text = printable(value, 64)
    if not _PARAMETER_NAME.fullmatch(text):
        raise GrammarError(
            "parameter_name", "Use letters, digits, . _ ~ - and %-encoded signs in the name, as it stands in requests."
        )
    return text


def network_block(value: object) -> str:
    """A network in CIDR, in its canonical form: no bits behind the length, no address without a length."""
    if not isinstance(value, str) or len(value) > 43 or not value.isascii():
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24 or 2001:db8::/48.")
    try:
        found = ip_network(value, strict=False)
    except ValueError:
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24.") from None
    if spelled(found) != value:
        raise GrammarError("network_spelling", f"Write the network in its canonical form: {spelled(found)}.")
    return value
