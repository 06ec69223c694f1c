"""The grammars of networks and of addresses that nodes hold, and types for fields of them."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from apps.compiler import grammar
from apps.compiler.addresses import refusal_of_address
from apps.compiler.grammar import GrammarError
from apps.compiler.matching.names import network_block
from apps.definitions.shapes.base.words import text

CIDR = r"^[0-9a-f.:]{2,39}/[0-9]{1,3}$"
# The largest block of a pool: beyond it somebody has mistyped the length.
WIDEST = {4: 8, 6: 32}


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
