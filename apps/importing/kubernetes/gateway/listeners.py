"""Listeners of Gateways as listeners of load balancers: one load balancer for the first port of http and of https."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.compiler.matching import names
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.gateway.grants import is_granted, refused
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.kubernetes.objects.secrets import authorities, certificate
from apps.importing.values.parsing import Path

ANY = "*"
FRONTEND = ("spec", "tls", "frontend")
PROTOCOLS = {"HTTP": "http", "HTTPS": "https", "TLS": "tcp", "TCP": "tcp"}
NO_UDP = "Only HTTP, HTTPS, TLS and TCP are listened to."


@dataclass(slots=True)
class Listener:
    """A listener of a Gateway. `hostname` is ours: `**.` for what `*.` is there; `spec` is the one of ours it is in."""

    gateway: Manifest
    at: Path
    name: str
    port: int
    said: str
    hostname: str
    load_balancer: str
    spec: dict[str, Any]
    passes: bool = False
    attached: set[str] = field(default_factory=set)

    @property
    def protocol(self) -> str:
        """http, https or tcp."""
        return PROTOCOLS[self.said]


def hostname_of(text: object) -> str:
    """Ours for one of the Gateway API, whose `*.` is for one label or several. Raises GrammarError."""
    if text in (None, ""):
        return ANY
    found = str(text).lower()
    return names.hostname_of_route(f"*{found}" if found.startswith("*.") else found)


def read_listeners(context: Context) -> list[Listener]:
    """Those of every Gateway; each makes its load balancer as far as it is new."""
    found = []
    for gateway in context.of_kind("Gateway"):
        gateway.mapped(("kind",))
        _class(context, gateway)
        first: dict[str, int] = {}
        for at, said in gateway.each("spec", "listeners"):
            listener = _listener(context, gateway, at, said, first)
            if listener is not None:
                found.append(listener)
    return found


def _class(context: Context, gateway: Manifest) -> None:
    gateway.mapped(("spec", "gatewayClassName"))
    name = gateway.at("spec", "gatewayClassName")
    for each in context.of_kind("GatewayClass"):
        if each.name == name:
            each.mapped(("kind",))
            each.mapped(("spec", "controllerName"))


def _listener(context: Context, gateway: Manifest, at: Path, said: Any, first: dict[str, int]) -> Listener | None:
    protocol, port = str(said.get("protocol") or ""), said.get("port")
    if protocol not in PROTOCOLS or type(port) is not int or not 0 < port < 65536:
        gateway.impossible(at, NO_UDP)
        return None
    try:
        hostname = hostname_of(said.get("hostname"))
    except GrammarError as error:
        gateway.impossible(at, error.message)
        return None
    ours = PROTOCOLS[protocol]
    passes = protocol == "TLS" and gateway.at(*at, "tls", "mode") == "Passthrough"
    shown = [] if passes or protocol in ("HTTP", "TCP") else list(_certificates(context, gateway, at))
    if protocol in ("HTTPS", "TLS") and not passes and not shown:
        gateway.impossible(at, "No certificate is left for it, so it is left out; in the cluster it does not work.")
        return None
    called = _load_balancer(context, gateway, ours, port, first)
    address = str(gateway.at("spec", "addresses", 0, "value") or "")
    context.address_keys[called] = [f"{gateway.namespace}/{gateway.name}", *([address] if address else [])]
    if address in context.options.addresses:
        gateway.mapped(("spec", "addresses"), f"LoadBalancer {called}")
    spec = _spec(context, called, ours, port)
    for name in ("name", "port", "protocol", "hostname", "tls", "allowedRoutes"):
        for line in gateway.known((*at, name)) if name != "tls" or protocol in ("HTTPS", "TLS") else ():
            if context.ledger.verdict_of(line) is None:
                context.ledger.mapped(line, f"LoadBalancer {called}")
    if protocol in ("HTTP", "TCP"):
        gateway.dead((*at, "tls"), f"A listener of {protocol} ends no TLS.")
    if shown:
        spec["certificates"] = list(dict.fromkeys([*spec.get("certificates", []), *shown]))
    _clients(context, gateway, at, spec, hostname)
    return Listener(gateway, at, str(said.get("name") or ""), port, protocol, hostname, called, spec, passes)


def _certificates(context: Context, gateway: Manifest, at: Path) -> Iterator[str]:
    for path, ref in gateway.each(*at, "tls", "certificateRefs"):
        namespace, name = str(ref.get("namespace") or gateway.namespace), str(ref.get("name") or "")
        if ref.get("kind", "Secret") != "Secret" or not name:
            gateway.impossible(path, "Certificates are Secrets.")
        elif not is_granted(context, gateway, "Secret", namespace, name):
            gateway.impossible(path, refused(gateway, "Secret", namespace))
        else:
            found = certificate(context, (namespace, name))
            gateway.mapped(path, f"Certificate {found}")
            yield found


def _load_balancer(context: Context, gateway: Manifest, protocol: str, port: int, first: dict[str, int]) -> str:
    """The Gateway's own for the first port of a protocol and all of tcp; each further port has one of its own."""
    own = protocol == "tcp" or first.setdefault(protocol, port) == port
    base = f"{gateway.namespace}-{gateway.name}" if gateway.namespace != "default" else gateway.name
    return context.names.name("LoadBalancer", base if own else f"{base}-{port}")


def _spec(context: Context, called: str, protocol: str, port: int) -> dict[str, Any]:
    """The listener of ours at this port."""
    balancer = context.load_balancers.setdefault(called, {"fleets": list(context.options.fleets), "listeners": []})
    for each in balancer["listeners"]:
        if each["port"] == port and each["protocol"] == protocol:
            found: dict[str, Any] = each
            return found
    made: dict[str, Any] = {"name": f"{protocol}-{port}", "protocol": protocol, "port": port}
    balancer["listeners"].append(made)
    return made


def _clients(context: Context, gateway: Manifest, at: Path, spec: dict[str, Any], hostname: str) -> None:
    """What clients present: `frontendValidation` of the listener, or what the Gateway says of its port or of all."""
    if spec["protocol"] == "http" or "certificates" not in spec:
        return
    own = [path for path, each in gateway.each(*FRONTEND, "perPort") if each.get("port") == spec["port"]]
    ways = [(*at, "tls", "frontendValidation"), *((*path, "tls", "validation") for path in own[:1])]
    path = next((each for each in (*ways, (*FRONTEND, "default", "validation")) if gateway.at(*each)), None)
    if path is None:
        return
    ca = ""
    for ref_at, ref in gateway.each(*path, "caCertificateRefs"):
        kind = (str(ref.get("kind") or "ConfigMap"),)
        ca += authorities(context, (str(ref.get("namespace") or gateway.namespace), str(ref.get("name"))), kind)
        gateway.mapped(ref_at)
    gateway.mapped((*path, "mode"))
    for each in own:
        gateway.mapped((*each, "port"))
    optional = gateway.at(*path, "mode") == "AllowInsecureFallback"
    hostnames = [] if hostname == ANY else [hostname.removeprefix("*")]
    entry = {"mode": "optional" if optional else "required", "ca": ca}
    if ca:
        entries = spec.setdefault("client_certificates", [])
        entries.append(entry | ({"hostnames": hostnames} if hostnames else {}))
