"""The what-if form: reads what should be different; the planner answers, nothing is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from apps.core.written.numbers import plain
from apps.overflow.flows import RegionUse, WhatIf

MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class RegionFields:
    """One region's row of the form."""

    id: str
    name: str
    failed: bool
    drained: bool
    limit: forms.BoundField | None
    now: int  # where the slider of the limit begins, and where it ends
    most: int


class WhatIfForm(forms.Form):
    """Traffic × factor, regions failed or drained, other limits; bound as soon as the query asks for one of them.

    Limits are a pool's: without a pool there is no field for them.
    """

    factor = forms.FloatField(min_value=0, max_value=1000, required=False, widget=forms.NumberInput({"step": "any"}))

    def __init__(self, query: QueryDict, uses: Sequence[RegionUse], *, of_one_pool: bool) -> None:
        limited = uses if of_one_pool else ()
        names = {"factor", "failed_regions", "drained_regions"} | {f"limit-{use.region_id}" for use in limited}
        super().__init__(query if any(query.get(name) for name in names) else None, auto_id="if-%s")
        self.uses, self.limited = uses, limited
        self.fields["factor"].widget.attrs |= {"placeholder": "1", "min": "0"}
        choices = [(use.region_id, use.name) for use in uses]
        for name in ("failed_regions", "drained_regions"):
            self.fields[name] = forms.MultipleChoiceField(choices=choices, required=False)
        for use in limited:
            there = "" if use.capacity_rps is None else plain(use.capacity_rps)
            widget = forms.NumberInput({"placeholder": there or "no limit", "min": "0"})
            self.fields[f"limit-{use.region_id}"] = forms.IntegerField(
                min_value=0, max_value=MOST, required=False, widget=widget
            )

    @property
    def regions(self) -> list[RegionFields]:
        """The rows."""
        chosen: Mapping[str, Any] = {
            name: set(self[name].value() or ()) for name in ("failed_regions", "drained_regions")
        }
        return [
            RegionFields(
                use.region_id,
                use.name,
                use.region_id in chosen["failed_regions"],
                use.region_id in chosen["drained_regions"],
                self[f"limit-{use.region_id}"] if self.limited else None,
                round(_most(use) if use.capacity_rps is None else use.capacity_rps),
                _most(use),
            )
            for use in self.uses
        ]

    def question(self) -> WhatIf | None:
        """What is asked; None while nothing or something false is."""
        if not self.is_bound or not self.is_valid():
            return None
        data = self.cleaned_data
        limits = {use.region_id: data[f"limit-{use.region_id}"] for use in self.limited}
        factor = data["factor"]
        return WhatIf(
            failed_regions=tuple(data["failed_regions"]),
            drained_regions=tuple(data["drained_regions"]),
            factor=1.0 if factor is None else factor,
            limits={region: float(value) for region, value in limits.items() if value is not None},
        )


def _most(use: RegionUse) -> int:
    """Twice what is wanted or may be taken there, rounded up to two digits: beyond it nothing changes."""
    whole = max(10.0, 2 * use.demand_rps, 2 * (use.capacity_rps or 0.0))
    step = 10 ** max(0, len(str(int(whole))) - 2)
    return int(-(-whole // step) * step)
