"""The form of a policy: a group of fields for each block, of which those without a value say nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.definitions.models import Policy
from apps.definitions.previewing.capabilities import Reach, Standing, standings_of_policy
from apps.definitions.reading.describing import describe
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.traffic.policy import Rules
from apps.web.capabilities.notes import LEADS, note_fields, path_of
from apps.web.kit.shape_fields import ask_for_owner
from apps.web.kit.shape_forms import Group, ShapeForm
from apps.web.policies.keys import key_field, keys_of, texts_of_keys

DEFAULTS = "/spec/default_for/"
SECRETS = ("/spec/rules/basic_auth/users", "/spec/rules/api_keys/keys")
# The one list of objects, as text: a line with algorithm and key id above each key.
KEYS = "/spec/rules/jwt/keys"
KEY_SET_URL = "/spec/rules/jwt/jwks_url"


class Secrets(forms.Textarea):
    """Names with a secret each, `anna=…`; what was typed as a secret is never shown again, not even after an error."""

    def format_value(self, value: Any) -> str:
        """The names."""
        return "\n".join(f"{line.partition('=')[0]}=" for line in str(value or "").splitlines() if line.strip())


class PolicyForm(ShapeForm):
    """Every setting, and for whom it is the default; only operators name load balancers."""

    kind = "Policy"

    def __init__(self, data: QueryDict | None, *, stored: Policy | None, actor: Actor) -> None:
        names: Mapping[str, Iterable[Any]] = {}
        super().__init__(data, stored=stored, names=names)
        for pointer in SECRETS:
            self.fields[pointer].widget = Secrets(attrs={"rows": 3, "spellcheck": "false", "class": "mono"})
        self.fields[KEYS] = key_field()
        self.initial[KEYS] = texts_of_keys(describe(stored)["rules"].get("jwt") if stored else None)
        self.fields[KEY_SET_URL].widget.attrs |= {"class": "long", "inputmode": "url", "spellcheck": "false"}
        if not actor.is_operator:
            del self.fields[f"{DEFAULTS}load_balancers"]
        elif stored is None:
            ask_for_owner(self)
        for name in self.fields:
            if name.startswith(DEFAULTS):
                self.fields[name].widget.attrs |= LEADS
        owner = stored.account.name if stored else self._text("/account") or actor.account.name
        named = ((self[name], path_of(name)) for name in self.fields)
        self.capabilities = note_fields("Policy", named, self._standings(stored, owner))

    def _standings(self, stored: Policy | None, owner: str) -> tuple[Standing, ...]:
        """Where the routes stand that follow it, with those for which it would be the default by what is typed."""
        reach = Reach(
            self._text(f"{DEFAULTS}account") not in ("", "False"),
            frozenset(self._text(f"{DEFAULTS}hostnames").split()),
            frozenset(self._text(f"{DEFAULTS}load_balancers").split()),
        )
        return standings_of_policy(stored, owner, reach)

    def _text(self, name: str) -> str:
        return str(self[name].value() or "").strip() if name in self.fields else ""

    def spec(self) -> dict[str, Any]:
        """The document of what was typed, without the blocks of which nothing is said."""
        found = super().spec()
        said = {
            block: {name: value for name, value in fields.items() if value is not None}
            for block, fields in found.get("rules", {}).items()
        }
        if keys := keys_of(self.cleaned_data[KEYS]):
            said.setdefault("jwt", {})["keys"] = keys
        return found | {"rules": {block: fields for block, fields in said.items() if fields}}

    @property
    def head(self) -> list[forms.BoundField]:
        """Name and owner of a new policy."""
        return [self[name] for name in ("/account", "/name") if name in self.fields]

    @property
    def defaults(self) -> list[forms.BoundField]:
        """For whom it holds without being named."""
        return [self[name] for name in self.fields if name.startswith(DEFAULTS)]

    @property
    def groups(self) -> list[Group]:
        """The blocks in the order of their declaration."""
        return [self._group(block) for block in fields_of(Rules)]

    def _group(self, block: Any) -> Group:
        names = [f"/spec/rules/{block.name}/{field.name}" for field in fields_of(block.child)]
        fields = [self[name] for name in names if name in self.fields]
        is_open = any(each.value() or each.errors for each in fields)
        return Group(block.about.label, fields, block.about.help, folds=True, is_open=is_open)
