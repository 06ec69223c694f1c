"""What nodes call things put into people's words: `certs/crt-19.pem` is the certificate acme/site.

Nodes know files, sections and servers by ids of ours. Their sentences are translated where they are stored, so that
they go on saying what was meant when the object is gone. A line of haproxy.cfg stays: it says where.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.db.models import CharField, F, QuerySet, Value
from django.db.models.functions import Concat

from apps.definitions.models import Certificate, Listener, LoadBalancer, Pool, Route, Server
from apps.fleet.models import Node, Region, StaticIP

# An id by itself, as a file's name, or as a server after its pool; none inside a hostname, a path or a longer word.
_ID = re.compile(
    r"(?<![\w./-])(?:certs/|maps/|(?:server )?pool-\d+/(?=srv-))?"
    r"(?P<kind>crt|lst|pool|srv|route|lb|rgn|node|vip)-(?P<pk>\d{1,18})(?:-[a-z-]+(?=\.map))?(?P<end>\.pem|\.list|\.map)?"
    r"(?![\w-]|\.\w)"
)
_OWNER_AND_NAME = Concat("account__name", Value("/"), "name", output_field=CharField())
_WORDS: dict[str, tuple[str, Callable[[], QuerySet[Any]]]] = {
    "crt": ("certificate", lambda: Certificate.objects.annotate(label=_OWNER_AND_NAME)),
    "pool": ("pool", lambda: Pool.objects.annotate(label=_OWNER_AND_NAME)),
    "route": ("route", lambda: Route.objects.annotate(label=_OWNER_AND_NAME)),
    "srv": ("server", lambda: Server.objects.annotate(label=_of("backend__pool"))),
    "lst": ("listener", lambda: Listener.objects.annotate(label=_of("load_balancer"))),
    "lb": ("load balancer", lambda: LoadBalancer.objects.annotate(label=F("name"))),
    "rgn": ("region", lambda: Region.objects.annotate(label=F("name"))),
    "node": ("node", lambda: Node.objects.annotate(label=F("name"))),
    "vip": ("static IP", lambda: StaticIP.objects.annotate(label=F("name"))),
}


def _of(parent: str) -> Concat:
    return Concat("name", Value(" of "), f"{parent}__name", output_field=CharField())


def in_words(text: str, account: str = "") -> str:
    """The text with every id of ours as a label; of another account's than `account`, where one is given, the kind."""
    return _ID.sub(lambda found: _label(found, account), text)


def _label(found: re.Match[str], account: str) -> str:
    kind, rows = _WORDS[found["kind"]]
    query = rows().filter(pk=found["pk"])
    if account and found["kind"] in ("crt", "pool", "route", "srv"):
        query = query.filter(account__name=account)
    label = query.values_list("label", flat=True).first()
    named = f"{kind} {label}" if label else f"another {kind}"
    if found["end"] == ".list":
        return f"the certificates of {named}"
    return f"a map of {named}" if found["end"] == ".map" else named
