"""TLS of Ingresses: which hosts have a certificate, and which Secret it is in."""

from __future__ import annotations

from apps.compiler.matching.hosts import covers
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.ingress.entries import ANY, Reading
from apps.importing.kubernetes.objects.secrets import certificate

DEFAULT = "default"
ORDERED = "Certificates are ordered and renewed here as well: automatic of a Certificate."


def certificates_of(context: Context, readings: list[Reading]) -> tuple[list[str], set[str]]:
    """Names of certificates in the order of the file, and the hosts that have one."""
    found: dict[str, None] = {}
    encrypted: set[str] = set()
    for reading in readings:
        ingress = reading.ingress
        if reading.entries is not None:
            name = _of_route(context, reading, encrypted)
            found |= {name: None} if name else {}
            continue
        for at, entry in ingress.each("spec", "tls"):
            listed = [text.lower() for _, text in ingress.texts(*at, "hosts")]
            own = [*reading.hosts, *reading.settings.aliases]
            hosts = [host for host in own if not listed or any(host == each or covers(each, host) for each in listed)]
            encrypted.update(hosts)
            ingress.mapped((*at, "hosts"))
            for path, text in ingress.texts(*at, "hosts"):
                if text.lower() not in own and not any(covers(text.lower(), host) for host in own):
                    ingress.dead(path, "No rule of this Ingress has the host.")
            if reading.settings.passthrough:
                ingress.dead((*at, "secretName"), "TLS is passed on, so no certificate is shown here.")
                continue
            secret = entry.get("secretName")
            name = certificate(context, (ingress.namespace, str(secret))) if secret else _default(context)
            if name:
                found[name] = None
                ingress.mapped((*at, "secretName"), f"Certificate {name}")
    return list(found), encrypted - {ANY}


def _of_route(context: Context, reading: Reading, encrypted: set[str]) -> str:
    """The certificate of an object that says it once for all of its hosts."""
    route, at = reading.ingress, ("spec", "tls")
    if reading.settings.scheme != "https":
        return ""
    encrypted.update(reading.hosts)
    secret = route.at(*at, "secretName")
    name = certificate(context, (route.namespace, str(secret))) if secret else _default(context)
    route.mapped((*at, "secretName"), f"Certificate {name}")
    if route.at(*at, "certResolver") is not None:
        route.differs((*at, "certResolver"), ORDERED)
    return name


def _default(context: Context) -> str:
    """The controller's own certificate."""
    name = context.options.certificates.get(DEFAULT, "")
    if not name:
        context.need(f"The default certificate of the controller (--certificate {DEFAULT}=NAME).")
    return name
