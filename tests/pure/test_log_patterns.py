"""What prepared searches judge, and what they leave alone."""

from __future__ import annotations

import pytest

from apps.drivers.logs.contract import Group
from apps.logs.filters import parse
from apps.logs.patterns import PATTERNS, Around, found

HOUR = Around(3600)
HOSTILE = 'a"b\\ \n\u2028ü$(x)'


def group(*values: str, lines: int = 1000, **counted: object) -> Group:
    usual: dict[str, object] = {
        "failed": 0, "paths": 3, "bytes_out": lines * 1000, "response_p50_ms": 20.0, "total_p95_ms": 40.0,
    }  # fmt: skip
    return Group(values, lines, **{**usual, **counted})  # type: ignore[arg-type]


def sentences(name: str, *groups: Group, around: Around = HOUR) -> tuple[str, ...]:
    return found(PATTERNS[name], groups, around).sentences


def servers(*lines: int) -> list[Group]:
    return [group("shop", "eu", f"vm-{number}", lines=count) for number, count in enumerate(lines, 1)]


@pytest.mark.parametrize("lines", [(2689, 5626, 7717), (1097, 2296, 3150)])  # the second: 6 543 in the same shares
def test_three_uneven_servers_are_named_with_their_counts(lines: tuple[int, ...]) -> None:
    (said,) = sentences("uneven-servers", *servers(*lines))
    assert (
        f"pool shop in eu are uneven: of {sum(lines):,} requests vm-1 answered {lines[0]:,} and vm-3 {lines[2]:,}"
        in said
    )
    assert f"vm-3 has 2.9 times the share (vm-1 {lines[0]:,}, vm-2 {lines[1]:,}, vm-3 {lines[2]:,})" in said


@pytest.mark.parametrize("lines", [(5344, 5344, 5344), (5100, 5300, 5600), (40, 60, 90), (7717,)])
def test_even_servers_few_lines_and_a_single_server_are_not_named(lines: tuple[int, ...]) -> None:
    assert sentences("uneven-servers", *servers(*lines)) == ()


def test_servers_are_even_by_their_weights() -> None:
    weights = {("shop", "eu"): {"vm-1": 50, "vm-2": 100, "vm-3": 150}}
    assert sentences("uneven-servers", *servers(2700, 5300, 8000), around=Around(60, weights)) == ()
    assert sentences("uneven-servers", *servers(5344, 5344, 5344), around=Around(60, weights)) != ()
    elsewhere = {("shop", "us"): weights["shop", "eu"]}
    assert sentences("uneven-servers", *servers(5344, 5344, 5344), around=Around(60, elsewhere)) == ()


def test_servers_of_other_regions_and_pools_are_not_compared() -> None:
    apart = [group("shop", "eu", "vm-1", lines=9000), group("shop", "us", "vm-1"), group("api", "eu", "vm-1")]
    assert sentences("uneven-servers", *apart) == ()


def test_other_patterns_name_what_stands_out_and_nothing_else() -> None:
    (race,) = sentences("keep-alive-races", group("shop", "vm-1", lines=17))
    assert "vm-1 of pool shop closed a kept connection 17 times" in race
    assert "server_keepalive_ms" in race
    slow = [group("shop", total_p95_ms=1500.0), group("api"), group("rare", lines=3, total_p95_ms=9000.0)]
    assert [each.split()[1] for each in sentences("slow-routes", *slow)] == ["shop"]
    clients = [group("192.0.2.1", lines=300), group("192.0.2.2", lines=700), *(group(f"c{n}") for n in range(3))]
    assert sentences("top-clients", *clients)[0].startswith("Client c0 made 1,000 of 4,000 requests, 25 %")
    assert sentences("top-clients", group("192.0.2.1", lines=10)) == ()
    looked = sentences("scanners", group("192.0.2.1", paths=400), group("192.0.2.2", paths=19))
    assert [each.split()[1] for each in looked] == ["192.0.2.1"]


def test_bytes_per_response_say_how_many_the_network_carries() -> None:
    around = Around(1.0, link_mbps=180)
    (said,) = sentences("bytes-per-response", group("shop", lines=100, bytes_out=5_000_000), around=around)
    assert said.endswith(
        "50.0 kB on average, together 40.0 Mb/s. A network of 180 Mb/s carries 450 such responses per second."
    )
    full = sentences("bytes-per-response", group("shop", lines=400, bytes_out=20_000_000), around=around)
    assert full[1].startswith("The network is near its limit")
    assert sentences("bytes-per-response", group("shop", bytes_out=0)) == sentences("bytes-per-response") == ()


@pytest.mark.parametrize("name", PATTERNS)
def test_each_row_leads_to_its_own_lines_whatever_their_names(name: str) -> None:
    pattern = PATTERNS[name]
    values = ("192.0.2.7",) if pattern.fields == ("client",) else (HOSTILE, "", "*")[: len(pattern.fields)]
    (row,) = found(pattern, [group(*values)], HOUR).rows
    assert len(row.cells) == len(pattern.columns)
    asked = parse(row.words)[len(parse(pattern.words)) :]
    assert [(each.field, *each.values) for each in asked] == list(zip(pattern.fields, values, strict=True))
