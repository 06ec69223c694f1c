"""Routes for one scheme: http leads to https where the same host and path is served, and never to itself."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_snapshot
from apps.core.errors import Invalid
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import Route
from apps.definitions.services import apply_document
from apps.fleet.models import Fleet
from tests.apps.test_definitions_services import pem_pair

ROUTE = {"load_balancer": "front", "hostname": "shop.acme.example", "path": "/new"}
POOL = ROUTE | {"action": {"pools": [{"pool": "shop"}]}}
TO_HTTPS = ROUTE | {"action": {"redirect": {"code": 308, "scheme": "https"}}}


@pytest.fixture
def both_listeners(tutorial_env: Actor) -> Actor:
    """The tutorial's load balancer listens for https as well."""
    chain, key = pem_pair("shop.acme.example")
    listeners = [
        {"name": "http", "protocol": "http", "port": 8080},
        {"name": "https", "protocol": "https", "port": 8443, "certificates": ["shop"]},
    ]
    spec = {"fleets": ["us-central1", "europe-west1"], "listeners": listeners}
    certificate = {"kind": "Certificate", "name": "shop", "spec": {"chain": chain, "key": key}}
    apply_document(actor=tutorial_env, objects=[certificate, {"kind": "LoadBalancer", "name": "front", "spec": spec}])
    return tutorial_env


def save(actor: Actor, **specs: dict[str, Any]) -> None:
    """Apply routes by name."""
    apply_document(actor=actor, objects=[{"kind": "Route", "name": name, "spec": spec} for name, spec in specs.items()])


def maps_of(name: str) -> dict[str, bytes]:
    """The files of a fleet's bundle."""
    snapshot, _generation = freeze(Fleet.objects.get(name=name).pk)
    return dict(compile_snapshot(snapshot).output.files)


def test_http_is_redirected_and_https_served_at_one_host_and_path(both_listeners: Actor, acme: Actor) -> None:
    save(acme, served=POOL, moved=TO_HTTPS | {"scheme": "http"})
    keys = {name: f"route-{Route.objects.get(name=name).pk}" for name in ("served", "moved")}
    files = maps_of("us-central1")
    front = Route.objects.get(name="moved").load_balancer_id
    assert f"shop.acme.example/new/ {keys['moved']}\n".encode() in files[f"maps/lb-{front}-http-prefix.map"]
    assert f"shop.acme.example/new/ {keys['served']}\n".encode() in files[f"maps/lb-{front}-https-prefix.map"]


def test_a_redirect_that_leads_to_itself_is_refused_with_what_to_do(both_listeners: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid) as refused:
        save(acme, moved=TO_HTTPS)
    (field_error,) = refused.value.field_errors
    assert (field_error.pointer, field_error.code) == ("/objects/0/spec/action/redirect", "redirect_loop")
    assert "scheme: http" in field_error.detail
    assert not Route.objects.filter(name="moved").exists()


def test_where_only_http_is_spoken_it_is_taken(tutorial_env: Actor, acme: Actor) -> None:
    save(acme, moved=TO_HTTPS)
    assert Route.objects.get(name="moved").scheme == ""


def test_routes_of_different_schemes_are_not_identical_and_of_one_they_are(both_listeners: Actor, acme: Actor) -> None:
    save(acme, one=POOL | {"scheme": "http"}, other=POOL | {"scheme": "https"}, both=POOL)
    with pytest.raises(Invalid, match="already matches the same requests"):
        save(acme, again=POOL | {"scheme": "https"})
