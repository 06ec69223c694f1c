"""Who may connect to tcp listeners, read from haproxy.cfg and nginx.conf: rules in their order become one list."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.importing.contract import Import
from apps.importing.logic.formulas import And, Atoms, Formula, Not, Or
from apps.importing.values.networks import EVERYBODY, addresses, outside, shorter, where, written
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import DEFAULTS, read, verdict_of
from tests.pure.test_importing_nginx import read as read_nginx
from tests.pure.test_importing_sections import TCP

ATOMS = Atoms()
OFFICES = ["10.0.0.0/8", "192.0.2.0/24"]
BLOCKS = ("10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "192.0.2.0/24", "2001:db8::/32", "2001:db8:1::/48")
CLIENTS = ("10.0.0.1", "10.1.0.1", "10.1.2.3", "192.0.2.9", "198.51.100.1", "2001:db8::1", "2001:db8:1::1", "::1")


def formulas() -> st.SearchStrategy[Formula]:
    """Conditions on networks alone."""
    some = st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=3, unique=True)
    leaves = some.map(lambda values: ATOMS.get("source", "in", tuple(sorted(values)))) | st.booleans()
    return st.recursive(
        leaves,
        lambda inner: (
            inner.map(Not)
            | st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts)))
            | st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts)))
        ),
        max_leaves=6,
    )


def holds(formula: Formula, client: str) -> bool:
    """The condition asked of one client, without ranges."""
    if isinstance(formula, bool):
        return formula
    if isinstance(formula, Not):
        return not holds(formula.part, client)
    if isinstance(formula, And):
        return all(holds(part, client) for part in formula.parts)
    if isinstance(formula, Or):
        return any(holds(part, client) for part in formula.parts)
    return is_in(formula.values, client)


def is_in(networks: tuple[str, ...], client: str) -> bool:
    return any(ipaddress.ip_address(client) in ipaddress.ip_network(each) for each in networks)


@given(formulas(), st.sampled_from(CLIENTS))
def test_the_networks_of_a_condition_are_those_for_which_it_holds(formula: Formula, client: str) -> None:
    assert is_in(written(where(formula)), client) == holds(formula, client)
    kind, networks = shorter(where(formula))
    assert (is_in(networks, client) == (kind == "deny")) == holds(formula, client)


def test_ten_thousand_networks_and_all_others_are_found_at_once() -> None:
    dice = random.Random(3)
    many = {f"{dice.randrange(1, 224)}.{dice.randrange(256)}.{dice.randrange(256)}.0/24" for _ in range(10_000)}
    ranges = addresses(tuple(sorted(many)))
    assert outside(outside(ranges)) == ranges
    assert written(EVERYBODY) == ("0.0.0.0/0", "::/0")


def listener(found: Import) -> dict[str, Any]:
    (spec,) = [each["spec"] for each in found.documents if each["kind"] == "LoadBalancer"]
    return dict(spec["listeners"][0])


def access(found: Import) -> tuple[str, list[str]] | None:
    """Whether networks are allowed or denied, and which."""
    said = listener(found).get("access")
    if said is None:
        return None
    ((kind, (name,)),) = said.items()
    (spec,) = [each["spec"] for each in found.documents if each["kind"] == "NetworkList" and each["name"] == name]
    return kind, [each["network"] for each in spec["entries"]]


def tcp(*lines: str) -> Import:
    """A tcp section with these lines."""
    return read("\n ".join([f"{TCP}listen db\n bind :5432", *lines, "server s 10.0.0.1:5432\n"]))


OFFICE, BAD = "acl office src 10.0.0.0/8 192.0.2.0/24", "acl bad src 10.1.0.0/16"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["tcp-request connection reject if bad"], ("deny", ["10.1.0.0/16"])),
        (["tcp-request connection reject if !office"], ("allow", ["10.0.0.0/8", "192.0.2.0/24"])),
        (["tcp-request connection reject unless office"], ("allow", ["10.0.0.0/8", "192.0.2.0/24"])),
        (["tcp-request content accept if office", "tcp-request content reject"],
         ("allow", ["10.0.0.0/8", "192.0.2.0/24"])),
        (["tcp-request connection accept if bad", "tcp-request connection reject if office"],
         ("deny", [*(f"10.{at}.0.0/{16 - bits}" for at, bits in ((0, 0), (2, 1), (4, 2), (8, 3), (16, 4), (32, 5),
                                                                 (64, 6), (128, 7))), "192.0.2.0/24"])),
        (["tcp-request connection reject if !office", "tcp-request content reject if { src 192.0.2.0/24 }"],
         ("allow", ["10.0.0.0/8"])),
        (["tcp-request connection accept if office", "tcp-request content reject if office"],
         ("deny", ["10.0.0.0/8", "192.0.2.0/24"])),
        (["tcp-request connection reject if { src 10.0.0.1 } { src 10.0.0.2 }"], None),
        (["tcp-request connection reject"], ("allow", [])),
        (["tcp-request connection accept if office"], None),
    ],
)  # fmt: skip
def test_rejections_in_their_order_become_one_list(lines: list[str], expected: tuple[str, list[str]] | None) -> None:
    found = tcp(OFFICE, BAD, *lines)
    assert access(found) == expected
    assert all(verdict_of(found, line)[0] is Verdict.MAPPED for line in lines)


def test_a_list_has_the_name_of_its_acl() -> None:
    assert listener(tcp(OFFICE, "tcp-request connection reject if !office"))["access"] == {"allow": ["office"]}


@pytest.mark.parametrize(
    "line",
    [
        "tcp-request connection reject if { src 10.0.0.0/8 } { dst_port 22 }",
        "tcp-request content reject if { req.ssl_sni a.example } !{ src 10.0.0.0/8 }",
        "tcp-request content reject if { req.payload(0,3) -m str abc } { src 10.0.0.0/8 }",
    ],
)
def test_what_asks_for_more_than_networks_is_not_possible(line: str) -> None:
    found = tcp(line)
    assert access(found) is None
    assert verdict_of(found, line)[0] is Verdict.NOT_POSSIBLE


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["tcp-request content accept if { req.payload(0,3) abc }", "tcp-request content reject"], ("allow", [])),
        (["tcp-request connection reject if !{ src_port lt 1024 } !office"], ("allow", OFFICES)),
        (["tcp-request connection accept if office", "tcp-request connection accept if { src_port lt 1024 }",
          "tcp-request connection reject"], ("allow", OFFICES)),
        (["tcp-request content accept if { req.proto_http }", "tcp-request content reject"], None),
    ],
)  # fmt: skip
def test_who_must_show_what_listeners_do_not_look_at_is_kept_out(
    lines: list[str], expected: tuple[str, list[str]] | None
) -> None:
    found = tcp(OFFICE, *lines)
    assert access(found) == expected
    assert (verdict_of(found, lines[-1])[0] is Verdict.NOT_POSSIBLE) == (expected is not None)


def test_whom_a_limit_spares_stays_spared() -> None:
    found = tcp(
        OFFICE,
        "stick-table type ip size 100k expire 1m store conn_rate(10s)",
        "tcp-request connection track-sc0 src",
        "tcp-request connection reject if { sc0_conn_rate gt 30 } !office",
    )
    assert listener(found)["client_limit"] == {
        "connections": 180, "per": "minute", "exempt": ["10.0.0.0/8", "192.0.2.0/24"],
    }  # fmt: skip
    assert access(found) is None


def test_names_that_nobody_accepts_are_closed_and_not_sent_to_the_default_pool() -> None:
    found = tcp("tcp-request content accept if { req.ssl_sni -i a.example }", "tcp-request content reject")
    (route,) = listener(found)["sni_routes"]
    assert route["hostname"] == "a.example"
    assert "default_pool" not in listener(found)


def test_what_the_only_backend_rejects_the_listener_rejects() -> None:
    backend = f"backend b\n {OFFICE}\n tcp-request content reject if !office\n server s 10.0.0.1:5432\n"
    front = f"{TCP}frontend db\n bind :5432\n default_backend b\n"
    assert access(read(front + backend)) == ("allow", ["10.0.0.0/8", "192.0.2.0/24"])
    both = read(
        f"{TCP}frontend db\n bind :5432\n {BAD}\n tcp-request content reject if bad\n default_backend b\n{backend}"
    )
    assert access(both) == ("deny", ["10.1.0.0/16"])
    assert verdict_of(both, "backend b")[0] is Verdict.NOT_POSSIBLE
    several = f" use_backend c if {{ req.ssl_sni c.example }}\nbackend c\n server s 10.0.0.2:5432\n{backend}"
    found = read(front + several)
    assert access(found) is None
    assert verdict_of(found, "backend b")[0] is Verdict.NOT_POSSIBLE


def http(*lines: str) -> Import:
    """An http frontend with these lines."""
    rest = "default_backend b\nbackend b\n server s 10.0.0.1:80\n"
    return read("\n ".join([f"{DEFAULTS}frontend web\n bind :80", *lines, rest]))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["tcp-request connection reject if bad"], ("deny", ["10.1.0.0/16"])),
        (["tcp-request connection accept if office", "tcp-request connection reject"],
         ("allow", ["10.0.0.0/8", "192.0.2.0/24"])),
        (["tcp-request connection accept", "tcp-request connection reject if bad"], None),
        (["tcp-request connection accept", "tcp-request content reject if bad"], ("deny", ["10.1.0.0/16"])),
    ],
)  # fmt: skip
def test_networks_that_an_http_frontend_rejects_are_those_of_its_listeners(
    lines: list[str], expected: tuple[str, list[str]] | None
) -> None:
    found = http(OFFICE, BAD, *lines)
    assert access(found) == expected
    assert all(verdict_of(found, line)[0] is Verdict.MAPPED for line in lines)
    assert not [each for each in found.documents if each["kind"] == "Policy"]


def test_what_a_backend_of_http_rejects_is_refused_by_its_routes_alone() -> None:
    text = f"{DEFAULTS}frontend web\n bind :80\n use_backend b if {{ path_beg /b }}\n default_backend c\n"
    backend = f"backend b\n {BAD}\n tcp-request content reject if bad\n server s 10.0.0.1:80\n"
    found = read(f"{text}{backend}backend c\n server s 10.0.0.2:80\n")
    assert access(found) is None
    (policy,) = [each for each in found.documents if each["kind"] == "Policy"]
    assert policy["spec"]["rules"] == {"access": {"deny": ["bad"]}}
    follow = [each["spec"].get("policies") for each in found.documents if each["kind"] == "Route"]
    assert follow == [[policy["name"]], [policy["name"]], None]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("allow 10.0.0.0/8; deny all;", ("allow", ["10.0.0.0/8"])),
        ("deny 10.1.0.0/16; allow all;", ("deny", ["10.1.0.0/16"])),
        ("deny 10.1.0.0/16; allow 10.1.0.0/16;", ("deny", ["10.1.0.0/16"])),
        ("deny all;", ("allow", [])),
        ("allow all;", None),
    ],
)
def test_streams_let_in_by_networks(rules: str, expected: tuple[str, list[str]] | None) -> None:
    found = read_nginx(f"stream {{ server {{ listen 5432; {rules} proxy_pass 10.0.0.1:5432; }} }}")
    assert access(found) == expected


WAITING = "tcp-request inspect-delay 5s\n tcp-request content accept if WAIT_END\n"
TWO = "default_backend web\nbackend web\n server s 10.0.0.1:443\nbackend ssh\n server s 10.0.0.2:22\n"


def test_who_asks_for_a_name_speaks_tls() -> None:
    line = "use_backend ssh if { req.ssl_hello_type 1 } { req.ssl_sni a.example }"
    found = read(f"{TCP}frontend f\n bind :443\n {WAITING} {line}\n {TWO}")
    assert listener(found)["sni_routes"] == [{"hostname": "a.example", "pool": "ssh"}]
    assert verdict_of(found, line)[0] is Verdict.MAPPED


def test_a_name_of_tls_that_haproxy_does_not_wait_for_is_said() -> None:
    line = "use_backend ssh if { req.ssl_sni a.example }"
    found = read(f"{TCP}frontend f\n bind :443\n {line}\n {TWO}")
    assert listener(found)["sni_routes"] == [{"hostname": "a.example", "pool": "ssh"}]
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.DIFFERENT
    assert "without inspect-delay and tcp-request content" in why


@pytest.mark.parametrize("condition", ["{ hdr(host) a.example }", "{ path_beg /x }", "METH_POST"])
def test_a_tcp_section_that_does_not_wait_chooses_before_it_reads_a_request(condition: str) -> None:
    line = f"use_backend ssh if {condition}"
    found = read(f"{TCP}frontend f\n bind :80\n {line}\n {TWO}")
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.DEAD
    assert "before it has read a request" in why
    assert listener(found)["default_pool"] == "web"
    waiting = read(f"{TCP}frontend f\n bind :80\n {WAITING} {line}\n {TWO}")
    assert verdict_of(waiting, line)[0] is Verdict.NOT_POSSIBLE
    negated = line.replace(" if ", " unless ")
    assert listener(read(f"{TCP}frontend f\n bind :80\n {negated}\n {TWO}"))["default_pool"] == "ssh"


def test_a_tcp_section_asks_for_a_list_of_networks_that_is_missing() -> None:
    bad = "tcp-request connection reject if { src -f /bad.lst }"
    text = f"{TCP}frontend fe\n bind :22\n {bad}\n default_backend b\nbackend b\n server s 10.0.0.1:22\n"
    found = read(text)
    assert "The file /bad.lst was not given" in verdict_of(found, bad)[1]
    assert found.needs == ("The file /bad.lst was not given (--files).",)
    given = read(text, {"/bad.lst": "192.0.2.0/24\n"})
    assert (verdict_of(given, bad)[0], given.needs) == (Verdict.MAPPED, ())
    other = bad.replace("src -f /bad.lst", "src_port lt 1024")
    assert verdict_of(read(text.replace(bad, other)), other)[0] is Verdict.NOT_POSSIBLE
    first = bad.replace("connection", "content").replace("src -f /bad.lst", "req.proto_http")
    assert verdict_of(read(text.replace(bad, first)), first)[0] is Verdict.DIFFERENT


def test_an_http_section_asks_for_a_list_of_those_that_may_connect() -> None:
    accept = "tcp-request connection accept if { src -f /good.lst }"
    rest = "default_backend b\nbackend b\n server s 10.0.0.1:80\n"
    found = read(f"{DEFAULTS}frontend fe\n bind :80\n {accept}\n tcp-request connection reject\n {rest}")
    assert found.needs == ("The file /good.lst was not given (--files).",)
    assert verdict_of(found, accept)[0] is Verdict.DIFFERENT
    harmless = read(f"{DEFAULTS}frontend fe\n bind :80\n {accept}\n {rest}")
    assert (verdict_of(harmless, accept)[0], harmless.needs) == (Verdict.MAPPED, ())


@pytest.mark.parametrize(
    ("refused", "networks"),
    [
        ("10.212.232.0", ["10.212.232.0/21"]),
        ("10.212.232.1", []),
        ("10.212.0.0/16 192.0.2.0/24", ["10.212.0.0/16"]),
        ("2001:db8::/32", ["2001:db8::/32"]),
    ],
)
def test_who_is_asked_for_behind_a_mask_is_the_whole_network(refused: str, networks: list[str]) -> None:
    mask = "tcp-request connection set-src src,ipmask(21)"
    found = tcp(mask, f"tcp-request connection reject if {{ src {refused} }}")
    entries = [each["network"] for document in found.documents if document["kind"] == "NetworkList"
               for each in document["spec"]["entries"]]  # fmt: skip
    assert entries == networks
    verdict, why = verdict_of(found, mask)
    assert verdict is Verdict.DIFFERENT
    assert "whole address" in why
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]
