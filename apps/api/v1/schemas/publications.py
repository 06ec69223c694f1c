"""Sinks where definitions are published, and which conflict of one is overwritten."""

from __future__ import annotations

from dataclasses import replace

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.operations.building import READ_REFUSALS, Table, detail, of_one
from apps.exporting.publishing.showing import WORDS, State


class PublicationConflict(words.Shown):
    """A key that is in the way."""

    key = words.text(1000)
    revision = serializers.IntegerField(help_text="Of etcd, when the key was changed last; 0 where it was deleted.")
    what = words.word(list(WORDS))


class Publication(words.Shown):
    """An etcd and a prefix of it, where the definitions of an account are published."""

    id = words.ident(allow_null=True, help_text="Null until somebody has looked at it.")
    registry = words.text(63, source="sink.registry")
    prefix = words.text(400, source="sink.prefix")
    account = words.text(63, source="sink.account")
    state = words.word([str(each) for each in State])
    message = words.text(2000)
    remedy = words.text(400)
    conflict = words.text(16, help_text="What overwrites these `conflicts`, empty for none.")
    conflicts = PublicationConflict(many=True)
    revision = words.count(help_text="What was published last; 0 for nothing yet.")
    published_at = words.instant(allow_null=True)
    looked_at = words.instant(allow_null=True)


class Publications(words.Shown):
    """All that the operator's file names."""

    publications = Publication(many=True, source="found")


class OverwrittenConflict(words.Sent):
    """Which keys are overwritten."""

    conflict = words.text(16, help_text="The `conflict` that was seen.")


OPERATIONS: Table = {
    ("publications", "GET"): replace(
        detail(Publications, "where definitions are published, for operators", version=False),
        refuses=(*READ_REFUSALS, 409),
    ),
    ("publications-overwrite", "POST"): of_one(
        "Overwrite keys that somebody else changed", {202: None}, OverwrittenConflict
    ),
}
