"""Clients that limits banned, and which of them is let in again."""

from __future__ import annotations

from dataclasses import replace

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.operations.building import READ_REFUSALS, Table, detail, of_one


class ClientBan(words.Shown):
    """A client that a limit banned."""

    id = words.text(60, help_text="What lifts it, with the region.")
    region = words.name()
    client = words.text(45, help_text="The address, the first one of its network, or a hash.")
    hashed = serializers.BooleanField(help_text="Whether it is a hash of what a header or cookie said.")
    account = words.name(source="limit.account")
    policy = words.text(80, source="limit.policy", help_text="The policy that says the limit; empty: its routes do.")
    routes = serializers.ListField(child=words.name(), source="limit.routes", help_text="Three at most.")
    until = words.instant()
    fleet = words.text(80, help_text="Empty for customers.")
    nodes = serializers.ListField(child=words.name(), help_text="Empty for customers.")


class ClientBans(words.Shown):
    """Those of whom nodes told."""

    bans = ClientBan(many=True, source="found")
    more = serializers.BooleanField(help_text="Whether a fleet has more than the thousand that were read.")
    unknown_nodes = serializers.IntegerField(source="silent", help_text="Nodes of which nothing is known.")


class LiftedClientBan(words.Sent):
    """Which ban ends."""

    region = words.name()
    ban = words.text(60, help_text="Its `id`.")


class LetIn(words.Shown):
    """Who is let in again."""

    client = words.text(45)


OPERATIONS: Table = {
    ("client-bans", "GET"): replace(
        detail(ClientBans, "the clients that limits banned", version=False), refuses=READ_REFUSALS
    ),
    ("client-bans-lift", "POST"): of_one("End a ban of a limit", {200: LetIn}, LiftedClientBan),
}
