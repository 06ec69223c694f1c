"""The registries and files that may be sources, and of whose pools: the operator's file, read anew at each question.

    {"kubernetes": {"prod": {"url": "https://10.0.0.1:6443", "ca_file": "/etc/spillway/prod.pem",
                             "token_file": "/etc/spillway/prod.token", "namespaces": {"shop": ["acme"]}}},
     "etcd": {"prod": {"urls": ["https://10.0.0.5:2379"], "ca_file": "/etc/spillway/etcd.pem", "user": "spillway",
                       "password_file": "/etc/spillway/etcd.password", "prefixes": {"/services/shop/": ["acme"]},
                       "publish": {"/spillway/acme/": "acme"}}},
     "consul": {"prod": {"urls": ["https://10.0.0.6:8501"], "ca_file": "/etc/spillway/consul.pem", "datacenter": "eu",
                         "token_file": "/etc/spillway/consul.token", "services": {"web": ["acme"]}}},
     "aws": {"prod": {"region": "eu-central-1", "credentials": "env:PROD", "groups": {"web": ["acme"]},
                      "services": {"main/web": ["acme"]}, "tags": {"role=web": ["acme"]}}},
     "file": {"shop": {"path": "/srv/shop.json", "accounts": ["acme"]}}}

Secrets stay in their own files. Who may not use something hears the same as who names what is not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.definitions.server_sources.consul.client import Consul
from apps.definitions.server_sources.etcd.client import Etcd
from apps.definitions.server_sources.kubernetes.client import Cluster
from apps.definitions.shapes.servers.source import AT_CLOUDS, WATCHED, Kind, Source

NAMED = (*WATCHED, Kind.FILE, *AT_CLOUDS)


@dataclass(frozen=True, slots=True)
class Aws:
    """Where AWS is asked; `credentials` is a reference (`env:NAME`, `role:ARN`, …), never a secret."""

    region: str
    credentials: str = ""
    endpoint_url: str = ""


Registry = Cluster | Etcd | Consul | Aws | Path


class NotYours(Exception):
    """The account may not use this; the text is a sentence for the pool's owner."""


class Unreadable(Exception):
    """The operator's file cannot be read, or is not JSON."""


def registry_of(source: Source, account: str) -> Registry:
    """Where a source of this account's pools is asked; of a kind that operators name. Raises NotYours."""
    entry = _entry(source)
    if source.kind is Kind.KUBERNETES:
        _expect(account, _of(entry, "namespaces").get(source.name), f"namespace {source.name} of a cluster", source)
        return Cluster(*_texts(entry, "url", "ca_file", "token_file"))
    if source.kind is Kind.ETCD:
        prefixes = _of(entry, "prefixes")
        allowed = [
            each for prefix, named in prefixes.items() if _within(source.name, prefix) for each in _listed(named)
        ]
        _expect(account, allowed, f"keys under {source.name} of an etcd", source)
        return _etcd(entry)
    if source.kind is Kind.CONSUL:
        _expect(account, _of(entry, "services").get(source.name), f"service {source.name} of a Consul", source)
        return Consul(_urls(entry), *_texts(entry, "ca_file", "token_file", "datacenter"))
    if source.kind in AT_CLOUDS:
        what = {Kind.ECS: "service", Kind.EC2: "tag"}.get(source.kind, "group")
        _expect(account, _of(entry, f"{what}s").get(source.name), f"{what} {source.name} of an AWS", source)
        return Aws(*_texts(entry, "region", "credentials", "endpoint_url"))
    _expect(account, entry.get("accounts"), "a file", source)
    return Path(*_texts(entry, "path"))


def etcds_to_publish_in() -> Iterator[tuple[str, Etcd, Mapping[str, Any]]]:
    """Each etcd by its name, and of whom it takes definitions by prefix (apps/exporting/publishing). Raises Unreadable.

    That is the operator's alone to say: no account names a place to which its definitions go.
    """
    for name, entry in sorted(_of(_file(), Kind.ETCD).items()):
        if publish := _of(entry, "publish"):
            yield name, _etcd(entry), publish


def _etcd(entry: Mapping[str, Any]) -> Etcd:
    return Etcd(_urls(entry), *_texts(entry, "ca_file", "user", "password_file"))


def _expect(account: str, allowed: object, what: str, source: Source) -> None:
    if account not in _listed(allowed):
        raise NotYours(
            f"Pools of {account} may not use {what} {source.registry}; an operator allows that in the file of "
            "SPILLWAY_REGISTRIES."
        )


def _within(prefix: str, allowed: object) -> bool:
    """Only whole steps count: who may use `/services/shop/` may not use `/services/shop-next/`."""
    return isinstance(allowed, str) and allowed.endswith("/") and prefix.startswith(allowed)


def _entry(source: Source) -> Mapping[str, Any]:
    """What the file says of the registry; a file that cannot be read allows nothing."""
    try:
        found = _file()
    except Unreadable:
        return {}
    return _of(_of(found, "aws" if source.kind in AT_CLOUDS else source.kind), source.registry)


def _file() -> object:
    try:
        return json.loads(Path(settings.REGISTRIES).read_text()) if settings.REGISTRIES else {}
    except (OSError, ValueError, RecursionError):
        raise Unreadable from None


def _of(found: object, key: str) -> Mapping[str, Any]:
    entry = found.get(key) if isinstance(found, Mapping) else None
    return entry if isinstance(entry, Mapping) else {}


def _texts(entry: Mapping[str, Any], *keys: str) -> Iterator[str]:
    return (str(entry.get(key, "")) for key in keys)


def _urls(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, _listed(entry.get("urls"))))


def _listed(found: object) -> list[Any]:
    return found if isinstance(found, list) else []
