"""Keys of TLS session tickets: files that listeners load, and commands that tell the running worker of new ones.

All nodes of a fleet have the same three secrets (previous, current, next) from the control plane; a node that was given
none makes its own. Each listener has keys of its own, made from them, because HAProxy resumes a session at any listener
that can read its ticket. No release holds any of this, so a rollback brings no old key back.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import re
import secrets
import threading
from pathlib import Path

from apps.agent.bodies import TICKET_SECRETS, read_tickets
from apps.agent.check.sandbox import readable_group
from apps.agent.errors import Malformed, Refusal
from apps.agent.process.proxy import Proxy
from apps.agent.release.releases import make_dir, replace_file, write_json
from apps.agent.settings import Settings

BYTES = 32
NAMED = re.compile(r"\$\{SPILLWAY_TICKETS\}/(lst-[0-9]{1,18})\.keys")
LOADED = re.compile(r"^\d+ \((/[^()\s]+)\)$", re.MULTILINE)
KEY_BYTES = 80  # AES-256


class Tickets:
    """The secrets of this node, and a file of keys for each listener that has tickets."""

    def __init__(self, settings: Settings) -> None:
        self._group = readable_group(settings)
        self._folder = settings.tickets_dir
        self._stored = settings.state_dir / "tickets.json"
        self._lock = threading.Lock()  # a file that is new must not get keys that are just replaced
        make_dir(self._folder, self._group)
        self._secrets = self._load()

    @property
    def digest(self) -> str:
        """By which others see whether the node has their secrets."""
        return hashlib.sha256("".join(self._secrets).encode()).hexdigest()

    def provide(self, config: str) -> None:
        """Write the files that a configuration names and that are not there yet."""
        with self._lock:
            for listener in sorted(set(NAMED.findall(config))):
                path = self._path(listener)
                if not path.exists():
                    self._write(path, self._secrets)

    def take(self, given: tuple[str, ...], proxy: Proxy, *, running: bool) -> None:
        """Have other secrets; raises Refusal or OSError, and is then asked for again.

        1. The worker is told all keys: as often as that is repeated, it ends with these three.
        2. The files follow, which the next worker loads; those of listeners that are gone as well.
        3. Only then does the node say that it has the secrets.
        """
        with self._lock:
            if running:
                _tell(proxy, {path: _keys(path.stem, given) for path in self._loaded(proxy)})
            for path in self._folder.glob("lst-*.keys"):
                self._write(path, given)
            write_json(self._stored, {"secrets": list(given)})
            self._secrets = given

    def _load(self) -> tuple[str, ...]:
        with contextlib.suppress(OSError, Malformed):
            return read_tickets(self._stored.read_bytes())
        own = tuple(secrets.token_hex(BYTES) for _ in range(TICKET_SECRETS))
        write_json(self._stored, {"secrets": list(own)})
        for path in self._folder.glob("lst-*.keys"):
            self._write(path, own)
        return own

    def _path(self, listener: str) -> Path:
        return self._folder / f"{listener}.keys"

    def _write(self, path: Path, given: tuple[str, ...]) -> None:
        content = "".join(key + "\n" for key in _keys(path.stem, given))
        replace_file(path, content.encode(), self._group)

    def _loaded(self, proxy: Proxy) -> list[Path]:
        paths = map(Path, LOADED.findall(proxy.worker("show tls-keys")))
        return [path for path in paths if path.parent == self._folder]


def _keys(listener: str, given: tuple[str, ...]) -> list[str]:
    """The keys of a listener, oldest first, as HAProxy reads them; it encrypts with the last but one."""
    return [base64.b64encode(_derived(bytes.fromhex(each), listener)).decode() for each in given]


def _derived(secret: bytes, listener: str) -> bytes:
    """HKDF's second half (RFC 5869): the secret is random already."""
    label, made, block = f"spillway session tickets {listener}".encode(), b"", b""
    while len(made) < KEY_BYTES:
        number = bytes([len(made) // 32 + 1])
        block = hmac.new(secret, block + label + number, hashlib.sha256).digest()
        made += block
    return made[:KEY_BYTES]


def _tell(proxy: Proxy, keys: dict[Path, list[str]]) -> None:
    for path, those in keys.items():
        answer = proxy.worker(";".join(f"set ssl tls-key {path} {key}" for key in those))
        if answer.count("updated") != len(those):  # what HAProxy says may have the key in it
            raise Refusal(f"HAProxy did not take the keys of session tickets of {path.stem}.", "runtime")
