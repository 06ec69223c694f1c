"""What an enrolled node keeps: `current`, a link to the folder of one certificate, and `next`, a key that has none yet.

A certificate comes into force by one step, the turn of the link, so that key and certificate always fit each other. The
listener looks at the link for each connection: what a renewal or another enrolment brought is used without a restart.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apps.agent.errors import Malformed
from apps.agent.identity.key_requests import make_key_and_request
from apps.agent.release.releases import replace_link

KEY, CERTIFICATE, AUTHORITIES = "key.pem", "certificate.pem", "authorities.pem"
REQUEST, FACTS = "request.pem", "node.json"


class Identity:
    """The folder `identity` of a state directory."""

    def __init__(self, state_dir: Path) -> None:
        self.folder = state_dir / "identity"
        self.link = self.folder / "current"
        self._lock = threading.Lock()
        self._loaded: tuple[str, ssl.SSLContext] | None = None

    @property
    def exists(self) -> bool:
        """Whether this node has been enrolled."""
        return (self.link / CERTIFICATE).exists()

    def facts(self) -> dict[str, Any]:
        """What was agreed when the node was enrolled: name, address, listen, console; empty before that."""
        try:
            found = json.loads((self.folder / FACTS).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def request(self, name: str, pending: str = "next") -> str:
        """The request (PEM) for a certificate of the next key, which is made where there is none.

        The same one is answered until its certificate comes, so that a lost answer costs nothing.
        """
        with self._lock:
            folder = self.folder / pending
            if not (folder / REQUEST).exists():
                shutil.rmtree(folder, ignore_errors=True)
                draft = self.folder / f".{pending}"
                shutil.rmtree(draft, ignore_errors=True)
                draft.mkdir(parents=True, mode=0o700)
                make_key_and_request(draft, name)
                draft.replace(folder)
            return (folder / REQUEST).read_text()

    def take(self, certificate: str, authorities: str, pending: str = "next") -> str:
        """Put the certificate of the next key into force; answers its SHA-256 (hex).

        Raises Malformed where it is none or belongs to another key: the node then keeps what it has.
        """
        with self._lock:
            folder = self.folder / pending
            if not (folder / KEY).exists():
                raise Malformed("This node has not asked for a certificate; ask for its request first.")
            _write(folder / CERTIFICATE, certificate)
            _write(folder / AUTHORITIES, authorities)
            try:
                load(folder)
                digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.strip())).hexdigest()
            except (OSError, ValueError) as error:
                raise Malformed(f"The certificate does not fit the key of this node ({error}).") from None
            name = secrets.token_hex(8)
            folder.replace(self.folder / name)
            before = self._name()
            replace_link(self.link, Path(name))
            self._forget(keep={name, before})
            return digest

    def note(self, facts: Mapping[str, str]) -> None:
        """Keep what was agreed, for starts without flags."""
        draft = self.folder / f".{FACTS}"
        _write(draft, json.dumps(dict(facts)))
        draft.replace(self.folder / FACTS)

    def context(self) -> ssl.SSLContext:
        """How connections are taken now; loaded again once the link leads elsewhere. Raises OSError."""
        name = self._name()
        loaded = self._loaded
        if loaded is None or loaded[0] != name:
            loaded = name, load(self.folder / name)
            self._loaded = loaded
        return loaded[1]

    def _name(self) -> str:
        try:
            return str(self.link.readlink())
        except OSError:
            return ""

    def _forget(self, keep: set[str]) -> None:
        for folder in self.folder.iterdir():
            if folder.is_dir() and not folder.is_symlink() and len(folder.name) == 16 and folder.name not in keep:
                shutil.rmtree(folder, ignore_errors=True)


def load(folder: Path) -> ssl.SSLContext:
    """A context from the three files of a folder."""
    return server_context(str(folder / AUTHORITIES), str(folder / CERTIFICATE), str(folder / KEY))


def server_context(ca: str, certificate: str, key: str) -> ssl.SSLContext:
    """Mutual TLS: a peer needs a client certificate of one of the authorities in `ca`. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(ca)
    context.load_cert_chain(certificate, key)
    return context


def _write(path: Path, text: str) -> None:
    """A private file that is on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
