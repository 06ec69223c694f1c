"""Tokens: shown once, never with more rights than their maker, gone at once when revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import ApiToken
from apps.accounts.tokens import create_token, find_token
from apps.api.v1.urls import urlpatterns
from apps.audit.models import Entry
from apps.core.clock import now
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.people import client_of

NEW = {"name": "ci", "role": "editor"}


def caller(text: str, address: str = "192.0.2.7") -> Client:
    """A program with this token at this address."""
    return Client(headers={"Authorization": f"Bearer {text}"}, REMOTE_ADDR=address)


def narrowed(actor: Actor, **fields: Any) -> Api:
    """A program of the account whose token is narrowed."""
    api = Api(actor)
    text = create_token(account=actor.account, name="narrow", role=fields.pop("role", "admin"), **fields)
    api.client = Client(headers={"Authorization": f"Bearer {text}"}, raise_request_exception=False)
    return api


def pointers(answer: Any) -> set[str]:
    """Where the errors of a 422 are."""
    return {field_error["pointer"] for field_error in assert_problem(answer, 422)["errors"]}


def test_a_token_is_made_shown_once_used_and_revoked(acme: Actor) -> None:
    api = Api(acme)
    made = api("POST", "tokens", NEW | {"scopes": ["routes:write"], "networks": ["192.0.2.0/24"]})
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    text = made.json()["token"]
    url = made["Location"].removeprefix("/api/v1/")
    assert text not in api("GET", url).content.decode() + api("GET", "tokens").content.decode()
    assert text.split("_", 2)[2] not in str([*Entry.objects.values(), *ApiToken.objects.values()])
    assert caller(text).get("/api/v1/routes").status_code == 200
    used = api("GET", url).json()
    assert (used["last_used_from"], used["last_used_at"] is not None) == ("192.0.2.7", True)
    assert api("DELETE", url).status_code == 204
    assert caller(text).get("/api/v1/routes").status_code == 401
    assert_problem(api("DELETE", url), 404)
    assert list(Entry.objects.order_by("id").values_list("action", "object_label", "account__name")) == [
        ("create", "acme/ci", "acme"),
        ("delete", "acme/ci", "acme"),
    ]


def test_a_token_from_another_network_looks_like_an_unknown_one(acme: Actor) -> None:
    networks = ["192.0.2.0/24", "2001:db8::/48"]
    text = create_token(account=acme.account, name="x", role="viewer", networks=networks)
    unknown = f"sw_{'0' * 12}_{'a' * 43}"
    for address in ("192.0.2.255", "2001:db8::1", "::ffff:192.0.2.1"):
        assert caller(text, address).get("/api/v1/routes").status_code == 200
    for address in ("192.0.3.0", "2001:db8:1::1", "nonsense", "fe80::1%eth0"):
        answers = [caller(each, address).get("/api/v1/routes") for each in (text, unknown)]
        assert [answer.status_code for answer in answers] == [401, 401]
        bodies = [answer.json() | {"request_id": ""} for answer in answers]
        assert bodies[0] == bodies[1]


def test_a_header_of_a_remote_client_does_not_move_it_into_the_network(acme: Actor) -> None:
    text = create_token(account=acme.account, name="x", role="viewer", networks=["192.0.2.0/24"])
    client = caller(text, "203.0.113.9")
    assert client.get("/api/v1/routes", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 401
    front = caller(text, "127.0.0.1")
    assert front.get("/api/v1/routes", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 200


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({}, "/name"),
        ({"name": "CI"}, "/name"),
        ({"name": 7}, "/name"),
        ({"name": "ci\u2028"}, "/name"),
        ({"role": "admin"}, "/role"),
        ({"role": ["owner"]}, "/role"),
        ({"scopes": "routes:write"}, "/scopes"),
        ({"scopes": ["routes:write", "routes:own"]}, "/scopes/1"),
        ({"scopes": [["routes:write"]]}, "/scopes/0"),
        ({"networks": ["192.0.2.7/24"]}, "/networks/0"),
        ({"networks": [3221225985]}, "/networks/0"),
        ({"networks": ["0177.0.0.1"]}, "/networks/0"),
        ({"networks": ["10.0.0.0/8"] * 51}, "/networks"),
        ({"expires_in_days": 0}, "/expires_in_days"),
        ({"expires_in_days": 366}, "/expires_in_days"),
        ({"expires_in_days": None}, "/expires_in_days"),
        ({"expires_in_days": True}, "/expires_in_days"),
        ({"expires_in_days": "90"}, "/expires_in_days"),
        ({"account": "globex"}, "/account"),
        ({"account": "operator"}, "/account"),
        ({"key_id": "000000000000"}, "/key_id"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(
    acme: Actor, globex: Actor, sent: dict[str, Any], pointer: str
) -> None:
    api, before = Api(acme), ApiToken.objects.count()
    assert pointer in pointers(api("POST", "tokens", NEW | sent if sent else {}))
    assert ApiToken.objects.count() == before
    assert not ApiToken.objects.filter(name="ci").exists()


def test_what_may_be_left_out_may_be_null(acme: Actor) -> None:
    made = Api(acme)("POST", "tokens", NEW | {"scopes": None, "networks": None, "account": None}).json()
    assert (made["scopes"], made["networks"], made["account"]) == ([], [], "acme")


def test_a_token_ends_after_90_days_unless_said_otherwise(acme: Actor, operator: Actor) -> None:
    Api(acme)("POST", "tokens", NEW)
    left = ApiToken.objects.get(name="ci").expires_at - now()  # type: ignore[operator] # it has one
    assert timedelta(days=89) < left <= timedelta(days=90)
    never = Api(operator)("POST", "tokens", {"name": "node", "role": "viewer", "expires_in_days": None})
    assert never.json()["expires_at"] is None


def test_two_live_tokens_of_an_account_do_not_share_a_name(acme: Actor, globex: Actor) -> None:
    api = Api(acme)
    first = api("POST", "tokens", NEW)
    assert pointers(api("POST", "tokens", NEW)) == {"/name"}
    assert Api(globex)("POST", "tokens", NEW).status_code == 201
    api("DELETE", first["Location"].removeprefix("/api/v1/"))
    assert api("POST", "tokens", NEW).status_code == 201


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_only_owners_make_and_revoke_tokens_and_everybody_lists_them(acme: Actor, role: str) -> None:
    api, target = narrowed(acme, role=role), ApiToken.objects.get(name="narrow")
    assert [each["name"] for each in api("GET", "tokens").json()["items"]] == ["test", "narrow"]
    assert_problem(api("POST", "tokens", {"name": "more", "role": "viewer"}), 403)
    assert_problem(api("DELETE", f"tokens/{target.pk}"), 403)


def test_a_token_never_makes_one_with_more_than_it_has(acme: Actor) -> None:
    scoped = narrowed(acme, scopes=["tokens:write", "routes:write"])
    for scopes in ([], ["*:read"], ["pools:read"], ["routes:write", "pools:write"]):
        assert pointers(scoped("POST", "tokens", NEW | {"scopes": scopes})) == {"/scopes"}
    for name, scopes in (("a", ["routes:write"]), ("b", ["routes:read", "tokens:read"])):
        assert scoped("POST", "tokens", {"name": name, "role": "viewer", "scopes": scopes}).status_code == 201
    ended = narrowed(acme, lifetime=timedelta(days=2))
    assert pointers(ended("POST", "tokens", NEW)) == {"/expires_in_days"}
    assert ended("POST", "tokens", NEW | {"expires_in_days": 1}).status_code == 201
    bound = narrowed(acme, networks=["127.0.0.0/8"])
    for networks in ([], ["126.0.0.0/7"], ["10.0.0.0/8"], ["127.0.0.0/8", "::1"]):
        answer = bound("POST", "tokens", {"name": "c", "role": "viewer", "networks": networks})
        assert pointers(answer) == {"/networks"}
    fine = {"name": "c", "role": "viewer", "networks": ["127.0.0.1"]}
    assert bound("POST", "tokens", fine).json()["networks"] == ["127.0.0.1/32"]


def test_a_scope_for_tokens_is_needed(acme: Actor) -> None:
    without = narrowed(acme, scopes=["routes:write", "*:read"])
    assert without("GET", "tokens").status_code == 200
    assert_problem(without("POST", "tokens", NEW | {"scopes": ["routes:read"]}), 403)


def test_operators_make_tokens_for_customers_and_customers_see_only_their_own(acme: Actor, operator: Actor) -> None:
    house = Api(operator)
    made = house("POST", "tokens", {"name": "gift", "role": "owner", "account": "acme"})
    assert (made.json()["account"], made.json()["role"]) == ("acme", "owner")
    assert {each["account"] for each in Api(acme)("GET", "tokens").json()["items"]} == {"acme"}
    assert {each["account"] for each in house("GET", "tokens?account=acme").json()["items"]} == {"acme"}
    foreign = ApiToken.objects.filter(account=operator.account).earliest("id").pk
    assert_problem(Api(acme)("DELETE", f"tokens/{foreign}"), 404)
    assert Entry.objects.get(object_kind="Token").account == acme.account


def test_the_quota_of_tokens_counts_what_is_live(acme: Actor) -> None:
    api = Api(acme)
    acme.account.quotas = {"tokens": 2}
    acme.account.save()
    first = api("POST", "tokens", NEW)
    assert first.status_code == 201
    body = assert_problem(api("POST", "tokens", {"name": "more", "role": "viewer"}), 422)
    assert (body["errors"][0]["pointer"], body["errors"][0]["code"]) == ("/name", "quota")
    assert "quota of Acme is 2 tokens" in body["detail"]
    ApiToken.objects.filter(name="ci").update(expires_at=now())
    assert api("POST", "tokens", {"name": "more", "role": "viewer"}).status_code == 201


def test_peppers_rotate_and_a_pepper_that_is_gone_ends_its_tokens(acme: Actor, settings: Settings) -> None:
    settings.TOKEN_PEPPERS = {"1": "old"}
    old = create_token(account=acme.account, name="old", role="viewer")
    settings.TOKEN_PEPPERS = {"2": "new", "1": "old"}
    new = create_token(account=acme.account, name="new", role="viewer")
    assert ApiToken.objects.get(name="new").pepper == "2"
    assert find_token(old, "") is not None
    assert find_token(new, "") is not None
    settings.TOKEN_PEPPERS = {"2": "new"}
    assert find_token(old, "") is None
    assert find_token(new, "") is not None
    settings.TOKEN_PEPPERS = {"2": "another"}
    assert find_token(new, "") is None


def test_the_session_of_a_person_opens_nothing_here(operator: Actor) -> None:
    browser = client_of(operator)
    assert browser.get("/pools").status_code == 200
    assert browser.get("/api/v1/pools").status_code == 401


def test_a_suspended_account_is_told_so_by_every_noun(acme: Actor, operator: Actor) -> None:
    api, house = Api(acme), Api(operator)
    account = acme.account
    spec = {"title": "Acme", "kind": "customer", "suspended": True}
    document = {"objects": [{"kind": "Account", "name": "acme", "spec": spec}]}
    assert house("PUT", "apply", document).status_code == 200
    for noun in ("routes", "tokens", "accounts"):
        assert "suspended" in assert_problem(api("GET", noun), 403)["detail"]
    account.refresh_from_db()
    assert account.suspended_at is not None
    assert house("PUT", "apply", {"objects": [{**document["objects"][0], "spec": spec | {"suspended": False}}]})
    assert api("GET", "routes").status_code == 200


def test_every_noun_of_the_api_is_a_scope() -> None:
    from apps.accounts.scopes import NOUNS

    words = {str(pattern.pattern).lstrip("^").split("/")[0].split(":")[0].rstrip("$") for pattern in urlpatterns}
    open_to_all = {"", "apply", "changes", "import", "plans", "openapi.json"}  # or asked object by object
    asked_as_nodes_or_fleets = {"consoles", "node-authorities", "quarantine"}
    asked_as_capacity_tests = {"capacity-runs", "capacity-comparisons", "sizing", "blackouts"}
    as_other_definitions = {"replacements", "canaries", "client-bans", "publications"}
    asked_elsewhere = asked_as_capacity_tests | asked_as_nodes_or_fleets | as_other_definitions
    assert words - set(NOUNS) - open_to_all - asked_elsewhere == set()
