"""How long HAProxy may take to load a release, by the size of what it has to read."""

from __future__ import annotations

from pathlib import Path

# Measured on HAProxy 2.6: 1.2 ms of processor time for each P-256 certificate and 14 ms for each megabyte of maps.
# A busy machine took eight times as long.
CERTIFICATE_SECONDS = 0.02
MEGABYTE_SECONDS = 0.5


def load_seconds(release: Path) -> float:
    """Seconds beyond those that even an empty release is given."""
    sizes = {path: path.stat().st_size for path in release.rglob("*") if path.is_file()}
    certificates = sum(path.suffix == ".pem" for path in sizes)
    return certificates * CERTIFICATE_SECONDS + sum(sizes.values()) / 1e6 * MEGABYTE_SECONDS
