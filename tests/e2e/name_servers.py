"""Real authoritative name servers for tests: BIND with a TSIG key, PowerDNS with SQLite and its API."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.message
import dns.query
import pytest
import urllib3

from tests.ports import spare_port

KEY_NAME = "spillway"
SECRET = base64.b64encode(b"a key for tests that is long enough").decode()
API_KEY = "an-api-key-for-tests"
SCHEMA = "/usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql"
LOUDLY = "{0} is not installed: `make test` installs it with apt; this test proves nothing without it"


@dataclass(frozen=True)
class Server:
    """A running name server: where DNS answers, where it is written to, and its process."""

    driver: str
    domain: str
    address: str
    port: int
    server: str
    process: subprocess.Popen[bytes]

    @property
    def resolver(self) -> str:
        """`address:port`, to ask it what it serves."""
        return f"{self.address}:{self.port}"


Others = Mapping[str, Mapping[str, str]]


@contextmanager
def running_bind(folder: Path, domain: str, *, transfer: bool = True, others: Others | None = None) -> Iterator[Server]:
    """BIND that takes updates of one zone, signed with our key; `transfer` says whether it gives the zone away.

    `others` are zones that nobody updates: domain -> label -> what it is a CNAME of.
    """
    if shutil.which("named") is None:
        pytest.skip(LOUDLY.format("bind9"))
    folder.mkdir(parents=True, exist_ok=True)
    port = spare_port()
    (folder / "zone").write_text(_zone_file(domain))
    config = _bind_config(folder, domain, port, transfer=transfer)
    if others:  # a CNAME into another zone is followed for those who may ask about everything
        config = config.replace("recursion no", "recursion yes; allow-recursion { any; }")
    for other, aliases in (others or {}).items():
        lines = [f"{label} IN CNAME {target}.\n" for label, target in aliases.items()]
        (folder / other).write_text(_zone_file(other) + "".join(lines))
        config += f'zone "{other}" {{ type primary; file "{folder}/{other}"; }};\n'
    (folder / "named.conf").write_text(config)
    process = _start(["named", "-g", "-n", "1", "-c", str(folder / "named.conf")], folder)
    try:
        _wait_for_dns(port, domain, process, folder)
        yield Server("rfc2136", domain, "127.0.0.1", port, f"127.0.0.1:{port}", process)
    finally:
        _end(process)


@contextmanager
def running_powerdns(folder: Path, domain: str, *, others: Others | None = None) -> Iterator[Server]:
    """PowerDNS with an empty zone, and `others` as BIND has them."""
    if shutil.which("pdns_server") is None or not _schema():
        pytest.skip(LOUDLY.format("pdns-server with pdns-backend-sqlite3"))
    folder.mkdir(parents=True, exist_ok=True)
    port, api = spare_port(), spare_port()
    with sqlite3.connect(folder / "pdns.sqlite3") as database:
        database.executescript(_schema())
    options = {
        "config-dir": folder,
        "daemon": "no",
        "guardian": "no",
        "launch": "gsqlite3",
        "gsqlite3-database": folder / "pdns.sqlite3",
        "local-address": "127.0.0.1",
        "local-port": port,
        "socket-dir": folder,
        "api": "yes",
        "api-key": API_KEY,
        "webserver": "yes",
        "webserver-address": "127.0.0.1",
        "webserver-port": api,
        "cache-ttl": 0,
        "query-cache-ttl": 0,
        "negquery-cache-ttl": 0,
        "zone-cache-refresh-interval": 0,
        "security-poll-suffix": "",
    }
    process = _start(["pdns_server", *(f"--{name}={value}" for name, value in options.items())], folder)
    try:
        _wait_for_port(api, process, folder)
        for each, aliases in {domain: {}, **(others or {})}.items():
            sets = [_alias(f"{label}.{each}.", f"{target}.") for label, target in aliases.items()]
            zone = {"name": f"{each}.", "kind": "Native", "nameservers": [f"ns.{each}."], "rrsets": sets}
            call_powerdns(f"http://127.0.0.1:{api}", "POST", "", zone)
        yield Server("powerdns", domain, "127.0.0.1", port, f"http://127.0.0.1:{api}", process)
    finally:
        _end(process)


def call_powerdns(server: str, method: str, zone: str, body: Mapping[str, object]) -> None:
    """What an operator does by hand at the API of PowerDNS."""
    url = f"{server}/api/v1/servers/localhost/zones" + (f"/{zone}." if zone else "")
    answer = urllib3.request(method, url, body=json.dumps(body), headers={"X-API-Key": API_KEY})
    assert answer.status in (201, 204), answer.data


def _alias(name: str, target: str) -> dict[str, object]:
    return {"name": name, "type": "CNAME", "ttl": 60, "records": [{"content": target, "disabled": False}]}


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a server at once."""
    process.kill()
    process.wait(10)


def _zone_file(domain: str) -> str:
    return (
        f"$TTL 60\n$ORIGIN {domain}.\n@ IN SOA ns.{domain}. hostmaster.{domain}. 1 3600 600 86400 60\n"
        f"@ IN NS ns.{domain}.\nns IN A 127.0.0.1\n"
    )


def _bind_config(folder: Path, domain: str, port: int, *, transfer: bool) -> str:
    allowed = f"key {KEY_NAME};" if transfer else "none;"
    return f"""
key "{KEY_NAME}" {{ algorithm hmac-sha256; secret "{SECRET}"; }};
options {{
    directory "{folder}"; pid-file none; session-keyfile "{folder}/session.key"; managed-keys-directory "{folder}";
    listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
    recursion no; notify no; dnssec-validation no; allow-query {{ any; }};
}};
controls {{ }};
zone "{domain}" {{
    type primary; file "{folder}/zone"; allow-update {{ key {KEY_NAME}; }}; allow-transfer {{ {allowed} }};
}};
"""


def _schema() -> str:
    path = Path(SCHEMA)
    return path.read_text() if path.exists() else ""


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("wb") as log:
        environment = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        return subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def _wait_for_port(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"the server did not start: {(folder / 'log').read_text()[-2000:]}")


def _wait_for_dns(port: int, domain: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    _wait_for_port(port, process, folder)
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        answer = dns.query.tcp(dns.message.make_query(domain, "SOA"), "127.0.0.1", 5, port)
        if answer.answer:
            return
        time.sleep(0.05)
    raise AssertionError(f"the zone was not loaded: {(folder / 'log').read_text()[-2000:]}")
