"""SHOW to machines, written down: what objects have around their spec, when they are sent and when they are shown."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words


class Definition(words.Shown):
    """What every object that apply takes has around its spec."""

    id = words.ident()
    name = words.name()
    account = words.name(help_text="Whose it is.")
    version = serializers.IntegerField(min_value=1, help_text="Higher after each change; the ETag is `rev-<version>`.")
    manager = words.text(63, help_text="Which pipeline manages it, empty for none.")
    url = serializers.CharField(help_text="Where it is read and changed.")


class Envelope(words.Sent):
    """What every object that is sent may say about itself beside its spec; where the URL says it, it has to agree."""

    account = words.name(required=False, help_text="Whose it is; operators may name another account than their own.")
