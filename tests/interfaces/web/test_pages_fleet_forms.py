"""Forms of load balancers, listeners, fleets and nodes: what is typed becomes their documents, nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.definitions.models import Listener, LoadBalancer
from apps.definitions.reading.describing import describe
from apps.definitions.services import apply_document, drain_region, save_object
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.traffic.load_balancer import ListenerSpec
from apps.fleet.models import Fleet, Node, Region
from apps.web.kit.shape_forms import Checkboxes
from tests.apps.test_definitions_services import pem_pair
from tests.authorities import Authority
from tests.breadth import first_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def front(tutorial_env: Actor) -> LoadBalancer:
    return LoadBalancer.objects.get(name="front")


def send(actor: Actor, url: str, *ids: int, **fields: Any) -> Any:
    """The form as it is shown, sent back with these fields; `spec__port` is the field of that pointer."""
    client, path = client_of(actor), reverse(f"web:{url}", args=ids)
    changed = {f"/{key.replace('__', '/')}": value for key, value in fields.items()}
    return client.post(path, shown_by(client.get(path).context) | changed)


def shown_by(context: Any) -> dict[str, Any]:
    """What a browser would send of the form that a page has: names of several boxes as a list, no empty box."""
    form = context["form"]
    values = {name: form[name].value() for name in form.fields}
    for name, value in values.items():
        if isinstance(form.fields[name].widget, Checkboxes):
            values[name] = str(value or "").splitlines()
    return {name: value for name, value in values.items() if value not in (None, False)} | {
        "version": context["version"]
    }


def listeners_of(balancer: LoadBalancer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = describe(LoadBalancer.objects.get(pk=balancer.pk))["listeners"]
    return found


def test_a_load_balancer_begins_with_its_fleets_and_gets_its_listeners_one_by_one(tutorial_env: Actor) -> None:
    send(tutorial_env, "load-balancer-new", name="side", spec__fleets=["us-central1"])
    side = LoadBalancer.objects.get(name="side")
    assert describe(side) == {"fleets": ["us-central1"], "stacks": [], "listeners": []}
    send(tutorial_env, "listener-new", side.pk, spec__listeners__0__name="web", spec__listeners__0__port="9090")
    send(tutorial_env, "listener-new", side.pk, spec__listeners__1__name="more", spec__listeners__1__port="9091")
    assert [(each["name"], each["protocol"], each["port"]) for each in listeners_of(side)] == [
        ("more", "http", 9091),
        ("web", "http", 9090),
    ]


def test_the_forms_save_what_they_show_unchanged(front: LoadBalancer, tutorial_env: Actor) -> None:
    listener, fleet, node = (
        Listener.objects.get(load_balancer=front),
        Fleet.objects.earliest("pk"),
        Node.objects.first(),
    )
    assert node is not None
    before = [describe(row) for row in (front, fleet, node)]
    for url, ids in (
        ("load-balancer-edit", (front.pk,)),
        ("listener-edit", (front.pk, listener.pk)),
        ("fleet-edit", (fleet.pk,)),
        ("node-edit", (node.pk,)),
    ):
        assert send(tutorial_env, url, *ids).status_code == 302, url
    for row in (front, fleet, node):
        row.refresh_from_db()
    assert [describe(LoadBalancer.objects.get(pk=front.pk)), describe(fleet), describe(node)] == before
    assert {front.version, fleet.version, node.version} == {1}


def test_a_listener_is_told_only_what_was_typed(front: LoadBalancer, tutorial_env: Actor) -> None:
    listener = Listener.objects.get(load_balancer=front)
    begin = listeners_of(front)[0]
    fields = {"connections__max_connections": "500", "client_address__forwarded_from": "192.0.2.0/24"}
    told = {f"spec__listeners__0__{name}": value for name, value in fields.items()}
    send(tutorial_env, "listener-edit", front.pk, listener.pk, **told, spec__listeners__0__compression="on")
    now = listeners_of(front)[0]
    assert now["connections"]["max_connections"] == 500
    assert now["client_address"]["forwarded_from"] == ["192.0.2.0/24"]
    assert "text/html" in now["compression"]["types"]
    assert {name: now[name] for name in begin} == begin
    assert set(now) - set(begin) == {"connections", "client_address", "compression"}


def test_what_has_no_field_stays(front: LoadBalancer, tutorial_env: Actor) -> None:
    """A form that forgot them would take away the listeners, or no longer ask clients for certificates."""
    chain, key = pem_pair("shop.example")
    certificate = {"kind": "Certificate", "name": "house", "spec": {"chain": chain, "key": key}}
    spec = describe(front)
    asked = [{"mode": "required", "ca": Authority("Issuer").pem, "hostnames": ["shop.example"]}]
    spec["listeners"][0] |= {"protocol": "https", "certificates": ["house"], "client_certificates": asked}
    apply_document(actor=tutorial_env, objects=[certificate, {"kind": "LoadBalancer", "name": "front", "spec": spec}])
    before = listeners_of(front)
    send(tutorial_env, "load-balancer-edit", front.pk, spec__fleets=["us-central1"])
    assert listeners_of(front) == before
    listener = Listener.objects.get(load_balancer=front)
    send(tutorial_env, "listener-edit", front.pk, listener.pk, spec__listeners__0__port="8443")
    assert listeners_of(front) == [before[0] | {"port": 8443}]


# The least that each block of a listener may say, and what it then means.
LEAST: dict[str, dict[str, Any]] = {
    "access": {"allow": ["offices"]},
    "tls": {"minimum_version": "1.3"},
    "client_limit": {"connections": 100},
    "compression": {},
    "client_address": {"proxy_protocol_from": ["192.0.2.0/24"]},
    "connections": {"max_connections": 5},
    "cache": {},
    "tracing": {},
}


def test_every_block_of_a_listener_has_an_example_below() -> None:
    assert {field.name for field in fields_of(ListenerSpec) if field.child and not field.many} == set(LEAST)


@pytest.mark.parametrize("block", first_of(4, LEAST))
def test_a_block_of_a_listener_outlives_its_form(front: LoadBalancer, tutorial_env: Actor, block: str) -> None:
    """Also one in which all is as by default."""
    chain, key = pem_pair("shop.example")
    certificate = {"kind": "Certificate", "name": "house", "spec": {"chain": chain, "key": key}}
    spec = describe(front)
    spec["listeners"][0] |= {"protocol": "https", "certificates": ["house"], block: LEAST[block]}
    offices = {"kind": "NetworkList", "name": "offices", "spec": {"entries": [{"network": "192.0.2.0/24"}]}}
    front_now = {"kind": "LoadBalancer", "name": "front", "spec": spec}
    apply_document(actor=tutorial_env, objects=[certificate, offices, front_now])
    before = listeners_of(front)
    assert block in before[0]
    send(tutorial_env, "listener-edit", front.pk, Listener.objects.get(load_balancer=front).pk)
    assert listeners_of(front) == before


def test_names_that_tls_is_passed_on_for_are_lines(front: LoadBalancer, tutorial_env: Actor) -> None:
    pool = {"kind": "Pool", "name": "mail", "spec": {"protocol": "tcp", "backends": []}}
    apply_document(actor=tutorial_env, objects=[pool])
    chain, key = pem_pair("a.example")
    save_object(actor=tutorial_env, kind="Certificate", name="house", spec={"chain": chain, "key": key})
    routes = [
        {"hostname": "a.example", "pool": "mail", "passthrough": False},
        {"hostname": "*.b.example", "pool": "mail", "passthrough": True},
    ]
    lines = "a.example  mail\r\n*.b.example mail passthrough"
    at = "spec__listeners__1__"
    fields = {"name": "tls", "protocol": "tcp", "port": "9443", "certificates": "house", "sni_routes": lines}
    send(tutorial_env, "listener-new", front.pk, **{f"{at}{name}": value for name, value in fields.items()})
    before = listeners_of(front)
    assert sorted(map(str, before[1]["sni_routes"])) == sorted(map(str, routes))
    send(tutorial_env, "listener-edit", front.pk, Listener.objects.get(name="tls").pk)
    assert listeners_of(front) == before


def test_what_clients_send_first_and_its_pools_are_lines(front: LoadBalancer, tutorial_env: Actor) -> None:
    apply_document(actor=tutorial_env, objects=[{"kind": "Pool", "name": "ssh", "spec": {"protocol": "tcp"}}])
    routes = [{"alpn": "acme-tls/1", "pool": "ssh"}, {"protocol": "ssh", "pool": "ssh"}]
    fields = {"name": "many", "protocol": "tcp", "port": "9443", "protocol_routes": "ssh ssh\r\nalpn:acme-tls/1  ssh"}
    send(tutorial_env, "listener-new", front.pk, **{f"spec__listeners__1__{each}": fields[each] for each in fields})
    before = listeners_of(front)
    assert before[1]["protocol_routes"] == routes
    stored = Listener.objects.get(name="many").pk
    send(tutorial_env, "listener-edit", front.pk, stored)
    assert listeners_of(front) == before
    for wrong, said in (("ssh", "Fill in pool"), ("smtp ssh", "Use one of"), ("ssh ssh ssh", "Use")):
        answer = send(tutorial_env, "listener-edit", front.pk, stored, spec__listeners__1__protocol_routes=wrong)
        assert answer.status_code == 422
        assert said in answer.content.decode(), wrong
    assert listeners_of(front) == before


def test_what_is_refused_stands_beside_its_field(front: LoadBalancer, tutorial_env: Actor) -> None:
    listener = Listener.objects.get(load_balancer=front)
    answer = send(tutorial_env, "listener-edit", front.pk, listener.pk, spec__listeners__0__port="0")
    assert answer.status_code == 422
    assert "Use a number from 1 to 65535; this one is 0." in answer.content.decode()
    answer = send(tutorial_env, "listener-edit", front.pk, listener.pk, spec__listeners__0__sni_routes="a.example")
    assert answer.status_code == 422
    assert listeners_of(front)[0]["port"] == listener.port


def test_two_who_edit_one_load_balancer_do_not_undo_each_other(front: LoadBalancer, tutorial_env: Actor) -> None:
    client, path = client_of(tutorial_env), reverse("web:listener-new", args=[front.pk])
    shown = shown_by(client.get(path).context)
    send(tutorial_env, "listener-new", front.pk, spec__listeners__1__name="more", spec__listeners__1__port="9091")
    late = client.post(path, shown | {"/spec/listeners/1/name": "late", "/spec/listeners/1/port": "9092"})
    assert late.status_code == 422
    assert 'value="late"' in late.content.decode(), "what was typed is not lost"
    assert [each["name"] for each in listeners_of(front)] == ["http", "more"]


def test_a_listener_goes_once_its_name_is_typed(front: LoadBalancer, tutorial_env: Actor) -> None:
    listener = Listener.objects.get(load_balancer=front)
    client, path = client_of(tutorial_env), reverse("web:listener-delete", args=[front.pk, listener.pk])
    client.post(path, {"confirm": "htt"})
    assert [each["name"] for each in listeners_of(front)] == ["http"]
    client.post(path, {"confirm": "http", "confirm_loss": "true"})
    assert listeners_of(front) == []


def test_node_settings_are_saved_once_one_of_them_is_set(tutorial_env: Actor) -> None:
    fleet = Fleet.objects.earliest("pk")
    assert "node_settings" not in describe(fleet)
    send(tutorial_env, "fleet-edit", fleet.pk, spec__node_settings__threads="2")
    fleet.refresh_from_db()
    assert describe(fleet)["node_settings"]["threads"] == 2


def test_fleets_and_nodes_come_and_go_by_hand(tutorial_env: Actor) -> None:
    send(tutorial_env, "fleet-new", name="third", spec__region="us-central1")
    fleet = Fleet.objects.get(name="third")
    node = {"spec__fleet": "third", "spec__url": "memory://third-1", "spec__address": "127.0.0.1"}
    send(tutorial_env, "node-new", name="third-1", **node, spec__port_offset="7000")
    made = Node.objects.get(name="third-1")
    assert (made.fleet, made.port_offset) == (fleet, 7000)
    client = client_of(tutorial_env)
    client.post(reverse("web:fleet-delete", args=[fleet.pk]), {"confirm": "third"})
    assert Fleet.objects.filter(name="third").exists(), "its node still stands in it"
    client.post(reverse("web:node-delete", args=[made.pk]), {"confirm": "third-1"})
    client.post(reverse("web:fleet-delete", args=[fleet.pk]), {"confirm": "third"})
    assert not Fleet.objects.filter(name="third").exists()


def test_a_region_is_made_changed_and_deleted_by_page_and_keeps_what_the_form_does_not_show(
    tutorial_env: Actor,
) -> None:
    send(tutorial_env, "region-new", name="asia-east1", spec__title="Taiwan", spec__latitude="24.05")
    region = Region.objects.get(name="asia-east1")
    assert (region.title, region.latitude) == ("Taiwan", 24.05)
    drain_region(actor=tutorial_env, region="asia-east1", drained=True, reason="not yet")
    send(tutorial_env, "region-edit", region.pk, spec__title="Changhua")
    region.refresh_from_db()
    assert (region.title, region.latitude, region.drained) == ("Changhua", 24.05, True)
    client = client_of(tutorial_env)
    client.post(f"/regions/{region.pk}/delete", {"confirm": "something else"})
    assert Region.objects.filter(name="asia-east1").exists()
    client.post(f"/regions/{region.pk}/delete", {"confirm": "asia-east1"})
    assert not Region.objects.filter(name="asia-east1").exists()


def test_a_region_west_of_greenwich_is_saved_and_stays_where_it_is(tutorial_env: Actor) -> None:
    at = {"spec__latitude": "-33.448900", "spec__longitude": "-70.669265"}
    assert send(tutorial_env, "region-new", name="santiago", spec__title="Santiago", **at).status_code == 302
    region = Region.objects.get(name="santiago")
    assert (region.latitude, region.longitude) == (-33.4489, -70.669265)
    assert send(tutorial_env, "region-edit", region.pk, spec__title="Santiago de Chile").status_code == 302
    region.refresh_from_db()
    assert (region.title, region.latitude, region.longitude) == ("Santiago de Chile", -33.4489, -70.669265)
