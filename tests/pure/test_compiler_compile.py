"""Compilation as a whole: equal bytes, safe settings, bad objects left out and named, storage, differences."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.codec import bundle_from_bytes, bundle_to_bytes, snapshot_from_json, snapshot_to_json
from apps.compiler.compile import compile_snapshot
from apps.compiler.differences.files import diff_bundles
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.model.fleet import BypassToken, Pool, Snapshot
from apps.compiler.model.haproxy_version import oldest_of, parse_version
from apps.compiler.model.shared import (
    Certificate,
    FixedResponse,
    LoadBalancer,
    Protocol,
    Redirect,
    ServerState,
    WeightedPool,
)
from apps.compiler.routing import HOST_PATTERN
from tests.pure.compiler_fixtures import certificate_pem, front, fronts, listener, pool, route, server, snapshot
from tests.pure.properties import always, examples


def _config(*fronts_: LoadBalancer, pools: tuple[Pool, ...] | None = None) -> str:
    return compile_snapshot(snapshot(*fronts_, pools=pools)).output.files["haproxy.cfg"].decode()


@pytest.mark.parametrize(
    "line",
    [
        "    default-path config",
        "    master-worker",
        '    stats socket "${SPILLWAY_RUN}/worker.sock" mode 600 level admin expose-fd listeners',
        "    hard-stop-after 30s",
        "    option idle-close-on-response",
        "    option http-restrict-req-hdr-names reject",
        "    default-server init-addr last,none resolvers dns pool-purge-delay 5000ms",
        "    load-server-state-from-file global",
        "    parse-resolv-conf",
        "    retry-on conn-failure",
        "    option redispatch",
        "    http-request set-header X-Request-Id '%[unique-id]'",
        "    http-request set-header X-Forwarded-For '%[src]'",
        "    http-request set-header X-Forwarded-Proto http",
        "    http-request set-header X-Forwarded-Host '%[req.fhdr(host)]'",
        "    http-request del-header Forwarded",
    ],
)
def test_the_safe_settings_are_always_there(line: str) -> None:
    assert line in _config(front()).split("\n")


def test_https_listeners_are_strict_about_names_and_speak_http2() -> None:
    secure = listener(2, protocol=Protocol.HTTPS, certificate_ids=("crt-1",))
    certificate = Certificate("crt-1", "tls", "acme", certificate_pem("a.example"), ("a.example",))
    bundle = compile_snapshot(snapshot(front(route(1), listeners=(secure,)), certificates=(certificate,))).output
    text = bundle.files["haproxy.cfg"].decode()
    bind = '    bind "${SPILLWAY_BIND_LST_2}" ssl crt-list certs/lst-2.list strict-sni alpn h2,http/1.1'
    assert f'{bind} tls-ticket-keys "${{SPILLWAY_TICKETS}}/lst-2.keys"\n' in text
    assert f"{bind} no-tls-tickets\n" in text  # for agents without keys
    assert "ssl-min-ver TLSv1.2" in text
    assert bundle.files["certs/lst-2.list"] == b"certs/crt-1.pem a.example\n"


_CHOOSES = re.compile(r" +(?:http-request set-var\(txn\.route\) str\(route-|acl route-)")


def _no_dangerous_word_is_emitted(drawn: LoadBalancer) -> None:
    text = _config(drawn)
    # The one pattern of ours says which hosts pass, so that giving up refuses; those of routes choose and never deny.
    lines = [line for line in text.split("\n") if HOST_PATTERN not in line and not _CHOOSES.match(line)]
    words = {word for line in lines for word in line.split()}
    assert not words & {
        "external-check", "insecure-fork-wanted", "lua-load", "lua-load-per-thread", "errorfile", "errorfiles", "file",
        "lf-file", "close-spread-time", "-f", "reg", "map_reg", "regsub", "path_reg", "deny",
    }  # fmt: skip


@examples(few=8, many=100)
def test_dangerous_words_are_never_emitted(count: int, *, repeatable: bool) -> None:
    always(_no_dangerous_word_is_emitted, fronts(), count=count, repeatable=repeatable)


def test_equal_snapshots_compile_to_equal_bytes_whatever_the_order_of_their_parts() -> None:
    routes = [route(number, path=f"/{number % 7}", methods=("GET",) * (number % 2)) for number in range(1, 20)]
    pools = [pool(number, servers=(server(number), server(number + 50))) for number in range(1, 9)]
    expected = compile_snapshot(snapshot(front(*routes), pools=tuple(pools))).output
    for seed in range(5):
        random.Random(seed).shuffle(routes)
        random.Random(seed).shuffle(pools)
        again = compile_snapshot(snapshot(front(*routes), pools=tuple(pools))).output
        assert (again.files, again.digest, again.line_owners) == (expected.files, expected.digest, expected.line_owners)


def test_a_bad_object_is_left_out_and_named_and_takes_only_its_dependants_along() -> None:
    bad_pool = pool(2, connect_timeout_ms=-1)
    routes = (route(1), route(2, path="/x", pools=(WeightedPool("pool-2", 1),)), route(3, hostname="a.example\nevil"))
    compilation = compile_snapshot(snapshot(front(*routes), pools=(pool(1), bad_pool)))
    assert {(finding.object_id, finding.code) for finding in compilation.left_out} == {
        ("pool-2", "out_of_range"),
        ("route-2", "unknown_pool"),
        ("route-3", "control_character"),
    }
    assert compilation.output.files["maps/lb-1-action.map"] == b"route-1 pool-1\n"


def test_an_id_that_names_two_objects_leaves_both_out() -> None:
    compilation = compile_snapshot(snapshot(front(route(1)), pools=(pool(1), pool(2), pool(2))))
    assert {finding.object_id for finding in compilation.left_out} == {"pool-2", "srv-2"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"pools": (), "redirect": None}, "one_action"),
        ({"pools": (WeightedPool("pool-1", 0),)}, "weights_zero"),
        ({"pools": (WeightedPool("pool-9", 1),)}, "unknown_pool"),
        ({"pools": (WeightedPool("pool-2", 1),)}, "pool_protocol"),
        ({"pools": (WeightedPool("pool-1", 1), WeightedPool("pool-1", 2))}, "pool_twice"),
        ({"pools": (WeightedPool("pool-1", True),)}, "not_integer"),
        ({"redirect": Redirect(301), "fixed_response": FixedResponse(200)}, "one_action"),
        ({"redirect": Redirect(200)}, "out_of_range"),
        ({"redirect": Redirect(301, path="/a|b")}, "path"),
        ({"fixed_response": FixedResponse(302)}, "fixed_status"),
        ({"prefix_rewrite": "/a b"}, "path"),
    ],
)
def test_a_route_that_cannot_work_is_left_out_with_its_reason(fields: dict[str, Any], code: str) -> None:
    pools = (pool(1), pool(2, protocol=Protocol.TCP))
    compilation = compile_snapshot(snapshot(front(route(1, **fields)), pools=pools))
    assert code in {finding.code for finding in compilation.left_out}
    assert compilation.output.files["maps/lb-1-action.map"] == b""


def test_a_host_name_stays_with_the_account_of_its_oldest_route() -> None:
    routes = (
        route(5, "a.example", account="rival"),
        route(1, "a.example", "/x"),
        route(2, "*.b.example"),
        route(6, "sub.b.example", account="rival"),
        route(7, "other.example", account="rival"),
    )
    compilation = compile_snapshot(snapshot(front(*routes)))
    assert {finding.object_id for finding in compilation.left_out} == {"route-5", "route-6"}


@pytest.mark.parametrize(
    ("bypass_token", "code"),
    [
        (BypassToken("A" * 64, "pool-1"), "digest"),
        (BypassToken("a" * 63 + " ", "pool-1"), "digest"),
        (BypassToken("a" * 63 + "\n", "pool-1"), "control_character"),
        (BypassToken("a" * 64, "pool-1 pool-2"), "pool_missing"),
        (BypassToken("a" * 64, "pool-9"), "pool_missing"),
        (BypassToken("a" * 64, "pool-2"), "pool_tcp"),
    ],
)
def test_a_bypass_token_that_opens_nothing_here_is_left_out_and_named(bypass_token: BypassToken, code: str) -> None:
    pools = (pool(1), pool(2, protocol=Protocol.TCP))
    honest = snapshot(front(route(1)), pools=pools)
    done = compile_snapshot(replace(honest, bypass_tokens=(bypass_token,)))
    assert [finding.code for finding in done.left_out] == [code]
    assert done.output.digest == compile_snapshot(honest).output.digest


def test_what_works_but_is_risky_is_a_warning() -> None:
    pools = (
        pool(1, servers=()),
        pool(2, servers=(server(2, state=ServerState.DRAIN),)),
        pool(3, server_keepalive_ms=100),
        pool(4, server_keepalive_ms=75_000),
    )
    warnings = compile_snapshot(snapshot(front(route(1)), pools=pools)).warnings
    assert [(finding.object_id, finding.code) for finding in warnings] == [
        ("pool-1", "no_servers"),
        ("pool-2", "no_server_ready"),
        ("pool-3", "keepalive_race"),
    ]


@examples(few=8, many=100)
def test_snapshots_and_bundles_come_back_from_the_shelf_as_they_were(count: int, *, repeatable: bool) -> None:
    def come_back(drawn: LoadBalancer) -> None:
        case = snapshot(drawn)
        assert snapshot_from_json(json.loads(json.dumps(snapshot_to_json(case)))) == case
        bundle = compile_snapshot(case).output
        assert bundle_from_bytes(bundle_to_bytes(bundle)) == bundle

    always(come_back, fronts(), count=count, repeatable=repeatable)


def test_bytes_that_are_no_bundle_are_refused() -> None:
    with pytest.raises(ValueError, match="not a stored bundle"):
        bundle_from_bytes(b"nonsense")


def test_differences_are_sentences() -> None:
    blue, green = pool(1, label="blue"), pool(2, label="green", servers=(server(2, label="green-a"),))
    before = route(1, "api.acme.example", "/v2", pools=(WeightedPool("pool-1", 50), WeightedPool("pool-2", 50)))
    after = replace(before, pools=(WeightedPool("pool-1", 80), WeightedPool("pool-2", 50)))
    drained = replace(green, servers=(server(2, label="green-a", state=ServerState.DRAIN),))
    old = snapshot(front(before, route(2, "old.example")), pools=(blue, green))
    new = snapshot(front(after, route(3, "new.example")), pools=(blue, drained))
    assert [change.sentence for change in diff_snapshots(old, new)] == [
        "route api.acme.example /v2: pool blue weight 50 → 80",
        "route old.example /: removed",
        "route new.example /: added",
        "server green-a of green: state ready → drain",
    ]
    assert diff_snapshots(old, old) == ()


def test_no_difference_ever_shows_a_key() -> None:
    def case(*names: str) -> Snapshot:
        secure = listener(2, protocol=Protocol.HTTPS, certificate_ids=("crt-1",))
        certificate = Certificate("crt-1", "tls", "acme", certificate_pem(*names), ("a.example",))
        return snapshot(front(route(1), listeners=(secure,)), certificates=(certificate,))

    old, new = case("a.example"), case("a.example", "www.a.example")
    text = diff_bundles(compile_snapshot(old).output, compile_snapshot(new).output)
    assert text == "certs/crt-1.pem: changed (not shown)"
    said = [str(change) for change in diff_snapshots(old, new)]
    assert said
    assert not any("BEGIN" in each for each in said)


def test_the_difference_of_bundles_is_a_unified_text() -> None:
    text = diff_bundles(
        compile_snapshot(snapshot(front(route(1)))).output,
        compile_snapshot(snapshot(front(route(1), route(2, path="/new")))).output,
    )
    assert "+++ wanted/maps/lb-1-prefix.map\n+a.example/new/ route-2" in text


def test_the_version_is_read_from_what_the_node_reports() -> None:
    assert parse_version("2.6.12-1+deb12u4") == (2, 6)
    with pytest.raises(ValueError, match="no version"):
        parse_version("HAProxy")


def test_a_fleet_is_as_old_as_the_oldest_of_its_nodes_that_can_take_a_bundle() -> None:
    assert oldest_of(map(parse_version, ["3.2.26-1", "2.8.30-0ubuntu1", "2.4.30"])) == (2, 8)
    assert oldest_of([(2, 4)]) == oldest_of([]) == (2, 6)


def test_a_snapshot_that_was_stored_under_old_names_is_still_read() -> None:
    stored = snapshot_to_json(snapshot(front(route(1)), own_addresses=("192.0.2.1",)))
    stored["own_places"], stored["test_passes"] = stored.pop("own_addresses"), stored.pop("bypass_tokens")
    assert snapshot_from_json(stored).own_addresses == ("192.0.2.1",)
