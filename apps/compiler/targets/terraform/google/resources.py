"""The parts for Google: a resource with its owner, and how things of a stack are named and labelled.

Names are those of RFC 1035 with at most 63 characters, made of ids alone. Most kinds have no labels at Google: there
the description says whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.compiler.targets.terraform.document import terraform_name
from apps.compiler.targets.terraform.expressions import cloud_name, reference

LONGEST_NAME = 63
# The scheme of everything global and based on Envoy; the classic load balancers (`EXTERNAL`) know no route rules.
SCHEME = "EXTERNAL_MANAGED"
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the document: type, Terraform name, the object of ours behind it, attributes and blocks."""

    kind: str
    name: str
    owner: str
    body: Mapping[str, Any]


def resource(kind: str, stack_id: str, object_id: str, body: Mapping[str, Any]) -> Resource:
    """A resource that carries its object's name; `body` may say another `name`."""
    words = {"name": google_name(stack_id, object_id), "description": f"Spillway {stack_id} {object_id}"}
    return Resource(kind, terraform_name(object_id), object_id, {**words, **body})


def stack_resource(kind: str, stack_id: str, word: str, body: Mapping[str, Any]) -> Resource:
    """A resource that the whole stack shares; no object of ours has `word` as its id."""
    return replace(resource(kind, stack_id, word, body), owner=stack_id)


def google_name(stack_id: str, *parts: str) -> str:
    """`stk-3`, `pool-1` → `sw-stk3-pool-1`."""
    return cloud_name(stack_id, *parts, longest=LONGEST_NAME)


def labels(stack_id: str, object_id: str, account: str) -> dict[str, str]:
    """For the kinds that have labels."""
    return {"spillway-stack": stack_id, "spillway-object": object_id, "spillway-account": account}


def id_of(kind: str, object_id: str) -> str:
    """`google_compute_url_map`, `lst-2` → `${google_compute_url_map.lst_2.id}`."""
    return reference(kind, terraform_name(object_id), "id")


def service_of(pool_id: str) -> str:
    """The backend service of a pool."""
    return id_of("google_compute_backend_service", pool_id)
