"""Forms of fleets and of the nodes in them."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.accounts.actors import Actor
from apps.definitions.selectors import only
from apps.fleet import selectors as topology
from apps.web.kit.object_forms import ObjectForm, Way, edit_object
from apps.web.kit.pages import PageRequest, operators_only, page, post_page
from apps.web.kit.saving import deleted_by_name
from apps.web.kit.shape_forms import Group


class FleetForm(ObjectForm):
    """A group of nodes in one region, and how large each node's HAProxy is."""

    kind, noun = "Fleet", "fleet"
    lead = "A fleet is a group of HAProxy nodes in one region that run the same configuration."

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        super().__init__(data, stored=stored, names={"region": topology.regions(actor)})

    def spec(self) -> dict[str, Any]:
        """The document of what was typed; node settings that are all as by default are left out."""
        return self.without_defaults(self.document())

    @property
    def groups(self) -> list[Group]:
        """The fleet's own fields, then the node settings."""
        return [Group("Fleet", self.fields_without("node_settings")), self.folded("node_settings")]


class NodeForm(ObjectForm):
    """One HAProxy with its agent."""

    kind, noun = "Node", "node"
    lead = "Start an agent beside HAProxy first. Spillway deploys the fleet's configuration once it reaches the agent."

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        super().__init__(data, stored=stored, names={"fleet": topology.fleets(actor)})


@page
def new(request: PageRequest) -> HttpResponse:
    """A fleet without nodes yet."""
    operators_only(request.actor, "fleets")
    return _edit(request, FleetForm, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change a fleet's ports and its node settings."""
    operators_only(request.actor, "fleets")
    return _edit(request, FleetForm, only(topology.fleets(request.actor), pk))


@page
def new_node(request: PageRequest) -> HttpResponse:
    """Name one more node of a fleet."""
    operators_only(request.actor, "nodes")
    return _edit(request, NodeForm, None)


@page
def edit_node(request: PageRequest, pk: int) -> HttpResponse:
    """Change where a node's agent is, and the node's own address."""
    operators_only(request.actor, "nodes")
    return _edit(request, NodeForm, only(topology.nodes(request.actor), pk))


def _edit(request: PageRequest, form_class: type[FleetForm | NodeForm], stored: Any) -> HttpResponse:
    request.actor.may_write()
    form = form_class(request.POST or None, actor=request.actor, stored=stored)
    return edit_object(request, form, Way.of("web:fleets", "Fleets"))


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a fleet that has no nodes and that no load balancer names any more, once its name was typed."""
    operators_only(request.actor, "fleets")
    return _delete(request, "Fleet", only(topology.fleets(request.actor), pk))


@post_page
def delete_node(request: PageRequest, pk: int) -> HttpResponse:
    """Forget a node, once its name was typed; its HAProxy goes on with what it has."""
    operators_only(request.actor, "nodes")
    return _delete(request, "Node", only(topology.nodes(request.actor), pk))


def _delete(request: PageRequest, kind: str, row: Any) -> HttpResponse:
    request.actor.may_write()
    deleted_by_name(request, kind, row, f"{kind} {row.name} is deleted.")
    return redirect("web:fleets")
