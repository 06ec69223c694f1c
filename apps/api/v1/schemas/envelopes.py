"""What objects have around their spec, when they are sent and when they are shown."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words


class Definition(words.Shown):
    """What every object that apply takes has around its spec."""

    id = words.ident()
    name = words.name()
    account = words.name(help_text="The account that owns it.")
    version = serializers.IntegerField(
        min_value=1, help_text="Increases with each change; the ETag is `rev-<version>`."
    )
    manager = words.text(63, help_text="The pipeline that manages it, or empty.")
    url = serializers.CharField(help_text="The URL of the object.")


class Condition(words.Shown):
    """Something that is wrong. `Accepted` is false where nodes refuse the object: it runs as it was, or not at all."""

    type = words.word(["Accepted"])
    status = serializers.BooleanField()
    reason = words.word(["refused_by_node"])
    message = words.text(1000, help_text="The message of HAProxy.")
    since = words.instant()
    fleet = words.name()
    object = words.text(400, help_text="The object itself, or the server of a pool.")


class Conditioned(Definition):
    """A definition of which nodes may refuse a part."""

    conditions = Condition(many=True)


class Generation(words.Shown):
    """How often what runs somewhere was changed."""

    desired_generation = words.whole(0, 2**53)


class Envelope(words.Sent):
    """What every object that is sent may say about itself beside its spec; where the URL says it, it has to agree."""

    account = words.name(
        required=False, help_text="The account that owns it. Default: your own; only operators can name another one."
    )
