"""A configuration of another load balancer as definitions: what is sent, and what became of each line."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words, writing
from apps.api.v1.schemas.operations.building import READ_REFUSALS, Operation, Table
from apps.importing.formats import FORMATS
from apps.importing.ordering import LONGEST_PREFIX, LONGEST_WORD, MOST_BYTES, MOST_FILES
from apps.importing.verdicts import Verdict


def _words(about: str) -> serializers.DictField:
    return serializers.DictField(child=serializers.CharField(max_length=LONGEST_WORD), required=False, help_text=about)


class Import(words.Sent):
    """A configuration with the files that it names, and answers to what they cannot know. No file is stored."""

    files = serializers.DictField(
        child=serializers.CharField(),
        help_text=f"Path or name → text; at most {MOST_FILES} files and {MOST_BYTES // 2**20} MiB together.",
    )
    file = serializers.CharField(
        max_length=LONGEST_WORD,
        required=False,
        help_text="The configuration among them. Default: the only one that looks like one. All manifests are read.",
    )
    format = words.word(list(FORMATS), required=False, help_text="Default: what the configuration looks like.")
    account = words.name(required=False, help_text="The account that owns routes and pools. Default: your own.")
    fleets = serializers.ListField(
        child=words.name(), required=False, help_text="Fleets that run the load balancers. Default: the only one."
    )
    region = words.name(required=False, help_text="The region of the servers. Default: that of the first fleet.")
    prefix = serializers.CharField(
        max_length=LONGEST_PREFIX, required=False, allow_blank=True, help_text="Put before every name, such as shop-."
    )
    servers = _words("Where a server is now: 127.0.0.1:8080 → app-1:8080.")
    certificates = serializers.DictField(
        child=words.name(), required=False, help_text="Certificate file → certificate in Spillway."
    )
    addresses = serializers.DictField(child=words.name(), required=False, help_text="Address of bind → static IP.")
    passwords = _words("User → password, where the configuration has a hash.")
    environment = _words("Variable of the configuration → value.")


class VerdictCounts(words.Shown):
    """How many lines have each verdict."""

    dead = words.count()
    node_setting = words.count()
    mapped = words.count()
    different = words.count()
    not_possible = words.count()


class ImportedLine(words.Shown):
    """One line, what became of it, why and what to do instead, and the objects (`Pool shop`) that it is part of."""

    line = words.count(source="number")
    text = serializers.CharField(help_text="The line, with … for secrets.")
    section = serializers.CharField()
    file = serializers.CharField(help_text="The file it stands in; empty for the configuration itself.")
    verdict = words.word([str(each) for each in Verdict])
    reasons = serializers.ListField(child=serializers.CharField())
    objects = serializers.ListField(child=serializers.CharField())


class ImportedObject(words.Shown):
    """An object that the configuration makes; without an account it is the operator's."""

    kind = serializers.CharField()
    account = words.name(allow_null=True)
    name = words.text(400)


class ImportRefusal(words.Shown):
    """Why the objects cannot be stored; `kind` and `name` are empty where it is about none alone."""

    kind = serializers.CharField()
    name = words.text(400)
    field = words.text(2000, help_text="A JSON pointer into the object.")
    detail = serializers.CharField()


class Imported(words.Shown):
    """The report, and the plan that `POST /plans/{plan}/apply` applies; null while there are `needs` or `refusals`."""

    counts = VerdictCounts()
    lines = ImportedLine(many=True)
    objects = ImportedObject(many=True)
    everywhere = serializers.ListField(
        child=serializers.CharField(), help_text="What differs whatever the configuration says."
    )
    needs = serializers.ListField(child=serializers.CharField(), help_text="What to send as well; names the field.")
    refusals = ImportRefusal(many=True)
    plan = writing.Applied(allow_null=True)


OPERATIONS: Table = {
    ("import", "POST"): Operation(
        summary="Read a configuration of another load balancer and plan what it would make",
        shown={200: Imported},
        sent=Import,
        refuses=(400, *READ_REFUSALS, 409, 413, 415, 503),
    ),
}
