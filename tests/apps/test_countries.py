"""Countries: what a database of them says, who may name them, and what nodes get when a newer one comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apps.accounts.actors import Actor
from apps.compiler.model.access import Access, NetworkList
from apps.core.errors import Invalid
from apps.definitions.countries.following import read_if_newer
from apps.definitions.models import Country
from apps.definitions.models import NetworkList as Row
from apps.definitions.reading.describing import describe
from apps.definitions.services import ban_network, save_object
from tests.apps.test_network_lists import follow, generation, held, served
from tests.country_databases import record, write_database

BUILT = datetime(2026, 11, 3, tzinfo=UTC)
WORLD = {
    "192.0.2.0/24": record("DE", "Germany"),
    "2001:db8::/48": record("DE", "Germany"),
    "198.51.100.0/24": record("FR", "France"),
}

pytestmark = pytest.mark.both_engines


@pytest.fixture
def databases(tmp_path: Path, tutorial_env: Actor) -> Path:
    """A database that is read."""
    assert read_if_newer(write_database(tmp_path / "world.mmdb", WORLD, BUILT))
    return tmp_path


def name_countries(actor: Actor, *codes: str, name: str = "dach") -> Row:
    """A list of countries, stored."""
    row: Row = save_object(actor=actor, kind="NetworkList", name=name, spec={"countries": list(codes)})
    return row


def test_nodes_get_the_networks_of_the_countries_that_a_list_names(databases: Path, acme: Actor) -> None:
    row = name_countries(acme, "FR", "DE")
    follow(acme, allow=["dach"])
    assert held() == Access(allow=(f"geo-{row.pk}",))
    assert served().network_lists == (
        NetworkList(f"geo-{row.pk}", "acme/dach", (), ("DE", "FR")),
        NetworkList("country-DE", "DE", ("192.0.2.0/24", "2001:db8::/48")),
        NetworkList("country-FR", "FR", ("198.51.100.0/24",)),
    )
    assert describe(row) == {"entries": [], "countries": ["DE", "FR"]}


def test_a_newer_database_reaches_nodes_whose_lists_name_a_country_that_changed(databases: Path, acme: Actor) -> None:
    name_countries(acme, "DE")
    follow(acme, deny=["dach"])
    before = generation()
    moved = WORLD | {"203.0.113.0/24": record("FR", "France")}
    assert read_if_newer(write_database(databases / "2.mmdb", moved, BUILT + timedelta(days=7)))
    assert generation() == before
    grown = moved | {"203.0.113.0/24": record("DE", "Germany")}
    assert read_if_newer(write_database(databases / "3.mmdb", grown, BUILT + timedelta(days=14)))
    assert generation() == before + 1
    assert "203.0.113.0/24" in served().network_lists[1].networks


def test_an_older_database_of_another_worker_changes_nothing(databases: Path) -> None:
    for days in (0, -7):
        path = write_database(
            databases / "old.mmdb", {"0.0.0.0/1": record("FR", "France")}, BUILT + timedelta(days=days)
        )
        assert not read_if_newer(path)
    assert Country.objects.get(pk="FR").networks == "198.51.100.0/24"


def test_a_country_that_a_newer_database_lacks_keeps_its_networks(databases: Path) -> None:
    later = BUILT + timedelta(days=7)
    assert read_if_newer(write_database(databases / "2.mmdb", {"198.51.100.0/24": record("FR", "France")}, later))
    kept = Country.objects.get(pk="DE")
    assert (kept.count, kept.built_at) == (2, BUILT)


@pytest.mark.parametrize("content", [None, b"", b"no database", b"\xab\xcd\xefMaxMind.com"])
def test_a_file_that_is_no_database_changes_nothing(databases: Path, content: bytes | None) -> None:
    path = databases / "broken.mmdb"
    if content is not None:
        path.write_bytes(content)
    assert not read_if_newer(str(path))
    assert Country.objects.count() == 2


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"country_code": "DE", "country": "Germany"}, ("DE", "Germany")),
        ({"country": "DE", "country_name": "Germany"}, ("DE", "Germany")),
        ({"country": {"iso_code": "DE"}}, ("DE", "DE")),
    ],
)
@pytest.mark.django_db
def test_other_makers_say_it_in_other_words(tmp_path: Path, said: dict[str, str], expected: tuple[str, str]) -> None:
    assert read_if_newer(write_database(tmp_path / "other.mmdb", {"192.0.2.0/24": said}))
    assert Country.objects.values_list("code", "name").get() == expected


@pytest.mark.parametrize("said", ["DE", {"country": {"iso_code": "DE 1\nFR"}}, {"country": {}}, {"asn": 64500}, {}])
@pytest.mark.django_db
def test_a_network_without_a_country_belongs_to_none(tmp_path: Path, said: object) -> None:
    assert not read_if_newer(write_database(tmp_path / "odd.mmdb", {"192.0.2.0/24": said}))
    assert not Country.objects.exists()


def test_a_country_that_nobody_knows_is_refused_by_name(databases: Path, acme: Actor) -> None:
    with pytest.raises(Invalid) as refused:
        name_countries(acme, "DE", "ZZ")
    [error] = refused.value.field_errors
    assert (error.pointer, error.detail) == (
        "/spec/countries/1",
        "The database of countries has no ZZ; use the codes of ISO 3166.",
    )
    assert not Row.objects.exists()


def test_without_a_database_no_list_names_countries(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid, match="the operator has given no database of countries"):
        name_countries(acme, "DE")


def test_a_list_names_countries_or_networks(databases: Path, acme: Actor) -> None:
    both = {"entries": [{"network": "192.0.2.0/24"}], "countries": ["DE"]}
    with pytest.raises(Invalid, match="Use one list for countries and another for networks"):
        save_object(actor=acme, kind="NetworkList", name="dach", spec=both)
    row = name_countries(acme, "DE")
    with pytest.raises(Invalid, match="Use one list for countries and another for networks"):
        ban_network(actor=acme, list_id=row.pk, network="203.0.113.7")
    row.refresh_from_db()
    assert (row.entries, row.countries) == ([], ["DE"])
