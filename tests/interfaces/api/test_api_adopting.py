"""What stands in a cloud is listed, and one of it read into documents that can be applied."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.drivers.clouds.contract import FoundLoadBalancer
from apps.drivers.clouds.memory import MemoryCloud, memory_cloud
from apps.fleet.models import CloudAccount
from tests.apps.clouds_env import remembered
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.api.test_api_openapi import COMPONENTS, check

ARN = "arn:aws:elasticloadbalancing:eu-central-1:1:loadbalancer/app/old-front/50dc"
GROUP = "arn:aws:elasticloadbalancing:eu-central-1:1:targetgroup/web/50dc"
CERTIFICATE = "arn:aws:acm:eu-central-1:1:certificate/50dc"
LIST, ADOPT = "cloud-accounts/prod/load-balancers?region=eu-central-1", "cloud-accounts/prod/adopt"
ORDER = {"region": "eu-central-1", "id": ARN, "name": "adopted"}
WHOLE: dict[str, Any] = ORDER | {
    "account": "acme",
    "regions": {"eu-central-1": "europe-west1"},
    "certificates": {CERTIFICATE: "shop"},
    "stack": "aws-eu",
}


def forward(port: int, protocol: str, **more: Any) -> dict[str, Any]:
    """A listener that hands everything to the one group."""
    action = {"Type": "forward", "Order": 1, "TargetGroupArn": GROUP}
    return {"Port": port, "Protocol": protocol, "DefaultActions": [action], "Rules": [], **more}


def described() -> dict[str, Any]:
    """An internal Application Load Balancer with http, https and one group of one server."""
    target = {"Id": "10.0.0.10", "Port": 8080}
    group = {
        "TargetGroupArn": GROUP, "TargetGroupName": "web", "Protocol": "HTTP", "Port": 8080, "TargetType": "ip",
        "Targets": [target],
    }  # fmt: skip
    return {
        "loadBalancer": {"Scheme": "internal"},
        "listeners": [forward(80, "HTTP"), forward(443, "HTTPS", Certificates=[{"CertificateArn": CERTIFICATE}])],
        "targetGroups": {GROUP: group},
    }


_CLOUDS = remembered()


@pytest.fixture
def clouds(db: None) -> None:
    """The tutorial's definitions with clouds."""
    _CLOUDS.put()


@pytest.fixture
def house(clouds: None) -> Api:
    """The operator's program."""
    return Api(actor_of("operator", Account.Kind.OPERATOR))


@pytest.fixture
def cloud(clouds: None) -> MemoryCloud:
    """The cloud behind the account `prod`, with one load balancer."""
    name = uuid.uuid4().hex
    CloudAccount.objects.filter(name="prod").update(endpoint_url=f"memory://{name}")
    found = memory_cloud(name)
    found.balancers = [FoundLoadBalancer("Application Load Balancer", "old-front", ARN, described())]
    return found


def adopted(house: Api, **order: Any) -> dict[str, Any]:
    """The answer to an order, which is as it is written down."""
    answer = house("POST", ADOPT, WHOLE | order)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    check(found, {"$ref": "#/components/schemas/Adopted"})
    return found


def by_kind(found: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The specs of the objects of a kind."""
    return [each["spec"] for each in found["objects"] if each["kind"] == kind]


def field_errors(answer: Any) -> dict[str, str]:
    """Pointers and codes of a refusal."""
    return {each["pointer"]: each["code"] for each in assert_problem(answer, 422)["errors"]}


def test_what_stands_in_a_region_is_listed_with_its_kind_name_and_id(house: Api, cloud: MemoryCloud) -> None:
    answer = house("GET", LIST)
    assert answer.status_code == 200, answer.content
    assert answer.json() == {
        "region": "eu-central-1",
        "load_balancers": [{"kind": "Application Load Balancer", "name": "old-front", "id": ARN}],
    }
    check(answer.json(), {"$ref": "#/components/schemas/CloudRegion"})


def test_one_is_read_into_objects_and_a_report_of_everything(house: Api, cloud: MemoryCloud) -> None:
    found = adopted(house)
    (front,), (pool,) = by_kind(found, "LoadBalancer"), by_kind(found, "Pool")
    assert front["stacks"] == ["aws-eu"]
    assert [(each["name"], each.get("certificates")) for each in front["listeners"]] == [
        ("http-80", None),
        ("https-443", ["acme/shop"]),
    ]
    assert [each["region"] for each in pool["backends"]] == ["europe-west1"]
    verdicts = {line["found"]: line["verdict"] for line in found["report"]}
    assert verdicts["listener HTTPS 443"] == "mapped"
    assert verdicts["Application Load Balancer old-front, scheme"] == "lossy"
    assert all(bool(line["reason"]) == (line["verdict"] != "mapped") for line in found["report"])


def test_nothing_is_written_and_what_came_out_can_be_applied(house: Api, cloud: MemoryCloud) -> None:
    def stored() -> list[int]:
        return [model._default_manager.count() for model in (LoadBalancer, Pool, Route, Entry)]

    before = stored()
    found = adopted(house, certificates={})
    assert stored() == before
    answer = house("PUT", "apply", {"objects": found["objects"]})
    assert answer.status_code == 200, answer.content
    assert LoadBalancer.objects.filter(name="adopted").exists()
    assert Pool.objects.get(name="web").account.name == "acme"


def test_the_account_is_the_callers_own_where_none_is_said(house: Api, cloud: MemoryCloud) -> None:
    found = house("POST", ADOPT, ORDER | {"regions": WHOLE["regions"]}).json()
    assert {each["account"] for each in found["objects"] if each["kind"] == "Pool"} == {"operator"}


def test_what_was_said_in_vain_stands_in_the_report(house: Api, cloud: MemoryCloud) -> None:
    vain = {
        "regions": WHOLE["regions"] | {"eu-west-9": "us-central1"},
        "certificates": WHOLE["certificates"] | {"arn:another": "another"},
        "addresses": {"203.0.113.7": "front-ip"},
    }
    left_out = {line["found"] for line in adopted(house, **vain)["report"] if line["verdict"] == "left_out"}
    assert left_out == {"region eu-west-9", "certificate arn:another", "address 203.0.113.7"}
    assert not [line for line in adopted(house)["report"] if line["verdict"] == "left_out"]


WRONG: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({"colour": "red"}, {"/colour": "unknown_field"}),
    ({"name": None}, {"/name": "missing"}),
    ({"region": None, "id": None}, {"/region": "missing", "/id": "missing"}),
    ({"region": "http://169.254.169.254/"}, {"/region": "cloud_region"}),
    ({"id": "arn with blanks"}, {"/id": "cloud_id"}),
    ({"account": "Acme", "stack": "a/b"}, {"/account": "name", "/stack": "name"}),
    ({"regions": ["eu-central-1"]}, {"/regions": "not_object"}),
    ({"regions": {"eu-central-1": 7}}, {"/regions/eu-central-1": "not_text"}),
    ({"regions": {"Up/Down": "europe-west1"}}, {"/regions/Up~1Down": "cloud_location"}),
    ({"certificates": {"a\nb": "shop"}}, {"/certificates/a�b": "cloud_id"}),
    ({"addresses": {"010.0.0.1": "front"}}, {"/addresses/010.0.0.1": "address"}),
    ({"addresses": {f"10.0.{each // 256}.{each % 256}": "a" for each in range(1001)}}, {"/addresses": "too_many"}),
)


def test_a_wrong_order_is_refused_with_every_error_before_the_cloud_is_asked(house: Api, cloud: MemoryCloud) -> None:
    for change, refused in WRONG:
        assert field_errors(house("POST", ADOPT, WHOLE | change)) == refused
    assert cloud.asked == 0


def test_what_is_no_object_and_a_wrong_region_are_refused(house: Api, cloud: MemoryCloud) -> None:
    assert assert_problem(house("POST", ADOPT, [1]), 422)
    for url, code in (("", "missing"), ("?region=", "missing"), ("?region=Frankfurt", "cloud_region")):
        assert field_errors(house("GET", f"cloud-accounts/prod/load-balancers{url}")) == {"/region": code}
    assert "/zone" in field_errors(house("GET", f"{LIST}&zone=a"))
    assert cloud.asked == 0


def test_what_the_cloud_says_is_a_conflict_in_its_words(house: Api, cloud: MemoryCloud) -> None:
    assert (
        "no longer has this load balancer"
        in assert_problem(house("POST", ADOPT, WHOLE | {"id": "arn:gone"}), 409)["detail"]
    )
    cloud.failure = "AWS says AccessDenied."
    for answer in (house("GET", LIST), house("POST", ADOPT, WHOLE)):
        assert assert_problem(answer, 409)["detail"] == "AWS says AccessDenied."


def test_customers_have_no_clouds_and_viewers_ask_none(house: Api, cloud: MemoryCloud) -> None:
    api, operator = Api(actor_of("acme", Account.Kind.CUSTOMER)), actor_of("operator", Account.Kind.OPERATOR)
    for url, method, body in ((LIST, "GET", None), (ADOPT, "POST", WHOLE), (ADOPT, "POST", {"colour": "red"})):
        theirs = assert_problem(api(method, url, body), 404)
        missing = assert_problem(house(method, url.replace("prod", "none"), body), 404)
        assert theirs["detail"] == missing["detail"]
        viewer = Api(Actor("viewer", operator.account, "viewer"))
        assert_problem(viewer(method, url, body), 403)
    assert cloud.asked == 0


def test_the_fields_that_are_read_are_those_that_are_written_down(house: Api, cloud: MemoryCloud) -> None:
    answer = house("POST", ADOPT, WHOLE | {"colour": "red"})
    (field_error,) = assert_problem(answer, 422)["errors"]
    known = set(field_error["detail"].rpartition("known are ")[2].rstrip(".").split(", "))
    assert known == set(COMPONENTS["schemas"]["AdoptRequest"]["properties"])
