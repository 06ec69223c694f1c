"""Whose the result is: the account's, but for what only the owner of a load balancer may have.

That is the load balancer itself, its routes of any host, and the lists of networks that those and its listeners name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apps.compiler.matching.hosts import ANY

Document = dict[str, Any]
WAYS = ("sni_routes", "protocol_routes")
LISTS_OF = ("allow", "deny")


def owned(account: str, documents: Iterable[Document]) -> tuple[Document, ...]:
    """The documents with their owner; what the operator owns names things of the account in full.

    Lists are named by their owner alone, so one that both name is there twice.
    """
    found = tuple(documents)
    return tuple(_owned(account, found)) if account else found


def _owned(account: str, documents: tuple[Document, ...]) -> Iterator[Document]:
    made = {(each["kind"], each["name"]): f"{account}/{each['name']}" for each in documents}
    lists: dict[bool, set[str]] = {True: set(), False: set()}
    for each in documents:
        spec = each["spec"]
        for said in (*spec.get("listeners", ()), spec.get("rules") or {}):
            lists[_is_operators(each)].update(_lists_in(said))
    for each in documents:
        if _is_operators(each):
            yield {**each, "spec": _in_full(made, each["spec"])}
            continue
        if each["kind"] == "NetworkList" and each["name"] in lists[True]:
            yield each
        if each["kind"] != "NetworkList" or each["name"] in lists[False]:
            yield {"kind": each["kind"], "name": each["name"], "account": account, "spec": each["spec"]}


def _is_operators(each: Document) -> bool:
    return each["kind"] == "LoadBalancer" or (each["kind"], each["spec"].get("hostname")) == ("Route", ANY)


def _lists_in(said: Mapping[str, Any]) -> Iterator[str]:
    """Names of lists in the access block of rules, or of a listener."""
    for field in LISTS_OF:
        yield from (said.get("access") or {}).get(field) or ()


def _in_full(made: Mapping[tuple[str, str], str], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification of a load balancer, listener or route, with each name of what came with it in full."""

    def full(kind: str, name: str) -> str:
        return made.get((kind, name), name)

    found = dict(spec)
    for field, kind in (("default_pool", "Pool"), ("default_certificate", "Certificate")):
        found |= {field: full(kind, spec[field])} if spec.get(field) else {}
    for field, kind in (("certificates", "Certificate"), ("policies", "Policy")):
        found |= {field: [full(kind, name) for name in spec[field]]} if field in spec else {}
    for field in WAYS:
        found |= {field: [_with_pool(full, each) for each in spec[field]]} if field in spec else {}
    if "pools" in spec.get("action", {}):
        found["action"] = {"pools": [_with_pool(full, each) for each in spec["action"]["pools"]]}
    if "listeners" in spec:
        found["listeners"] = [_in_full(made, each) for each in spec["listeners"]]
    return found


def _with_pool(full: Any, each: Mapping[str, Any]) -> dict[str, Any]:
    return {**each, "pool": full("Pool", each["pool"])}
