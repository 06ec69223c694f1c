"""The Forwarded header (RFC 7239): read from proxies that are believed, and written for servers.

HAProxy 2.6 has no words for it (2.8 does), so one pattern reads an element: pairs of a token and a token or quoted
string between semicolons, `for` among them exactly once, and its value an address with or without a port. What is
quoted may hold semicolons and words like `for=`, which count for nothing. An element that is anything else, `unknown`
or a made-up name (`_hidden`) names nobody, and the search ends there. HAProxy cuts elements at commas outside quotes.
"""

from __future__ import annotations

from apps.compiler.targets.haproxy.writer import Section

FORWARDED = "forwarded"
_WORD = r"[!#$%&*+.^_`|~0-9A-Za-z-]+"
_QUOTED = r"\x22(?:[^\x22\x5c]|\x5c.)*\x22"
_PORT = r"(?::[0-9A-Za-z._-]{1,32})?"
_ADDRESS = rf"(?:\x22\[([0-9A-Fa-f:.]{{2,45}})\]{_PORT}\x22|\x22([0-9.]{{7,15}}){_PORT}\x22|([0-9.]{{7,15}}))"
_SCHEME = r"(?:\x22(https?)\x22|(https?))"


def _element(name: str, value: str) -> str:
    """An element that has the parameter once, with a value of this pattern."""
    other = rf"(?!{name}=){_WORD}=(?:{_WORD}|{_QUOTED})"
    return rf"^(?:(?:{other})?;)*{name}={value}(?:;(?:{other})?)*$"


_FOR, _PROTO = _element("for", _ADDRESS), _element("proto", _SCHEME)


def add_element(section: Section, hop: int, believed: tuple[str, ...]) -> None:
    """Set `hop_2` to the address that the second element from the end names, and `told` to the element."""
    section.add("http-request", f"set-var(txn.element_{hop})", f"req.hdr({FORWARDED},-{hop})", "if", *believed)
    sound = ("{", f"var(txn.element_{hop})", "-m", "reg", "-i", _FOR, "}")
    address = f"var(txn.element_{hop}),regsub('{_FOR}','\\1\\2\\3',i),ipmask(32,128)"
    section.add("http-request", f"set-var(txn.hop_{hop})", address, "if", *sound)
    there = ("{", f"var(txn.hop_{hop})", "-m", "found", "}")
    section.add("http-request", f"set-var(txn.named_{hop})", "bool(true)", "if", *sound, *there)
    section.add("http-request", "set-var(txn.told)", f"var(txn.element_{hop})", "if", *sound, *there)


def add_told_scheme(section: Section) -> None:
    """Set `proto` and `told_proto` to the scheme of the element that named the client."""
    sound = ("{", "var(txn.told)", "-m", "reg", "-i", _PROTO, "}")
    scheme = f"var(txn.told),regsub('{_PROTO}','\\1\\2',i),lower"
    section.add("http-request", "set-var(txn.told_proto)", scheme, "if", *sound)
    found = ("{", "var(txn.told_proto)", "-m", "found", "}")
    section.add("http-request", "set-var(txn.proto)", "var(txn.told_proto)", "if", *found)


def add_told_port(section: Section) -> None:
    """The header has no port, so `port` is the one of the scheme that it told."""
    for scheme, standard in (("http", 80), ("https", 443)):
        told = ("{", "var(txn.told_proto)", "-m", "str", scheme, "}")
        section.add("http-request", "set-var(txn.port)", f"int({standard})", "if", *told)


def send(section: Section) -> None:
    """One element: whatever clients and proxies wrote is gone by now, and a host holds no quotes."""
    rest = 'host="%[req.fhdr(host)]";proto=%[req.fhdr(x-forwarded-proto)]'
    v4 = ("{", "src", "0.0.0.0/0", "}")
    section.add("http-request", "set-header", "Forwarded", f"for=%[src];{rest}", "if", *v4)
    section.add("http-request", "set-header", "Forwarded", f'for="[%[src]]";{rest}', "if", "!", *v4)
