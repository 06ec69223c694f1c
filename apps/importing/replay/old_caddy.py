"""The old side of a replay of Caddy's JSON: its servers and routes on a real Caddy, with stub servers behind."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apps.importing.caddy.context import HTTP, Caddy
from apps.importing.caddy.handlers.headers import UPSTREAM
from apps.importing.caddy.listeners import Server, server_at
from apps.importing.caddy.matchers import condition_of
from apps.importing.caddy.reading import opened
from apps.importing.caddy.traffic import SERVERS
from apps.importing.contract import Import
from apps.importing.logic.answers import about_host, about_path
from apps.importing.logic.formulas import Atom, simplified
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import Answer, Asked, NotReplayable, Opening, Request
from apps.importing.replay.programs import run_caddy
from apps.importing.values.parsing import Path as FieldPath
from apps.importing.verdicts import Verdict

NAME = "replay.invalid"
"""The certificate of clients that name no host, as those of a replay."""
SAYS = frozenset({Verdict.DIFFERENT, Verdict.NOT_POSSIBLE})
OF_POOLS = ("transport", "health_checks", "load_balancing", "dynamic_upstreams")
OF_SERVERS = ("logs", "listener_wrappers", "tls_connection_policies")


class OldCaddy:
    """The JSON of a Caddy that runs here with stub servers."""

    def __init__(self, text: str, files: Mapping[str, str], options: ImportOptions, found: Import) -> None:
        self._caddy: Caddy = opened(text, files, options)
        names = self._caddy.fields.at(*SERVERS) or ()
        self._servers = [server_at(self._caddy, name, (*SERVERS, name)) for name in names]
        self._objects = {line.number: line.objects for line in found.report}
        self._impossible = {line.number for line in found.report if line.verdict is Verdict.NOT_POSSIBLE}
        said = {line.number for line in found.report if line.verdict in SAYS}
        self._said = [(path, line.number) for path, line in self._caddy.fields.lines.items() if line.number in said]
        self.pools = {each["name"]: each["name"] for each in found.documents if each["kind"] == "Pool"}
        self.ports: dict[int, int] = {}
        self.encrypted: dict[int, bool] = {}

    def words(self) -> list[str]:
        """Words of matchers and handlers, without their stars and placeholders."""
        texts = [str(self._caddy.fields.at(*path)) for path in self._caddy.fields.lines if path[:3] == SERVERS]
        plain = [re.sub(r"\{[^}]*\}", "", text) for text in texts]
        return [word for text in plain for word in (text.replace("\\", "").strip("*^$"), *text.split())]

    def write(self, stubs: Mapping[str, int], folder: Path, spare: Iterator[int], certificate: Path) -> None:
        """The file for this machine."""
        if not self._servers:
            raise NotReplayable("The file has no servers of http.")
        http = copy.deepcopy(self._caddy.fields.at(*HTTP))
        taken = [port for server in self._servers for port, _ in server.ports]
        self.ports = {port: next(spare) for port in (*taken, self._caddy.http_port)}
        http |= {"http_port": self.ports[self._caddy.http_port]}
        http |= {"https_port": self.ports.get(self._caddy.https_port, next(spare))}
        for server in self._servers:
            self._server(server, http["servers"][server.name], stubs)
        if not taken:
            raise NotReplayable("No server of this file takes http requests at a port.")
        pem = {"certificate": str(certificate), "key": str(certificate)}
        policy = {"issuers": [{"module": "internal"}]}
        tls = {"certificates": {"load_files": [pem]}, "automation": {"policies": [policy]}}
        old = {
            "admin": {"disabled": True, "config": {"persist": False}},
            "storage": {"module": "file_system", "root": str(folder / "caddy")},
            "apps": {"http": http, "tls": tls, "pki": {"certificate_authorities": {"local": {"install_trust": False}}}},
        }
        (folder / "old.json").write_text(json.dumps(old))

    @contextmanager
    def running(self, folder: Path) -> Iterator[None]:
        """Caddy with that file."""
        with run_caddy(folder / "old.json", folder):
            yield

    def _server(self, server: Server, said: dict[str, Any], stubs: Mapping[str, int]) -> None:
        if "client_authentication" in json.dumps(said.get("tls_connection_policies", [])):
            raise NotReplayable("Clients would have to show certificates.")
        for name in OF_SERVERS:
            said.pop(name, None)
        said["protocols"] = ["h1", "h2"]  # what is asked here is HTTP/1.1
        said["listen"] = [f"127.0.0.1:{self.ports[port]}" for port, _ in server.ports]
        for port, _ in server.ports:
            self.encrypted[port] = server.is_encrypted(self._caddy, port)
        self.encrypted.setdefault(self._caddy.http_port, False)
        if any(self.encrypted[port] for port, _ in server.ports):
            said["tls_connection_policies"] = [{"default_sni": NAME, "fallback_sni": NAME}]
        self._proxies(said, server.path, stubs)

    def _proxies(self, value: Any, path: FieldPath, stubs: Mapping[str, int]) -> None:
        """Every `reverse_proxy` goes to its stub server, which speaks plain http."""
        if isinstance(value, list):
            for at, each in enumerate(value):
                self._proxies(each, (*path, at), stubs)
        if not isinstance(value, dict):
            return
        for name in list(value):
            self._proxies(value[name], (*path, name), stubs)
        if value.get("handler") == "reverse_proxy":
            pool = self._pool_of(path)
            self._keep_host(value)
            for name in OF_POOLS:
                value.pop(name, None)
            value["upstreams"] = [{"dial": f"127.0.0.1:{stubs[pool] if pool else 9}"}]

    def _pool_of(self, path: FieldPath) -> str:
        below = [self._caddy.fields.below((*path, name)) for name in ("upstreams", "dynamic_upstreams")]
        objects = [each for lines in below for line in lines for each in self._objects.get(line.number, ())]
        return next((each.removeprefix("Pool ") for each in objects if each.startswith("Pool ")), "")

    def _keep_host(self, handler: dict[str, Any]) -> None:
        """Where servers get their own name, they still get that of the old one."""
        upstreams = handler.get("upstreams") or [{}]
        name = str(upstreams[0].get("dial", "")).rpartition(":")[0]
        headers = handler.get("headers", {}).get("request", {}).get("set", {})
        for each, values in headers.items():
            headers[each] = [name if value in UPSTREAM else value for value in values]

    def lines(self, request: Asked, before: Answer, after: Answer) -> tuple[int, ...]:
        """Lines of the routes that may take the request, whose handlers make such a difference."""
        if isinstance(request, Opening):
            return ()  # ports of tcp are not asked
        asked = [(path, number) for path, number in self._said if self._may_take(path, request)]
        found: dict[int, None] = {}
        differences = before.differences(after)
        deciding = [each for each in differences if each.startswith(("status:", "pool:"))]
        for difference in deciding or differences:
            saying = [number for path, number in asked if self._says(path, difference.partition(":")[0])]
            if not saying:
                return ()
            found |= dict.fromkeys(saying)
        return tuple(found)

    def _may_take(self, path: FieldPath, request: Request) -> bool:
        server = next((each for each in self._servers if path[: len(each.path)] == each.path), None)
        routes = [at for at, part in enumerate(path) if part == "routes" and at + 1 < len(path)]
        if server is None or not routes or request.port not in dict(server.ports):
            return False
        return all(self._may_hold((*path[: at + 2], "match"), request) for at in routes)

    def _may_hold(self, path: FieldPath, request: Request) -> bool:
        """Whether matchers may hold: some cannot be asked, those behind a rewrite are about other paths."""
        numbers = {number for said, number in self._said if said[: len(path)] == path}
        if numbers & self._impossible:
            return True
        moved = '"rewrite"' in json.dumps(self._caddy.fields.at(*path[:6]))

        def known(atom: Atom) -> bool | None:
            if atom.subject == "host":
                return about_host(atom, request.host.lower().partition(":")[0])
            if atom.subject == "path" and not (moved and len(path) > 7):
                return about_path(atom, request.path.partition("?")[0])
            return None

        return simplified(condition_of(self._caddy, path), known) is not False

    def _says(self, path: FieldPath, name: str) -> bool:
        """Paths that are asked, and handlers that answer, say of status and pool; headers of themselves."""
        text = "/".join(map(str, path)).lower()
        if name in ("status", "pool", "location"):
            return "headers" not in path or "location" in text
        if name == "path of the server":
            return "rewrite" in str(self._caddy.fields.at(*path[:-1])) or "upstreams" in path or "match" in path
        return name.rpartition(" ")[2] in text or name.rpartition(" ")[2] in str(self._caddy.fields.at(*path)).lower()
