"""Routes by page: what shows, what is refused and where, who wins when two edits meet, how many queries it takes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.definitions.models import Route
from apps.definitions.selectors import describe, routes
from apps.definitions.services import save_object
from tests.breadth import first_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def typed(**changes: str) -> dict[str, str]:
    """A filled-in form for a new route of acme."""
    plain = {
        "name": "news",
        "load_balancer": "front",
        "hostname": "shop.acme.example",
        "path": "/news",
        "path_kind": "prefix",
        "action": "pools",
        "pools-TOTAL_FORMS": "1",
        "pools-INITIAL_FORMS": "1",
        "pools-0-pool": "shop",
        "pools-0-weight": "100",
        "headers-TOTAL_FORMS": "0",
        "query-TOTAL_FORMS": "0",
        "query-INITIAL_FORMS": "0",
        "cookies-TOTAL_FORMS": "0",
        "cookies-INITIAL_FORMS": "0",
        "headers-INITIAL_FORMS": "0",
    }
    return plain | {name.replace("__", "-"): value for name, value in changes.items()}


def text(response: Any) -> str:
    found: str = response.content.decode()
    return found


def test_the_list_shows_what_each_route_matches_and_what_happens(tutorial_env: Actor) -> None:
    shown = text(client_of(tutorial_env).get("/routes"))
    for words in (
        "shop.acme.example/checkout/*",
        "api.globex.example/robots.txt",
        "301 to shop.acme.example",
        "GET, POST",
    ):
        assert words in shown
    assert "5 of 5 routes" in shown


def test_customers_see_their_own_routes_and_answer_404_for_others(tutorial_env: Actor, acme: Actor) -> None:
    client = client_of(acme)
    assert "globex" not in text(client.get("/routes"))
    foreign = Route.objects.get(account__name="globex", name="api")
    for path in ("", "/edit", "/delete"):
        assert client.get(f"/routes/{foreign.pk}{path}").status_code == 404
    assert client.post(f"/routes/{foreign.pk}/delete", {"confirm": "api"}).status_code == 404
    assert client.post("/routes/check", typed(route=str(foreign.pk))).status_code == 404


def test_filters_of_the_url_narrow_the_list_and_say_when_nothing_is_left(tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    shown = text(client.get("/routes?pool=acme/shop-next"))
    assert "shop.acme.example/checkout/*" in shown
    assert "api.globex.example" not in shown
    assert "No matching routes" in text(client.get("/routes?q=nothing-like-this"))


def test_a_false_filter_is_said_and_not_ignored(tutorial_env: Actor) -> None:
    answer = client_of(tutorial_env).get("/routes?cursor=false")
    assert answer.status_code == 422
    assert "start at the first page again" in text(answer)
    assert "next_cursor" not in text(answer)


def test_an_empty_list_says_how_to_begin(acme: Actor) -> None:
    assert "No routes yet" in text(client_of(acme).get("/routes"))


def test_a_route_is_made_by_the_form(tutorial_env: Actor, acme: Actor) -> None:
    answer = client_of(acme).post(
        "/routes/new",
        typed(
            methods="GET",
            pools__TOTAL_FORMS="2",
            pools__0__weight="90",
            pools__1__pool="shop-next",
            pools__1__weight="10",
            headers__TOTAL_FORMS="1",
            headers__0__name="X-Beta",
            headers__0__match="present",
            headers__0__value="left over",
            reason="spring campaign",
        ),
    )
    made = routes(acme).get(name="news")
    assert answer.headers["Location"] == f"/routes/{made.pk}"
    spec = describe(made)
    assert spec["methods"] == ["GET"]
    assert spec["headers"] == [{"name": "X-Beta", "match": "present", "value": ""}]
    assert spec["action"] == {"pools": [{"pool": "shop", "weight": 90}, {"pool": "shop-next", "weight": 10}]}
    assert Entry.objects.get(object_kind="Route", object_id=made.pk).reason == "spring campaign"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            {"action": "redirect", "redirect_code": "308", "redirect_host": "www.acme.example"},
            {"redirect": {"code": 308, "scheme": None, "host": "www.acme.example", "path": None, "keep_query": False}},
        ),
        (
            {
                "action": "redirect",
                "redirect_code": "307",
                "redirect_port": "8443",
                "redirect_prefix": "/new",
                "redirect_query": "from=old",
                "redirect_keep_query": "on",
            },
            {
                "redirect": {
                    "code": 307,
                    "scheme": None,
                    "host": None,
                    "port": 8443,
                    "path": None,
                    "prefix": "/new",
                    "keep_query": True,
                    "query": "from=old",
                }
            },
        ),
        (
            {
                "action": "fixed_response",
                "fixed_status": "410",
                "fixed_body": "gone\r\nfor good",
                "fixed_content_type": "",
            },
            {"fixed_response": {"status": 410, "content_type": "text/plain; charset=utf-8", "body": "gone\nfor good"}},
        ),
    ],
)
def test_other_actions_need_no_pool(
    tutorial_env: Actor, acme: Actor, action: dict[str, str], expected: dict[str, Any]
) -> None:
    answer = client_of(acme).post("/routes/new", typed(pools__0__pool="", pools__0__weight="7") | action)
    assert answer.status_code == 302
    assert describe(routes(acme).get(name="news"))["action"] == expected


@pytest.mark.parametrize(
    ("changes", "sentence"),
    first_of(
        6,
        [
            ({"hostname": "UPPER.example.com"}, "Write the host name in lower case"),
            ({"path": "/checkout"}, "already matches the same requests"),
            ({"pools__0__weight": "1001"}, "Use a number from 0 to 1000"),
            ({"name": "shop"}, "A Route named shop already exists."),
            ({"action": "redirect", "redirect_code": "301"}, "Set at least one of scheme, host, port, path and prefix"),
            ({"headers__TOTAL_FORMS": "1", "headers__0__name": "X Y", "headers__0__match": "present"}, "inner hyphens"),
            ({"hostname": ""}, "Fill in the hostname."),
            ({"path": "no-slash"}, "Begin the path with a slash."),
            ({"pools__0__pool": "absent"}, "There is no pool absent."),
            ({"action": "redirect", "redirect_code": "301", "redirect_port": "0"}, "Use a number from 1 to 65535"),
            (
                {"action": "redirect", "redirect_code": "301", "redirect_path": "/a", "redirect_prefix": "/b"},
                "Set either path or prefix for the redirect.",
            ),
            (
                {"action": "redirect", "redirect_code": "301", "redirect_prefix": "/b", "path_kind": "exact"},
                "Only a prefix route can redirect to another prefix",
            ),
            ({"action": "fixed_response", "fixed_status": "999"}, "Use a number from"),
            ({"prefix_rewrite": "/x", "path_kind": "exact"}, "Only a prefix route to pools can rewrite its prefix."),
        ],
    ),
)
def test_a_refused_form_keeps_what_was_typed_and_says_why_beside_the_field(
    tutorial_env: Actor, acme: Actor, changes: dict[str, str], sentence: str
) -> None:
    data = typed(**changes)
    answer = client_of(acme).post("/routes/new", data)
    assert answer.status_code == 422
    shown = text(answer)
    start = shown.index('<form class="form"')
    form = shown[start : shown.index("</form>", start)]
    assert sentence in form.replace("&#x27;", "'")
    assert 'class="error"' in form
    assert f'value="{data["path"]}"' in form
    assert not routes(acme).filter(name="news").exists()


def test_the_rail_stands_by_what_was_typed_also_when_it_was_refused(tutorial_env: Actor, acme: Actor) -> None:
    shown = text(client_of(acme).post("/routes/new", typed(pools__0__pool="absent")))
    assert "-prefix.map: shop.acme.example/news/ route-0" in shown


def test_all_errors_show_at_once_also_when_a_field_could_not_be_read(tutorial_env: Actor, acme: Actor) -> None:
    shown = text(client_of(acme).post("/routes/new", typed(hostname="", path="no-slash", pools__0__weight="many")))
    for sentence in ("Fill in the hostname.", "Begin the path with a slash.", "Enter a whole number."):
        assert sentence in shown


def test_an_edit_starts_from_what_is_stored_and_saving_it_unchanged_changes_nothing(
    tutorial_env: Actor, acme: Actor
) -> None:
    client, route = client_of(acme), routes(acme).get(name="checkout")
    shown = text(client.get(f"/routes/{route.pk}/edit"))
    assert 'value="shop-next"' in shown
    data = typed(path="/checkout", version="1", pools__TOTAL_FORMS="2", pools__0__weight="90")
    data |= {"pools-1-pool": "shop-next", "pools-1-weight": "10"}
    assert client.post(f"/routes/{route.pk}/edit", data).status_code == 302
    assert routes(acme).get(pk=route.pk).version == 1


def began(client: Client, route: Route) -> str:
    """Where the form of the route begins, as the page carries it along."""
    return re.search(r'name="began" value="([^"]+)"', text(client.get(f"/routes/{route.pk}/edit")))[1]  # type: ignore[index]


def test_two_edits_of_one_field_show_all_three_sides_and_the_person_decides(tutorial_env: Actor, acme: Actor) -> None:
    client, route = client_of(acme), routes(acme).get(name="shop")
    mine = typed(path="/mine", version="1", began=began(client, route))
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | {"path": "/theirs"}, reason="New shelf")
    answer = client.post(f"/routes/{route.pk}/edit", mine)
    assert answer.status_code == 409
    shown = text(answer)
    assert [f"<pre>{path}</pre>" in shown for path in ("/", "/mine", "/theirs")] == [True] * 3
    assert "somebody of acme saved version 2" in shown
    assert "New shelf" in shown
    assert "You both changed 1 field. Choose a value for each." in shown
    assert 'name="version" value="2"' in shown
    assert routes(acme).get(pk=route.pk).path == "/theirs"
    assert client.post(f"/routes/{route.pk}/edit", mine | {"version": "2"}).status_code == 302
    assert routes(acme).get(pk=route.pk).path == "/mine"


def test_two_edits_of_different_fields_stand_together_in_the_form(tutorial_env: Actor, acme: Actor) -> None:
    client, route = client_of(acme), routes(acme).get(name="shop")
    mine = typed(path="/mine", version="1", began=began(client, route))
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | {"methods": ["GET"]})
    shown = text(client.post(f"/routes/{route.pk}/edit", mine))
    assert "You changed different fields. The form below has both changes." in shown
    assert re.search(r'name="path" value="/mine"', shown)
    assert re.search(r'value="GET"[^>]*checked', shown)
    assert routes(acme).get(pk=route.pk).path == "/"


def test_a_conflict_without_a_beginning_shows_yours_and_live(tutorial_env: Actor, acme: Actor) -> None:
    client, route = client_of(acme), routes(acme).get(name="shop")
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | {"path": "/theirs"})
    shown = text(client.post(f"/routes/{route.pk}/edit", typed(path="/mine", version="1", began="forged")))
    assert "You started with" not in shown
    assert "Overwrite with mine" in shown


def test_a_row_that_equals_what_somebody_else_stored_meanwhile_is_not_lost(tutorial_env: Actor, acme: Actor) -> None:
    client, route = client_of(acme), routes(acme).get(name="shop")
    both = [{"pool": "shop", "weight": 100}, {"pool": "shop-next", "weight": 10}]
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | {"action": {"pools": both}})
    mine = typed(path="/mine", version="2", pools__TOTAL_FORMS="2", pools__1__pool="shop-next", pools__1__weight="10")
    assert client.post(f"/routes/{route.pk}/edit", mine).status_code == 302
    assert describe(routes(acme).get(pk=route.pk))["action"] == {"pools": both}


def test_removed_and_blank_rows_are_left_out(tutorial_env: Actor, acme: Actor) -> None:
    rows = typed(pools__TOTAL_FORMS="3", pools__1__pool="shop-next", pools__1__weight="5", pools__1__DELETE="on")
    rows |= {"pools-2-pool": "", "pools-2-weight": "100"}
    assert client_of(acme).post("/routes/new", rows).status_code == 302
    assert describe(routes(acme).get(name="news"))["action"] == {"pools": [{"pool": "shop", "weight": 100}]}


def test_the_check_says_who_else_matches_and_what_nodes_will_run(tutorial_env: Actor, acme: Actor) -> None:
    shown = text(client_of(acme).post("/routes/check", typed(path="/checkout/new")))
    assert (
        "acme/checkout (shop.acme.example/checkout) no longer gets the requests "
        "for /checkout/new; this route takes them." in shown
    )
    assert "-prefix.map: shop.acme.example/checkout/new/ route-0" in shown
    assert "kind: Route" in shown
    assert not routes(acme).filter(name="news").exists()


def test_the_check_bears_a_form_that_is_hardly_begun(tutorial_env: Actor, acme: Actor) -> None:
    client = client_of(acme)
    assert client.post("/routes/check", {}).status_code == 200
    assert "hostname" in text(client.post("/routes/check", typed(hostname="", pools__0__pool="")))


def test_the_check_tells_operators_alone_that_a_hostname_is_taken(tutorial_env: Actor, acme: Actor) -> None:
    shown = text(client_of(acme).post("/routes/check", typed(hostname="api.globex.example")))
    assert "Another account" not in shown
    assert "globex/" not in shown
    shown = text(client_of(tutorial_env).post("/routes/check", typed(hostname="api.globex.example")))
    assert "Another account has verified api.globex.example" in shown


def test_viewers_read_but_find_no_way_to_write(tutorial_env: Actor, acme: Actor) -> None:
    client, route = client_of(acme, Membership.Role.VIEWER), routes(acme).get(name="shop")
    assert "New route" not in text(client.get("/routes"))
    assert "/edit" not in text(client.get(f"/routes/{route.pk}"))
    for path in ("/routes/new", f"/routes/{route.pk}/edit", f"/routes/{route.pk}/delete"):
        assert client.get(path).status_code == 403
    assert client.post("/routes/new", typed()).status_code == 403


def test_a_route_goes_when_its_name_is_typed(tutorial_env: Actor, acme: Actor) -> None:
    client, route = client_of(acme), routes(acme).get(name="checkout")
    refused = client.post(f"/routes/{route.pk}/delete", {"confirm": "something", "reason": "over"})
    assert refused.status_code == 422
    assert 'value="over"' in text(refused)
    assert client.post(f"/routes/{route.pk}/delete", {"confirm": "checkout", "reason": "over"}).status_code == 302
    assert not routes(acme).filter(pk=route.pk).exists()
    assert Entry.objects.get(object_kind="Route", object_id=route.pk, action="delete").reason == "over"


def test_a_route_that_changed_meanwhile_is_not_deleted(tutorial_env: Actor, acme: Actor) -> None:
    client, route = client_of(acme), routes(acme).get(name="checkout")
    save_object(actor=acme, kind="Route", name="checkout", spec=describe(route) | {"path": "/other"})
    answer = client.post(f"/routes/{route.pk}/delete", {"confirm": "checkout", "version": "1"})
    assert answer.headers["Location"] == f"/routes/{route.pk}"
    assert routes(acme).filter(pk=route.pk).exists()


def test_the_page_of_a_route_says_how_to_try_it_on_each_node_and_where_it_is_live(tutorial_env: Actor) -> None:
    route = Route.objects.get(name="checkout")
    shown = text(client_of(tutorial_env).get(f"/routes/{route.pk}")).replace("&#x27;", "'")
    assert "Live on 0 of 4 nodes" in shown
    for port in (8080, 8180, 8280, 8380):
        assert f"curl -i -H 'Host: shop.acme.example' http://127.0.0.1:{port}/checkout" in shown


def test_customers_see_fleets_but_no_nodes(tutorial_env: Actor, acme: Actor) -> None:
    shown = text(client_of(acme).get(f"/routes/{routes(acme).get(name='checkout').pk}"))
    assert "Live on 0 of 2 fleets" in shown
    assert "us-1" not in shown
    assert "127.0.0.1" not in shown


def test_a_new_route_begins_with_the_only_load_balancer_that_stands_on_fleets_and_with_nobodys_account(
    tutorial_env: Actor,
) -> None:
    listener = {"name": "http", "protocol": "http", "port": 80}
    spec: dict[str, Any] = {"fleets": [], "listeners": [listener]}
    save_object(actor=tutorial_env, kind="LoadBalancer", name="cloud-front", spec=spec)
    client = client_of(tutorial_env)
    form = client.get("/routes/new").context["form"]
    assert (form["load_balancer"].value(), form["account"].value()) == ("front", None)
    answer = client.post("/routes/new", typed(account="", load_balancer=""))
    assert answer.context["form"].errors["account"] == ["Choose the account that owns the route."]
    assert answer.context["form"].errors["load_balancer"] == ["Choose a load balancer."]
    checked = text(client.post("/routes/check", typed(account="", hostname="new.acme.example")))
    assert "Choose the account that owns the route." in checked
    assert "There is no pool" not in checked, "the operator's own pools are not meant"
    spec = {"fleets": ["us-central1"], "listeners": [listener | {"port": 81}]}
    save_object(actor=tutorial_env, kind="LoadBalancer", name="other", spec=spec)
    assert client.get("/routes/new").context["form"]["load_balancer"].value() == "", "one of several is nobody's choice"
