"""The grammars of networks and of addresses that nodes hold, and types for fields of them."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from apps.compiler import grammar
from apps.compiler.addresses import refusal_of_address
from apps.compiler.grammar import GrammarError
from apps.definitions.shapes.base.words import text

CIDR = r"^[0-9a-f.:]{2,39}/[0-9]{1,3}$"
# The largest block of a pool: beyond it somebody has mistyped the length.
WIDEST = {4: 8, 6: 32}


def network_block(value: object) -> str:
    """A network in CIDR, in its canonical form: no bits behind the length, no address without a length."""
    if not isinstance(value, str) or len(value) > 43 or not value.isascii() or "/" not in value:
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24 or 2001:db8::/48.")
    try:
        found = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24.") from None
    if str(found) != value:
        raise GrammarError("network_spelling", f"Write the network in its canonical form: {found}.")
    return value


def block_of_pool(value: object) -> str:
    """A network that addresses may be allotted from."""
    block = network_block(value)
    found = ipaddress.ip_network(block)
    if found.prefixlen < WIDEST[found.version]:
        raise GrammarError("too_wide", f"Use a block of length {WIDEST[found.version]} or more.")
    reason = refusal_of_address(found[0], local_development=True)
    if reason:
        raise GrammarError("address_refused", f"Choose another block; {found[0]} {reason}.")
    return block


def static_address(value: object) -> str:
    """An address that a node can hold."""
    address = grammar.listen_address(value)
    reason = refusal_of_address(ipaddress.ip_address(address), local_development=True)
    if reason:
        raise GrammarError("address_refused", f"Choose another address; {address} {reason}.")
    return address


NetworkBlock = Annotated[str, text(network_block, "a network in CIDR", pattern=CIDR)]
PoolBlock = Annotated[str, text(block_of_pool, "a network in CIDR", pattern=CIDR)]
StaticAddress = Annotated[str, text(static_address, "an address", 45)]
