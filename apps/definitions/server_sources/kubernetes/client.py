"""Lists and watches the EndpointSlices of a namespace at a Kubernetes API server, as its own clients do.

A list comes in pages and names the version that it is of; a watch tells what changed after a version, with bookmarks in
between that only name a newer one. A version that the server has forgotten is Gone: whoever asks lists again.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from apps.definitions.server_sources.connecting import cut
from apps.definitions.server_sources.watched import MOST_BYTES, Failed, Gone, read_object

# What belongs to no Service is nobody's server.
LABEL = "kubernetes.io/service-name"
PAGE = 500
TIMEOUT_S = 10.0
# The server ends a watch after so long, and sends a bookmark about each minute: silence beyond it is a dead connection.
WATCH_S, SILENCE_S = 240, 90.0
Slice = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """How to reach an API server; the token is read anew for each call, as it is exchanged while we run."""

    url: str
    ca_file: str
    token_file: str


@dataclass(frozen=True, slots=True)
class Event:
    """What a watch says: added, modified, deleted, or a bookmark, which only has a version."""

    kind: str
    slice: Slice

    @property
    def version(self) -> str:
        """The version of the collection after it."""
        return _version(self.slice)


def list_slices(cluster: Cluster, namespace: str) -> tuple[dict[str, Slice], str]:
    """Every slice by name, and the version that the list is of. Raises Failed, Gone."""
    found: dict[str, Slice] = {}
    query = {"limit": str(PAGE), "labelSelector": LABEL}
    while True:
        with _asked(cluster, namespace, query, TIMEOUT_S) as (_, response):
            page = read_object(response.read(MOST_BYTES + 1), "the cluster")
        items = page.get("items")
        if not isinstance(items, list):
            raise Failed("The cluster's answer is no list of EndpointSlices.")
        found.update({_name(each): each for each in items})
        more = page.get("metadata", {}).get("continue")
        if not more:
            return found, _version(page)
        query["continue"] = str(more)


class Watch:
    """A watch from a version on: iterate it for events until the server ends it; `cut` ends it from another thread.

    The first event is a bookmark of ours, without a version: the server has taken the watch.
    """

    def __init__(self, cluster: Cluster, namespace: str, version: str) -> None:
        self._where, self._version = (cluster, namespace), version
        self._socket: socket.socket | None = None

    def __iter__(self) -> Iterator[Event]:
        """Raises Failed, and Gone at the beginning or in between."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_S),
            "labelSelector": LABEL,
        }
        with _asked(*self._where, query, SILENCE_S) as (connected, response):
            self._socket = connected
            yield Event("BOOKMARK", {})
            while line := response.readline(MOST_BYTES):
                said = read_object(line, "the cluster")
                if said.get("type") == "ERROR":
                    raise _refusal(said.get("object", {}).get("code", 0))
                if not isinstance(said.get("object"), dict):
                    raise Failed("The cluster's watch says something that is no event.")
                yield Event(str(said.get("type")), said["object"])

    def cut(self) -> None:
        """End the connection, whatever waits for it."""
        cut(self._socket)


@contextlib.contextmanager
def _asked(
    cluster: Cluster, namespace: str, query: Mapping[str, str], timeout: float
) -> Iterator[tuple[socket.socket, http.client.HTTPResponse]]:
    """The connection and the response of status 200, before its body is read."""
    try:
        parts = urlsplit(cluster.url)
        context = ssl.create_default_context(cafile=cluster.ca_file or None)
        token = Path(cluster.token_file).read_text().strip()
        connection = http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT_S, context=context)
    except (OSError, ValueError, http.client.HTTPException):
        raise Failed(
            "The operator's entry of the cluster cannot be used: its CA or its token cannot be read."
        ) from None
    path = f"{parts.path.rstrip('/')}/apis/discovery.k8s.io/v1/namespaces/{quote(namespace, safe='')}/endpointslices"
    try:
        connection.connect()
        connection.sock.settimeout(timeout)
        # The response takes the socket along where the server closes: keep it, so that it can be cut.
        connected = connection.sock
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "User-Agent": "Spillway"}
        connection.request("GET", f"{path}?{urlencode(query)}", headers=headers)
        response = connection.getresponse()
        if response.status != 200:
            raise _refusal(response.status)
        yield connected, response
    except ssl.SSLCertVerificationError:
        raise Failed("The certificate of the cluster is not of the authority that the operator gave.") from None
    except (OSError, ValueError, http.client.HTTPException):
        raise Failed("The cluster does not answer.") from None
    finally:
        connection.close()


def _refusal(status: object) -> Exception:
    if status == 410:
        return Gone()
    if status in (401, 403):
        return Failed(f"The cluster refuses us ({status}): the operator's token may not list and watch this namespace.")
    return Failed(f"The cluster answers with {status if isinstance(status, int) else 'an error'}.")


def _name(each: Slice) -> str:
    return str(each.get("metadata", {}).get("name", ""))


def _version(each: Slice) -> str:
    return str(each.get("metadata", {}).get("resourceVersion", ""))
