"""Which addresses may stand behind a pool or be called by us, and why the others may not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from apps.compiler.address_spelling import spelled

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))

# RFC 1918, RFC 6598 (shared by carriers and clusters) and RFC 4193: whose servers may be there is a fleet's policy.
PRIVATE_NETWORKS: tuple[Network, ...] = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv4Network("100.64.0.0/10"),
    IPv6Network("fc00::/7"),
)

# Names that are this machine or a cloud's metadata service whatever the resolver says.
_LOCAL_NAMES = frozenset(
    {
        *("localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6"),
        *("localhost6.localdomain6", "ip6-localhost", "ip6-loopback", "broadcasthost"),
    }
)
_METADATA_NAMES = frozenset(
    {
        *("metadata", "metadata.google.internal", "metadata.azure.internal"),
        *("instance-data", "instance-data.ec2.internal"),
    }
)

# Ranges in the order in which they are asked: the first one that holds the address gives the reason.
_FORBIDDEN: tuple[tuple[Network, str], ...] = (
    (IPv4Network("169.254.0.0/16"), "is link-local, where clouds keep their metadata service"),
    (IPv4Network("100.100.100.200/32"), "is the metadata service of a cloud"),
    (IPv4Network("168.63.129.16/32"), "is the metadata service of a cloud"),
    (IPv4Network("192.0.0.0/24"), "is reserved for protocols"),
    (IPv4Network("0.0.0.0/8"), "means this machine"),
    (IPv4Network("224.0.0.0/4"), "is multicast"),
    (IPv4Network("240.0.0.0/4"), "is reserved or broadcast"),
    (IPv6Network("fd00:ec2::/32"), "is the metadata service of a cloud"),
    (IPv6Network("fd20:ce::/32"), "is the metadata service of a cloud"),
    (IPv6Network("fe80::/10"), "is link-local"),
    (IPv6Network("fec0::/10"), "is site-local, which was withdrawn"),
    (IPv6Network("ff00::/8"), "is multicast"),
    (IPv6Network("::ffff:0:0/96"), "embeds an IPv4 address: write the IPv4 address itself"),
    (IPv6Network("::ffff:0:0:0/96"), "embeds an IPv4 address: write the IPv4 address itself"),
    (IPv6Network("64:ff9b::/96"), "embeds an IPv4 address (NAT64): write the IPv4 address itself"),
    (IPv6Network("64:ff9b:1::/48"), "embeds an IPv4 address (NAT64): write the IPv4 address itself"),
    (IPv6Network("2002::/16"), "embeds an IPv4 address (6to4): write the IPv4 address itself"),
    (IPv6Network("2001::/32"), "embeds an IPv4 address (Teredo): write the IPv4 address itself"),
    (IPv6Network("::/96"), "means this machine, or embeds an IPv4 address"),
)
_GLOBAL_IPV6 = IPv6Network("2000::/3")

# What else is reached from nowhere or by special rules alone, by IANA's registries of special-purpose addresses. Python
# has such a table as well, and another one in each version.
_RESERVED: tuple[Network, ...] = (
    IPv4Network("192.0.2.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv4Network("198.18.0.0/15"),
    IPv4Network("198.51.100.0/24"),
    IPv4Network("203.0.113.0/24"),
    IPv6Network("2001::/23"),
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
)


ALL_PRIVATE = tuple(map(spelled, PRIVATE_NETWORKS))


def refusal_of_address(address: Address, *, local_development: bool) -> str | None:
    """Why this address may not be a server, as the end of a sentence; None when it may."""
    if any(address in network for network in _LOOPBACK):
        return None if local_development else "is loopback, which only a local development fleet may use"
    return next((reason for network, reason in _FORBIDDEN if address in network), None)


def refusal_of_private(address: Address, allowed: Iterable[Network]) -> str | None:
    """Why a fleet that allows these private networks refuses the address, as the end of a sentence; else None."""
    private = any(address in network for network in PRIVATE_NETWORKS)
    if not private or any(address in network for network in allowed):
        return None
    return "is in a private network that this fleet does not allow (private_networks)"


def refusal_of_target(address: Address, *, allowed: Iterable[Network] = ()) -> str | None:
    """Why we may not call this address (webhooks, hostname verification), as the end of a sentence; None when we may.

    `allowed` networks of the installation may be private or loopback; metadata services and the like stay refused.
    """
    loopback = any(address in network for network in _LOOPBACK)
    reason = None if loopback else next((reason for network, reason in _FORBIDDEN if address in network), None)
    if reason or any(address in network for network in allowed):
        return reason
    if loopback:
        return "is loopback"
    public = address.version == 4 or address in _GLOBAL_IPV6
    reserved = not public or any(address in network for network in (*PRIVATE_NETWORKS, *_RESERVED))
    return "is private or reserved" if reserved else None


def refusal_of_name(name: str, *, local_development: bool) -> str | None:
    """Why this host name may not be a server, as the end of a sentence; None when it may."""
    if name in _METADATA_NAMES:
        return "is the metadata service of a cloud"
    if (name in _LOCAL_NAMES or name.endswith(".localhost")) and not local_development:
        return "is loopback, which only a local development fleet may use"
    return None


@dataclass(frozen=True, slots=True)
class OwnAddresses:
    """Where the installation itself is reached: a server there would send requests round in circles.

    `names` are single addresses in their canonical spelling and hostnames, `networks` those of address pools.
    """

    names: frozenset[str]
    networks: tuple[Network, ...]

    def refusal(self, address: str) -> str | None:
        """Why this server's address or name may not be one, as the end of a sentence; None when it may."""
        inside = self.networks and is_literal(address) and any(ip_address(address) in each for each in self.networks)
        if inside or address in self.names:
            return "is an address of this load balancer itself, so requests would loop"
        return None


def refused_networks(own: OwnAddresses, private: Iterable[Network], *, local_development: bool) -> dict[str, str]:
    """Every network that a server's name may not lead to → why, in one word; the same rules as for literals."""
    refused = {} if local_development else {spelled(network): "loopback" for network in _LOOPBACK}
    for network, _ in _FORBIDDEN:  # one of them holds ::1
        refused |= {spelled(rest): "reserved" for rest in _without(network, _LOOPBACK)}
    allowed = tuple(private)
    for network in PRIVATE_NETWORKS:
        refused |= {spelled(rest): "private" for rest in _without(network, allowed)}
    refused |= {spelled(network): "balancer" for network in own.networks}
    return refused | {spelled(ip_network(name)): "balancer" for name in own.names if is_literal(name)}


def _without(network: Network, allowed: tuple[Network, ...]) -> Iterator[Network]:
    """What is left of a network when the allowed ones are taken out of it."""
    inside = [each for each in allowed if overlap(each, network)]
    if not inside:
        yield network
    elif all(each.prefixlen > network.prefixlen for each in inside):
        for half in network.subnets():
            yield from _without(half, tuple(inside))


def overlap(one: Network, other: Network) -> bool:
    """Whether the networks share an address."""
    return one.version == other.version and one.overlaps(other)


def own_addresses(addresses: Iterable[str], hostnames: Iterable[str] = ()) -> OwnAddresses:
    """From addresses, networks (CIDR) and hostnames. Loopback is left out: the rule for it is `refusal_of_address`."""
    networks: list[Network] = []
    names = {name for name in hostnames if not name.startswith("*")}
    for address in addresses:
        network = _network(address)
        if network is None:
            names.add(address)
        elif network.num_addresses > 1:
            networks.append(network)
        elif not network.is_loopback:
            names.add(spelled(network.network_address))
    return OwnAddresses(frozenset(names), tuple(networks))


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def is_literal(text: str) -> bool:
    """Whether an allowed server address is an IP address and no name."""
    return ":" in text or text.replace(".", "").isdigit()
