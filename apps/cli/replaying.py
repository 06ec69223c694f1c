"""Replays an import on a fleet that exists for no longer than that: in a transaction that is rolled back."""

from __future__ import annotations

import datetime as dt
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.db import transaction

from apps.accounts.actors import Actor
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import apply_document
from apps.fleet.models import Fleet
from apps.importing.caddy.reading import read_caddy
from apps.importing.contract import Import
from apps.importing.formats import Reader
from apps.importing.haproxy.reading import read_haproxy
from apps.importing.nginx.reading import read_nginx
from apps.importing.npm.reading import nginx_of, read_npm
from apps.importing.options import ImportOptions
from apps.importing.replay.access_logs import Logged
from apps.importing.replay.contract import NotReplayable, Old, Replay
from apps.importing.replay.old_caddy import OldCaddy
from apps.importing.replay.old_haproxy import OldHaproxy
from apps.importing.replay.old_nginx import OldNginx
from apps.importing.replay.running import replay

VALID = dt.timedelta(days=2)


def replayed(
    actor: Actor,
    text: str,
    files: Mapping[str, str],
    options: ImportOptions,
    form: str = "haproxy",
    log: Sequence[Logged] = (),
) -> Replay:
    """The old file and what becomes of it, side by side; nothing stays stored. Raises NotReplayable, SpillwayError.

    `log` are requests of an access log, which are asked beside those that the file gives.
    """
    name = f"replay-{secrets.token_hex(4)}"
    options = replace(options, fleets=(name,), region=name, local_development=True, certificates={})
    if form not in SIDES:
        raise NotReplayable(f"Replays run {', '.join(SIDES)}.")
    read, old_side = SIDES[form]
    found = read(text, files, options)
    chain, key = _self_signed()
    topology: list[dict[str, Any]] = [
        {"kind": "Region", "name": name, "spec": {"title": "Replay"}},
        {"kind": "Fleet", "name": name, "spec": {"region": name, "local_development": True}},
        {"kind": "Certificate", "name": name, "spec": {"chain": chain, "key": key}},
    ]

    def compiled(documents: list[dict[str, Any]]) -> tuple[Bundle, Mapping[str, str]]:
        with transaction.atomic():
            apply_document(actor=actor, objects=[*topology, *documents])
            snapshot = snapshot_of(Fleet.objects.get(name=name))
            transaction.set_rollback(True)
        compilation = compile_snapshot(snapshot)
        if compilation.left_out:
            raise NotReplayable("; ".join(each.message for each in compilation.left_out[:3]))
        return compilation.output, {pool.id: pool.label.rpartition("/")[2] for pool in snapshot.pools}

    with tempfile.TemporaryDirectory(prefix="spillway-replay-") as folder:
        pem = Path(folder) / "certificate.pem"
        pem.touch(mode=0o600)
        pem.write_text(chain + key)
        return replay(old_side(text, files, options, found), found, compiled, Path(folder), (name, pem), log)


def _old_npm(dump: str, files: Mapping[str, str], options: ImportOptions, found: Import) -> OldNginx:
    return OldNginx(*nginx_of(dump, files), options, found)


SIDES: dict[str, tuple[Reader, Callable[[str, Mapping[str, str], ImportOptions, Import], Old]]] = {
    "caddy": (read_caddy, OldCaddy),
    "haproxy": (read_haproxy, OldHaproxy),
    "nginx": (read_nginx, OldNginx),
    "nginx-proxy-manager": (read_npm, _old_npm),
}


def told(result: Replay) -> Iterator[str]:
    """The lines that a terminal shows."""
    for each in result.different:
        by = ", ".join(map(str, each.lines))
        yield f"{each.request}"
        yield from (f"         {said}" for said in each.said)
        yield f"         as reported at line {by}" if by else "         no line of the report says so"
    explained = len(result.different) - len(result.unexplained)
    yield (
        f"Replay: {result.equal} of {result.asked} requests and connections are answered equally, "
        f"{explained} differ as reported, {len(result.unexplained)} differ otherwise."
    )


def _self_signed() -> tuple[str, str]:
    """A certificate for the listeners of both, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "replay.invalid")])
    now = dt.datetime.now(tz=dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - VALID)
    names = x509.SubjectAlternativeName([x509.DNSName("replay.invalid")])
    certificate = builder.not_valid_after(now + VALID).add_extension(names, critical=False).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()
