"""The forms of rules and channels, made of their shapes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.definitions.models import AlertChannel, AlertRule
from apps.definitions.shapes.operations.alert_channel import NEEDS
from apps.definitions.shapes.operations.alert_watches import BUILT_IN, SEVERITIES, WATCHES
from apps.web.kit.object_forms import ObjectForm
from apps.web.kit.shape_fields import ask_for_owner
from apps.web.kit.shape_forms import Group

_SEVERITIES = [SimpleNamespace(name=word) for word in SEVERITIES]
_SECRET = "/spec/secret"  # noqa: S105 - the pointer of the field
_QUIET = "/spec/quiet/"


class RuleForm(ObjectForm):
    """A rule; one that takes the place of a built-in rule has its name and its watch already."""

    kind, noun = "AlertRule", "alert rule"

    def __init__(self, data: QueryDict | None, *, stored: AlertRule | None, actor: Actor, built_in: str = "") -> None:
        super().__init__(data, stored=stored, names={})
        known = [(word, each.label) for word, each in WATCHES.items() if actor.is_operator or not each.operators]
        self.fields["/spec/watches"].widget = forms.Select(choices=known)
        if stored is None and built_in in BUILT_IN:
            self.fields["/name"].initial, self.fields["/spec/watches"].initial = built_in, BUILT_IN[built_in]
        if stored is None and actor.is_operator:
            ask_for_owner(self)

    @property
    def lead(self) -> str:
        """What the form says about itself."""
        return "A rule with the name of a built-in rule takes its place in your account."


class ChannelForm(ObjectForm):
    """A channel; its secret is typed and never shown again."""

    kind, noun = "AlertChannel", "alert channel"
    only: ClassVar = {
        f"/spec/{field}": " ".join(word for word, needs in NEEDS.items() if {field, f"{field}?"} & {*needs})
        for field in ("to", "url", "secret")
    }

    def __init__(self, data: QueryDict | None, *, stored: AlertChannel | None, actor: Actor) -> None:
        super().__init__(data, stored=stored, names={"severities": _SEVERITIES})
        secret = self.fields[_SECRET]
        secret.widget = forms.PasswordInput(attrs={"autocomplete": "new-password", "class": "mono long"})
        if stored is not None and stored.sealed_secret:
            secret.help_text = "Leave empty to keep the stored one."
        self.fields["/spec/url"].widget.attrs |= {"class": "mono long", "inputmode": "url", "spellcheck": "false"}
        for name in ("start", "end"):
            self.fields[f"{_QUIET}{name}"].widget = forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
        if stored is None and actor.is_operator:
            ask_for_owner(self)

    def spec(self) -> dict[str, Any]:
        """The document of what was typed, without quiet hours where none are."""
        return self.without_defaults(self.document())

    @property
    def groups(self) -> list[Group]:
        """Where, and when."""
        when = ("/spec/severities", "/spec/wait_minutes", "/spec/enabled")
        where = [self[name] for name in self.fields if name not in when and not name.startswith(_QUIET)]
        quiet = self.folded("quiet")
        return [Group("Channel", where), Group("When", [self[name] for name in when]), quiet]
