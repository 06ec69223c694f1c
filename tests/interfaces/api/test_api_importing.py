"""A haproxy.cfg is sent and comes back as a report of each line with a plan; nothing else is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.accounts.tokens import create_token
from apps.audit.models import Entry
from apps.definitions.models import Pool, Route, StoredPlan
from apps.fleet.models import Fleet
from apps.importing import apart, ordering, services
from tests.conftest import actor_of
from tests.forked_readers import forked_readers
from tests.interfaces.api.test_api_objects import Api, assert_problem, house
from tests.interfaces.api.test_api_openapi import check

__all__ = ["forked_readers", "house"]
FLEET = "us-central1"
DEFAULTS = "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"
FILE = f"""{DEFAULTS}
frontend moved-in
 bind :8181
 http-response set-header X-Frame-Options DENY
 http-request lua.guard
 use_backend moved-api if {{ path_beg /api }}
 default_backend moved-web
backend moved-api
 server a 10.50.0.1:8080 check
backend moved-web
 server w 10.50.0.2:8080 check
"""
SECRETS = f"""{DEFAULTS}
userlist people
 user alice insecure-password correct-horse
 user bob password $6$salt$hash-of-bob
frontend guarded
 bind :8182
 bind :8443 ssl crt /etc/ssl/site.pem
 stats auth admin:open-sesame
 http-request set-header Authorization "Basic cHJpdmF0ZQ=="
 http-request auth unless {{ http_auth(people) }}
 default_backend behind
backend behind
 option httpchk GET / HTTP/1.1\\r\\nAuthorization:\\ Basic\\ Y2hlY2stbWU=
 server a 10.50.0.1:8080 check
"""
HIDDEN = (
    "correct-horse",
    "hash-of-bob",
    "open-sesame",
    "cHJpdmF0ZQ",
    "Y2hlY2stbWU",
    "battery-staple",
    "c2VjcmV0LWtleQ",
)

pytestmark = pytest.mark.slow(reason="each import reads, compares and renders everything")
forked = pytest.mark.usefixtures("forked_readers")


def order(text: str = FILE, **more: Any) -> dict[str, Any]:
    return {"files": {"haproxy.cfg": text}, "fleets": [FLEET]} | more


def imported(house: Api, text: str = FILE, **more: Any) -> dict[str, Any]:
    answer = house("POST", "import", order(text, **more))
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    check(found, {"$ref": "#/components/schemas/Imported"})
    return found


def field_errors(answer: Any) -> dict[str, str]:
    return {each["pointer"]: each["code"] for each in assert_problem(answer, 422)["errors"]}


def test_every_line_has_a_verdict_and_the_plan_applies_exactly_what_was_shown(house: Api) -> None:
    entries = Entry.objects.count()
    found = imported(house)
    assert sum(found["counts"].values()) == len(found["lines"])
    (lua,) = [each for each in found["lines"] if each["text"].startswith("http-request lua")]
    assert lua["verdict"] == "not_possible"
    assert lua["reasons"]
    assert {"kind": "Pool", "account": None, "name": "moved-api"} in found["objects"]
    assert (Pool.objects.filter(name="moved-api").count(), Entry.objects.count()) == (0, entries)
    plan = found["plan"]
    assert plan["counts"] == {"create": len(found["objects"]), "update": 0, "delete": 0, "unchanged": 0}
    shown = house("GET", f"plans/{plan['plan_id']}")
    check(shown.json(), {"$ref": "#/components/schemas/PlanDetail"})
    answer = house("POST", f"plans/{plan['plan_id']}/apply")
    assert answer.status_code == 200, answer.content
    assert answer.json()["counts"] == plan["counts"]
    assert Route.objects.filter(load_balancer__name="moved-in").exists()


@forked
def test_the_same_files_again_change_nothing_and_a_changed_one_shows_what_changed(house: Api) -> None:
    house("POST", f"plans/{imported(house)['plan']['plan_id']}/apply")
    again = imported(house)["plan"]
    assert again["counts"] | {"unchanged": 0} == dict.fromkeys(("create", "update", "delete", "unchanged"), 0)
    changed = imported(house, FILE.replace("10.50.0.2", "10.50.0.3"))["plan"]
    (update,) = [each for each in changed["changes"] if each["action"] != "unchanged"]
    assert (update["action"], update["kind"], update["name"]) == ("update", "Pool", "moved-web")
    assert "10.50.0.3" in json.dumps(update["fields"])


@forked
def test_there_is_no_plan_before_all_questions_are_answered(house: Api) -> None:
    Fleet.objects.filter(name=FLEET).update(local_development=False)
    text = FILE.replace("10.50.0.1:8080", "127.0.0.1:8080")
    found = imported(house, text)
    assert (found["plan"], StoredPlan.objects.count()) == (None, 0)
    assert any("servers: 127.0.0.1:8080=HOST:PORT" in need for need in found["needs"])
    answered = imported(house, text, servers={"127.0.0.1:8080": "10.50.0.9:8080"})
    assert answered["needs"] == []
    assert any("underscore" in each for each in answered["everywhere"])
    assert answered["plan"]["counts"]["create"] > 0


@forked
def test_parts_that_cannot_be_brought_keep_no_other_part_from_a_plan(house: Api) -> None:
    parts = """
frontend again
 bind *:8181
 default_backend moved-api
frontend circle
 bind :8184
 redirect scheme http code 301
frontend gone
 mode tcp
 bind :8185
 default_backend nowhere
"""
    found = imported(house, FILE + parts)
    lost = {each["text"] for each in found["lines"] if each["verdict"] == "not_possible"}
    assert {"bind *:8181", "default_backend nowhere"} <= lost
    names = [each["name"] for each in found["objects"] if each["kind"] == "LoadBalancer"]
    assert (names, found["needs"], found["refusals"]) == (["moved-in", "circle"], [], [])
    assert house("POST", f"plans/{found['plan']['plan_id']}/apply").status_code == 200


@forked
def test_objects_that_are_refused_are_named_with_their_field(house: Api) -> None:
    text = FILE.replace("{ path_beg /api }", "{ hdr(host) shop.acme.example }")
    found = imported(house, text, account="globex")
    assert (found["plan"], StoredPlan.objects.count()) == (None, 0)
    assert {"Route"} == {each["kind"] for each in found["refusals"]}
    assert {"/spec/hostname"} == {each["field"] for each in found["refusals"]}
    assert all("shop.acme.example" in each["detail"] or each["name"] for each in found["refusals"])


@forked
def test_no_secret_of_the_files_comes_back_or_is_kept_in_the_open(house: Api, caplog: pytest.LogCaptureFixture) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LWtleQ==\n-----END PRIVATE KEY-----\n"
    more = {"passwords": {"bob": "battery-staple"}, "certificates": {"/etc/ssl/site.pem": "shop"}}
    files = {"haproxy.cfg": SECRETS + key, "site.pem": key}
    for body in (
        order(SECRETS, files=files, file="haproxy.cfg", **more),
        order(SECRETS, files=files, file="site.pem", format="haproxy"),
    ):
        answer = house("POST", "import", body)
        assert answer.status_code == 200, answer.content
        told = answer.content.decode()
        kept = json.dumps(list(StoredPlan.objects.values_list("summary", flat=True)))
        audited = json.dumps(list(Entry.objects.values_list("before", "after")), default=str)
        for secret in HIDDEN:
            assert secret not in json.dumps(answer.json()["lines"])
            assert secret not in told.partition('"plan"')[0]
            assert secret not in audited + caplog.text
        for secret in ("correct-horse", "battery-staple", "c2VjcmV0LWtleQ"):
            assert secret not in told + kept


def test_a_customer_and_an_operator_who_only_reads_are_refused_and_nothing_is_kept(
    tutorial_env: Actor, acme: Actor
) -> None:
    reader = Api(actor_of("operator", Account.Kind.OPERATOR, role=Membership.Role.VIEWER))
    for caller in (Api(acme), reader):
        assert_problem(caller("POST", "import", order()), 403)
        assert_problem(caller("POST", "import", order(account="acme")), 403)
    assert not StoredPlan.objects.exists()


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({}, "/files", "missing"),
        ({"files": {}}, "/files", "missing"),
        ({"files": []}, "/files", "not_object"),
        ({"files": {"../../etc/passwd": "x", "haproxy.cfg": FILE}}, "/files/..~1..~1etc~1passwd", "file_name"),
        ({"files": {"a\\b": "x", "haproxy.cfg": FILE}}, "/files/a\\b", "file_name"),
        ({"files": {"haproxy.cfg": 7}}, "/files/haproxy.cfg", "not_text"),
        ({"files": {"haproxy.cfg": ""}}, "/file", "empty"),
        ({"files": {"haproxy.cfg": "x" * (ordering.LONGEST_LINE + 1)}}, "/file", "too_long"),
        ({"files": {"haproxy.cfg": "\n" * (ordering.MOST_LINES + 1)}}, "/file", "too_large"),
        ({"files": {"haproxy.cfg": FILE, "x": "x" * (ordering.MOST_BYTES + 1)}}, "/files", "too_large"),
        ({"files": {f"{n}.map": "x" for n in range(ordering.MOST_FILES + 1)}}, "/files", "too_many"),
        ({"files": {"a.cfg": FILE, "b.cfg": FILE}}, "/file", "missing"),
        (order(file="other.cfg"), "/file", "unknown"),
        (order(format="apache"), "/format", "unknown"),
        (
            order("once upon a time", file="story.txt", files={"story.txt": "once upon a time"}),
            "/format",
            "not_recognised",
        ),
        (order(fleets=["nowhere"]), "/fleets", "unknown"),
        (order(fleets="us"), "/fleets", "not_list"),
        (order(region="nowhere"), "/region", "unknown"),
        (order(account="nobody"), "/account", "unknown"),
        (order(prefix="Shop/"), "/prefix", "prefix"),
        (order(servers={"127.0.0.1:1": ""}), "/servers/127.0.0.1:1", "word"),
        (order(passwords=["x"]), "/passwords", "not_object"),
        (order(certificates={"a.pem": "../x"}), "/certificates/a.pem", "name"),
        (order(polices={}), "/polices", "unknown_field"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(house: Api, body: dict[str, Any], pointer: str, code: str) -> None:
    assert field_errors(house("POST", "import", body)).get(pointer) == code
    assert not StoredPlan.objects.exists()


@forked
def test_what_is_too_much_for_a_request_is_sent_to_the_command(house: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_OBJECTS", 2)
    answer = house("POST", "import", order())
    assert field_errors(answer) == {"/file": "too_large"}
    assert "manage.py import" in answer.json()["detail"]


def test_a_reader_that_takes_too_long_is_ended_and_the_caller_is_told(
    house: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "WAIT_S", 0.01)
    answer = house("POST", "import", order())
    assert field_errors(answer) == {"/file": "too_large"}


def test_only_so_many_are_read_at_once(house: Api) -> None:
    for _ in range(apart.AT_ONCE):
        apart._turns.acquire()
    try:
        assert_problem(house("POST", "import", order()), 503)
    finally:
        for _ in range(apart.AT_ONCE):
            apart._turns.release()
    assert house("POST", "import", order()).status_code == 200


@forked
def test_a_token_is_asked_for_the_scopes_of_the_objects(house: Api, tutorial_env: Actor) -> None:
    def caller(*scopes: str) -> Api:
        found = Api(tutorial_env)
        token = create_token(account=tutorial_env.account, name=scopes[0], role="admin", scopes=scopes)
        found.client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {token}"
        return found

    assert_problem(caller("routes:read")("POST", "import", order()), 403)
    assert_problem(caller("pools:write")("POST", "import", order()), 403)
    assert not StoredPlan.objects.exists()
    assert caller("*:write")("POST", "import", order()).status_code == 200
