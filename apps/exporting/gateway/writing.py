"""A load balancer of a snapshot as manifests, with what they do not say on top; pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from typing import Any

from apps.compiler.checks.snapshot import examine
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Certificate
from apps.compiler.portability.standalone import alone
from apps.exporting.contract import Export, Notes, NotSaid
from apps.exporting.gateway.connections import connection_routes
from apps.exporting.gateway.listeners import CLASS, Gateways
from apps.exporting.gateway.routes import http_routes
from apps.exporting.gateway.services import Services
from apps.exporting.yaml_text import yaml_text

Manifest = dict[str, Any]
FILE, SECRETS = "gateway.yaml", "secrets.yaml"
HEAD = f"""\
# Load balancer {{name}} as objects of the Gateway API (standard channel, v1.5 or later).
# Set gatewayClassName ({CLASS}) to a class of your cluster: kubectl get gatewayclass
# kubectl apply -n NAMESPACE -f {FILE}, after the Secrets that its listeners name.
"""
REFUSED = "Left out, as nodes leave it out too ({message}):"
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----\n?", re.DOTALL)


def gateway_manifests(snapshot: Snapshot, load_balancer_id: str, looked_up: Collection[str] = ()) -> Export:
    """Manifests of one load balancer, its Secrets in a file of their own. Raises NotAlone where it is not there.

    `looked_up` are labels of pools whose servers come and go by themselves.
    """
    examination, notes = examine(alone(snapshot, load_balancer_id)), Notes()
    for finding in examination.left_out:
        notes.add(REFUSED.format(message=finding.message.rstrip(".")), finding.label)
    accepted = examination.accepted
    (front,) = accepted.load_balancers
    making = Gateways(front, {each.id: each for each in accepted.certificates}, notes)
    overflowing = frozenset(each.id for each in snapshot.pools if each.elsewhere)
    services = Services({each.id: each for each in accepted.pools}, overflowing, frozenset(looked_up), notes)
    gateways = making.made()
    routes = [
        *http_routes(front, gateways, services, notes),
        *connection_routes(front, gateways, services, notes),
    ]
    not_said = notes.lines()
    text = _head(front.label, not_said) + yaml_text([*gateways, *services.manifests, *routes])
    files = {FILE: text.encode()}
    if making.secrets:
        files[SECRETS] = yaml_text(_secret(name, each) for name, each in making.secrets.items()).encode()
    return Export(files, frozenset({SECRETS} & files.keys()), not_said)


def _head(name: str, not_said: tuple[NotSaid, ...]) -> str:
    return HEAD.format(name=name) + "".join(f"# Not said: {each}\n" for each in not_said)


def _secret(name: str, certificate: Certificate) -> Manifest:
    key = "".join(_KEY.findall(certificate.pem))
    chain = _KEY.sub("", certificate.pem)
    data = {"tls.crt": _coded(chain), "tls.key": _coded(key)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "kubernetes.io/tls", "data": data}


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
