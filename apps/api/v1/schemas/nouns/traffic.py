"""Listeners, key sets, bans, and what is known of routes, policies and certificates."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.definitions.models import Listener as ListenerRow


def words_of(model: Any, field: str) -> list[str]:
    """The choices of a column."""
    return [value for value, _ in model._meta.get_field(field).choices]


class FetchedKey(words.Shown):
    """A key of a key set."""

    algorithm = serializers.CharField()
    kid = words.text(128, help_text="The key id; empty where the set names none.")
    gone_at = words.instant(allow_null=True, help_text="When it left the set; null for a key that is in it.")


class KeySet(words.Shown):
    """What is known of the key set at `jwt.jwks_url`."""

    url = serializers.CharField()
    fetched_at = words.instant(allow_null=True, help_text="When the last successful fetch was; null: never.")
    tried_at = words.instant(allow_null=True)
    next_at = words.instant(help_text="When it is fetched again.")
    error = words.text(400, help_text="Why the last try failed; the keys before it still count.")
    ignored = words.text(400, help_text="Entries of the set that verify nothing.")
    keys = FetchedKey(many=True)


class RouteFacts(words.Shown):
    """Whether it is served, and where its key set stands."""

    serving = serializers.BooleanField(help_text="False until the hostname is verified.")
    hostname_id = words.ident()
    key_set = KeySet(allow_null=True, help_text="Null where its own rules name no key set.")


class LiftedBan(words.Sent):
    """The network that leaves a list, or an address alone."""

    network = serializers.CharField(max_length=43)


class Ban(LiftedBan):
    """The network that comes into a list, until when, and why."""

    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    reason = serializers.CharField(required=False, max_length=120, allow_blank=True)


class PolicyFacts(words.Shown):
    """Where its key set stands."""

    key_set = KeySet(allow_null=True, help_text="Null where it names no key set.")


class OrderFacts(words.Shown):
    """How an automatic certificate stands."""

    state = words.word(("issued", "waiting", "ordering", "failing"))
    message = serializers.CharField(help_text="In a sentence: what is done, or why it fails and what to do.")
    authority = serializers.CharField(allow_null=True, help_text="Who issued the present one.")
    issued_at = words.instant(allow_null=True)
    renew_at = words.instant(allow_null=True)
    failures = serializers.IntegerField(help_text="Orders that failed since the last success.")


class CertificateFacts(words.Shown):
    """What its chain says; of an automatic certificate, nothing until it is issued."""

    hostnames = serializers.ListField(child=words.hostname())
    fingerprint = serializers.CharField()
    not_before = words.instant(allow_null=True)
    not_after = words.instant(allow_null=True)
    order = OrderFacts(allow_null=True, help_text="Null where somebody brought the chain.")


class Listener(words.Shown):
    """A port of a load balancer."""

    may_be_absent = ("certificates", "default_pool")

    id = words.ident()
    name = words.name()
    load_balancer = words.name(source="load_balancer.name")
    protocol = words.word(words_of(ListenerRow, "protocol"))
    port = words.port()
    static_ip = words.name(allow_null=True, source="static_ip.name")
    certificates = serializers.ListField(child=words.reference())
    default_pool = words.reference(allow_null=True)
