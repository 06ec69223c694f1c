"""URLs of Redis: one that is named, or the master that Sentinels name; our own connections and Celery agree."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import redis
import redis.sentinel

from apps.core.stores import redis_clients, redis_url
from apps.core.stores.hosts import split, user_and_hosts
from controlplane import shapes
from controlplane.admin import environment_file

THREE = "redis+sentinel://spillway:p%40ss@a:1,b,[2001:db8::1]:3/main/2?sentinel_password=s3cret"
SECURED = "rediss://:p%40ss@cache.example/1?ssl_ca_certs=/etc/ca.pem"


def test_one_redis_has_a_place_a_number_and_a_password() -> None:
    found = redis_url.read("redis://:p%40ss@cache.example/1")
    assert (found.hosts, found.master, found.files) == ((("cache.example", 6379),), "", None)
    assert found.of_server() == {"db": 1, "password": "p@ss"}
    assert found.broker() == "redis://:p%40ss@cache.example:6379/1"
    assert found.broker_options(socket_timeout=1) == found.of_tls() == {}


def test_over_tls_the_certificate_is_verified_with_the_name_of_the_host() -> None:
    found = redis_url.read(SECURED)
    verified = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, "ssl_ca_certs": "/etc/ca.pem"}
    assert found.of_tls() == verified
    made = redis_clients.pool(SECURED)
    assert made.connection_class is redis.SSLConnection
    assert verified.items() <= made.connection_kwargs.items()
    assert found.broker() == "redis://:p%40ss@cache.example:6379/1", "Celery is told of TLS beside its URL"


def test_sentinels_are_asked_for_the_master_with_a_password_of_their_own() -> None:
    found = redis_url.read(THREE)
    assert found.hosts == (("a", 1), ("b", 26379), ("2001:db8::1", 3))
    assert (found.master, found.of_server()) == ("main", {"db": 2, "username": "spillway", "password": "p@ss"})
    asked = found.of_sentinels(socket_timeout=1)
    assert (asked["password"], asked["socket_timeout"]) == ("s3cret", 1)
    brokers = [f"sentinel://spillway:p%40ss@{host}/2" for host in ("a:1", "b:26379", "[2001:db8::1]:3")]
    assert found.broker() == ";".join(brokers)
    assert found.broker_options(socket_timeout=1)["master_name"] == "main"
    made = redis_clients.pool(THREE, socket_timeout=0.5)
    assert isinstance(made, redis.sentinel.SentinelConnectionPool)
    assert made.connection_class is redis.sentinel.SentinelManagedConnection


def test_sentinels_over_tls_are_verified_as_well() -> None:
    found = redis_url.read(THREE.replace("redis+", "rediss+") + "&ssl_ca_certs=/etc/ca.pem")
    assert found.of_sentinels()["ssl"] is True
    assert found.of_sentinels()["ssl_ca_certs"] == found.of_server()["ssl_ca_certs"] == "/etc/ca.pem"


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "redis://",
        "redis://a,b",
        "redis://a/x",
        "redis://a/1000",
        "redis://a/main/0",
        "redis://a:0x1",
        "redis://a?ssl_ca_certs=/etc/ca.pem",
        "rediss://a?ssl_cert_reqs=none",
        "redis+sentinel://a,b",
        "redis+sentinel://a,b/0/main",
        "redis+sentinel://a,/main",
        "redis+sentinel://a/main?sentinel_passwort=x",
        "redis://a b",
    ],
)
def test_what_nobody_could_follow_is_refused(url: str) -> None:
    assert not redis_url.fits(url)


@pytest.mark.parametrize("url", ["redis://a", "redis://a/", "rediss://u:p@[2001:db8::1]:7/15", THREE, SECURED])
def test_what_can_be_followed_is_taken(url: str) -> None:
    assert redis_url.fits(url)


@pytest.mark.parametrize(
    ("netloc", "found"),
    [
        ("", ("", [("", None)])),
        ("u:p@a:1,b", ("u:p@", [("a", 1), ("b", None)])),
        ("u@%2Fvar%2Frun", ("u@", [("%2Fvar%2Frun", None)])),
    ],
)
def test_hosts_are_separated_by_commas(netloc: str, found: object) -> None:
    assert user_and_hosts(netloc) == found


def test_one_of_several_hosts_may_stand_in_brackets() -> None:
    """Pythons since 3.11.12, and what Debian 12 has, refuse it by themselves."""
    several = "postgresql://u:p@a:1,b,[2001:db8::1]:3/s?x=1#y"
    found = split(several)
    assert (found.scheme, found.netloc, found.path) == ("postgresql", "u:p@a:1,b,[2001:db8::1]:3", "/s")
    assert (found.query, found.fragment, found.geturl()) == ("x=1", "y", several)
    assert shapes.DATABASE.fits(several)


def test_a_bundle_for_support_hides_passwords_of_urls_with_several_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPILLWAY_REDIS_URL", THREE)
    assert {"p%40ss", "p@ss"} <= set(environment_file.secrets_of(tmp_path / "none"))
