"""A secret comes to no server that its environment does not name: not one connection, by whichever driver.

Each driver is pointed at a real socket. With the comparing taken out of the way (the negative control) the same call
reaches the socket, and where the secret itself travels it is found there. What AWS's signature shows is measured.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from apps.definitions.models import Zone
from apps.dns import targets
from apps.drivers.clouds.contract import CloudAccess, CloudError
from apps.drivers.clouds.google_session import GoogleSession
from apps.drivers.clouds.registry import open_reader
from apps.drivers.dns.contract import DnsError, Refused
from apps.drivers.infra import credentials
from apps.drivers.infra.contract import InfraError
from apps.drivers.pins import read_endpoint
from tests.conformance.listening import Stranger, listening

KEY = base64.b64encode(b"whoever reads this has the zone").decode()
AWS_SECRET, AWS_TOKEN = "a-secret-access-key-for-tests", "a-session-token-for-tests"


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with listening() as found:
        yield found


@cache
def private_key() -> str:
    """One for all accounts: making it takes longer than what most of these tests do."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def google_key(token_url: str) -> str:
    """A service account's key as Google hands it out; it asks for tokens at the URL."""
    about = {"type": "service_account", "client_email": "spillway@acme.test", "project_id": "acme-prod-1"}
    return json.dumps(about | {"private_key": private_key(), "private_key_id": "1", "token_uri": token_url})


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment holds; nothing in it says where it may be used."""
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE", KEY)
    monkeypatch.setenv("SPILLWAY_CLOUD_PROD_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("SPILLWAY_CLOUD_PROD_SECRET_ACCESS_KEY", AWS_SECRET)
    monkeypatch.setenv("SPILLWAY_CLOUD_PROD_SESSION_TOKEN", AWS_TOKEN)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def ask_powerdns(stranger: Stranger) -> object:
    return driver("powerdns", stranger.url).read(())


def ask_rfc2136(stranger: Stranger) -> object:
    return driver("rfc2136", f"127.0.0.1:{stranger.port}").read(())


def driver(kind: str, server: str) -> Any:
    zone = Zone(domain="example.test", driver=kind, server=server, credentials="env:EXAMPLE", key_name="spillway")
    return targets.driver_of(zone)


def access(cloud: str, stranger: Stranger, reference: str = "env:PROD") -> CloudAccess:
    region = "global" if cloud == "google" else "eu-central-1"
    project = "acme-prod-1" if cloud == "google" else ""
    return CloudAccess(cloud, region, project, stranger.url, reference)


def ask_aws(stranger: Stranger) -> object:
    return open_reader(access("aws", stranger)).load_balancers()


def ask_google(stranger: Stranger) -> object:
    return open_reader(access("google", stranger)).load_balancers()


def ask_monitoring(stranger: Stranger) -> object:
    return GoogleSession(access("google", stranger)).get_json("/v3/projects/acme-prod-1/timeSeries", [])


class Way(NamedTuple):
    """How a driver is made to call, the variable that names its servers, and what they see of the secret."""

    ask: Callable[[Stranger], object]
    variable: str
    shown: bytes


WAYS = {
    "rfc2136": Way(ask_rfc2136, "SPILLWAY_DNS_EXAMPLE_SERVERS", b"spillway"),
    "powerdns": Way(ask_powerdns, "SPILLWAY_DNS_EXAMPLE_SERVERS", KEY.encode()),
    "aws": Way(ask_aws, "SPILLWAY_CLOUD_PROD_ENDPOINT", AWS_TOKEN.encode()),
    "google": Way(ask_google, "SPILLWAY_CLOUD_PROD_ENDPOINT", b"uthorization: Bearer "),
    "google monitoring": Way(ask_monitoring, "SPILLWAY_CLOUD_PROD_ENDPOINT", b"uthorization: Bearer "),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
ERRORS = (DnsError, CloudError)


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stranger]:
    """Who gives out Google's tokens for the key that the environment holds."""
    with listening() as found:
        body = json.dumps({"access_token": "ya29.a-token-for-tests", "expires_in": 3600, "token_type": "Bearer"})
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        found.answer = f"{head}Connection: close\r\n\r\n{body}".encode()
        monkeypatch.setenv("SPILLWAY_CLOUD_PROD_CREDENTIALS", google_key(found.url))
        yield found


@each_way
@pytest.mark.slow(reason="whoever asks first loads the libraries of the clouds")
def test_not_one_packet_goes_to_a_server_that_the_environment_does_not_name(
    way: Way, stranger: Stranger, tokens: Stranger
) -> None:
    with pytest.raises(ERRORS) as caught:
        way.ask(stranger)
    assert (stranger.connections, tokens.connections) == (0, 0)
    assert f"Set {way.variable} " in str(caught.value)
    assert KEY not in str(caught.value)
    assert way.shown not in str(caught.value).encode()


@each_way
@pytest.mark.slow(reason="whoever asks first loads the libraries of the clouds")
def test_naming_another_server_does_not_help(
    way: Way, stranger: Stranger, tokens: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = stranger.port - 1
    monkeypatch.setenv(way.variable, f"localhost:{stranger.port}, 127.0.0.1:{other}, http://127.0.0.1:{other}")
    with pytest.raises(ERRORS, match=way.variable):
        way.ask(stranger)
    assert (stranger.connections, tokens.connections) == (0, 0)


@pytest.mark.slow(reason="whoever asks first loads the libraries of the clouds")
@each_way
@pytest.mark.usefixtures("tokens")
def test_with_the_server_named_the_secret_is_used_there(
    way: Way, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(way.variable, f"127.0.0.1:{stranger.port}, {stranger.url}/")
    with pytest.raises(ERRORS):
        way.ask(stranger)
    assert way.shown in b"".join(stranger.heard)


@each_way
@pytest.mark.slow(reason="the libraries of a cloud are imported, a second and more")
@pytest.mark.usefixtures("tokens")
def test_without_the_comparing_the_packet_arrives(
    way: Way, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the sockets above would have seen the secret."""
    for module in (targets, credentials):
        monkeypatch.setattr(module, "named_endpoint", lambda server, **_: read_endpoint(server))
    with pytest.raises(ERRORS):
        way.ask(stranger)
    assert way.shown in b"".join(stranger.heard)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ["powerdns", "aws", "google", "google monitoring"])
@pytest.mark.usefixtures("tokens")
@pytest.mark.slow(reason="whoever asks first loads the libraries of the clouds")
def test_a_redirect_takes_no_secret_to_another_server(
    name: str, status: int, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, variable, shown = WAYS[name]
    with listening() as named:
        head = f"HTTP/1.1 {status} Elsewhere\r\nLocation: {stranger.url}/there\r\n"
        named.answer = f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
        monkeypatch.setenv(variable, named.url)
        with pytest.raises(ERRORS):
            ask(named)
        assert shown in b"".join(named.heard)
    assert shown not in b"".join(stranger.heard)
    if name != "google":  # whose own client follows, and leaves its token behind
        assert stranger.connections == 0


@pytest.mark.parametrize(
    ("kind", "server"),
    [
        ("powerdns", "127.0.0.1:{port}"),  # as HTTP in the clear, to an endpoint that was named for TSIG
        ("powerdns", "http://127.0.0.1:{port}@localhost:{port}"),
        ("powerdns", "http://127.0.0.1:{port}\\@localhost:{port}"),
        ("powerdns", "memory://127.0.0.1:{port}"),
        ("rfc2136", "http://127.0.0.1:{port}"),
        ("rfc2136", "http:127.0.0.1:{port}"),
        ("rfc2136", "[127.0.0.1]:{port}"),
        ("rfc2136", "127.1:{port}"),
        ("rfc2136", "localhost.:{port}"),
    ],
)
def test_a_stored_server_in_another_spelling_is_not_called(
    kind: str, server: str, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = f"127.0.0.1:{stranger.port}, http://127.0.0.1:{stranger.port}, localhost:{stranger.port}"
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE_SERVERS", names)
    with pytest.raises(Refused):
        driver(kind, server.format(port=stranger.port)).read(())
    assert stranger.connections == 0


def test_what_names_servers_is_no_secret_that_a_zone_could_use(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE_SERVERS", stranger.url)
    monkeypatch.setenv("SPILLWAY_DNS_EXAMPLE_SERVERS_SERVERS", stranger.url)
    with pytest.raises(Refused, match="_SERVERS"):
        targets.shown_secret("env:EXAMPLE_SERVERS", "powerdns", stranger.url)


@pytest.mark.parametrize("reference", ["", "profile:ops", "role:arn:aws:iam::123456789012:role/spillway"])
def test_what_the_machine_itself_is_goes_nowhere_else_either(
    reference: str, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS_SECRET)
    monkeypatch.setenv("SPILLWAY_CLOUD_PROD_ENDPOINT", stranger.url)
    with pytest.raises(CloudError, match="Set SPILLWAY_CLOUD_ENDPOINT "):
        open_reader(access("aws", stranger, reference)).load_balancers()
    with pytest.raises(InfraError, match="Set SPILLWAY_CLOUD_ENDPOINT "):
        credentials.environment(reference, ["google"], [stranger.url], {"GOOGLE_CREDENTIALS": "{}"})
    assert stranger.connections == 0


def test_an_endpoint_that_nobody_named_is_asked_as_nobody(stranger: Stranger) -> None:
    with pytest.raises(CloudError):
        open_reader(access("google", stranger, "")).load_balancers()
    assert stranger.connections
    assert b"uthorization" not in b"".join(stranger.heard)


def test_a_key_of_aws_does_not_travel_but_its_session_token_does_and_the_host_is_signed(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPILLWAY_CLOUD_PROD_ENDPOINT", stranger.url)
    with pytest.raises(CloudError, match="is not from AWS"):
        ask_aws(stranger)
    said = b"".join(stranger.heard)
    assert AWS_SECRET.encode() not in said
    assert f"X-Amz-Security-Token: {AWS_TOKEN}".encode() in said
    assert b"SignedHeaders=content-type;host;x-amz-date;x-amz-security-token" in said
