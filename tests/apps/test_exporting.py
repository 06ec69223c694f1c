"""A load balancer leaves as documents that come back unchanged, and no key is in an archive that was asked for."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.db import transaction
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.errors import Forbidden, Invalid, NotFound
from apps.definitions.models import LoadBalancer
from apps.definitions.services import apply_document, plan_document
from apps.exporting import documents as writing
from apps.exporting import services
from apps.exporting.contract import Export
from apps.exporting.folders import archive_of
from apps.exporting.services import FORMATS, export, export_by_request
from tests.hostile.authority import AUTHORITY
from tests.pure.compiler_fixtures import certificate_pem

pytestmark = pytest.mark.django_db
ON_FLEETS = [form for form in FORMATS if form != "terraform"]
EXHAUSTIVE = pytest.mark.exhaustive
PASSWORD = "a long password"


def pair() -> dict[str, str]:
    """A chain and its key."""
    pem = certificate_pem("shop.example")
    blocks = [f"-----BEGIN{each}" for each in pem.split("-----BEGIN") if each.strip()]
    chain = "".join(each for each in blocks if "CERTIFICATE" in each)
    return {"chain": chain, "key": "".join(each for each in blocks if "PRIVATE KEY" in each)}


CERTIFICATE = {"kind": "Certificate", "name": "shop", "spec": pair()}


def servers(*addresses: str) -> list[dict[str, Any]]:
    """Servers of a backend."""
    return [{"name": f"s{number}", "address": each, "port": 8080} for number, each in enumerate(addresses, 1)]


def pool(name: str, account: str = "", **spec: Any) -> dict[str, Any]:
    """A pool with servers in the east."""
    backends = [{"region": "east", "servers": servers("192.0.2.1", "192.0.2.2")}]
    owner = {"account": account} if account else {}
    return {"kind": "Pool", "name": name, **owner, "spec": {"backends": backends, **spec}}


OBJECTS: list[dict[str, Any]] = [
    {"kind": "Account", "name": "shops", "spec": {"kind": "customer", "title": "Shops", "quotas": {"routes": 7}}},
    {"kind": "Region", "name": "east", "spec": {"title": "East", "latency": [{"to": "west", "ms": 30}]}},
    {"kind": "Region", "name": "west", "spec": {"title": "West"}},
    {"kind": "Region", "name": "far", "spec": {"title": "Far"}},
    {"kind": "Fleet", "name": "east", "spec": {"region": "east"}},
    {"kind": "StaticIP", "name": "entry", "spec": {"address": "198.51.100.7"}},
    CERTIFICATE,
    {"kind": "NetworkList", "name": "office", "spec": {"entries": [{"network": "192.0.2.0/24"}]}},
    {"kind": "NetworkList", "name": "unused", "spec": {"entries": [{"network": "192.0.2.0/24"}]}},
    pool("db", protocol="tcp"),
    pool("unused"),
    pool("shop", "shops", overflow={"mode": "listed", "order": ["far"]}),
    {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": ["east"], "listeners": [
        {"name": "web", "protocol": "http", "port": 80, "static_ip": "entry"},
        {"name": "secure", "protocol": "https", "port": 443, "certificates": ["shop"]},
        {"name": "db", "protocol": "tcp", "port": 5432, "default_pool": "db"},
    ]}},
    {"kind": "LoadBalancer", "name": "other", "spec": {"fleets": ["east"], "listeners": [
        {"name": "web", "protocol": "http", "port": 81},
    ]}},
    {"kind": "Policy", "name": "guarded", "spec": {
        "rules": {"basic_auth": {"users": {"alice": PASSWORD}}, "access": {"allow": ["office"]}},
        "default_for": {"load_balancers": ["front", "other"]},
    }},
    {"kind": "Route", "name": "shop", "account": "shops", "spec": {
        "load_balancer": "front", "hostname": "shop.example", "path": "/api",
        "headers": [{"name": "X-Beta", "match": "present"}], "action": {"pools": [{"pool": "shop"}]},
        "assertions": [{"path": "/api", "headers": [{"name": "X-Beta", "value": "1"}], "expect": {"pool": "shop"}}],
    }},
    {"kind": "Route", "name": "old", "spec": {
        "load_balancer": "front", "hostname": "old.example",
        "action": {"redirect": {"code": 308, "host": "shop.example"}},
    }},
    {"kind": "Route", "name": "elsewhere", "spec": {
        "load_balancer": "other", "hostname": "else.example", "action": {"fixed_response": {"status": 404}},
    }},
]  # fmt: skip


@contextmanager
def stored(operator: Actor, objects: list[dict[str, Any]]) -> Iterator[LoadBalancer]:
    """An installation with these objects, for no longer than that."""
    with transaction.atomic():
        apply_document(actor=operator, objects=objects)
        yield LoadBalancer.objects.get(name="front")
        transaction.set_rollback(True)


def objects_of(found: Export) -> list[dict[str, Any]]:
    """The objects of all files in their order."""
    files = {path: text for path, text in found.files.items() if path != "README.md"}
    return [each for path in sorted(files) for each in yaml.safe_load(files[path])["objects"]]


def filled(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What whoever moves has to write in: the certificate, and the password of alice."""
    for each in objects:
        if each["kind"] == "Policy":
            each["spec"]["rules"]["basic_auth"]["users"]["alice"] = PASSWORD
    return [CERTIFICATE, *objects]


def test_documents_that_come_back_make_the_same_definitions_in_an_empty_installation(operator: Actor) -> None:
    with stored(operator, OBJECTS) as balancer:
        first = objects_of(export(operator, balancer, "documents"))
    with stored(operator, filled(copy.deepcopy(first))) as balancer:
        again = export(operator, balancer, "documents")
        assert objects_of(again) == first
        counts = plan_document(actor=operator, objects=objects_of(again)).counts
    assert {name for name, count in counts.items() if count} == {"unchanged"}


def test_only_what_the_load_balancer_uses_is_written_and_in_an_order_that_can_be_applied(operator: Actor) -> None:
    with stored(operator, OBJECTS) as balancer:
        found = export(operator, balancer, "documents")
    assert [(each["kind"], each["name"]) for each in objects_of(found)] == [
        ("Account", "shops"), ("Region", "east"), ("Region", "far"), ("Region", "west"), ("Fleet", "east"),
        ("StaticIP", "entry"), ("NetworkList", "office"), ("Pool", "db"), ("Pool", "shop"), ("LoadBalancer", "front"),
        ("Policy", "guarded"), ("Route", "shop"), ("Route", "old"),
    ]  # fmt: skip


def test_after_the_regions_each_object_can_be_applied_before_the_next_ones(operator: Actor) -> None:
    """A large load balancer has several files, which are applied one after the other."""
    with stored(operator, OBJECTS) as balancer:
        certificate, *objects = filled(objects_of(export(operator, balancer, "documents")))
    first = next(index for index, each in enumerate(objects) if each["kind"] == "Fleet")
    with transaction.atomic():
        apply_document(actor=operator, objects=[certificate, *objects[:first]])
        for each in objects[first:]:
            apply_document(actor=operator, objects=[each])
        transaction.set_rollback(True)


def test_secrets_are_named_and_not_written_in_however_many_files(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LARGEST_FILE", 600)
    with stored(operator, OBJECTS) as balancer:
        found = export(operator, balancer, "documents", with_keys=True)
    text = b"".join(found.files.values()).decode()
    assert "PRIVATE KEY" not in text
    assert "$6$" not in text
    said = "\n".join(map(str, found.not_said))
    assert "operator/shop" in said
    assert "policy operator/guarded basic_auth alice" in said
    assert "default of other load balancers" in said
    assert "documents-002.json" in found.files
    assert len(objects_of(found)) == 13


def test_registries_at_which_servers_are_looked_up_are_named(
    operator: Actor, settings: Settings, tmp_path: Path
) -> None:
    """Only the file of the installation says where they are, so documents that need one cannot be applied without."""
    registries = tmp_path / "registries.json"
    registries.write_text(json.dumps({"file": {"shops": {"path": "/srv/shops.json", "accounts": ["shops"]}}}))
    settings.REGISTRIES = str(registries)
    found = [{"region": "east", "servers_from": "file://shops"}]
    looked_up = [
        each if each.get("account") != "shops" or each["kind"] != "Pool" else {**each, "spec": {"backends": found}}
        for each in OBJECTS
        if each["kind"] != "Policy"  # it would close the route
    ]
    with stored(operator, looked_up) as balancer:
        said = {form: "\n".join(map(str, export(operator, balancer, form).not_said)) for form in ON_FLEETS}
    assert "first: pool shops/shop file://shops." in said["documents"]
    for form in ("haproxy", "gateway-api"):
        assert "nobody looks them up there: pool shops/shop." in said[form]


def test_an_archive_that_was_asked_for_has_no_keys_and_says_so(operator: Actor) -> None:
    with stored(operator, OBJECTS) as balancer:
        for form, key in (("haproxy", "PRIVATE KEY"), ("gateway-api", "tls.key")):
            whole = export(operator, balancer, form, with_keys=True)
            asked = export_by_request(operator, "front", form)
            assert key in b"".join(whole.files.values()).decode()
            text = b"".join(asked.files.values()).decode()
            assert key not in text
            assert "$6$" not in text
            assert "Private keys are never shown" in asked.files["README.md"].decode()
            assert archive_of(asked, "front") == archive_of(export_by_request(operator, "front", form), "front")
    with zipfile.ZipFile(io.BytesIO(archive_of(asked, "front"))) as files:
        assert set(files.namelist()) == {"front/README.md", "front/gateway.yaml"}
    manifests = yaml.safe_load_all(asked.files["gateway.yaml"])
    rules = [rule for each in manifests if each["kind"] == "HTTPRoute" for rule in each["spec"]["rules"]]
    assert [rule.keys() for rule in rules] == [{"matches"}, {"matches"}]  # a protected path is closed


def test_of_the_files_beside_keys_those_without_a_key_are_in_an_archive(operator: Actor) -> None:
    """Nobody could write them by hand: which certificate stands for which name, and whose clients are let in."""
    known = [{"mode": "required", "ca": AUTHORITY, "hostnames": ["a.shop.example"]}]
    listener = {"name": "secure", "protocol": "https", "port": 443, "certificates": ["shop"]}
    spec = {"fleets": ["east"], "listeners": [{**listener, "client_certificates": known}]}
    objects = [each if each["name"] != "front" else {**each, "spec": spec} for each in OBJECTS]
    with stored(operator, objects):
        whole = export(operator, LoadBalancer.objects.get(name="front"), "haproxy", with_keys=True)
        asked = export_by_request(operator, "front", "haproxy")
    gone = whole.files.keys() - asked.files.keys()
    assert gone == {path for path, content in whole.files.items() if b"PRIVATE KEY" in content}
    assert len([path for path in asked.files if path.startswith("certs/")]) == 2


def test_others_and_narrow_tokens_may_not(operator: Actor, acme: Actor) -> None:
    with stored(operator, OBJECTS):
        with pytest.raises(Forbidden):
            export_by_request(acme, "front", "documents")
        narrow = replace(operator, scopes=frozenset({"load-balancers:read", "routes:read"}))
        with pytest.raises(Forbidden, match="pools:read"):
            export_by_request(narrow, "front", "documents")


def test_what_cannot_be_done_is_said(operator: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    with stored(operator, OBJECTS):
        with pytest.raises(NotFound):
            export_by_request(operator, "nothing", "documents")
        with pytest.raises(Invalid, match="Use one of haproxy"):
            export_by_request(operator, "front", "xml")
        with pytest.raises(Invalid, match=r"front is on none\. Use haproxy, gateway-api or documents"):
            export_by_request(operator, "front", "terraform")
        with pytest.raises(Invalid, match="Name the fleet of front; there are east"):
            export_by_request(operator, "front", "haproxy", within="west")
        monkeypatch.setattr(services, "MOST_ROUTES", 1)
        with pytest.raises(Invalid, match=r"manage\.py export front"):
            export_by_request(operator, "front", "documents")


@pytest.mark.parametrize("form", ["gateway-api", *(pytest.param(form, marks=EXHAUSTIVE) for form in ON_FLEETS)])
def test_the_command_writes_each_format_into_a_new_folder(operator: Actor, form: str, tmp_path: Path) -> None:
    out, errors = io.StringIO(), io.StringIO()
    with stored(operator, OBJECTS):
        words = ("export", "front", "--format", form, "--to", str(tmp_path / "out"))
        call_command(*words, stdout=out, stderr=errors)
        with pytest.raises(CommandError, match="Name a new folder"):
            call_command(*words, stdout=out, stderr=errors)
    assert (tmp_path / "out" / "README.md").exists()
    assert "not said: " in errors.getvalue()
    private = [each for each in (tmp_path / "out").rglob("*") if each.is_file() and each.stat().st_mode & 0o077 == 0]
    assert bool(private) == (form != "documents")
