"""An import for a customer: what each listener and each route names is there, and a second import changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.services import apply_document, plan_document
from apps.importing.formats import FORMATS
from apps.importing.options import ImportOptions

pytestmark = pytest.mark.django_db
STANDING: list[dict[str, Any]] = [
    {"kind": "Account", "name": "shops", "spec": {"kind": "customer", "title": "Shops"}},
    {"kind": "Grant", "name": "shops", "spec": {"account": "shops", "hostname": "*.example.com"}},
    {"kind": "Region", "name": "east", "spec": {"title": "East"}},
    {"kind": "Fleet", "name": "east", "spec": {"region": "east"}},
]
HAPROXY = """
defaults
 mode http
 timeout client 5s
 timeout server 5s
 timeout connect 1s
frontend web
 bind :80
 tcp-request connection reject if { src 192.0.2.0/24 }
 http-request deny if { src 198.51.100.0/24 }
 use_backend shop if { hdr(host) a.example.com }
 default_backend shop
listen db
 mode tcp
 bind :5432
 tcp-request connection reject if { src 192.0.2.0/24 }
 server one 10.0.0.9:5432
backend shop
 server one 10.0.0.1:80
"""
NGINX = """
http { server {
 listen 80; server_name a.example.com; deny 192.0.2.0/24;
 location / { proxy_pass http://10.0.0.1; }
} }
stream { server { listen 5432; deny 192.0.2.0/24; proxy_pass 10.0.0.3:5432; } }
"""
ROUTE = {
    "match": [{"host": ["a.example.com"]}],
    "handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "10.0.0.1:80"}]}],
}
CADDY = json.dumps({"apps": {"http": {"servers": {"s": {"listen": [":443"], "routes": [ROUTE]}}}}}, indent=1)
KUBERNETES = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{port: 80}], selector: {app: shop}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.4]}]
"""  # noqa: E501 - a line of somebody's file
FILES = {"haproxy": HAPROXY, "nginx": NGINX, "caddy": CADDY, "kubernetes": KUBERNETES}


@pytest.mark.parametrize("account", ["", "shops"])
@pytest.mark.parametrize("form", FILES)
def test_what_a_file_says_can_be_stored_for_each_account_and_once_more_without_a_change(
    operator: Actor, form: str, account: str
) -> None:
    options = ImportOptions(account=account, fleets=("east",), region="east")
    found = FORMATS[form].read(FILES[form], {}, options)
    assert found.needs == ()
    objects = list(found.documents)
    apply_document(actor=operator, objects=[*STANDING, *objects])
    counts = plan_document(actor=operator, objects=objects).counts
    assert {name for name, count in counts.items() if count} == {"unchanged"}
    owners = {each.get("account") for each in objects if each["kind"] == "Pool"}
    assert owners == {account or None}
