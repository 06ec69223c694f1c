"""What a listener is told beyond its port: documents of a row, read by their shapes and frozen."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from django.db.models import QuerySet

from apps.compiler.model import listener_options as model
from apps.compiler.model.access import ConnectionAccess as ListedNetworks
from apps.compiler.model.shared import LoadBalancer
from apps.core.errors import FieldError
from apps.definitions.freezing.frozen_lists import NetworkLists, with_lists
from apps.definitions.models import Listener, ProtocolRoute, SniRoute
from apps.definitions.models import LoadBalancer as Row
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.traffic import listener_options as shapes
from apps.definitions.shapes.traffic.access import ConnectionAccess
from apps.definitions.shapes.traffic.client_limit import ConnectionLimitSpec

T = TypeVar("T")
OBJECTS: dict[str, tuple[type[Shape], type[Any]]] = {
    "access": (ConnectionAccess, ListedNetworks),
    "tls": (shapes.TlsSpec, model.ListenerTls),
    "client_address": (shapes.ClientAddressSpec, model.ClientAddress),
    "connections": (shapes.ConnectionsSpec, model.Connections),
    "client_limit": (ConnectionLimitSpec, model.ConnectionLimit),
    "compression": (shapes.CompressionSpec, model.Compression),
    "cache": (shapes.CacheSpec, model.Cache),
    "tracing": (shapes.TracingSpec, model.Tracing),
}
COLUMNS = (*OBJECTS, "client_certificates", "monitor_path", "default_certificate_id")


def frozen_options(row: Any, lists: NetworkLists) -> dict[str, Any]:
    """Fields of `ListenerOptions` by name. Raises ValueError where a column says nothing that could be meant.

    Raises KeyError where a list of networks is gone.
    """
    found: dict[str, Any] = {name: frozen_object(*of, getattr(row, name)) for name, of in OBJECTS.items()}
    if found["access"]:
        found["access"] = lists.resolved(found["access"], row.account_id)
    default = row.default_certificate_id
    entries = row.client_certificates or ()
    of_clients = [frozen_object(shapes.ClientCertificatesSpec, model.ClientCertificates, each) for each in entries]
    return found | {
        "client_certificates": tuple(each for each in of_clients if each is not None),
        "monitor_path": row.monitor_path,
        "default_certificate_id": f"crt-{default}" if default else None,
    }


def with_access(front: LoadBalancer, row: Row) -> LoadBalancer:
    """The load balancer with what its listeners say of networks that may connect, and the lists that they name."""
    said = {
        f"lst-{pk}": access
        for pk, access in Listener.objects.filter(load_balancer=row, access__isnull=False).values_list("pk", "access")
    }
    if not said:
        return front
    known = NetworkLists()
    blocks = {
        pk: known.resolved(block, row.account_id)
        for pk, access in said.items()
        if (block := frozen_object(*OBJECTS["access"], access))
    }
    listeners = tuple(replace(each, access=blocks.get(each.id)) for each in front.listeners)
    return replace(front, listeners=listeners, network_lists=with_lists(front.network_lists, blocks.values()))


def sni_routes_of(listeners: QuerySet[Listener]) -> dict[int, list[model.SniRoute]]:
    """Listener → its routes by SNI."""
    found: dict[int, list[model.SniRoute]] = defaultdict(list)
    rows = SniRoute.objects.filter(listener__in=listeners.order_by().values("pk")).order_by("listener_id", "hostname")
    for listener, hostname, pool, passthrough in rows.values_list("listener_id", "hostname", "pool_id", "passthrough"):
        found[listener].append(model.SniRoute(hostname, f"pool-{pool}", passthrough))
    return found


def protocol_routes_of(listeners: QuerySet[Listener]) -> dict[int, list[model.ProtocolRoute]]:
    """Listener → its routes by what clients send first."""
    found: dict[int, list[model.ProtocolRoute]] = defaultdict(list)
    rows = ProtocolRoute.objects.filter(listener__in=listeners.order_by().values("pk")).order_by("listener_id", "id")
    for listener, protocol, alpn, pool in rows.values_list("listener_id", "protocol", "alpn", "pool_id"):
        told = model.ClientProtocol(protocol) if protocol else None
        found[listener].append(model.ProtocolRoute(f"pool-{pool}", told, alpn))
    return found


def frozen_object(shape: type[Shape], kind: type[T], document: object) -> T | None:
    """What a stored document says, as the compiler reads it."""
    if document is None:
        return None
    errors: list[FieldError] = []
    found = read(shape, document, "", errors)
    if found is None:
        raise ValueError(errors[0].detail)
    return kind(**{each.name: getattr(found, each.name) for each in fields(cast("Any", kind))})
