"""Single fields of forms, as the command palette finds them: by what the shapes of objects call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from django.urls import reverse

from apps.accounts.actors import Actor
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.kinds import SHAPES
from apps.web.overview.commands import MAKES, OF_EACH, Command
from apps.web.routes.form import FIELDS as OF_ROUTES
from apps.web.schedules.form import FIELDS as OF_SCHEDULES

# Kinds by what people call them, where that is not their name; the others have a form of the same noun.
NOUNS: Mapping[str, str] = {
    "Pool": "pool",
    "Route": "route",
    "Policy": "policy",
    "NetworkList": "network list",
    "CapacityTest": "capacity test",
    "Schedule": "schedule",
    "AlertRule": "alert rule",
    "AlertChannel": "alert channel",
    "StatusPage": "status page",
    "LoadBalancer": "load balancer",
    "Region": "region",
    "Fleet": "fleet",
    "Stack": "stack",
    "StaticIP": "static IP",
    "Zone": "zone",
    "Account": "customer",
}
# Forms whose fields have names of their own.
OF_FORMS: Mapping[str, Mapping[str, str]] = {"Route": OF_ROUTES, "Schedule": OF_SCHEDULES}


def fields_named(actor: Actor, text: str) -> list[Command]:
    """Fields in whose label all words of the text occur: links to the form that has one, with it in focus."""
    if actor.role == "viewer":
        return []
    words = text.lower().split()
    found = []
    for kind, noun in NOUNS.items():
        url, operators = MAKES[noun]
        if operators and not actor.is_operator:
            continue
        for label, name in labels_of(kind):
            if all(word in f"{label} {noun}".lower() for word in words) and any(w in label.lower() for w in words):
                found.append(Command(label, f"{reverse(f'web:{url}')}#id_{name}", note=f"in the form of a {noun}"))
    return sorted(found, key=lambda each: not each.text.lower().startswith(words[0]))[:OF_EACH]


@cache
def labels_of(kind: str) -> tuple[tuple[str, str], ...]:
    """What each field of the form of a kind is called, with the block that it is in, and its name in the form."""
    names = OF_FORMS.get(kind)
    shown = _shown(SHAPES[kind], "/spec", "")
    return tuple((label, names[at] if names else at) for label, at in shown if names is None or at in names)


def _shown(shape: type[Shape], pointer: str, block: str) -> Iterator[tuple[str, str]]:
    for field in fields_of(shape):
        at, label = f"{pointer}/{field.name}", field.about.label
        if field.child and not field.many:
            yield from _shown(field.child, at, label or block)
        elif label and not field.child:
            yield (f"{block}: {label}" if block else label), at
