"""Pebble, a real certificate authority for tests, and its name server, built from Go's module proxy."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.golang import CACHE, go
from tests.ports import spare_port

VERSION = "v2.8.0"
_MODULE = f"github.com/letsencrypt/pebble/v2@{VERSION}"
_MODULE_PATH = f"github.com/letsencrypt/pebble/v2/cmd/{{}}@{VERSION}"
SECONDS_TO_BUILD = 900


@cache
def program(name: str) -> str:
    """The path of `pebble` or `pebble-challtestsrv`, built where it is not there yet."""
    path = CACHE.with_name("bin") / f"{name}-{VERSION}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        before, os.environ["GOBIN"] = os.environ.get("GOBIN"), str(path.parent)
        try:
            built = go("install", _MODULE_PATH.format(name), cwd=path.parent, patience_s=SECONDS_TO_BUILD)
        finally:
            os.environ.pop("GOBIN") if before is None else os.environ.update(GOBIN=before)
        assert not isinstance(built, str), built
        assert built.returncode == 0, built.stderr
        (path.parent / name).rename(path)
    return str(path)


@dataclass(frozen=True)
class Pebble:
    """A running authority."""

    directory: str
    trusted_ca: str
    log: Path


@dataclass(frozen=True)
class NameServer:
    """A running name server: where it is asked (address:port), and the port at which it is told."""

    address: str
    told_at: int

    def answer(self, host: str, address: str = "") -> None:
        """Answer an A of this host with the address, or without one as before."""
        told = {"host": host, "addresses": [address]} if address else {"host": host}
        url = f"http://127.0.0.1:{self.told_at}/{'add' if address else 'clear'}-a"
        urllib.request.urlopen(url, data=json.dumps(told).encode(), timeout=5).close()


@contextmanager
def name_server(folder: Path) -> Iterator[NameServer]:
    """A name server that answers every A with 127.0.0.1."""
    port, management = spare_port(), spare_port()
    off = [f"-{name}=" for name in ("http01", "https01", "tlsalpn01", "doh", "defaultIPv6")]
    where = [f"-dns01=127.0.0.1:{port}", f"-management=127.0.0.1:{management}", "-defaultIPv4=127.0.0.1"]
    with (folder / "names.log").open("ab") as log:
        process = subprocess.Popen([program("pebble-challtestsrv"), *off, *where], stdout=log, stderr=log)
    try:
        yield NameServer(f"127.0.0.1:{port}", management)
    finally:
        process.kill()
        process.wait(10)


@contextmanager
def pebble(
    folder: Path,
    *,
    http_port: int,
    names: str,
    environment: Mapping[str, str] | None = None,
    known: Mapping[str, str] | None = None,
) -> Iterator[Pebble]:
    """An authority that asks hosts at `http_port` for their answers, and `names` (address:port) for their addresses.

    With `known`, HMAC keys by key ID, it takes only accounts that are bound to one of these.
    """
    port = spare_port()
    module = CACHE / _MODULE
    certificates = module / "test" / "certs"
    settings: dict[str, Any] = {
        "listenAddress": f"127.0.0.1:{port}",
        "managementListenAddress": f"127.0.0.1:{spare_port()}",
        "certificate": str(certificates / "localhost" / "cert.pem"),
        "privateKey": str(certificates / "localhost" / "key.pem"),
        "httpPort": http_port,
        "tlsPort": spare_port(),
        "retryAfter": {"authz": 1, "order": 1},
        "profiles": {
            "default": {"description": "usual", "validityPeriod": 7776000},
            "shortlived": {"description": "six days", "validityPeriod": 518400},
        },
    }
    if known:
        settings |= {"externalAccountBindingRequired": True, "externalAccountMACKeys": dict(known)}
    pebble_program = program("pebble")  # which also fetches the module with its certificates
    (folder / "pebble.json").write_text(json.dumps({"pebble": settings}))
    wanted = os.environ | {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_AUTHZREUSE": "0"} | dict(environment or {})
    log_path = folder / "pebble.log"
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            [pebble_program, "-config", str(folder / "pebble.json"), "-dnsserver", names],
            env=wanted, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        trusted = (certificates / "pebble.minica.pem").read_text()
        _wait(port, process, log_path)
        yield Pebble(f"https://localhost:{port}/dir", trusted, log_path)
    finally:
        process.kill()
        process.wait(10)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    context = ssl._create_unverified_context()  # noqa: S323 - only whether it is up
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"https://localhost:{port}/dir", context=context, timeout=5).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(log.read_text())
