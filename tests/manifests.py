"""Manifests of Kubernetes that tests make."""

from __future__ import annotations

import base64

import yaml

from tests.authorities import Authority


def tls_secret(namespace: str, name: str, host: str) -> str:
    """A Secret with a new certificate for the host, as YAML."""
    pem = Authority().signed(host)
    at = pem.index("-----BEGIN PRIVATE")
    parts = {"tls.crt": pem[:at], "tls.key": pem[at:]}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in parts.items()}
    metadata = {"name": name, "namespace": namespace}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}
    )
