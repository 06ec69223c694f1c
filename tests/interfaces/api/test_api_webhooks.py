"""In the API: made, changed with versions, rotated, tested, and their log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook as Standard

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit import chain
from apps.audit.models import Entry
from apps.webhooks import delivering, following
from apps.webhooks.models import Webhook
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.receiver import Receiver, receiving


@pytest.fixture
def api(acme: Actor) -> Api:
    """Acme's program."""
    return Api(acme)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        yield found


def make(api: Api, receiver: Receiver | None = None, name: str = "hook", **spec: Any) -> dict[str, Any]:
    """A new endpoint as the API answers it."""
    url = receiver.url if receiver else "https://hooks.example.com/x"
    answer = api("POST", "webhooks", {"name": name, "spec": {"url": url, **spec}})
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def deliver() -> None:
    """What the workers would do now."""
    while chain.link_pending() or following.follow():
        continue
    for webhook_id in delivering.due_webhooks():
        delivering.deliver(webhook_id=webhook_id)


def test_an_endpoint_is_made_read_changed_and_deleted(api: Api) -> None:
    made = make(api)
    assert made["secret"].startswith("whsec_")
    assert made["spec"] == {"url": "https://hooks.example.com/x", "event_types": ["*"], "enabled": True}
    url = f"webhooks/{made['id']}"
    read = api("GET", url)
    assert read.json() == {key: value for key, value in made.items() if key != "secret"}
    assert_problem(api("PATCH", url, {"spec": {"enabled": False}}), 428)
    assert_problem(api("PATCH", url, {"spec": {"enabled": False}}, If_Match='"rev-9"'), 412)
    off = api("PATCH", url, {"spec": {"enabled": False}}, If_Match=read["ETag"], X_Change_Reason="too loud")
    assert (off.json()["spec"]["enabled"], off["ETag"]) == (False, '"rev-2"')
    assert Entry.objects.latest("id").reason == "too loud"
    put = api("PUT", url, {"spec": {"url": "https://hooks.example.com/y"}}, If_Match="*")
    assert put.json()["spec"] == {"url": "https://hooks.example.com/y", "event_types": ["*"], "enabled": True}
    assert_problem(api("PUT", url, {"spec": {"enabled": True}}, If_Match="*"), 422)
    assert api("GET", url, If_None_Match=put["ETag"]).status_code == 304
    assert_problem(api("DELETE", url), 428)
    assert api("DELETE", url, If_Match=put["ETag"]).status_code == 204
    assert_problem(api("GET", url), 404)
    actions = Entry.objects.filter(object_kind="Webhook").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["create", "update", "update", "delete"]


def test_a_secret_is_in_no_later_answer_and_not_in_the_record(api: Api) -> None:
    made = make(api)
    rotated = api("POST", f"webhooks/{made['id']}:rotate", {}, If_Match="*").json()
    for secret in (made["secret"], rotated["secret"]):
        for url in ("webhooks", f"webhooks/{made['id']}", "audit-entries"):
            assert secret not in api("GET", url).content.decode()
    assert rotated["previous_secret_until"]
    assert rotated["version"] == 2


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({}, "/spec/url"),
        ({"url": "ftp://a.example"}, "/spec/url"),
        ({"url": "https://169.254.169.254/"}, "/spec/url"),
        ({"url": "https://10.0.0.1/"}, "/spec/url"),
        ({"url": "https://[::ffff:127.0.0.1]/"}, "/spec/url"),
        ({"url": "https://2130706433/"}, "/spec/url"),
        ({"url": "https://a:b@hooks.example.com/"}, "/spec/url"),
        ({"url": "https://hooks.example.com/\r\nX: y"}, "/spec/url"),
        ({"url": 7}, "/spec/url"),
        ({"event_types": []}, "/spec/event_types"),
        ({"event_types": "*"}, "/spec/event_types"),
        ({"event_types": ["route.create"]}, "/spec/event_types/0"),
        ({"event_types": ["*", "rout.*"]}, "/spec/event_types/1"),
        ({"event_types": [7]}, "/spec/event_types/0"),
        ({"event_types": ["*"] * 51}, "/spec/event_types"),
        ({"enabled": "yes"}, "/spec/enabled"),
        ({"secret": "mine"}, "/spec/secret"),
        ([], "/spec"),
    ],
)
def test_every_wrong_field_is_named_and_nothing_is_stored(api: Api, spec: Any, pointer: str) -> None:
    spec = {"url": "https://hooks.example.com/"} | spec if isinstance(spec, dict) and spec else spec
    body = assert_problem(api("POST", "webhooks", {"name": "hook", "spec": spec}), 422)
    assert pointer in {error["pointer"] for error in body["errors"]}
    assert not Webhook.objects.exists()


def test_http_is_for_development_only(api: Api, settings: Settings) -> None:
    settings.DEVELOPMENT = False
    body = {"name": "hook", "spec": {"url": "http://hooks.example.com/"}}
    assert "https://" in assert_problem(api("POST", "webhooks", body), 422)["detail"]


@pytest.mark.parametrize("body", [{"name": "A b", "spec": {}}, {"spec": {}}, {"name": "a", "spec": {}, "owner": "x"}])
def test_a_wrong_envelope_is_refused(api: Api, body: dict[str, Any]) -> None:
    assert_problem(api("POST", "webhooks", body), 422)


def test_a_name_is_taken_once_and_a_quota_holds(api: Api, acme: Actor) -> None:
    make(api)
    taken = {"name": "hook", "spec": {"url": "https://hooks.example.com/"}}
    assert_problem(api("POST", "webhooks", taken), 409)
    Account.objects.filter(pk=acme.account.pk).update(quotas={"webhooks": 2})
    make(api, name="second")
    body = assert_problem(api("POST", "webhooks", taken | {"name": "third"}), 422)
    assert (body["errors"][0]["pointer"], body["errors"][0]["code"]) == ("/name", "quota")


def test_a_foreign_endpoint_and_its_deliveries_answer_as_missing_ones(
    api: Api, globex: Actor, operator: Actor, receiver: Receiver
) -> None:
    made = make(api, receiver)
    delivery = api("POST", f"webhooks/{made['id']}:test").json()["id"]
    stranger, house = Api(globex), Api(operator)
    for pk in (made["id"], 10**6, 10**19):
        for method, url in (
            ("GET", f"webhooks/{pk}"),
            ("PUT", f"webhooks/{pk}"),
            ("PATCH", f"webhooks/{pk}"),
            ("DELETE", f"webhooks/{pk}"),
            ("POST", f"webhooks/{pk}:rotate"),
            ("POST", f"webhooks/{pk}:test"),
            ("GET", f"webhooks/{pk}/deliveries"),
            ("GET", f"webhooks/{pk}/deliveries/{delivery}"),
            ("POST", f"webhooks/{pk}/deliveries/{delivery}:redeliver"),
        ):
            assert_problem(stranger(method, url, {"spec": {}}, If_Match="*"), 404)
    own = make(stranger, name="own")["id"]
    assert_problem(stranger("GET", f"webhooks/{own}/deliveries/{delivery}"), 404)
    assert house("GET", f"webhooks/{made['id']}/deliveries/{delivery}").status_code == 200
    assert [item["name"] for item in stranger("GET", "webhooks").json()["items"]] == ["own"]
    assert len(house("GET", "webhooks?account=acme&name=hook").json()["items"]) == 1


def test_a_viewer_reads_and_changes_nothing(api: Api, acme: Actor) -> None:
    made = make(api)
    viewer = Api(Actor("v", acme.account, "viewer"))
    assert viewer("GET", f"webhooks/{made['id']}").status_code == 200
    spec = {"spec": {"url": "https://hooks.example.com/"}}
    one = f"webhooks/{made['id']}"
    assert_problem(viewer("POST", "webhooks", spec | {"name": "x"}), 403)
    assert_problem(viewer("PATCH", one, spec, If_Match="*"), 403)
    assert_problem(viewer("DELETE", one, If_Match="*"), 403)
    assert_problem(viewer("POST", f"{one}:rotate", {}, If_Match="*"), 403)
    assert_problem(viewer("POST", f"{one}:test"), 403)


def test_only_an_operator_makes_one_for_another_account(api: Api, operator: Actor, acme: Actor) -> None:
    body = {"name": "hook", "account": "globex", "spec": {"url": "https://hooks.example.com/"}}
    assert_problem(api("POST", "webhooks", body), 422)
    made = Api(operator)("POST", "webhooks", body | {"account": "acme"}).json()
    assert made["account"] == "acme"
    assert api("GET", f"webhooks/{made['id']}").status_code == 200


def test_a_test_is_delivered_logged_and_sent_again(api: Api, receiver: Receiver) -> None:
    made = make(api, receiver, event_types=["route.*"])
    receiver.answers[:] = [(500, {}, b"not today"), (200, {}, b"thanks")]
    answer = api("POST", f"webhooks/{made['id']}:test")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    url = answer["Location"].removeprefix("/api/v1/")
    deliver()
    found = api("GET", url).json()
    assert (found["state"], found["next_at"] is None) == ("waiting", False)
    (attempt,) = found["attempts"]
    assert (attempt["status"], attempt["answer"], attempt["error"]) == (500, "not today", "")
    assert api("POST", f"{url}:redeliver").status_code == 202
    deliver()
    found = api("GET", url).json()
    assert (found["state"], [each["status"] for each in found["attempts"]]) == ("delivered", [500, 200])
    Standard(made["secret"]).verify(receiver.heard[1].body, dict(receiver.heard[1].headers))
    assert api("GET", f"webhooks/{made['id']}/deliveries").json()["items"] == [found]
    assert api("GET", f"webhooks/{made['id']}/deliveries?state=failed").json()["items"] == []
    assert_problem(api("GET", f"webhooks/{made['id']}/deliveries?state=x"), 422)


def test_an_endpoint_that_is_off_is_sent_nothing(api: Api, receiver: Receiver) -> None:
    made = make(api, receiver, enabled=False)
    assert_problem(api("POST", f"webhooks/{made['id']}:test"), 409)
