"""The health of pools and their servers, of nodes and of fleets, as the collectors last saw it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import health as shown
from apps.api.v1.traffic.flows import named_pool
from apps.api.v1.views import one, only
from apps.definitions import selectors as definitions
from apps.definitions.models import Pool, Server
from apps.fleet import selectors as topology
from apps.fleet.models import Node
from apps.observe import selectors as observe
from apps.observe.collect.consoles import heard_of
from apps.observe.models import Condition
from apps.observe.numbers import NodeNumbers

Shape = dict[str, Any]


def pool_health(request: Request, pool: Pool) -> Response:
    """The pool and each of its servers as each node sees it."""
    actor = requests.actor_of(request)
    found = observe.pool_numbers(actor, [pool.pk])[pool.pk]
    names = dict(Server.objects.filter(backend__pool=pool).values_list("pk", "name"))
    rows = observe.server_rows(actor, pool.pk)
    servers = [shown.ServerHealth.of(row, name=names.get(row.server_id, "")) for row in rows]
    return Response(shown.PoolHealth.of(found, pool=f"{pool.account.name}/{pool.name}", servers=servers))


def node_health(node: Node, found: NodeNumbers, conditions: Iterable[Condition]) -> Shape:
    """A node as it last spoke: `unreachable` when it does not answer, `unknown` when nobody asked for a while."""
    words = {None: "unknown", False: "unreachable", True: "healthy" if found.serving else "degraded"}
    return shown.NodeHealth.of(
        found,
        node=node.name,
        status=words[found.reachable],
        message=found.contact_error if found.reachable is False else found.error,
        conditions=[shown.Verdict.of(each) for each in conditions],
    )


class OfPool(APIView):
    """GET the health of one pool."""

    def get(self, request: Request, pk: str) -> Response:
        """By its id."""
        return pool_health(request, one(definitions.pools(requests.actor_of(request)).prefetch_related(None), pk))


class OfNamedPool(APIView):
    """GET the health of one pool by its name."""

    def get(self, request: Request, account: str, name: str) -> Response:
        """By `account/name`."""
        return pool_health(request, named_pool(request, account, name))


class OfFleet(APIView):
    """GET the health of a fleet's nodes."""

    def get(self, request: Request, name: str) -> Response:
        """By its name; for operators."""
        actor = requests.actor_of(request)
        fleet = only(topology.fleets(actor).filter(name=name))
        seen = observe.node_numbers(actor)
        nodes = list(topology.nodes(actor).filter(fleet=fleet).order_by("name"))
        said = observe.conditions_of("node", [node.pk for node in nodes])
        found = [node_health(node, seen[node.pk], said[node.pk]) for node in nodes]
        return Response({"fleet": fleet.name, "nodes": found})


class OfNode(APIView):
    """GET the health of one node."""

    def get(self, request: Request, name: str) -> Response:
        """By its name; for operators."""
        actor = requests.actor_of(request)
        node = only(topology.nodes(actor).filter(name=name))
        said = observe.conditions_of("node", [node.pk])
        return Response(node_health(node, observe.node_numbers(actor)[node.pk], said[node.pk]))


class OfConsoles(APIView):
    """GET the health of the machines that the control plane runs on."""

    scope_noun = "nodes"

    def get(self, request: Request) -> Response:
        """Each that was heard of in the last minute, with its clock; customers have none."""
        rows = heard_of() if requests.actor_of(request).is_operator else {}
        said = observe.conditions_of("console", rows)
        found = [shown.ConsoleHealth.of({"console": name, "conditions": said[pk]}) for pk, name in rows.items()]
        return Response({"consoles": sorted(found, key=lambda each: str(each["console"]))})
