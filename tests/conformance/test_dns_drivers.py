"""One suite for every DNS driver: the fake in memory, BIND over RFC 2136 and TSIG, PowerDNS."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from apps.drivers.dns.contract import DnsDriver, Edit, RecordSet, Refused, ServerTarget, Unreachable
from apps.drivers.dns.memory import memory_server
from apps.drivers.dns.records import BadValue, canonical, record_set
from apps.drivers.dns.registry import open_dns
from tests.e2e.name_servers import API_KEY, KEY_NAME, SECRET, kill, running_bind, running_powerdns
from tests.ports import spare_port

DOMAIN = "example.test"


@dataclass
class Env:
    """A driver, the way to its server, and how the server is ended."""

    kind: str
    target: ServerTarget
    end: Callable[[], None]

    @property
    def driver(self) -> DnsDriver:
        """A new one, as every push makes it."""
        return open_dns(self.kind, self.target)


@pytest.fixture(params=["memory", "rfc2136", "powerdns"])
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Env]:
    if request.param == "memory":
        server = memory_server(uuid.uuid4().hex)
        server.secret = "word"
        target = ServerTarget(DOMAIN, f"memory://{server.name}", "word")
        yield Env("memory", target, lambda: setattr(server, "unreachable", True))
    elif request.param == "rfc2136":
        with running_bind(tmp_path, DOMAIN) as bind:
            target = ServerTarget(DOMAIN, bind.server, SECRET, KEY_NAME)
            yield Env("rfc2136", target, lambda: kill(bind.process))
    else:
        with running_powerdns(tmp_path, DOMAIN) as powerdns:
            target = ServerTarget(DOMAIN, powerdns.server, API_KEY)
            yield Env("powerdns", target, lambda: kill(powerdns.process))


def one(name: str, rdtype: str, *values: str, ttl: int = 300) -> RecordSet:
    return record_set(f"{name}.{DOMAIN}" if name != "@" else DOMAIN, rdtype, ttl, values, DOMAIN)


def make(*wanted: RecordSet) -> list[Edit]:
    return [Edit(each.name, each.type, None, each) for each in wanted]


def served(env: Env, *known: RecordSet) -> set[RecordSet]:
    found = env.driver.read([(each.name, each.type) for each in known]).records
    return {each for each in found if not each.name.startswith("ns.")}


EVERY_TYPE = (
    one("www", "A", "192.0.2.1", "192.0.2.2"),
    one("www", "AAAA", "2001:db8::1"),
    one("mail", "A", "192.0.2.25"),
    one("@", "MX", "10 mail", "20 mail.elsewhere.test."),
    one("@", "TXT", '"v=spf1 -all"', '"a \\"quoted\\" word; and a \\\\ backslash"'),
    one("alias", "CNAME", "www"),
    one("*.apps", "A", "192.0.2.9"),
    one("_sip._tcp", "SRV", "10 60 5060 sip"),
    one("@", "CAA", '0 issue "letsencrypt.org"'),
    one("below", "NS", "ns1.below", "ns2.elsewhere.test."),
    one("long", "TXT", " ".join(['"' + "x" * 255 + '"', '"' + "y" * 200 + '"'])),
)


def test_every_type_comes_back_as_it_was_written(env: Env) -> None:
    env.driver.write(make(*EVERY_TYPE))
    assert served(env, *EVERY_TYPE) == set(EVERY_TYPE)


def test_values_change_ttls_change_and_records_go_in_one_write(env: Env) -> None:
    old, other, gone = one("a", "A", "192.0.2.1"), one("b", "A", "192.0.2.2"), one("c", "TXT", '"bye"')
    env.driver.write(make(old, other, gone))
    new, slower = one("a", "A", "192.0.2.7", "192.0.2.8"), replace(other, ttl=900)
    edits = [Edit(old.name, "A", old, new), Edit(other.name, "A", other, slower), Edit(gone.name, "TXT", gone, None)]
    env.driver.write(edits)
    assert served(env, old, other, gone) == {new, slower}


def test_a_name_passes_from_addresses_to_an_alias_in_one_write(env: Env) -> None:
    address, alias = one("shop", "A", "192.0.2.1"), one("shop", "CNAME", "www")
    env.driver.write(make(address))
    env.driver.write([Edit(alias.name, "CNAME", None, alias), Edit(address.name, "A", address, None)])
    assert served(env, address, alias) == {alias}


def test_a_text_that_stands_there_in_other_pieces_is_changed_all_the_same(env: Env) -> None:
    pieces = RecordSet(f"spf.{DOMAIN}", "TXT", 300, ('"v=spf1 " "-all"',))
    driver = env.driver
    driver.write(make(pieces))
    (there,) = [each for each in driver.read([(pieces.name, "TXT")]).records if each.name == pieces.name]
    after = one("spf", "TXT", '"v=spf1 ~all"')
    driver.write([Edit(there.name, "TXT", there, after)])
    assert served(env, after) == {after}


def test_a_write_whose_before_no_longer_holds_changes_nothing(env: Env) -> None:
    there, fresh = one("a", "A", "192.0.2.1"), one("b", "A", "192.0.2.5")
    env.driver.write(make(there))
    wrong = Edit(there.name, "A", one("a", "A", "192.0.2.99"), one("a", "A", "192.0.2.2"))
    with pytest.raises(Refused):
        env.driver.write([*make(fresh), wrong])
    assert served(env, there, fresh) == {there}
    with pytest.raises(Refused):
        env.driver.write(make(one("a", "A", "192.0.2.3")))
    assert served(env, there) == {there}


def test_three_hundred_records_are_written_and_read(env: Env) -> None:
    many = [one(f"host-{number}", "A", f"192.0.2.{number % 250 + 1}") for number in range(300)]
    env.driver.write(make(*many))
    assert served(env, *many) == set(many)


def test_what_is_larger_than_a_message_may_be_is_refused_and_its_halves_are_not(tmp_path: Path) -> None:
    value = " ".join(f'"{letter * 250}"' for letter in "abc")
    many = make(*(one(f"text-{number}", "TXT", value) for number in range(120)))
    with running_bind(tmp_path, DOMAIN) as bind:
        driver = open_dns("rfc2136", ServerTarget(DOMAIN, bind.server, SECRET, KEY_NAME))
        assert len(many) < driver.at_once
        with pytest.raises(Refused, match="larger than a message"):
            driver.write(many)
        assert not [each for each in driver.read(()).records if each.type == "TXT"]
        driver.write(many[:60])
        driver.write(many[60:])
        assert len([each for each in driver.read(()).records if each.type == "TXT"]) == 120


def test_what_belongs_to_the_server_is_not_read(env: Env) -> None:
    kinds = {(each.name, each.type) for each in env.driver.read([(DOMAIN, "NS"), (DOMAIN, "SOA")]).records}
    assert (DOMAIN, "NS") not in kinds
    assert not {rdtype for _, rdtype in kinds} & {"SOA", "RRSIG", "DNSKEY"}


def test_a_wrong_key_is_refused_in_words_without_the_key(env: Env) -> None:
    stranger = open_dns(env.kind, replace(env.target, secret="d3Jvbmcga2V5IG9mIHNvbWVib2R5"))
    with pytest.raises(Refused) as caught:
        stranger.write(make(one("a", "A", "192.0.2.1")))
    assert "key" in caught.value.message
    assert "d3Jvbmcg" not in caught.value.message


def test_a_check_finds_a_wrong_key_and_a_foreign_zone_and_changes_nothing(env: Env) -> None:
    env.driver.write(make(*EVERY_TYPE[:2]))
    before = env.driver.read(())
    assert env.driver.check() == before == env.driver.read(())
    with pytest.raises(Refused) as caught:
        open_dns(env.kind, replace(env.target, secret="d3Jvbmcga2V5IG9mIHNvbWVib2R5")).check()
    assert "d3Jvbmcg" not in caught.value.message
    if env.kind != "memory":  # which serves every zone
        with pytest.raises(Refused):
            open_dns(env.kind, replace(env.target, domain="elsewhere.test")).check()


def test_a_check_is_refused_where_the_key_may_read_but_not_update(tmp_path: Path) -> None:
    with running_bind(tmp_path, DOMAIN, transfer=False) as bind:
        driver = open_dns("rfc2136", ServerTarget(DOMAIN, bind.server, SECRET, KEY_NAME))
        assert not driver.check().complete
        with pytest.raises(Refused, match="rejects the update"):
            open_dns("rfc2136", ServerTarget(DOMAIN, bind.server)).check()


@contextmanager
def answering_once(status: int, body: bytes) -> Iterator[DnsDriver]:
    """A driver whose PowerDNS is a server that gives this one answer."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        Thread(target=server.handle_request).start()
        yield open_dns("powerdns", ServerTarget(DOMAIN, f"http://127.0.0.1:{server.server_port}", "word"))


def test_a_check_of_powerdns_repeats_nothing_of_what_answers_there() -> None:
    with answering_once(422, b'{"error": "internal words"}') as driver, pytest.raises(Refused) as caught:
        driver.check()
    assert "HTTP 422" in caught.value.message
    assert "internal words" not in caught.value.message


def test_a_check_gives_up_in_the_time_that_it_is_given(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for driver, server in (("rfc2136", "{}:{}"), ("powerdns", "http://{}:{}")):
            target = ServerTarget(DOMAIN, server.format(*silent.getsockname()), SECRET, KEY_NAME, seconds=0.1)
            began = time.monotonic()
            with pytest.raises(Unreachable):
                open_dns(driver, target).check()
            assert time.monotonic() - began < 2


def test_a_server_that_is_away_is_unreachable(env: Env) -> None:
    env.end()
    with pytest.raises(Unreachable):
        env.driver.read(())
    with pytest.raises(Unreachable):
        env.driver.write(make(one("a", "A", "192.0.2.1")))


def test_where_the_zone_is_not_given_away_known_names_are_asked_for(tmp_path: Path) -> None:
    with running_bind(tmp_path, DOMAIN, transfer=False) as bind:
        driver = open_dns("rfc2136", ServerTarget(DOMAIN, bind.server, SECRET, KEY_NAME))
        driver.write(make(*EVERY_TYPE[:6]))
        contents = driver.read([(each.name, each.type) for each in (*EVERY_TYPE[:2], EVERY_TYPE[7])])
        assert not contents.complete
        assert set(contents.records) == set(EVERY_TYPE[:2])


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"rrsets": [{}]}', b'{"rrsets": [{"name": "a", "records": 1}]}'])
def test_what_only_looks_like_the_api_of_powerdns_is_refused(body: bytes) -> None:
    with answering_once(200, body) as driver, pytest.raises(Refused, match="is not the API of PowerDNS"):
        driver.read(())


def test_nobody_listens_and_names_without_an_address_are_unreachable() -> None:
    target = ServerTarget(DOMAIN, f"127.0.0.1:{spare_port()}", SECRET, KEY_NAME)
    with pytest.raises(Unreachable):
        open_dns("rfc2136", target).read(())
    with pytest.raises(Refused):
        open_dns("nobody", target)


@pytest.mark.parametrize(
    ("rdtype", "value"),
    [("A", "192.0.2.300"), ("AAAA", "192.0.2.1"), ("MX", "mail"), ("SRV", "1 2 mail"), ("CAA", "x")],
)
def test_a_value_that_is_none_of_its_type_is_named(rdtype: str, value: str) -> None:
    with pytest.raises(BadValue):
        canonical(rdtype, value, DOMAIN)


def test_equal_values_in_other_spellings_are_equal() -> None:
    assert one("www", "AAAA", "2001:DB8:0::1") == one("WWW", "AAAA", "2001:db8::1")
    assert one("a", "CNAME", "WWW") == one("a", "CNAME", f"www.{DOMAIN}.")
    assert one("t", "TXT", '"ab" "cd"') == one("t", "TXT", "abcd")
