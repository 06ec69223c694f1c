"""Backends with their limits, and servers."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.nouns.traffic import words_of
from apps.definitions.models import Backend as BackendRow
from apps.definitions.models import Server as ServerRow
from apps.definitions.shapes.traffic.pool import HIGHEST_LIMIT, RUN

KINDS = words_of(BackendRow, "limit_kind")
SCOPES = words_of(BackendRow, "limit_scope")
STATES = words_of(ServerRow, "state")


class StoredLimit(words.Shown):
    """A limit, with who set it and when."""

    kind = words.word(KINDS, source="limit_kind")
    value = words.whole(0, HIGHEST_LIMIT, source="limit_value")
    scope = words.word(SCOPES, source="limit_scope")
    set_by = words.text(150, source="limit_set_by")
    set_at = words.instant(allow_null=True, source="limit_set_at")
    measured_by = words.text(63, source="limit_measured_by")


class BackendServer(words.Shown):
    """A server of a backend."""

    id = words.ident()
    name = words.name()
    address = serializers.CharField()
    port = words.port()
    weight = words.whole(0, 256)
    state = words.word(STATES)


class Backend(words.Shown):
    """A pool's share in a region; its version is that of the pool."""

    id = words.ident()
    account = words.name(source="account.name")
    pool = words.name(source="pool.name")
    pool_id = words.ident()
    region = words.name(source="region.name")
    limit = StoredLimit()
    capacity_scaler = words.number(0, 1)
    servers = BackendServer(many=True)
    version = words.whole(1, 2**31, source="pool.version")


class Measurement(words.Shown):
    """Which run found a limit, on which build, and how far that can be relied on: fresh, old, changed or unknown."""

    run = words.text(63)
    status = words.word(("fresh", "old", "changed", "unknown"))
    stale = serializers.BooleanField()
    message = words.text(2000)
    measured_at = words.instant(allow_null=True)
    build = words.text(12)


class MeasuredBackend(Backend):
    """A backend with the measurement behind its limit; null for a limit that somebody chose."""

    measurement = Measurement(allow_null=True)


class Server(BackendServer):
    """A server; its version is that of its pool, whose document it is part of."""

    account = words.name(source="account.name")
    pool = words.name(source="backend.pool.name")
    pool_id = words.ident(source="backend.pool_id")
    backend_id = words.ident()
    region = words.name(source="backend.region.name")
    version = words.whole(1, 2**31, source="backend.pool.version")


class ServerChange(words.Sent):
    """What is changed of a server in a hurry."""

    state = words.word(STATES, required=False)
    weight = words.whole(0, 256, required=False)


class LimitChange(words.Sent):
    """What is changed of a backend in a hurry; what is left out stays."""

    kind = words.word(KINDS, required=False)
    value = words.whole(0, HIGHEST_LIMIT, required=False)
    scope = words.word(SCOPES, required=False)
    capacity_scaler = words.number(0, 1, required=False)
    measured_by = serializers.RegexField(RUN, required=False, allow_blank=True)


class LatencyChange(words.Sent):
    """The round trip to another region; null goes back to what nodes measure."""

    ms = words.number(0, 60_000, allow_null=True)


class Heartbeat(words.Shown):
    """A server that has registered itself; it leaves at `until` unless it says so again."""

    name = words.name()
    region = words.name(source="backend.region.name")
    address = serializers.CharField()
    port = words.port()
    weight = words.whole(0, 256)
    until = words.instant()
