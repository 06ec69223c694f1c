"""Connections that serve only hosts of the certificate they began with: whoever asks for another host gets 421.

A client may ask for one name in the handshake and for another one in a request. Which certificate a name has is a map
of the listener; a name of none has the default certificate.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.targets.haproxy.listeners.client_certificates import NONE, add_lookup
from apps.compiler.targets.haproxy.writer import Section

MISDIRECTED = "This connection was opened for another host, which has another certificate. Open a new one.\n"
_TEXT = ("content-type", "text/plain; charset=utf-8", "string")


def is_asked(listener: Listener) -> bool:
    """Whether the listener keeps hosts of different certificates apart."""
    return listener.protocol is Protocol.HTTPS and listener.tls is not None and listener.tls.same_certificate


def names_path(listener_id: str) -> str:
    """Host → certificate: `maps/lst-1-names.map`."""
    return f"maps/{listener_id}-names.map"


def names_maps(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """The map of each such listener; of two certificates for a name the first one counts, as in the handshake."""
    hostnames = {each.id: each.hostnames for each in snapshot.certificates}
    found: dict[str, dict[str, str]] = {}
    for listener in (each for front in snapshot.load_balancers for each in front.listeners if is_asked(each)):
        names = found.setdefault(names_path(listener.id), {})
        for key in listener.certificate_ids:
            for name in hostnames.get(key, ()):
                names.setdefault(name, key)
    return found


def add_host_rules(section: Section, listener: Listener) -> None:
    """Refuse requests for hosts of another certificate than the handshake's."""
    if not is_asked(listener):
        return
    rest = listener.default_certificate_id or NONE
    for name, fetch in (("shown", "ssl_fc_sni"), ("named", "req.fhdr(host),host_only")):
        add_lookup(section, name, fetch, names_path(listener.id), rest)
    differs = ("!", "{", "var(txn.shown),strcmp(txn.named)", "-m", "int", "eq", "0", "}")
    section.add("http-request", "return", "status", "421", *_TEXT, MISDIRECTED, "if", *differs)
