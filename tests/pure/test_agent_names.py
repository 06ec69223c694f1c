"""What the agent makes of messages of DNS, compared with a library; and which addresses a fleet's names may have."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

import dns.message
import dns.name
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agent.names import dns as names
from apps.agent.names.resolver import refusal
from apps.compiler.addresses import ALL_PRIVATE, PRIVATE_NETWORKS, own_addresses, refusal_of_address, refusal_of_private
from apps.compiler.addresses import refused_networks as refused_by
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.plan import Reload, plan
from tests.ports import address_of_this_machine
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

SHOP = "shop.example."


def asked(kind: str = "A", name: str = SHOP) -> names.Question:
    return names.read_question(dns.message.make_query(name, kind, id=7).to_wire())


def told(question: names.Question, *records: tuple[str, str, str], number: int = 9) -> bytes:
    """The library's answer: records are owner, type, text."""
    answer = dns.message.make_response(dns.message.from_wire(names.query(question, number)))
    answer.answer += [dns.rrset.from_text(owner, 60, "IN", kind, text) for owner, kind, text in records]
    return answer.to_wire()


def test_a_question_is_passed_on_as_it_is_under_another_number() -> None:
    question = asked("AAAA", "Shop.Example.")
    passed = dns.message.from_wire(names.query(question, 4711))
    assert (passed.id, passed.payload) == (4711, names.LARGEST)
    assert passed.question == dns.message.make_query(SHOP, "AAAA").question


@pytest.mark.parametrize("kind", ["TXT", "SRV", "ANY", "AXFR"])
def test_only_addresses_are_asked_for(kind: str) -> None:
    with pytest.raises(names.NotDNS):
        asked(kind)


def test_an_answer_has_the_addresses_at_the_end_of_the_chain_and_no_others() -> None:
    question = asked()
    message = told(
        question,
        (SHOP, "CNAME", "a.example."), ("a.example.", "CNAME", "b.example."), ("b.example.", "A", "192.0.2.1"),
        ("b.example.", "AAAA", "2001:db8::1"), ("c.example.", "A", "192.0.2.66"),
    )  # fmt: skip
    code, found = names.read_answer(message, question, 9)
    assert (code, [(str(each.address), each.seconds) for each in found]) == (0, [("192.0.2.1", 60)])
    answer = dns.message.from_wire(names.answer(question, code, found))
    assert (answer.id, answer.rcode()) == (7, dns.rcode.NOERROR)
    assert [str(each) for each in answer.answer] == ["shop.example. 60 IN A 192.0.2.1"]


def test_a_chain_that_leads_round_ends() -> None:
    question = asked()
    message = told(question, (SHOP, "CNAME", "a.example."), ("a.example.", "CNAME", SHOP))
    assert names.read_answer(message, question, 9) == (0, [])


def test_more_addresses_than_there_is_room_for_are_left_out_of_an_answer_that_is_whole() -> None:
    question = asked("AAAA")
    many = [names.Found(ipaddress.ip_address(f"2001:db8::{number:x}"), 1) for number in range(500)]
    message = names.answer(question, 0, many)
    answer = dns.message.from_wire(message)
    assert len(message) <= names.LARGEST
    assert 30 < len(answer.answer[0]) < 60


@pytest.mark.parametrize("number", [8, 10])
def test_the_answer_to_another_question_is_none(number: int) -> None:
    question = asked()
    for message in (told(question, number=number), told(asked(name="other.example.")), told(asked("AAAA"))):
        with pytest.raises(names.NotDNS):
            names.read_answer(message, question, 9)


@given(st.binary(max_size=600))
def test_what_is_no_message_is_refused(message: bytes) -> None:
    question = asked()
    for read in (names.read_question, lambda text: names.read_answer(text, question, 9)):
        try:
            read(message)
        except names.NotDNS:
            continue


@given(st.data())
def test_a_damaged_answer_is_refused_or_has_addresses_of_the_asked_kind(data: st.DataObject) -> None:
    question = asked()
    message = bytearray(told(question, (SHOP, "CNAME", "a.example."), ("a.example.", "A", "192.0.2.1")))
    for _ in range(3):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, found = names.read_answer(bytes(message), question, 9)
    except names.NotDNS:
        return
    assert all(each.address.version == 4 for each in found)


def _refused(
    *, private: Iterable[str] = ALL_PRIVATE, own: Iterable[str] = (), local: bool = False
) -> list[tuple[names.Network, str]]:
    networks = refused_by(own_addresses(own), map(ipaddress.ip_network, private), local_development=local)
    return names.read_refused("".join(f"{network} {word}\n" for network, word in networks.items()))


ADDRESSES = st.one_of(st.ip_addresses(), *(st.ip_addresses(network=each) for each in (
    *PRIVATE_NETWORKS, *map(ipaddress.ip_network, ("127.0.0.0/8", "169.254.0.0/16", "fe80::/10")),
)))  # fmt: skip
ALLOWED = ("10.1.0.0/16", "10.2.3.4/32", "192.168.0.0/16", "fd00:1::/32")


@given(ADDRESSES, st.booleans(), st.sampled_from([ALLOWED, (), ALL_PRIVATE]))
def test_a_name_may_lead_where_a_literal_may_stand_and_nowhere_else(
    address: names.Address, local: bool, private: tuple[str, ...]
) -> None:
    literal = refusal_of_address(address, local_development=local) or refusal_of_private(
        address, map(ipaddress.ip_network, private)
    )
    assert bool(names.refusal(address, _refused(private=private, local=local))) == (literal is not None)


def test_the_installation_and_this_machine_are_refused_but_for_local_development() -> None:
    own = _refused(own=("198.51.100.7", "203.0.113.0/28"))
    assert refusal(ipaddress.ip_address("198.51.100.7"), own) == "balancer"
    assert refusal(ipaddress.ip_address("203.0.113.9"), own) == "balancer"
    assert refusal(ipaddress.ip_address("203.0.113.16"), own) == ""
    assert refusal(ipaddress.ip_address("127.0.0.1"), _refused(local=True)) == ""
    here = ipaddress.ip_address(address_of_this_machine())
    assert (refusal(here, _refused()), refusal(here, _refused(local=True))) == ("this machine", "")


def test_a_fleet_of_addresses_has_no_list_and_a_change_of_the_list_reloads() -> None:
    def bundle(address: str, **fields: tuple[str, ...]) -> Bundle:
        case = snapshot(front(route(1)), pools=(pool(1, servers=(server(1, address=address),)),), **fields)
        return compile_snapshot(case).output

    path = "maps/refused-addresses.map"
    assert path not in bundle("192.0.2.10").files
    before, after = bundle("shop.example"), bundle("shop.example", private_networks=("10.0.0.0/8",))
    assert plan(before, after) == Reload((f"{path} changed",))
    assert b"192.168.0.0/16 private\n" in after.files[path]
    assert b"192.168.0.0/16" not in before.files[path]
