"""What a calendar of schedules holds day by day: what came of the past, what is to come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from apps.calendars import CalendarError, Timing, next_after, upcoming
from apps.capacity.models import Blackout, Run
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun
from apps.web.schedules.words import SCHEDULE_RUNS, Mark, is_timed, span

A_DAY = timedelta(days=1)
# So many instants within a day, and a schedule is a band of its days instead of single entries.
DENSE = 4
# How many instants one page computes at most; schedules beyond that are named as left out.
BUDGET = 3000
MOST_RUNS = 5000
DUE = Mark("idle", "unknown", "Due")
QUIET = Mark("idle", "check", "No failures")
RUNS = {
    Run.State.WAITING: Mark("idle", "behind", "Test waiting"),
    Run.State.STARTING: Mark("busy", "busy", "Test starting"),
    Run.State.RUNNING: Mark("busy", "busy", "Test running"),
    Run.State.DONE: Mark("good", "check", "Test done"),
    Run.State.STOPPED: Mark("warn", "stop", "Test stopped"),
    Run.State.REFUSED: Mark("warn", "stop", "Test rejected"),
    Run.State.FAILED: Mark("bad", "bad", "Test failed"),
}
BLACKOUT = Mark("warn", "stop", "Blackout")
BAD = (ScheduleRun.State.DEAD, ScheduleRun.State.MISSED)
# The worst of several runs speaks for all of them.
WORST_FIRST = (
    *(ScheduleRun.State.DEAD, ScheduleRun.State.MISSED, ScheduleRun.State.RUNNING, ScheduleRun.State.WAITING),
    *(ScheduleRun.State.SKIPPED, ScheduleRun.State.DONE),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a day: when, what, how it went; `url_name` and `pk` are the page that it leads to, if any."""

    at: datetime
    clock: str
    name: str
    mark: Mark
    word: str
    url_name: str = ""
    pk: int = 0
    is_test: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether its shape, which the legend explains, says all that its word does."""
        return self.word == self.mark.word and self.mark.kind in ("good", "idle")


@dataclass(slots=True)
class Day:
    """One day of the calendar's zone, from its midnight to the next."""

    date: date
    starts: datetime
    ends: datetime
    entries: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Span:
    """The days of a page, and where on them an instant falls."""

    zone: ZoneInfo
    days: list[Day]

    @classmethod
    def of(cls, first: date, count: int, zone: ZoneInfo) -> Span:
        """So many days from the first on."""
        local = [datetime.combine(first + number * A_DAY, time(), zone) for number in range(count + 1)]
        midnights = [midnight.astimezone(UTC) for midnight in local]  # between equal zones Python counts wall time
        pairs = pairwise(midnights)
        return cls(zone, [Day(begins.astimezone(zone).date(), begins, ends) for begins, ends in pairs])

    @property
    def starts(self) -> datetime:
        """The first midnight."""
        return self.days[0].starts

    @property
    def ends(self) -> datetime:
        """The midnight after the last day."""
        return self.days[-1].ends

    def add(self, entry: Entry) -> None:
        """Put an entry on its day; one outside of the days is not shown."""
        number = (entry.at.astimezone(self.zone).date() - self.days[0].date).days
        if 0 <= number < len(self.days):
            self.days[number].entries.append(entry)

    def clock(self, at: datetime) -> str:
        """What a clock shows then, with seconds where there are any."""
        local = at.astimezone(self.zone)
        return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"

    def sort(self) -> None:
        """Each day by the hour."""
        for day in self.days:
            day.entries.sort(key=lambda entry: (entry.at, entry.name))


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule with what is known of how often it falls due: single instants, or the cadence of a band."""

    row: Schedule
    timing: Timing
    dense: bool
    cadence: str
    gap: timedelta


def plan_of(row: Schedule, moment: datetime) -> Plan:
    """How often the schedule falls due, judged by its next few instants."""
    timing = timing_of(row)
    try:
        found = upcoming(timing, moment, DENSE + 1) if is_timed(timing) else []
    except CalendarError:
        found = []
    gaps = [later - earlier for earlier, later in pairwise(found)]
    dense = len(gaps) >= DENSE - 1 and sum(gaps[: DENSE - 1], timedelta()) < A_DAY
    cadence = f"every {span(int(gaps[0].total_seconds()))}" if dense and len(set(gaps)) == 1 else "many times"
    return Plan(row, timing, dense, cadence, gaps[0] if gaps else A_DAY)


def fill(page: Span, rows: Sequence[Schedule], moment: datetime) -> int:
    """Put past and future of the schedules on the days; returns how many schedules were left out of the future."""
    plans = [plan_of(row, max(moment, page.starts)) for row in rows]
    _past(page, plans, moment)
    left_out = _to_come(page, plans, moment)
    page.sort()
    return left_out


def _past(page: Span, plans: Sequence[Plan], moment: datetime) -> None:
    single = [plan.row.pk for plan in plans if not plan.dense]
    dense = [plan.row.pk for plan in plans if plan.dense]
    names = {plan.row.pk: plan.row.name for plan in plans}
    runs = ScheduleRun.objects.filter(scheduled_at__gte=page.starts, scheduled_at__lt=page.ends).order_by(
        "-scheduled_at"
    )
    columns = ("schedule_id", "scheduled_at", "state")
    found = list(runs.filter(schedule__in=single).values_list(*columns)[:MOST_RUNS])
    bad = list(runs.filter(schedule__in=dense, state__in=BAD).values_list(*columns)[:MOST_RUNS])
    grouped: dict[tuple[int, date], list[tuple[datetime, str]]] = defaultdict(list)
    for pk, at, state in [*found, *bad]:
        grouped[pk, at.astimezone(page.zone).date()].append((at, state))
    for (pk, _), those in grouped.items():
        for entry in _entries(page, names[pk], pk, those):
            page.add(entry)
    _quiet_days(page, [plan for plan in plans if plan.dense], set(grouped), moment)


def _entries(page: Span, name: str, pk: int, those: list[tuple[datetime, str]]) -> Iterable[Entry]:
    """One entry per run, or one for all of a day where there are many."""
    if len(those) < DENSE:
        for at, state in those:
            mark = SCHEDULE_RUNS[ScheduleRun.State(state)]
            yield Entry(at, page.clock(at), name, mark, mark.word, "web:schedule", pk)
        return
    counts = Counter(ScheduleRun.State(state) for _, state in those)
    states = [state for state in WORST_FIRST if counts[state]]
    words = ", ".join(f"{counts[state]:,} {SCHEDULE_RUNS[state].word.lower()}" for state in states)
    first = min(at for at, _ in those)
    yield Entry(first, f"{page.clock(first)} …", name, SCHEDULE_RUNS[states[0]], words, "web:schedule", pk)


def _quiet_days(page: Span, dense: Sequence[Plan], noisy: set[tuple[int, date]], moment: datetime) -> None:
    """A band's past days on which nothing went wrong, as far as it was there."""
    for plan in dense:
        for day in page.days:
            there = plan.row.created_at < day.ends <= moment and not plan.row.paused
            if there and (plan.row.pk, day.date) not in noisy and _first_of(plan, day, day.starts) is not None:
                page.add(Entry(day.starts, plan.cadence, plan.row.name, QUIET, QUIET.word, "web:schedule", plan.row.pk))


def _to_come(page: Span, plans: Sequence[Plan], moment: datetime) -> int:
    """Put what is to come on the days as long as the budget lasts; returns how many schedules it did not reach."""
    budget = BUDGET
    for index, plan in enumerate(plans):
        if budget <= 0:
            return len(plans) - index
        if plan.row.paused or not is_timed(plan.timing):
            continue
        try:
            budget -= _bands(page, plan, moment) if plan.dense else _instants(page, plan, moment, budget)
        except CalendarError:
            continue
    return 0


def _bands(page: Span, plan: Plan, moment: datetime) -> int:
    """One entry on each day that has any instant; returns how many were computed."""
    ahead = [day for day in page.days if day.ends > moment]
    for day in ahead:
        begins = max(day.starts, moment)
        first = _first_of(plan, day, begins)
        if first is not None:
            whole = first - begins <= plan.gap
            clock, word = (plan.cadence, DUE.word) if whole else (f"from {page.clock(first)}", plan.cadence)
            page.add(Entry(first, clock, plan.row.name, DUE, word, "web:schedule", plan.row.pk, _tests(plan)))
    return len(ahead)


def _first_of(plan: Plan, day: Day, begins: datetime) -> datetime | None:
    """The first instant of the day from then on, if there is one."""
    try:
        first = next_after(plan.timing, begins - timedelta(microseconds=1))
    except CalendarError:
        return None
    return first if first is not None and first < day.ends else None


def _instants(page: Span, plan: Plan, moment: datetime, budget: int) -> int:
    """One entry for each instant; returns how many were computed."""
    at, count = next_after(plan.timing, max(page.starts - timedelta(microseconds=1), moment)), 1
    while at is not None and at < page.ends and count < budget:
        entry = Entry(at, page.clock(at), plan.row.name, DUE, DUE.word, "web:schedule", plan.row.pk, _tests(plan))
        page.add(entry)
        at, count = next_after(plan.timing, at), count + 1
    return count


def _tests(plan: Plan) -> bool:
    return plan.row.target_kind == Schedule.TargetKind.CAPACITY_TEST


def add_runs(page: Span, runs: Iterable[Run]) -> None:
    """Put runs of capacity tests on the days."""
    for run in runs:
        at, mark = run.started_at or run.created_at, RUNS[Run.State(run.state)]
        page.add(Entry(at, page.clock(at), run.label, mark, mark.word, "web:capacity-run", run.pk, is_test=True))
    page.sort()


def add_blackouts(page: Span, blackouts: Iterable[Blackout]) -> None:
    """Put windows without any capacity test on every day that they touch."""
    for blackout in blackouts:
        for day in page.days:
            starts, ends = max(blackout.starts_at, day.starts), min(blackout.ends_at, day.ends)
            if starts < ends:
                clock = f"{page.clock(starts)}–{page.clock(ends) if ends < day.ends else '24:00'}"
                page.add(Entry(starts, clock, "No capacity tests", BLACKOUT, blackout.reason))
    page.sort()
