"""Where the names of servers may not lead, for the agent, which resolves them for HAProxy.

HAProxy would connect to whatever a name server answers, and a name may lead elsewhere a minute later. So it asks the
agent, which leaves such addresses out of what it answers (agent/names/resolver.py). `maps/refused-addresses.map` says
which: `169.254.0.0/16 reserved`. HAProxy does not read that file.
"""

from __future__ import annotations

from ipaddress import ip_network

from apps.compiler.addresses import is_literal, own_addresses, refused_networks
from apps.compiler.bundle import REFUSED_ADDRESSES
from apps.compiler.model.fleet import Snapshot
from apps.compiler.targets.haproxy.maps import Entries


def refused_map(snapshot: Snapshot) -> dict[str, Entries]:
    """Network → why, in one word; nothing where no server has a name."""
    if all(is_literal(server.address) for pool in snapshot.pools for server in pool.servers):
        return {}
    private = tuple(map(ip_network, snapshot.private_networks))
    own = own_addresses(snapshot.own_addresses)
    return {REFUSED_ADDRESSES: refused_networks(own, private, local_development=snapshot.local_development)}
