"""Listeners as Gateways: one for each address, as the addresses of a Gateway hold for all of its listeners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.model.shared import Certificate, Listener, LoadBalancer, Protocol
from apps.exporting.contract import Notes
from apps.exporting.gateway.naming import GROUP, Taken

Manifest = dict[str, Any]
CLASS = "change-me"
MOST_LISTENERS = 64
CLIENTS = (
    "Left out, as a cluster tells servers nothing of the certificates of clients, and takes a client's word for those "
    "headers:"
)
NETWORKS = "Left out, as which networks may connect has no place in the Gateway API:"
NO_CERTIFICATE = "Left out, as no certificate for it is left:"
SEVERAL = (
    "Several certificates at one listener are beyond the core of the Gateway API; make a listener for each hostname if "
    "your controller refuses them:"
)
TOO_MANY = "Left out, as a Gateway has at most 64 listeners:"
ASIDE = {
    "connections": "How many clients may be connected and how long they may be silent is the controller's to say:",
    "client_limit": "Limits of connections per client have no place in the Gateway API:",
    "client_address": "Whose word is taken for a client's address is the controller's to say:",
    "tls": "Versions of TLS, HTTP/2 and HTTP/3 are the controller's to say:",
    "default_certificate_id": "Which certificate clients of other names are shown is the controller's to say:",
    "compression": "Responses are not compressed:",
    "cache": "Responses are not cached:",
    "tracing": "Traces are the controller's to say:",
    "monitor_path": "No path answers whether the listener is there:",
}


@dataclass(slots=True)
class Gateways:
    """Gateways by address, and the Secrets of certificates that their listeners name."""

    front: LoadBalancer
    certificates: Mapping[str, Certificate]
    notes: Notes
    secrets: dict[str, Certificate] = field(default_factory=dict)
    _names: Taken = field(default_factory=Taken)
    _gateways: Taken = field(default_factory=Taken)
    _secrets: dict[str, str] = field(default_factory=dict)

    def made(self) -> list[Manifest]:
        """Those that have a listener left, those on each node's own address first."""
        found: dict[str, list[Manifest]] = {}
        for listener in self.front.listeners:
            self._note(listener)
            for said in self._said(listener):
                found.setdefault(listener.address or "", []).append(said)
        return [self._gateway(address, found[address]) for address in sorted(found)]

    def _note(self, listener: Listener) -> None:
        for name, why in ASIDE.items():
            if getattr(listener, name) is not None:
                self.notes.add(why, f"listener {listener.label}")

    def _said(self, listener: Listener) -> Iterator[Manifest]:
        name = section_of(listener)
        entry: Manifest = {"name": name, "port": listener.port, "protocol": listener.protocol.value.upper()}
        if listener.access is not None and listener.access.lists:
            self.notes.add(NETWORKS, f"listener {listener.label}")
        elif listener.client_certificates:
            self.notes.add(CLIENTS, f"listener {listener.label}")
        elif listener.speaks_tls:
            yield from self._ending(listener, entry)
        elif listener.protocol is Protocol.TCP and listener.sni_routes:
            yield {**entry, "protocol": "TLS", "tls": {"mode": "Passthrough"}}
        else:
            yield entry

    def _ending(self, listener: Listener, entry: Manifest) -> Iterator[Manifest]:
        """The default certificate comes first."""
        shown = [each for each in listener.certificate_ids if each in self.certificates]
        shown.sort(key=lambda each: each != listener.default_certificate_id)
        if not shown:
            self.notes.add(NO_CERTIFICATE, f"listener {listener.label}")
            return
        if len(shown) > 1:
            self.notes.add(SEVERAL, f"listener {listener.label}")
        references = [{"name": self._secret(each)} for each in shown[:MOST_LISTENERS]]
        yield {
            **entry,
            "protocol": "TLS" if listener.protocol is Protocol.TCP else "HTTPS",
            "tls": {"mode": "Terminate", "certificateRefs": references},
        }

    def _secret(self, certificate_id: str) -> str:
        if certificate_id not in self._secrets:
            certificate = self.certificates[certificate_id]
            self._secrets[certificate_id] = self._names.name(certificate.label)
            self.secrets[self._secrets[certificate_id]] = certificate
        return self._secrets[certificate_id]

    def _gateway(self, address: str, listeners: list[Manifest]) -> Manifest:
        for each in listeners[MOST_LISTENERS:]:
            self.notes.add(TOO_MANY, f"listener {each['name']}")
        called = self.front.label.rpartition("/")[2]
        spec: Manifest = {"gatewayClassName": CLASS, "listeners": listeners[:MOST_LISTENERS]}
        if address:
            spec["addresses"] = [{"type": "IPAddress", "value": address}]
        name = self._gateways.name(f"{called} {address}")
        return {"apiVersion": f"{GROUP}/v1", "kind": "Gateway", "metadata": {"name": name}, "spec": spec}


def section_of(listener: Listener) -> str:
    """The name of a listener within its Gateway: its port, which is there once."""
    return f"{listener.protocol.value}-{listener.port}"
