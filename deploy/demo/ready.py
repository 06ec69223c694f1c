"""The demo's first words: loads the tutorial through the API, waits until traffic flows, says where to go."""

from __future__ import annotations

import http.client
import json
import shlex
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from deploy.demo.config import DemoConfig
from deploy.demo.secrets_file import Secrets
from deploy.demo.topology import DemoNode, DemoTopology

PATIENCE_S = 300  # of a computer that is busy with other things


class NotReady(Exception):
    """A sentence that says what did not happen in time."""


def call(url: str, method: str = "GET", *, headers: dict[str, str] | None = None, body: str = "") -> tuple[int, str]:
    """Status and text of one request; status 0 when nobody answered."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path or "/", body.encode() or None, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()


def wait_for(what: str, done: Callable[[], bool], alive: Callable[[], bool]) -> None:
    """Ask ten times a second until `done`; raises NotReady when it takes too long or supervisord has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > deadline or not alive():
            raise NotReady(f"{what} did not happen within {PATIENCE_S} s.")
        time.sleep(0.1)


def is_welcome(config: DemoConfig, token: str) -> bool:
    """Whether the API knows the token: the database may have been thrown away since it was made."""
    return call(f"{config.console_url}/api/v1/routes?limit=1", headers={"Authorization": f"Bearer {token}"})[0] == 200


def apply(topology: DemoTopology, token: str) -> None:
    """Send the document through the same API that users have. Raises NotReady with the answer when refused."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url = f"{topology.config.console_url}/api/v1/apply"
    status, text = call(url, "PUT", headers=headers, body=json.dumps(topology.document))
    if status not in {200, 201, 202}:
        raise NotReady(f"The tutorial was refused ({status}): {text[:2000]}")


def serves(topology: DemoTopology, node: DemoNode) -> bool:
    """Whether the node answers a route of the tutorial that needs no server."""
    return all(
        call(f"{url}/robots.txt", headers={"Host": "api.globex.example"})[0] == 200 for url in topology.urls_of(node)
    )


def regions(topology: DemoTopology) -> dict[str, Any]:
    """Per region the URL of its first node and of all its nodes."""
    found: dict[str, Any] = {}
    for node in topology.nodes():
        urls = topology.urls_of(node)
        entry = found.setdefault(node.region, {"listener": urls[0], "nodes": []})
        entry["nodes"].append(urls[0])
    return found


def shell(topology: DemoTopology, tokens: Mapping[str, str]) -> str:
    """What README's commands read: where this copy is, whatever its ports are."""
    config = topology.config
    nodes = topology.nodes()
    values = {
        "SPILLWAY_URL": config.console_url,
        "SPILLWAY_TOKEN": tokens["operator_token"],
        "SPILLWAY_VAR": str(config.var),
        "FIRST_NODE": topology.urls_of(nodes[0])[0],
        "LAST_NODE": topology.urls_of(nodes[-1])[0],
        "FIRST_SERVER": local_url(topology.servers()[0].port),
    }
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


def summary(topology: DemoTopology, secrets: Secrets) -> str:
    """What a person who just typed `make up` wants to know."""
    config: DemoConfig = topology.config
    lines = [
        "",
        f"  Spillway is up:  {config.console_url}",
        f"  sign in as       {secrets.username}   {secrets.password}",
        "",
        "  Two regions, two HAProxy nodes each:",
    ]
    for name, entry in regions(topology).items():
        lines.append(f"    {name:<14} {'  '.join(entry['nodes'])}")
    lines += [
        "",
        "  Try:",
        f"    curl -i -H 'Host: shop.acme.example' {topology.urls_of(topology.nodes()[0])[0]}/",
        f"    curl -X PUT {local_url(config.client_port)}/rate -d '{{\"us-central1\": 12}}'      more traffic",
        f'    curl -X PUT {local_url(topology.servers()[0].port)}/control -d \'{{"mode": "failing"}}\'  a sick server',
        f"  Keys and addresses for scripts: {config.dev_json}     Logs: {config.demo / 'logs'}",
        f"  For a shell: . {config.env_sh}",
        "",
    ]
    return "\n".join(lines)


def local_url(port: int) -> str:
    """A URL of this machine."""
    return f"http://127.0.0.1:{port}"
