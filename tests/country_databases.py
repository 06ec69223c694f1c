"""Small databases of countries, made by the writer of the format."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mmdb_writer import MMDBWriter
from netaddr import IPSet


def record(code: str, name: str) -> dict[str, Any]:
    """What GeoLite2-Country and DB-IP say of a network."""
    return {"country": {"iso_code": code, "names": {"en": name, "de": "?"}}}


def write_database(path: Path, networks: Mapping[str, Any], built: datetime = datetime(2026, 11, 3, tzinfo=UTC)) -> str:
    """A database of these networks, and its path."""
    writer = MMDBWriter(6, "Test-Country", languages=["en"], ipv4_compatible=True)
    for network, said in networks.items():
        writer.insert_network(IPSet([network]), said)
    writer.to_db_file(str(path))
    path.write_bytes(_dated(path.read_bytes(), built))
    return str(path)


def _dated(database: bytes, built: datetime) -> bytes:
    """With another day: behind the name come two bytes (type and length) and the seconds; the writer takes now."""
    at = database.rindex(b"build_epoch") + len(b"build_epoch")
    length = database[at] & 0b11111
    return database[: at + 2] + int(built.timestamp()).to_bytes(length, "big") + database[at + 2 + length :]
