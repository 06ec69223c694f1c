"""From numbers of requests one click leads to the requests, unless no page shows as many as were counted."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.alerts.models import Alert, Finding
from apps.core.clock import now
from apps.definitions.models import NetworkList, Policy, Pool, Route
from apps.drivers.logs.contract import LogStore, Record
from apps.drivers.logs.registry import open_logs
from apps.web.templatetags.request_lines import requests_url
from tests.breadth import first_of
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_requests import line

# How numbers of requests are called, per second or in all.
NAMES = (
    r"requests|errors|requests_rps|rps|errors_rps|served_rps|served|offered|answered|demand|refused|rejected|failed|"
    r"out|error_rate|local|overflow_(?:in|out)_rps|hits|total"
)
# One that stands there by itself says how many, not which; so does one in a tile without an address.
NUMBERS = re.compile(r"\{\{\s*(?:\w+\.)+(?:" + NAMES + r")(?:\.\d)?(?:\|[^}]*)?\s*\}\}")
TILES = re.compile(
    r"components/stat\.html\" with label=\"(?:Requests|5xx|Demand|Served|Overflow[^\"]*)\"(?![^%]*\burl=)"
)
# By page, what no node answered or what is no number of requests: predictions, what a load generator counted over
# several steps, what a cloud counted, what a receiver refused, the counts of the page of requests itself.
WITHOUT_LINES = {
    "pages/capacity_runs/result.html": {"row.answered", "row.errors"},
    "pages/capacity_runs/steps.html": {"row.offered"},
    "pages/overflow/overflow.html": {"row.served.0", "row.out.0", "row.refused.0"},
    "pages/load_balancers/detail.html": {"row.rejected"},  # connections that leave no line
    "pages/reports/month.html": {"row.served", "row.rejected"},  # of a month, which outlives its lines
    "pages/requests/forwards.html": {"row.refused"},
    "pages/requests/list.html": {"drawing.total", "drawing.failed", "bar.total", "bar.failed"},
    "pages/routes/detail.html": {"live.total"},  # nodes
    "pages/schedules/history.html": {"each.local"},  # a time of day
    "pages/schedules/instants.html": {"each.local"},
    "pages/stacks/backends.html": {"row.rps", "row.error_rate"},
    "pages/zones/detail.html": {"row.refused"},  # records
}
# It shows what components look like, with numbers of nothing.
STYLEGUIDE = "pages/styleguide.html"


@pytest.fixture
def store(settings: Settings) -> LogStore:
    return open_logs(settings.LOGS_URL)


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def bare(text: str) -> set[str]:
    """Numbers of requests in a template that lead nowhere."""
    found = {re.split(r"[|\s}]", match.group().removeprefix("{{").strip())[0] for match in NUMBERS.finditer(text)}
    return found | {match.group() for match in TILES.finditer(text)}


def count(actor: Actor, url: str) -> int:
    """How many requests the page shows that an address leads to."""
    found = client_of(actor).get(url)
    assert found.status_code == 200, found.content
    return int(found.context["drawing"].total)


def test_the_address_has_the_filter_the_time_and_whose_lines_they_are(acme: Actor, operator: Actor) -> None:
    own = requests_url({"actor": acme}, owner=acme.account, also="status>=500", pool="shop", server='a "b"', region="")
    assert query(own) == {"q": 'pool:shop server:"a \\"b\\"" status>=500', "last": "15m"}
    assert query(requests_url({"actor": operator}, owner=acme.account, route="shop"))["account"] == "acme"
    since = datetime(2026, 11, 23, 8, tzinfo=UTC)
    exact = query(requests_url({"actor": acme}, since=since, until=since + timedelta(seconds=10)))
    assert exact == {"from": "2026-11-23T08:00:00.000", "to": "2026-11-23T08:00:10.000"}


def test_no_address_leads_to_fewer_requests_than_were_counted(acme: Actor, globex: Actor, operator: Actor) -> None:
    assert requests_url({"actor": acme}, owner=globex.account, pool="shop") == ""
    assert query(requests_url({"actor": operator}, region="eu"))["account"] == "*"
    assert "account" not in query(requests_url({"actor": acme}, region="eu"))


def test_every_number_of_requests_in_a_template_leads_to_them() -> None:
    folder = Path(settings.BASE_DIR) / "frontend" / "templates"
    paths = {str(path.relative_to(folder)): bare(path.read_text()) for path in folder.rglob("*.html")}
    assert {path: found for path, found in paths.items() if found and path != STYLEGUIDE} == WITHOUT_LINES


@pytest.mark.parametrize(
    "text",
    [
        '<td>{{ row.figures.errors|default:"–" }}</td>',
        "<td>{{ lane.rps }}</td>",
        '{% include "components/stat.html" with label="Requests" value=row.requests unit="/s" %}',
    ],
)
def test_a_bare_number_is_found(text: str) -> None:
    assert bare(text)


@pytest.mark.parametrize(
    "text",
    [
        '{% include "components/counted.html" with value=row.figures.errors url=failed only %}',
        '{% include "components/stat.html" with label="Requests" value=row.requests unit="/s" url=all %}',
    ],
)
def test_a_number_with_an_address_is_not(text: str) -> None:
    assert not bare(text)


def test_an_operator_finds_the_requests_of_all_accounts_together(
    store: LogStore, acme: Actor, globex: Actor, operator: Actor
) -> None:
    lines = [line(acme.account.pk, 1), line(globex.account.pk, 2, path="/of-globex"), line(987_654, 3)]
    store.store("all", [*lines, line(acme.account.pk, 4, node="us-1")])
    url = requests_url({"actor": operator}, node="eu-1")
    page = client_of(operator).get(url)
    assert page.context["drawing"].total == 2
    text = page.content.decode()
    assert all(f'<td data-label="Account" class="minor">{name}</td>' in text for name in ("acme", "globex"))
    assert "?account=globex" in text
    assert client_of(acme).get("/requests?account=%2A").status_code == 422
    assert client_of(operator).get("/requests/patterns?account=%2A").status_code == 422


def test_numbers_of_a_time_lead_to_as_many_requests(
    store: LogStore, tutorial_env: Actor, acme: Actor, operator: Actor
) -> None:
    pool = Pool.objects.get(name="shop")
    begun = now().astimezone(UTC).replace(microsecond=0) - timedelta(minutes=30)
    failing: list[Record] = []
    for second in range(-400, 400):
        values = {"time": begun + timedelta(seconds=second), "id": f"{second + 500:012x}7{0:019x}"}
        failing.append(line(acme.account.pk, 0, status=503 if second % 4 == 0 else 200, pool=pool.name, **values))
    store.store("failing", failing)
    alert = Alert.objects.create(
        account=acme.account, title="shop fails", severity="critical", weight=3, since=begun, opened_at=begun
    )
    ended = begun + timedelta(seconds=100)
    Finding.objects.create(
        account=acme.account, alert=alert, rule="pool-errors", watches="pool_errors", object_kind="pool",
        object_id=pool.pk, owner="acme", name=pool.name, title="shop fails", severity="critical", since=begun,
        due_at=begun, ended_at=ended,
    )  # fmt: skip
    page = client_of(acme).get(f"/alerts/{alert.pk}").content.decode()
    (href,) = re.findall(r'href="(/requests\?[^"]+)">Requests<', page)
    wanted = [each for each in failing if begun - timedelta(minutes=5) <= each.time < ended and each.status == 503]
    assert count(acme, href.replace("&amp;", "&")) == len(wanted) == 100


@pytest.mark.parametrize(
    "page",
    first_of(
        4,
        [
            *("/pools/{pool}", "/routes/{route}", "/", "/policies/{policy}", "/pools", "/routes", "/overflow"),
            *("/overflow?pool={pool}", "/load-balancers", "/network-lists/{network_list}"),
        ],
    ),
)
def test_pages_with_numbers_open_for_customers_and_operators(
    tutorial_env: Actor, acme: Actor, operator: Actor, page: str
) -> None:
    ids = {"pool": Pool.objects.get(name="shop").pk, "route": Route.objects.get(name="shop").pk}
    ids["policy"] = Policy.objects.create(account=acme.account, name="p").pk
    ids["network_list"] = NetworkList.objects.create(account=acme.account, name="n").pk
    for actor in (acme, operator):
        assert client_of(actor).get(page.format(**ids)).status_code == 200
