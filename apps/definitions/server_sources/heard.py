"""What a source that is watched listed last, where somebody watches it still."""

from __future__ import annotations

from datetime import timedelta

from apps.core.clock import now
from apps.definitions.models import ServerSource
from apps.definitions.server_sources.asking import BadAnswer, few
from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.server_sources.registries import registry_of
from apps.definitions.shapes.servers.source import Source

# It is said again each ten seconds; after so long nobody watches.
BELIEVED = timedelta(seconds=45)


def heard(row: ServerSource, source: Source) -> list[FoundServer]:
    """The servers that were heard of. Raises BadAnswer, NotYours."""
    registry_of(source, row.backend.account.name)  # it may have been taken back since
    if row.heard_at is None or row.listed is None or row.listed["of"] != row.backend.servers_from:
        raise BadAnswer("The registry has not been heard of yet.")
    if row.heard_at < now() - BELIEVED:
        raise BadAnswer("No process of the console has watched the registry for a while.")
    if row.listed["error"]:
        raise BadAnswer(row.listed["error"])
    return few(
        FoundServer(address, port, weight, hint=hint, leaving=leaving)
        for address, port, weight, hint, leaving in row.listed["servers"]
    )
