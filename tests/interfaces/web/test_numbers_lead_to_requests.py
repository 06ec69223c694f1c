"""From numbers of requests one click leads to the requests, unless no page shows as many as were counted."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings

from apps.accounts.actors import Actor
from apps.definitions.models import Pool, Route
from apps.web.templatetags.request_lines import requests_url
from tests.interfaces.people import client_of

# A number of requests that stands there by itself: these say how many, not which.
NUMBERS = re.compile(r"\{\{\s*[\w.]*figures\.(?:requests|errors)\b[^}]*\}\}")
# Numbers of all accounts together, for operators.
OF_ALL = {"pages/load_balancers/detail.html", "pages/load_balancers/list.html"}


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def test_the_address_has_the_filter_the_time_and_whose_lines_they_are(acme: Actor, operator: Actor) -> None:
    own = requests_url({"actor": acme}, owner=acme.account, also="status>=500", pool="shop", server='a "b"')
    assert query(own) == {"q": 'pool:shop server:"a \\"b\\"" status>=500', "last": "15m"}
    assert query(requests_url({"actor": operator}, owner=acme.account, route="shop"))["account"] == "acme"


def test_no_address_leads_to_fewer_requests_than_were_counted(acme: Actor, globex: Actor, operator: Actor) -> None:
    assert requests_url({"actor": acme}, owner=globex.account, pool="shop") == ""
    assert requests_url({"actor": operator}, region="eu") == ""
    assert requests_url({"actor": acme}, region="eu") != ""


def test_every_number_of_requests_in_a_template_leads_to_them() -> None:
    folder = Path(settings.BASE_DIR) / "frontend" / "templates"
    bare = {str(path.relative_to(folder)) for path in folder.rglob("*.html") if NUMBERS.search(path.read_text())}
    assert bare == OF_ALL


def test_a_bare_number_is_found() -> None:
    assert NUMBERS.search('<td>{{ row.figures.errors|default:"–" }}</td>')
    assert not NUMBERS.search('{% include "components/counted.html" with value=row.figures.errors url=failed only %}')


@pytest.mark.parametrize("page", ["/pools", "/routes", "/pools/{pool}", "/routes/{route}", "/"])
def test_pages_with_numbers_open_for_customers_and_operators(
    tutorial_env: Actor, acme: Actor, operator: Actor, page: str
) -> None:
    ids = {"pool": Pool.objects.get(name="shop").pk, "route": Route.objects.get(name="shop").pk}
    for actor in (acme, operator):
        assert client_of(actor).get(page.format(**ids)).status_code == 200
