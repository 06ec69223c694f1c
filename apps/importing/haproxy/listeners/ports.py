"""Ports that several `bind` lines name: those of one section become one listener, a section that comes later has none.

Nodes listen at one address of their own, or at a static IP. HAProxy has a listener for each address; where two name the
same one, the kernel shares connections out between them, whatever the sections say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context, Holder
from apps.importing.verdicts import Line, Verdict

ANYWHERE = frozenset({"", "*", "0.0.0.0", "::", "::0"})  # noqa: S104 - what a line of the old file says
# Whom a port lets in, and what it makes of the beginning of a connection.
ADMITTING = ("ssl", "accept-proxy", "verify", "ca-file", "crl-file")
# What clients agree with a port on.
AGREED = frozenset(
    {
        *("alpn", "npn", "no-alpn", "strict-sni", "ssl-min-ver", "ssl-max-ver", "no-tlsv12", "no-tlsv13"),
        *("force-tlsv12", "force-tlsv13", "maxconn", "accept-netscaler-cip"),
    }
)
CERTIFICATES = frozenset({"crt", "default-crt", "crt-list"})
NO_PORT = "No bind line of this section has a port that clients can connect to."
ALL_TAKEN = "Its ports are those of other sections, so nothing of this section is imported."


@dataclass(frozen=True, slots=True)
class Bind:
    """One port: where clients connect, and the options of the line; `beside` are other lines of the same listener."""

    line: Line
    address: str
    port: int
    options: tuple[tuple[str, str], ...]
    quic: bool = False
    beside: tuple[Line, ...] = ()

    def has(self, option: str) -> bool:
        """Whether the line has the option."""
        return any(name == option for name, _ in self.options)

    def all(self, option: str) -> list[str]:
        """Every value of the option."""
        return [value for name, value in self.options if name == option]


def listeners_among(context: Context, section: Section, binds: list[Bind]) -> list[Bind]:
    """One of several that are one listener, without those whose port another section has, which is said."""
    left = [bind for bind in _once(context, binds) if _is_free(context, section, bind)]
    if binds and not left:
        context.ledger.impossible(section.header, ALL_TAKEN)
    return left


def say_unreachable(context: Context, section: Section) -> None:
    """A section without ports, unless it was said already why."""
    if context.ledger.verdict_of(section.header) is not Verdict.NOT_POSSIBLE:
        context.ledger.differs(section.header, NO_PORT)


def leave(context: Context, section: Section) -> None:
    """Let sections below have the ports of one that makes no listener."""
    context.ports = {key: each for key, each in context.ports.items() if each.section is not section.header}


def say_address(context: Context, bind: Bind) -> None:
    """An address that no static IP stands for."""
    if bind.address not in ANYWHERE and bind.address not in context.options.addresses:
        why = f"The listener is on each node's own address; for {bind.address} say --address {bind.address}=STATIC_IP."
        context.ledger.differs(bind.line, why)


def _key(context: Context, bind: Bind) -> tuple[str, int]:
    return context.options.addresses.get(bind.address, ""), bind.port


def _is_free(context: Context, section: Section, bind: Bind) -> bool:
    """Whether no other section has the port; the first one keeps it. A port that a variable says is not known yet."""
    if context.ledger.has_unset(bind.line):
        return True
    own = Holder(section.header, bind.address, tuple(bind.all("interface")), bind.quic)
    holder = context.ports.setdefault(_key(context, bind), own)
    if holder.section is section.header:
        return True
    for line in (bind.line, *bind.beside):
        context.ledger.impossible(line, _why_taken(context, bind, holder, own))
    return False


def _why_taken(context: Context, bind: Bind, holder: Holder, own: Holder) -> str:
    """Whose port it is, and how both can have one."""
    whose = f"Port {bind.port} is that of the section of line {holder.section.number}"
    if _is_same(own, holder):
        return (
            f"{whose}. HAProxy shares the connections out between both, whatever their rules are; a port has one "
            "listener here. Write the rules of both into one section, or give this one another port."
        )
    static_ip, _ = _key(context, bind)
    if static_ip:
        return f"{whose}, which has the static IP {static_ip} as well. Give one of them another one, or another port."
    apart = next((each.address for each in (own, holder) if each.address not in ANYWHERE), "")
    if not apart or own.address == holder.address:
        return f"{whose}. Listeners are bound to addresses alone; give this section another port."
    which = "this section an address of its own" if apart == own.address else "that section an address of its own"
    return f"{whose}, which listens at each node's own address. Say --address {apart}=STATIC_IP to give {which}."


def _is_same(own: Holder, other: Holder) -> bool:
    both_anywhere = own.address in ANYWHERE and other.address in ANYWHERE
    is_one = both_anywhere or own.address == other.address
    return is_one and (own.interfaces, own.quic) == (other.interfaces, other.quic)


def _once(context: Context, binds: list[Bind]) -> list[Bind]:
    """One of several that are one listener of ours: of a port, and of the static IP that stands for the address."""
    found: dict[tuple[str, int], Bind] = {}
    for bind in binds:
        key = _key(context, bind)
        first = found.setdefault(key, bind)
        if first is bind:
            continue
        if _admits(first) != _admits(bind):
            context.ledger.impossible(bind.line, _why_other(bind, first))
        else:
            found[key] = _joined(context, first, bind)
    for bind in found.values():
        if bind.quic and bind.line.words[1].lower().startswith("quic"):
            context.ledger.differs(bind.line, "The port takes connections of TCP as well.")
    return list(found.values())


def _admits(bind: Bind) -> tuple[tuple[str, ...], ...]:
    """Whom the port lets in; a certificate that nobody asks for is none."""
    asked = [value for value in bind.all("verify") if value != "none"]
    options = (option for option in ADMITTING if asked or option in ("ssl", "accept-proxy"))
    return tuple((option, *bind.all(option)) for option in options if bind.has(option))


def _why_other(bind: Bind, first: Bind) -> str:
    why = f"Line {first.line.number} is the listener of port {bind.port}, and lets other clients in than this line."
    apart = next((each.address for each in (bind, first) if each.address not in ANYWHERE), "")
    if not apart or bind.address == first.address:
        return f"{why} Give one of them another port."
    return f"{why} Say --address {apart}=STATIC_IP to have both."


def _joined(context: Context, first: Bind, other: Bind) -> Bind:
    """The listener of both, with the certificates of both; a port of QUIC is that of TCP as well."""
    kept, beside = (other, first) if first.quic and not other.quic else (first, other)
    for each in (first, other):
        say_address(context, each)
    own = dict.fromkeys((*kept.options, *(each for each in beside.options if each[0] in CERTIFICATES)))
    if len(own) > len(dict.fromkeys(kept.options)):
        why = f"Who asks for no known name gets the certificate of line {kept.line.number}."
        context.ledger.differs(beside.line, why)
    if not beside.quic and _agreed(kept) != _agreed(beside):
        context.ledger.differs(beside.line, f"The port has the options of line {kept.line.number}.")
    lines = dict.fromkeys((*kept.beside, *beside.beside, beside.line))
    return replace(
        kept,
        options=tuple(own),
        quic=kept.quic or beside.quic,
        beside=tuple(line for line in lines if line is not kept.line),
    )


def _agreed(bind: Bind) -> frozenset[tuple[str, str]]:
    return frozenset(each for each in bind.options if each[0] in AGREED)
