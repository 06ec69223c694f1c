"""The form of a list: an entry on each line, `192.0.2.0/24 2027-01-31T00:00:00Z why`, or codes of countries."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.definitions.models import Country, NetworkList
from apps.definitions.services import as_network
from apps.web.kit.shape_fields import NAME_HINT, ask_for_owner

ENTRIES, COUNTRIES = "/spec/entries", "/spec/countries"
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z")


class NetworkListForm(forms.Form):
    """The name of a new list, and the entries or countries of any; countries where a database has some."""

    use_required_attribute = False

    def __init__(self, data: QueryDict | None, *, stored: NetworkList | None, actor: Actor) -> None:
        initial = {ENTRIES: written(stored.entries), COUNTRIES: " ".join(stored.countries)} if stored else None
        super().__init__(data, initial=initial)
        if stored is None:
            self.fields["/name"] = forms.CharField(label="Name", max_length=63, help_text=NAME_HINT)
            if actor.is_operator:
                ask_for_owner(self)
        self.fields[ENTRIES] = forms.CharField(
            label="Networks",
            required=False,
            help_text="One per line: the network or address, then an optional expiry (UTC) and reason: "
            "192.0.2.0/24 2027-01-31T00:00:00Z scans our login",
            widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false", "class": "mono"}),
        )
        if (stored and stored.countries) or Country.objects.exists():
            self.fields[COUNTRIES] = forms.CharField(
                label="Countries",
                required=False,
                help_text="Instead of networks: two letters each, such as DE AT CH.",
                widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off", "class": "mono"}),
            )

    def spec(self) -> dict[str, Any]:
        """The document of what was typed."""
        lines = (line.strip() for line in self.cleaned_data[ENTRIES].splitlines())
        countries = self.cleaned_data.get(COUNTRIES, "").replace(",", " ").upper().split()
        return {"entries": [entry_of(line) for line in lines if line], "countries": countries}


def entry_of(line: str) -> dict[str, str]:
    """One line as an entry."""
    network, _, rest = line.partition(" ")
    until, _, reason = rest.strip().partition(" ")
    if not _INSTANT.fullmatch(until):
        until, reason = "", rest
    fields = {"network": as_network(network), "expires_at": until, "reason": reason.strip()}
    return {name: value for name, value in fields.items() if value}


def written(entries: list[dict[str, str]]) -> str:
    """Stored entries as lines."""
    return "\n".join(
        " ".join(each[name] for name in ("network", "expires_at", "reason") if name in each) for each in entries
    )
