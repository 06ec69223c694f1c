"""The way in: JSON bodies become checked plain data, or are refused before anything is touched."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.agent.errors import Malformed
from apps.agent.protocol import refuse_strangers

MANIFEST = "manifest.json"
CERTIFICATE_FIELDS = ("certificate", "authorities")
LARGEST_PEM = 64 * 1024
STAGES = ("validate", "trial_run")  # of a push, before the switch
PATH = re.compile(
    r"haproxy\.cfg|keepalived\.conf|bird\.conf|manifest\.json|(?:maps|secrets)/[a-z0-9-]{1,100}\.map|certs/[a-z0-9-]{1,100}\.(?:pem|list)"
)
DIGEST = re.compile(r"[0-9a-f]{64}")
LISTENER = re.compile(r"[a-z]{2,8}-[0-9]{1,18}|overflow|overflow-tcp")
NODE = re.compile(r"node-[0-9]{1,18}")
MOVED_BY = {"vip": "keepalived.conf", "anycast": "bird.conf"}
TICKET_SECRETS = 3
MOST_FILES = 20_000
LARGEST_FILE = 64 * 1024 * 1024


@dataclass(frozen=True)
class Bind:
    """Where a listener binds; `address` None stands for the node's own address. `http3`: UDP on the same port."""

    listener_id: str
    address: str | None
    port: int
    protocol: str
    http3: bool = False

    @property
    def variable(self) -> str:
        """`lst-2` → `SPILLWAY_BIND_LST_2`."""
        return "SPILLWAY_BIND_" + self.listener_id.upper().replace("-", "_")

    @property
    def http3_variable(self) -> str:
        """`lst-2` → `SPILLWAY_HTTP3_LST_2`."""
        return self.variable.replace("_BIND_", "_HTTP3_", 1)


@dataclass(frozen=True)
class Manifest:
    """What a bundle's manifest.json says: digest of the whole, of each file, the binds, and each node's id by name.

    `addresses` are those that this node may or may not have at a time: address → vip or anycast.
    """

    digest: str
    files: Mapping[str, str]
    binds: tuple[Bind, ...]
    raw: bytes
    nodes: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)

    def moves(self, bind: Bind) -> bool:
        """Whether the listener's address is one of those."""
        return bind.address in self.addresses


@dataclass(frozen=True)
class BundleBody:
    """PUT /v1/bundle: `{"generation", "digest", "files": {path: base64}}`, digests verified.

    With `"only_check": "validate"`, or "trial_run", nothing is done beyond that stage.
    """

    generation: int
    manifest: Manifest
    files: Mapping[str, bytes]
    only_check: str = ""


@dataclass(frozen=True)
class RuntimeBody:
    """POST /v1/runtime: `{"generation", "base_digest", "manifest": base64, "operations": […], "files": {…}}`."""

    generation: int
    base_digest: str
    manifest: Manifest
    operations: tuple[Mapping[str, Any], ...]
    files: Mapping[str, bytes]


def sha256(content: bytes) -> str:
    """SHA-256, hex."""
    return hashlib.sha256(content).hexdigest()


def digest_of_all(digests: Mapping[str, str]) -> str:
    """SHA-256 (hex) over `path NUL digest LF` of every file but the manifest, sorted by path."""
    whole = hashlib.sha256()
    for path in sorted(digests):
        if path != MANIFEST:
            whole.update(f"{path}\0{digests[path]}\n".encode())
    return whole.hexdigest()


def same_content(found: Mapping[str, str], named: Mapping[str, str]) -> bool:
    """True when the files that came have exactly the digests (by path) that the manifest names."""
    return dict(found) == dict(named)


def read_bundle(body: bytes, same: Callable[[Mapping[str, str], Mapping[str, str]], bool] = same_content) -> BundleBody:
    """Read and verify a bundle; raises Malformed, and Unavailable when the console speaks another protocol."""
    data = _object(body)
    refuse_strangers(data.get("protocols"))
    files = _files(data.get("files"))
    if MANIFEST not in files or "haproxy.cfg" not in files:
        raise Malformed("A bundle needs haproxy.cfg and manifest.json.")
    manifest = read_manifest(files[MANIFEST])
    found = {path: sha256(content) for path, content in files.items() if path != MANIFEST}
    if not same(found, manifest.files):
        raise Malformed("The files do not have the digests that the manifest names.")
    if data.get("digest") != manifest.digest:
        raise Malformed("The digest asked for is not the manifest's.")
    return BundleBody(_generation(data), manifest, files, _only_check(data))


def read_runtime(body: bytes) -> RuntimeBody:
    """Read a runtime request; raises Malformed, and Unavailable when the console speaks another protocol."""
    data = _object(body)
    refuse_strangers(data.get("protocols"))
    manifest = read_manifest(_decode("manifest", data.get("manifest")))
    operations = data.get("operations")
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise Malformed("operations must be a list of objects.")
    base = data.get("base_digest")
    if not isinstance(base, str) or not DIGEST.fullmatch(base):
        raise Malformed("base_digest must be a SHA-256 in hex.")
    return RuntimeBody(_generation(data), base, manifest, tuple(operations), _files(data.get("files", {})))


def read_tickets(body: bytes) -> tuple[str, ...]:
    """PUT /v1/tickets: `{"secrets": [previous, current, next]}`, 32 bytes each in hex; raises Malformed."""
    found = _object(body).get("secrets")
    if not isinstance(found, list) or len(found) != TICKET_SECRETS:
        raise Malformed(f"secrets must be a list of {TICKET_SECRETS} texts.")
    if not all(isinstance(each, str) and DIGEST.fullmatch(each) for each in found):
        raise Malformed("A secret of session tickets has 32 bytes in hex.")
    return tuple(found)


def read_manifest(raw: bytes) -> Manifest:
    """Read manifest.json and verify that its digest is that of its files; raises Malformed."""
    data = _object(raw)
    files, binds = data.get("files"), data.get("binds")
    if not isinstance(files, dict) or not isinstance(binds, list):
        raise Malformed("The manifest needs files and binds.")
    for path, digest in files.items():
        if not PATH.fullmatch(path) or path == MANIFEST or not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise Malformed(f"The manifest names a file that no bundle has: {path[:120]!r}.")
    if data.get("digest") != digest_of_all(files):
        raise Malformed("The manifest's digest is not that of its files.")
    named = (_nodes(data.get("nodes", {})), _addresses(data.get("addresses", {}), files))
    return Manifest(data["digest"], files, tuple(_bind(each) for each in binds), raw, *named)


def _addresses(data: Any, files: Mapping[str, str]) -> dict[str, str]:
    """Addresses that move, and by what; each kind comes with the file of the program that moves it."""
    if not isinstance(data, dict) or not set(data.values()) <= set(MOVED_BY):
        raise Malformed("The manifest's addresses must be an object of address → vip or anycast.")
    for kind, path in MOVED_BY.items():
        if (kind in data.values()) != (path in files):
            raise Malformed(f"A bundle has {path} exactly when it has addresses of kind {kind}.")
    return {_ip(address, "An address that moves"): kind for address, kind in data.items()}


def _nodes(data: Any) -> dict[str, str]:
    """What nodes call themselves → their ids; a manifest of before has none."""
    if not isinstance(data, dict) or not all(isinstance(each, str) and NODE.fullmatch(each) for each in data.values()):
        raise Malformed("The manifest's nodes must be an object of name → id, such as node-5.")
    return data


def _bind(data: Any) -> Bind:
    """One bind of the manifest."""
    if not isinstance(data, dict):
        raise Malformed("A bind must be an object.")
    listener, address, port, protocol = (data.get(key) for key in ("listener_id", "address", "port", "protocol"))
    if not isinstance(listener, str) or not LISTENER.fullmatch(listener):
        raise Malformed("A bind needs a listener_id such as lst-2.")
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        raise Malformed(f"{listener}: the port must lie between 1 and 65535.")
    if protocol not in ("http", "https", "tcp"):
        raise Malformed(f"{listener}: the protocol must be http, https or tcp.")
    if address is not None:
        address = _ip(address, listener)
    return Bind(listener, address, port, protocol, data.get("http3") is True)


def _ip(value: Any, whose: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise Malformed(f"{whose}: the address is not an IP address.") from None


def _only_check(data: Mapping[str, Any]) -> str:
    stage = data.get("only_check", "")
    if stage not in ("", *STAGES):
        raise Malformed(f"only_check is one of {', '.join(STAGES)}.")
    return str(stage)


def _generation(data: Mapping[str, Any]) -> int:
    value = data.get("generation")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        raise Malformed("generation must be a positive whole number.")
    return value


def _files(data: Any) -> dict[str, bytes]:
    if not isinstance(data, dict):
        raise Malformed("files must be an object of path → base64.")
    if len(data) > MOST_FILES:
        raise Malformed(f"A bundle has at most {MOST_FILES} files.")
    return {_path(path): _decode(path, content) for path, content in data.items()}


def _path(path: str) -> str:
    if not PATH.fullmatch(path):
        raise Malformed(f"No bundle has a file of this name: {path[:120]!r}.")
    return path


def _decode(path: str, content: Any) -> bytes:
    if not isinstance(content, str):
        raise Malformed(f"{path} must be base64 text.")
    try:
        decoded = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed(f"{path} is not base64.") from None
    if len(decoded) > LARGEST_FILE:
        raise Malformed(f"{path} is larger than {LARGEST_FILE} bytes.")
    return decoded


def _object(raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw.decode())
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise Malformed("The body is not JSON.") from None
    if not isinstance(data, dict):
        raise Malformed("The body must be a JSON object.")
    return data


def read_certificate(raw: bytes) -> tuple[str, str]:
    """PUT /v1/certificate: `{"certificate": PEM, "authorities": PEM}`. Raises Malformed."""
    body = _object(raw)
    found = [body.get(name) for name in CERTIFICATE_FIELDS]
    if not all(isinstance(text, str) and text.isascii() and len(text) <= LARGEST_PEM for text in found):
        raise Malformed("certificate and authorities are PEM, each of at most 64 KiB.")
    return str(found[0]), str(found[1])
