"""The clusters whose Services may be sources, and of whose pools: the operator's file, read anew at each question.

    {"prod": {"url": "https://10.0.0.1:6443", "ca_file": "/etc/spillway/prod.pem",
              "token_file": "/etc/spillway/prod.token", "namespaces": {"shop": ["acme"]}}}

Its token stays in its own file. Who may not use a namespace hears the same as who names a cluster that is none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.definitions.server_sources.kubernetes import Cluster
from apps.definitions.shapes.servers.source import Source


class NotYours(Exception):
    """The account may not use this; the text is a sentence for the pool's owner."""


def cluster_of(source: Source, account: str) -> Cluster:
    """The cluster of a source of this account's pools. Raises NotYours."""
    entry = _entries().get(source.cluster)
    namespaces = entry.get("namespaces") if isinstance(entry, Mapping) else None
    allowed = namespaces.get(source.name) if isinstance(namespaces, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(allowed, list) or account not in allowed:
        raise NotYours(
            f"Pools of {account} may not use namespace {source.name} of a cluster {source.cluster}; "
            "an operator allows that in the file of clusters."
        )
    return Cluster(*(str(entry.get(key, "")) for key in ("url", "ca_file", "token_file")))


def _entries() -> Mapping[str, Any]:
    """What the file says; a file that cannot be read allows nothing."""
    try:
        found = json.loads(Path(settings.KUBERNETES_CLUSTERS).read_text()) if settings.KUBERNETES_CLUSTERS else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
