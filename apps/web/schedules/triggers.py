"""Secrets of a schedule, each shown once: of its triggers, and what its webhooks are signed with."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.core.errors import Conflict, Invalid
from apps.definitions.selectors import only
from apps.definitions.selectors import schedules as visible_schedules
from apps.schedules import selectors
from apps.schedules.models import Trigger
from apps.schedules.triggers import services as triggers
from apps.schedules.triggers.signing import rotate_signing_secret
from apps.web.kit.pages import PageRequest, post_page, show_once

ONCE = "pages/schedules/secret.html"
# How long an old secret may go on working, in seconds and in words.
GRACES = (
    (0, "no longer (rejected from now on)"),
    (3600, "for an hour"),
    (triggers.GRACE_S, "for a day"),
    (triggers.MOST_GRACE_S, "for seven days"),
)
# How a sender of each kind proves itself, as a command to try it; the secret stands in a variable on purpose.
SIGNING_HOW = "Every message carries its signature; verify it with any Standard Webhooks library, for example in Python"
BY_HAND = "curl -X POST {url} -H 'Content-Type: application/json' -d '{{}}' -H "
SIGNED = "sha256=$(printf '{{}}' | openssl dgst -sha256 -hmac '{secret}' | sed 's/.* //')"
STANDARD = "Webhook('{secret}').sign('msg_1', datetime.now(UTC), '{{}}')"
HOW = {
    Trigger.Sender.SECRET: ("From your own application", BY_HAND + "'Authorization: Bearer {secret}'"),
    Trigger.Sender.GITLAB: ("In GitLab, enter it as “Secret token”. With curl", BY_HAND + "'X-Gitlab-Token: {secret}'"),
    Trigger.Sender.GITHUB: ("In GitHub, enter it as “Secret”. With curl", BY_HAND + f'"X-Hub-Signature-256: {SIGNED}"'),
    Trigger.Sender.STANDARD_WEBHOOKS: ("Sign with any Standard Webhooks library, for example in Python", STANDARD),
}


def _own(request: PageRequest, pk: int, trigger: int) -> Trigger:
    return only(selectors.triggers(request.actor).filter(schedule=pk), trigger)


@post_page
def make(request: PageRequest, pk: int) -> HttpResponse:
    """A new trigger; then its secret, which is shown this once."""
    row = only(visible_schedules(request.actor), pk)
    per_minute = request.POST.get("per_minute", "").strip()
    try:
        trigger, secret = triggers.make_trigger(
            actor=request.actor,
            schedule_id=row.pk,
            name=request.POST.get("name", "").strip(),
            sender=request.POST.get("sender", ""),
            per_minute=int(per_minute)
            if per_minute.isascii() and per_minute.isdecimal() and len(per_minute) < 7
            else 0,
        )
    except (Invalid, Conflict) as error:
        messages.error(request, error.detail)
        return redirect("web:schedule", pk=pk)
    return _secret(request, trigger, secret)


@post_page
def rotate(request: PageRequest, pk: int, trigger: int) -> HttpResponse:
    """A new secret, shown this once; the one before works for as long as was chosen."""
    row = _own(request, pk, trigger)
    grace = request.POST.get("grace_s", str(triggers.GRACE_S))
    whole = grace.isascii() and grace.isdecimal() and len(grace) < 10
    try:
        secret = triggers.rotate_trigger(actor=request.actor, trigger_id=row.pk, grace_s=int(grace) if whole else grace)
    except Invalid as error:
        messages.error(request, error.detail)
        return redirect("web:schedule", pk=pk)
    return _secret(request, _own(request, pk, trigger), secret)


def _secret(request: PageRequest, row: Trigger, secret: str) -> HttpResponse:
    url = request.build_absolute_uri(f"/hooks/{row.key_id}")
    title, command = HOW[Trigger.Sender(row.sender)]
    context = {"row": row, "schedule": row.schedule, "url": url, "secret": secret, "how": title}
    context["command"] = command.format(url=url, secret=secret)
    context["back"] = reverse("web:schedule", args=[row.schedule_id])
    return show_once(request, ONCE, context)


@post_page
def delete(request: PageRequest, pk: int, trigger: int) -> HttpResponse:
    """Nobody can call it any more."""
    row = _own(request, pk, trigger)
    triggers.delete_trigger(actor=request.actor, trigger_id=row.pk)
    messages.success(request, f"Trigger {row.name} is deleted. Its URL now returns 404.")
    return redirect("web:schedule", pk=pk)


@post_page
def sign(request: PageRequest, pk: int) -> HttpResponse:
    """A new secret that the webhooks of a schedule are signed with, shown this once."""
    row = only(visible_schedules(request.actor), pk)
    try:
        secret = rotate_signing_secret(actor=request.actor, schedule_id=pk)
    except Conflict as error:
        messages.error(request, error.detail)
        return redirect("web:schedule", pk=pk)
    command = f"Webhook({secret!r}).verify(body, headers)"
    context = {"schedule": row, "secret": secret, "how": SIGNING_HOW, "command": command}
    return show_once(request, ONCE, context | {"back": reverse("web:schedule", args=[pk])})
