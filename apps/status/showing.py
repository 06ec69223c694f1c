"""What visitors see of a page, made of rows in a fixed number of queries: components, their days, incidents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import floor

from django.db.models import Q

from apps.definitions.models import StatusPage
from apps.status.components import Component, components_of, pool_states
from apps.status.days import SHOWN
from apps.status.models import Incident, PoolDay
from apps.status.selectors import not_over
from apps.status.states import State, overall, sentence, worst

MOST_PAST = 100
MINUTES = 24 * 60
# Of less of a day nobody can say that it was well.
ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class ShownDay:
    """A day of a component, as a word and as a sentence."""

    day: date
    state: State
    words: str


@dataclass(frozen=True, slots=True)
class ShownComponent:
    """A component: how it is, how it was, and for how long of what was measured it worked (percent)."""

    name: str
    state: State
    days: Sequence[ShownDay]
    worked: str

    @property
    def summary(self) -> str:
        """How many days were how, in words."""
        counts = Counter(each.state for each in self.days)
        return ", ".join(f"{count} {state.label.lower()}" for state, count in counts.most_common())

    @property
    def bad_days(self) -> list[ShownDay]:
        """Days on which something was wrong, the newest first."""
        return [each for each in reversed(self.days) if each.state not in (State.OPERATIONAL, State.UNKNOWN)]


@dataclass(frozen=True, slots=True)
class ShownIncident:
    """An incident with the word that it is at now, and how it leaves its components."""

    row: Incident
    word: str
    impact: State | None
    over: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """A page at a moment."""

    page: StatusPage
    at: datetime
    state: State
    sentence: str
    components: Sequence[ShownComponent]
    open: Sequence[ShownIncident]
    planned: Sequence[ShownIncident]
    past: Sequence[tuple[date, Sequence[ShownIncident]]]


def show_page(page: StatusPage, instant: datetime) -> Shown:
    """The page at this moment. Nine queries, however much it shows."""
    components = components_of([page])[page.pk]
    pools = {pk for component in components for pk in component.pools}
    rows = incidents_of(page, instant)
    days = _days_of(pools, instant)
    measured = pool_states(pools)
    shown = []
    for component in components:
        own = [row for row in rows if component.name in row.impacts]
        said = [_impact(row, component.name) for row in own if row.begins_at <= instant and not row.over_at(instant)]
        past = _history(component, own, days, instant)
        shown.append(ShownComponent(component.name, worst([component.state(measured), *said]), *past))
    states = [each.state for each in shown]
    incidents = [_shown(row, instant) for row in rows]
    return Shown(
        page=page,
        at=instant,
        state=overall(states),
        sentence=sentence(states),
        components=shown,
        open=[each for each in incidents if not each.over and each.row.begins_at <= instant],
        planned=[each for each in reversed(incidents) if each.row.begins_at > instant and not each.over],
        past=_by_day(each for each in incidents if each.over),
    )


def incidents_of(page: StatusPage, instant: datetime) -> list[Incident]:
    """What is not over, and what was over within the days that are shown, each the newest first. Four queries."""
    rows = page.incidents.prefetch_related("updates").order_by("-begins_at", "-number")
    going_on = list(not_over(rows, instant))
    first = instant - timedelta(days=SHOWN)
    over = rows.filter(Q(resolved_at__gt=first) | Q(resolved_at=None, ends_at__gt=first, ends_at__lte=instant))
    return going_on + list(over[:MOST_PAST])


def _shown(row: Incident, instant: datetime) -> ShownIncident:
    said = row.ends_at is None and row.impacts  # of maintenance its word says enough
    impact = worst(_impact(row, name) for name in row.impacts) if said else None
    return ShownIncident(row, row.word_at(instant), impact, row.over_at(instant) is not None)


def _impact(row: Incident, component: str) -> State:
    return State(row.impacts[component])


def _by_day(incidents: Iterable[ShownIncident]) -> list[tuple[date, list[ShownIncident]]]:
    found: dict[date, list[ShownIncident]] = defaultdict(list)
    for each in incidents:
        found[each.row.begins_at.astimezone(UTC).date()].append(each)
    return sorted(found.items(), key=lambda entry: entry[0], reverse=True)


def _days_of(pools: Collection[int], instant: datetime) -> Mapping[tuple[int, date], PoolDay]:
    first = (instant - timedelta(days=SHOWN - 1)).date()
    rows = PoolDay.objects.filter(pool__in=pools, day__gte=first)
    return {(row.pool_id, row.day): row for row in rows}


def _history(
    component: Component, incidents: Collection[Incident], days: Mapping[tuple[int, date], PoolDay], instant: datetime
) -> tuple[list[ShownDay], str]:
    found, known, lost = [], 0, 0
    for back in range(SHOWN - 1, -1, -1):
        day = (instant - timedelta(days=back)).date()
        rows = [days.get((pk, day)) for pk in component.pools]
        # As long as all of it was measured, and as bad as its worst part was.
        minutes = min((row.minutes if row else 0 for row in rows), default=0) if component.whole else 0
        down = max((row.down for row in rows if row), default=0)
        failing = max((row.failing for row in rows if row), default=0)
        known, lost = known + max(minutes, down), lost + down
        whole_out = all(row is not None and row.down for row in rows)
        elapsed = (instant.hour * 60 + instant.minute) if back == 0 else MINUTES
        measures = _measured(minutes, down, failing, elapsed, whole_out=whole_out)
        said = [_impact(row, component.name) for row in incidents if _on(row, day, instant)]
        said = [each for each in said if each != State.MAINTENANCE]
        found.append(ShownDay(day, worst([measures, *said]), _words(minutes, down, failing, elapsed, said)))
    # Rounded down: what failed at all is never shown as all of it.
    worked = f"{floor(10_000 * (known - lost) / known) / 100:g}" if known else ""
    return found, worked


def _measured(minutes: int, down: int, failing: int, elapsed: int, *, whole_out: bool) -> State:
    if down:
        return State.MAJOR_OUTAGE if whole_out else State.PARTIAL_OUTAGE
    if failing:
        return State.DEGRADED
    return State.OPERATIONAL if minutes and minutes >= elapsed * ENOUGH else State.UNKNOWN


def _words(minutes: int, down: int, failing: int, elapsed: int, said: Collection[State]) -> str:
    parts = [f"out for {_length(down)}"] * bool(down) + [f"errors for {_length(failing)}"] * bool(failing)
    parts += [f"{worst(said).label.lower()} reported"] if said else []
    if not minutes:
        return ", ".join([*parts, "not measured"])
    if minutes < elapsed * 0.98:
        return ", ".join([*(parts or ["nothing wrong seen"]), f"measured for {_length(minutes)}"])
    return ", ".join(parts or ["nothing wrong"])


def _length(minutes: int) -> str:
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _on(row: Incident, day: date, instant: datetime) -> bool:
    """Whether it touched that day; what is still to come did not."""
    begin, end = row.begins_at.astimezone(UTC), (row.over_at(instant) or instant).astimezone(UTC)
    return begin <= instant and begin.date() <= day <= end.date()
