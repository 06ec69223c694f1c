"""Reads a database of countries (.mmdb), as MaxMind, DB-IP and IPinfo have them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import maxminddb

from apps.compiler.address_spelling import spelled

_CODE = re.compile(r"[A-Z]{2}")
LONGEST_NAME = 80


class Unreadable(Exception):
    """The file is no database of countries; the text says what to do."""


@dataclass(frozen=True, slots=True)
class CountryRead:
    """A country as the file has it: its English name, and its networks in their canonical form, each once."""

    name: str
    networks: tuple[str, ...]


def built_at(path: str) -> datetime:
    """When the database was made. Raises Unreadable."""
    with _opened(path) as reader:
        return datetime.fromtimestamp(reader.metadata().build_epoch, UTC)


def countries(path: str) -> dict[str, CountryRead]:
    """All countries by their codes (ISO 3166); networks without a country belong to none. Raises Unreadable."""
    names: dict[str, str] = {}
    networks: dict[str, list[str]] = defaultdict(list)
    with _opened(path) as reader:
        for network, record in reader:
            code, name = _country(record)
            if _CODE.fullmatch(code):
                names.setdefault(code, name[:LONGEST_NAME] or code)
                networks[code].append(spelled(network))
    if not names:
        raise Unreadable(f"{path} names no country; use a database of countries, such as GeoLite2-Country.mmdb.")
    return {code: CountryRead(name, tuple(networks[code])) for code, name in names.items()}


@contextmanager
def _opened(path: str) -> Iterator[maxminddb.Reader]:
    try:
        with maxminddb.open_database(path) as reader:
            yield reader
    except (OSError, ValueError, maxminddb.InvalidDatabaseError) as error:
        raise Unreadable(f"{path} cannot be read ({error}); use a database of countries (.mmdb).") from error


def _country(record: Any) -> tuple[str, str]:
    """Code and name: `{country: {iso_code, names: {en}}}`, or flat as `{country_code, country}` or `{country}`."""
    if not isinstance(record, Mapping):
        return "", ""
    country = record.get("country")
    if isinstance(country, Mapping):
        names = country.get("names")
        return str(country.get("iso_code", "")), str(names.get("en", "")) if isinstance(names, Mapping) else ""
    code = str(record.get("country_code") or country or "")
    return code, str(record.get("country_name") or country or "")
