"""The pages of requests: what is found, whose it is, why it ended so, and what is typed wrong."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Route
from apps.drivers.logs.contract import LogStore, Record, TooLarge, Unavailable
from apps.drivers.logs.registry import open_logs
from apps.fleet.models import Fleet
from apps.logs import searching
from apps.logs.models import NodeLog
from apps.observe.models import NodeReport, Sample
from apps.rollouts.models import Revision, Rollout
from tests.apps.observe_env import make_env
from tests.interfaces.people import client_of


@pytest.fixture
def store(settings: Settings) -> LogStore:
    return open_logs(settings.LOGS_URL)


def line(account: int, number: int, **values: object) -> Record:
    """A request of a moment ago; the higher the number, the older."""
    at = now().astimezone(UTC) - timedelta(seconds=10 + number)
    usual = Record(
        time=at, id=f"{int(at.timestamp() * 1000):012x}7{number:019x}", node="eu-1", fleet="eu", account=account,
        load_balancer="main", listener="http", route="shop", pool="shop", server="vm-1", region="eu", home_region="eu",
        status=200, termination="--", queue_ms=0, connect_ms=1, response_ms=20, total_ms=25, request_ms=0,
        bytes_in=80, bytes_out=900, client="192.0.2.7", method="GET", host="shop.example", path="/cart",
    )  # fmt: skip
    return replace(usual, **values)  # type: ignore[arg-type] # field names are the caller's


@pytest.fixture
def acme_lines(store: LogStore, acme: Actor, globex: Actor) -> list[Record]:
    """Two that went well, one that no server took, and one of somebody else."""
    lost = {"status": 503, "server": "", "region": "", "why": "no_server", "path": "/lost", "termination": "SC"}
    lines = [line(acme.account.pk, 1), line(acme.account.pk, 2), line(acme.account.pk, 3, response_ms=None, **lost)]
    store.store("one", [*lines, line(globex.account.pk, 4, path="/secret-of-globex")])
    return lines


SILENT = "The server was silent for too long before the response began."


def test_lines_that_have_not_come_yet_are_said_to_be_missing(acme_lines: list[Record], acme: Actor) -> None:
    first, second, never, _ = make_env().nodes
    for node in (first, second):
        NodeReport.objects.create(node=node, digest="d" * 64)
        NodeLog.objects.create(node=node, read_at=now())
    NodeReport.objects.create(node=never, last_contact_error="It does not answer.")
    client = client_of(acme)
    pages = ("/requests", "/requests/patterns")
    assert all("Not all is here" not in shown(client, page) for page in pages)
    NodeLog.objects.filter(node=second).update(read_at=now() - timedelta(seconds=30))
    assert all("Request lines of 1 of 2 nodes are missing" in shown(client, page) for page in pages)
    NodeLog.objects.update(read_at=now() - timedelta(seconds=30))
    assert all("Nobody collects request lines now" in shown(client, page) for page in pages)


def test_lines_of_a_window_that_ended_before_they_came_are_said_to_be_missing_and_no_others(acme: Actor) -> None:
    reading, waiting = make_env().nodes[:2]
    at = now()
    for node, waiting_s in ((reading, 0.0), (waiting, 600.0)):
        NodeReport.objects.create(node=node, digest="d" * 64)
        NodeLog.objects.create(node=node, read_at=at, waiting_s=waiting_s)
    client = client_of(acme)

    def said(ended_ago: timedelta) -> list[bool]:
        window = urlencode({"from": (at - timedelta(hours=2)).isoformat(), "to": (at - ended_ago).isoformat()})
        texts = [shown(client, f"{page}?{window}") for page in ("/requests", "/requests/patterns")]
        return ["Request lines of 1 of 2 nodes are missing" in text for text in texts]

    assert said(timedelta()) == said(timedelta(minutes=5)) == said(timedelta(hours=-1)) == [True, True]
    assert said(timedelta(minutes=11)) == [False, False]
    NodeLog.objects.filter(node=waiting).update(waiting_s=0, error="It does not answer.")
    assert said(timedelta(minutes=5)) == [True, True]


def shown(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status, answer.content
    return answer.content.decode()


def test_lines_of_the_last_hour_are_shown_with_counts_and_facets(acme_lines: list[Record], acme: Actor) -> None:
    text = shown(client_of(acme), "/requests")
    assert "3 requests" in text
    assert "1 with 5xx" in text
    assert "no server up" in text
    assert "/lost" in text
    assert "secret-of-globex" not in text


def test_clients_are_counted_after_the_rest(acme_lines: list[Record], acme: Actor) -> None:
    client = client_of(acme)
    page = client.get("/requests?q=status%3A200")
    assert "Client" not in [title for title, _ in page.context["facets"]]
    (address,) = re.findall(r'id="clients"[^>]* hx-get="([^"]+)" hx-trigger="load', page.content.decode())
    counted = shown(client, f"/requests{address.replace('&amp;', '&')}")
    assert "192.0.2.7" in counted
    assert '<span class="count">2</span>' in counted
    assert re.search(r"counted at \d\d:\d\d:\d\d<", counted), "less often than what stands beside it"
    assert "<html" not in counted


def test_times_have_their_day_where_the_window_has_several(acme_lines: list[Record], acme: Actor) -> None:
    day = f"{acme_lines[0].time:%m-%d} "
    assert f">{day}" in shown(client_of(acme), "/requests?last=7d")
    around = {"from": acme_lines[2].time.isoformat(), "to": acme_lines[0].time.isoformat()}
    if acme_lines[0].time.date() == acme_lines[2].time.date():
        assert f">{day}" not in shown(client_of(acme), f"/requests?{urlencode(around)}")


def test_a_filter_narrows_and_a_facet_adds_its_word_and_takes_it_away(acme_lines: list[Record], acme: Actor) -> None:
    client = client_of(acme)
    text = shown(client, "/requests?q=status%3E%3D500")
    assert "1 request<" in text
    assert "/cart" not in text
    assert "q=status%3E%3D500+why%3Ano_server" in text
    assert 'href="?q=status%3E%3D500"' in shown(client, "/requests?q=status%3E%3D500+why%3Ano_server")


def test_a_click_on_lines_without_a_status_finds_them_and_a_click_again_leaves_the_other_words_alone(
    store: LogStore, acme: Actor
) -> None:
    cut = line(acme.account.pk, 2, status=None, kind="connection", path="/two  words")
    store.store("one", [line(acme.account.pk, 1), cut])
    client = client_of(acme)
    asked = {"q": 'path:"/two  words" region:eu', "last": "1h"}
    facets = dict(client.get("/requests", asked).context["facets"])
    ((_, _, _, without_region, _),) = facets["Region"]
    assert client.get(f"/requests{without_region}").context["drawing"].total == 1
    status = dict(client.get("/requests").context["facets"])["Status"]
    (address,) = [address for shown, _, _, address, _ in status if shown == "none"]
    found = client.get(f"/requests{address}")
    assert found.status_code == 200
    assert found.context["drawing"].total == 1


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("q=stauts:500", "did you mean status?"),
        ("last=3y", "Choose one of 15m"),
        ("from=yesterday&to=2026-01-01", "Give the beginning as a date and time"),
        ("from=2026-01-02&to=2026-01-01", "The end must be later than the start."),
        ("from=2025-01-02&to=2026-01-01", "Choose at most 31 days."),
        ("from=0001-01-01T00:00%2B14:00&to=0001-01-01T01:00%2B14:00", "Give the beginning as a date and time"),
        ("from=9999-12-31T23:00&to=9999-12-31T23:59", "Give the beginning as a date and time"),
        ("account=globex", "Leave the account out"),
        ("before=nonsense", "cursor"),
    ],
)
def test_what_is_typed_wrong_is_said_and_nothing_is_looked_for(
    acme_lines: list[Record], acme: Actor, query: str, sentence: str
) -> None:
    assert sentence in shown(client_of(acme), f"/requests?{query}", 422)


def test_an_operator_looks_at_the_lines_of_an_account(acme_lines: list[Record], tutorial_env: Actor) -> None:
    assert "No requests in this window" in shown(client_of(tutorial_env), "/requests")
    text = shown(client_of(tutorial_env), "/requests?account=globex")
    assert "/secret-of-globex" in text
    assert "/cart" not in text


def test_routes_and_pools_lead_to_their_requests(tutorial_env: Actor, acme: Actor) -> None:
    route = Route.objects.filter(account=acme.account).earliest("id")
    own, operators = client_of(acme), client_of(tutorial_env)
    assert f'href="/requests?q=route%3A{route.name}"' in shown(own, f"/routes/{route.pk}")
    assert f'href="/requests?q=route%3A{route.name}&amp;account=acme"' in shown(operators, f"/routes/{route.pk}")
    pool = route.pools.earliest("id").pool
    assert f'href="/requests?q=pool%3A{pool.name}"' in shown(own, f"/pools/{pool.pk}")


def test_older_lines_follow_on_the_next_page(store: LogStore, acme: Actor) -> None:
    store.store("many", [line(acme.account.pk, number, path=f"/{number}-th") for number in range(60)])
    client = client_of(acme)
    first = client.get("/requests")
    older = first.context["older"]
    assert "/59-th" not in first.content.decode()
    text = shown(client, f"/requests{older}")
    assert "Newest" not in text
    assert "/59-th" in text
    assert "/1-th" not in text


def test_who_follows_is_told_that_only_the_newest_lines_are_shown(store: LogStore, acme: Actor) -> None:
    client = client_of(acme)
    store.store("some", [line(acme.account.pk, number) for number in range(50)])
    assert "Newest" not in shown(client, "/requests?partial=found")
    store.store("more", [line(acme.account.pk, 50 + number) for number in range(1200)])
    assert "Newest 50 of 1,250 requests" in shown(client, "/requests?partial=found")


def test_each_bar_of_a_quarter_of_an_hour_around_midnight_has_a_name_of_its_own(store: LogStore, acme: Actor) -> None:
    midnight = (now() - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    window = {"from": midnight - timedelta(minutes=5), "to": midnight + timedelta(minutes=10)}
    asked = {name: moment.isoformat() for name, moment in window.items()}
    names = [bar.says for bar in client_of(acme).get("/requests", asked).context["drawing"].bars]
    assert len(set(names)) == len(names) > 15


def test_a_bar_leads_to_its_stretch(acme_lines: list[Record], acme: Actor) -> None:
    client = client_of(acme)
    bars = [bar for bar in client.get("/requests").context["drawing"].bars if bar.total]
    found = sum(client.get(f"/requests{bar.address}").context["drawing"].total for bar in bars)
    assert found == 3


def test_a_request_says_why_and_where_its_time_went(acme_lines: list[Record], acme: Actor) -> None:
    text = shown(client_of(acme), f"/requests/{acme_lines[2].id}")
    assert "No server of the pool was up." in text
    assert "The server closed or refused the connection while the load balancer connected to the server." in text
    assert "not reached" in text
    served = shown(client_of(acme), f"/requests/{acme_lines[0].id}")
    assert "vm-1 answered in eu." in served
    assert "20 ms" in served


def test_a_request_leads_to_the_others_of_its_trace_and_to_nobody_elses(
    store: LogStore, acme: Actor, globex: Actor
) -> None:
    trace = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "8a3ce929d0e0e473", "sampled": "no"}
    first = line(acme.account.pk, 1, **trace, parent_span_id="00f067aa0ba902b7")
    second = line(acme.account.pk, 2, **trace, path="/second-hop")
    others = line(globex.account.pk, 3, **trace, path="/secret-of-globex")
    store.store("one", [first, second, others])
    text = shown(client_of(acme), f"/requests/{first.id}")
    for each in (trace["trace_id"], trace["span_id"], "not sampled", "00f067aa0ba902b7", "Same trace"):
        assert each in text
    found = shown(client_of(acme), f"/requests?q=trace:{trace['trace_id']}")
    assert "2 requests" in found
    assert "/second-hop" in found
    assert "secret-of-globex" not in found


def test_a_request_of_somebody_else_is_not_there(acme_lines: list[Record], acme: Actor, globex: Actor) -> None:
    assert client_of(globex).get(f"/requests/{acme_lines[0].id}").status_code == 404
    assert client_of(acme).get(f"/requests/{acme_lines[0].id}").status_code == 200


def taken(client: Client, address: str) -> list[str]:
    """Lines of a file that is streamed."""
    answer: Any = client.get(address)
    return b"".join(answer.streaming_content).decode().splitlines()


def test_the_lines_can_be_taken_away_and_no_text_of_a_client_is_a_formula(store: LogStore, acme: Actor) -> None:
    silent = line(acme.account.pk, 3, path="/a", termination="sH")
    store.store("one", [line(acme.account.pk, 1, path="/a"), line(acme.account.pk, 2, method="=cmd"), silent])
    client = client_of(acme)
    rows = list(csv.DictReader(taken(client, "/requests/export.csv")))
    assert [row["path"] for row in rows] == ["/a", "/cart", "/a"]
    assert rows[1]["method"] == "'=cmd"
    assert [row["ended"] for row in rows] == ["", "", SILENT]
    lines = taken(client, "/requests/export.jsonl?q=path:/a")
    assert [(json.loads(each)["path"], json.loads(each)["ended"]) for each in lines] == [("/a", ""), ("/a", SILENT)]
    assert datetime.fromisoformat(json.loads(lines[0])["time"]).tzinfo is not None
    assert client.get("/requests/export.csv?q=nothing:1").status_code == 422


def test_files_and_the_live_tail_have_nothing_of_another_account(
    acme_lines: list[Record], acme: Actor, globex: Actor, tutorial_env: Actor
) -> None:
    def everything(actor: Actor, more: str = "") -> str:
        client = client_of(actor)
        files = ["\n".join(taken(client, f"/requests/export.{kind}?{more}")) for kind in ("csv", "jsonl")]
        return "\n".join([*files, shown(client, f"/requests?partial=found&{more}")])

    assert everything(acme).count("/lost") == 3
    assert "secret-of-globex" not in everything(acme)
    for address in ("export.csv?account=globex", "export.jsonl?account=globex", "?account=globex&partial=found"):
        refused = shown(client_of(acme), f"/requests/{address}".replace("/?", "?"), 422)
        assert "secret-of-globex" not in refused
    # The control: it is there for its own account, and for operators who ask for it.
    assert everything(globex).count("/secret-of-globex") == 3
    assert everything(tutorial_env, "account=globex").count("/secret-of-globex") == 3


def test_a_store_that_does_not_answer_is_said(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_url: str) -> LogStore:
        raise Unavailable("The folder of request lines cannot be read.")

    monkeypatch.setattr(searching, "open_logs", away)
    for address in ("/requests", "/requests?partial=found"):
        text = shown(client_of(acme), address)
        assert "The folder of request lines cannot be read." in text
        assert 'id="found" data-live' in text  # it asks again
    for kind in ("csv", "jsonl"):
        assert "folder of request lines" in shown(client_of(acme), f"/requests/export.{kind}", 503)
    assert "The folder of request lines cannot be read." in shown(client_of(acme), "/requests/0192f3a1", 503)


def test_clients_that_could_not_be_counted_are_unknown(
    acme_lines: list[Record], acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(_url: str) -> LogStore:
        raise TooLarge("The question took longer than 20 seconds: take a shorter time.")

    monkeypatch.setattr(searching, "open_logs", too_long)
    text = shown(client_of(acme), "/requests?partial=clients")
    assert "unknown: The question took longer than 20 seconds" in text


def test_what_a_client_sent_is_shown_as_text(store: LogStore, acme: Actor) -> None:
    evil = line(acme.account.pk, 1, path="/<script>alert(1)</script>", server='"><img src=x>')
    store.store("one", [evil])
    client = client_of(acme)
    for address in ("/requests", f"/requests/{evil.id}"):
        assert "<script>alert" not in shown(client, address)
        assert "<img src=x" not in shown(client, address)


def uneven(actor: Actor) -> list[Record]:
    """A stretch that three processes answered 2 689, 5 626 and 7 717 times, thinned to a tenth, and two races."""
    counts = {"vm-1": 269, "vm-2": 563, "vm-3": 772}
    servers = [name for name, count in counts.items() for _ in range(count)]
    lines = [line(actor.account.pk, number, server=name) for number, name in enumerate(servers)]
    lost = {"status": 502, "termination": "SH", "connect_ms": 0, "response_ms": None, "total_ms": 2, "method": "POST"}
    return [*lines, *(line(actor.account.pk, 2000 + number, server="vm-2", **lost) for number in range(2))]


def test_patterns_name_uneven_servers_and_races_to_their_account_alone(
    store: LogStore, acme: Actor, globex: Actor
) -> None:
    store.store("one", uneven(acme))
    text = shown(client_of(acme), "/requests/patterns")
    assert "of 1,606 requests vm-1 answered 269 and vm-3 772" in text
    assert "vm-2 of pool shop closed a kept connection 2 times" in text
    assert text.index("Keep-alive races") < text.index("Uneven servers") < text.index("Slow routes")
    assert "q=-server%3A%22%22+pool%3Ashop+region%3Aeu+server%3Avm-3" in text
    other = shown(client_of(globex), "/requests/patterns?account=acme", 422)
    assert "vm-" not in other + shown(client_of(globex), "/requests/patterns")
    assert "are uneven" not in shown(client_of(acme), "/requests/patterns?q=server:vm-1,vm-2+-server:vm-2")
    assert "did you mean status" in shown(client_of(acme), "/requests/patterns?q=stauts:3", 422)


def test_the_page_of_a_request_says_how_the_servers_were_then(store: LogStore, db: None) -> None:
    env = make_env()
    at, eu = now().astimezone(UTC).replace(microsecond=0), {"node": env.nodes[0], "kind": "server", "resolution": 10}
    Sample.objects.create(at=at - timedelta(seconds=12), object_id=f"srv-{env.servers[0].pk}", status="UP", **eu)
    Sample.objects.create(
        at=at - timedelta(seconds=12), object_id=f"srv-{env.servers[1].pk}", status="DOWN", check_text="L4CON", **eu
    )
    lost = line(env.acme.account.pk, 0, pool="acme-web")
    before = line(env.acme.account.pk, 300, pool="acme-web")
    store.store("one", [lost, before])
    client = client_of(env.acme)
    code = '<abbr title="L4CON">cannot connect</abbr>'
    said = f"1 of 2 servers up; eu-2 in eu was down ({code}). Exact to 10 seconds."
    assert said in shown(client, f"/requests/{lost.id}")
    assert "Unknown: no node has numbers of that moment." in shown(client, f"/requests/{before.id}")


def test_the_page_of_a_request_tells_operators_which_rollout_was_live_then(store: LogStore, db: None) -> None:
    env = make_env()
    fleet, others = (node.fleet for node in (env.nodes[0], env.nodes[2]))
    request = line(env.acme.account.pk, 0, fleet=fleet.name)
    store.store("one", [request])

    def ended(number: int, minutes: float, state: str = "done", at: Fleet = fleet) -> Rollout:
        about = {"number": number, "digest": f"{number:064}", "snapshot": b"", "bundle": b"", "actor": "ada"}
        revision = Revision.objects.create(fleet=at, **about)
        finished = request.time + timedelta(minutes=minutes)
        same = {"fleet": at, "revision": revision, "generation": number, "actor": "ada", "state": state}
        return Rollout.objects.create(**same, finished_at=finished)

    page = f"/requests/{request.id}?account=acme"
    assert "was live since" not in shown(client_of(env.operator), page)
    ended(1, -60)
    live = ended(2, -5)
    ended(3, -3, "rolled_back")
    ended(4, 1)  # it ended after the request
    ended(5, -1, at=others)
    said = shown(client_of(env.operator), page)
    assert f"Rollout {live.pk} by ada of fleet {fleet.name} was live since" in said
    assert said.count("was live since") == 1
    assert f'href="/rollouts/{live.pk}"' in said
    assert "was live since" not in shown(client_of(env.acme), f"/requests/{request.id}")  # fleets are the operators'
