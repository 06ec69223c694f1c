"""The definitions of one account that say where traffic goes, as documents by key; secrets are never among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from apps.accounts.actors import platform_actor
from apps.accounts.models import Account
from apps.definitions import selectors
from apps.definitions.models import Certificate
from apps.definitions.selectors import envelope
from apps.exporting.publishing.planning import MOST_BYTES, OBJECTS

MOST_OBJECTS = 5000
READS = 4
# What others name comes first, and goes to etcd first.
ROWS = (
    *(selectors.network_lists, selectors.certificates, selectors.pools, selectors.load_balancers),
    *(selectors.policies, selectors.routes, selectors.zones, selectors.records),
)
# Kinds of entries in the audit log that change a published document: parts as well, no people, tokens or runs.
CHANGED_BY = (
    *("NetworkList", "Certificate", "Pool", "Backend", "Server"),
    *("LoadBalancer", "Policy", "Route", "Zone", "Record"),
)


class NotPublishable(Exception):
    """These definitions cannot be published; the sentence says why and what to do."""


def objects_of(account: Account) -> dict[str, str]:
    """Its objects as of one moment, by key below the prefix. Raises NotPublishable.

    A change may commit between two of the queries. So they are asked until they answer twice the same.
    """
    before = None
    for _ in range(READS):
        found = dict(_documents(account))
        if found == before:
            return found
        before = found
    raise NotPublishable("The definitions change too fast to be read at one moment; they are read again in a moment.")


def _documents(account: Account) -> Iterator[tuple[str, str]]:
    count = 0
    for rows in ROWS:
        # What others share with the account is not its own, nor are others' routes on its load balancers.
        own: Any = rows(platform_actor()).filter(account=account).order_by("name")
        for row in own[: MOST_OBJECTS + 1]:
            found = envelope(row)
            if isinstance(row, Certificate) and not row.automatic:
                continue  # its key is never shown, so nobody can apply it
            key = f"{OBJECTS}{found['kind']}/{found['name']}"
            value = json.dumps(found, ensure_ascii=False)
            count += 1
            if count > MOST_OBJECTS:
                raise NotPublishable(f"{account.name} has more than {MOST_OBJECTS} objects; at most so many are taken.")
            if len(value.encode()) > MOST_BYTES:
                raise NotPublishable(f"{found['kind']} {found['name']} is larger than 1 MB, which etcd does not take.")
            yield key, value
