"""While somebody writes a route: what it will look like in HAProxy, as a command, and as a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.compiler.compile import CompileError, compile_snapshot
from apps.compiler.model import fleet as fleets
from apps.compiler.model import shared as model
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.definitions.previewing.calls import as_yaml, making
from apps.definitions.reading.describing import document
from apps.definitions.reading.documents import read_object
from apps.definitions.shapes.traffic.route import RouteSpec
from apps.definitions.sharing import seen_pools

Preview = dict[str, Any]
# Stands for a route that has no number yet.
NEW = "route-0"


def preview_route(actor: Actor, spec: Mapping[str, Any], name: str, *, account: Account | None = None) -> Preview:
    """`maps` and `config` (lines), `curl`, `yaml`, `warnings` (sentences) of one route; nothing is stored.

    The route is compiled alone, as for a fleet: what other routes do to it is told by `route_conflicts`. Raises Invalid
    with the errors that saving would find in the document itself.
    """
    owner = account or actor.account
    wanted = read_object({"kind": "Route", "name": name, "spec": dict(spec)})
    assert isinstance(wanted.spec, RouteSpec)  # noqa: S101 - a Route is read as nothing else
    found = {"kind": "Route", "name": name, "account": owner.name, "spec": document(wanted.spec)}
    return _rendered(actor, owner, wanted.spec, name) | {"curl": making(found).curl, "yaml": as_yaml(found)}


def _rendered(actor: Actor, owner: Account, spec: RouteSpec, name: str) -> Preview:
    balancer = LoadBalancer.objects.filter(name=spec.load_balancer).first()
    if balancer is None:
        raise Invalid(
            [FieldError("/spec/load_balancer", "unknown", f"There is no load balancer {spec.load_balancer}.")]
        )
    known = Route.objects.filter(account=owner, name=name).values_list("pk", flat=True).first()
    route_id = f"route-{known}" if known else NEW
    pools, missing = _pools(actor, owner, spec)
    # On a load balancer of clouds alone, what a fleet refuses of the route does not matter.
    mirror = pools[spec.mirror].id if spec.mirror and balancer.fleets.exists() else None
    route = model.Route(
        id=route_id,
        label=f"{owner.name}/{name}",
        account=owner.name,
        hostname=spec.hostname,
        path=spec.path,
        path_kind=spec.path_kind,
        methods=spec.methods,
        headers=spec.headers,
        query=spec.query,
        cookies=spec.cookies,
        client_networks=spec.client_networks,
        pools=tuple(model.WeightedPool(pools[share.pool].id, share.weight) for share in spec.action.pools),
        redirect=spec.action.redirect,
        fixed_response=spec.action.fixed_response,
        prefix_rewrite=spec.prefix_rewrite,
        scheme=spec.scheme,
        mirror_pool_id=mirror,
    )
    front = model.LoadBalancer(
        id=f"lb-{balancer.pk}",
        label=balancer.name,
        account=owner.name,
        listeners=(model.Listener(id="lst-0", label="preview", protocol=model.Protocol.HTTP, port=80),),
        routes=(route,),
    )
    snapshot = fleets.Snapshot("preview", "preview", (front,), tuple(pools.values()), local_development=True)
    return _lines(snapshot, route_id, missing)


def _pools(actor: Actor, owner: Account, spec: RouteSpec) -> tuple[dict[str, fleets.Pool], list[str]]:
    """Stand-ins by reference, with the number that each pool has; one that is not there gets 0 and a warning."""
    references = [share.pool for share in spec.action.pools] + [each for each in (spec.mirror,) if each]
    named = Pool.objects.filter(name__in=[each.rpartition("/")[2] for each in references])
    rows = seen_pools(actor, named)
    numbers = {(account, name): pk for pk, account, name in rows.values_list("pk", "account__name", "name")}
    found, missing = {}, []
    for each in references:
        account, _, name = each.rpartition("/")
        number = numbers.get((account or owner.name, name), 0)
        if not number:
            missing.append(f"There is no pool {each}.")
        found[each] = fleets.Pool(f"pool-{number}", each, owner.name, model.Protocol.HTTP)
    return found, missing


def _lines(snapshot: fleets.Snapshot, route_id: str, missing: list[str]) -> Preview:
    try:
        compiled = compile_snapshot(snapshot)
    except CompileError as error:
        return {"maps": [], "config": [], "warnings": [*missing, *(finding.message for finding in error.findings)]}
    front = snapshot.load_balancers[0].id
    maps = [
        f"{path}: {line}"
        for path, content in sorted(compiled.output.files.items())
        if path.startswith(f"maps/{front}-")
        for line in content.decode().splitlines()
    ]
    lines = compiled.output.files["haproxy.cfg"].decode().splitlines()
    owners = compiled.output.line_owners
    config = [lines[number - 1] for number in sorted(owners) if owners[number] == route_id]
    own = [finding.message for finding in compiled.left_out if finding.object_id == route_id]
    return {"maps": maps, "config": config, "warnings": [*missing, *own]}
