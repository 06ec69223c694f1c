"""Tokens that let one machine in as one node, once, within 15 minutes; only a digest of each is stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.compiler import grammar
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid, NotFound
from apps.definitions.services import KINDS
from apps.definitions.shapes.base.shape import Wrong
from apps.definitions.shapes.base.words import TAGS, sorted_pairs
from apps.enrolment import pinned
from apps.fleet import selectors as topology
from apps.fleet.models import EnrolmentToken, Fleet, Node

LIFE = timedelta(minutes=15)
KEPT = timedelta(days=7)
FORM = re.compile(r"sne_[A-Za-z0-9_-]{43}_([A-Za-z0-9_-]{43})")

# Where the agent's unit looks who it is; without this file it does not start (deploy/systemd/spillway-agent.service).
UNIT_READS = "/etc/spillway/agent"


def command_with(text: str) -> str:
    """What root runs on the machine, with the text of a token."""
    return f"spillway-agent enroll {settings.CONSOLE_URL} --token {text} --environment {UNIT_READS}"


def digest_of(text: str) -> str:
    """What is stored of a token: the SHA-256 (hex) of its secret; of anything else nothing that is stored."""
    found = FORM.fullmatch(text)
    return hashlib.sha256((found[1] if found else f"no token: {text[:200]}").encode()).hexdigest()


@transaction.atomic
def make_token(
    *, actor: Actor, node: object, fleet: object, tags: object = None, reason: str = ""
) -> tuple[EnrolmentToken, str]:
    """A token for a node of that name in that fleet, and its text, which is shown this once.

    The node gets the tags; None leaves those of a node that is there already. Raises Invalid for a name or tags that
    are none, a fleet that is not there, and a node that is in another fleet; Conflict while nobody has said how nodes
    know the console; Forbidden.
    """
    KINDS["Node"].may_change(actor)
    name, found, labels = _read(actor, node, fleet, tags)
    secret, instant = secrets.token_urlsafe(32), now()
    text = f"sne_{pinned.pin()}_{secret}"
    row = EnrolmentToken.objects.create(
        digest=digest_of(text),
        node_name=name,
        fleet=found,
        created_at=instant,
        created_by=actor.name[:150],
        expires_at=instant + LIFE,
        tags=labels,
    )
    after = {"node": name, "fleet": found.name, "tags": labels, "expires_at": row.expires_at.isoformat()}
    audit.record(
        actor=actor, action="create", kind="EnrolmentToken", object_id=row.pk, label=name, after=after, reason=reason
    )
    return row, text


def _read(actor: Actor, node: object, fleet: object, tags: object) -> tuple[str, Fleet, dict[str, str] | None]:
    errors, name, labels = [], "", None
    try:
        name = grammar.name(node)
    except grammar.GrammarError as error:
        errors.append(FieldError("/node", error.code, error.message))
    try:
        labels = None if tags is None else sorted_pairs(TAGS.read(tags))
    except grammar.GrammarError as error:
        errors.append(FieldError("/tags", error.code, error.message))
    except Wrong as wrong:
        errors += [replace(each, pointer=f"/tags{each.pointer}") for each in wrong.field_errors]
    found = topology.fleets(actor).filter(name=fleet).first() if isinstance(fleet, str) else None
    if found is None:
        errors.append(FieldError("/fleet", "unknown", "There is no such fleet. Create it first."))
    row = Node.objects.select_related("fleet").filter(name=name).first() if name else None
    if row is not None and found is not None and row.fleet_id != found.pk:
        detail = f"Node {name} is in fleet {row.fleet.name}. Name that fleet, or move the node first."
        errors.append(FieldError("/fleet", "other_fleet", detail))
    if errors or found is None:
        raise Invalid(errors)
    return name, found, labels


@transaction.atomic
def withdraw_token(*, actor: Actor, token_id: int, reason: str = "") -> None:
    """Nobody gets in by this token any more. Raises NotFound where it was used, ended or withdrawn; Forbidden."""
    KINDS["Node"].may_change(actor)
    row = EnrolmentToken.objects.select_for_update().filter(pk=token_id, used_at=None, expires_at__gt=now()).first()
    if row is None:
        raise NotFound("There is no such token that could still be used.")
    before = {"node": row.node_name}
    audit.record(
        actor=actor,
        action="delete",
        kind="EnrolmentToken",
        object_id=row.pk,
        label=row.node_name,
        before=before,
        reason=reason,
    )
    row.delete()


def prune(instant: datetime) -> int:
    """Forget tokens that ended a week ago; returns how many."""
    return EnrolmentToken.objects.filter(expires_at__lt=instant - KEPT).delete()[0]
