"""What needs attention, worst first: one entry per cause, with what follows from it beside it."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.urls import reverse

from apps.core.written.numbers import plain
from apps.definitions.models import HealthCheck
from apps.fleet.models import Fleet
from apps.observe.evaluate.conditions import Reason
from apps.observe.numbers import Numbers, Problem, Series
from apps.overflow.flows import Flow, RegionUse
from apps.overflow.reasons import urgency
from apps.web.changes.rows import ChangeRow

SHOWN = 5
DOWN, SICK = 1, 2
PAGES = {"node": "web:node", "pool": "web:pool", "load_balancer": "web:load-balancer", "route": "web:route"}
LISTS = {"key_set": "web:policies", "server_source": "web:pools"}
# A p95 is worth a word when it doubled against the median of the hour and is that much slower.
DOUBLED, SLOWER_MS, POINTS = 2.0, 50.0, 10
# Less often nobody can say after seconds that no request comes any more.
SOME_RPS = 1.0
NEWEST = 4  # points of the series that may already be part of what is new


@dataclass(frozen=True, slots=True)
class Cause:
    """By what an object is checked, and the last change to it in the day before it failed; None for neither."""

    check: HealthCheck | None
    change: ChangeRow | None


@dataclass(slots=True)
class Incident:
    """One cause: `title` says it, `more` what follows from it; `severity` is 1 (down) to 3 (worth a look).

    `problem` is the verdict that it tells of, `others` those of other objects with the same cause; `about` is the kind
    of its object and the primary key. `cause` is what overview/causes.py found out about that. `sends` is what a button
    says, and where it posts, for who may write.
    """

    severity: int
    title: str
    url: str = ""
    action: str = "View"
    traffic: float = 0.0
    more: list[str] = field(default_factory=list)
    problem: Problem | None = None
    others: list[Problem] = field(default_factory=list)
    about: tuple[str, int] | None = None
    cause: Cause | None = None
    sends: tuple[str, str] | None = None

    @property
    def kind(self) -> str:
        """Colour of its banner."""
        return "bad" if self.severity == DOWN else "warn"

    @property
    def text(self) -> str:
        """Who else is hit, and what follows."""
        said = _said_of_others(self.problem, self.others) if self.problem else []
        return " ".join(dict.fromkeys([*said, *self.more]))

    def take_over(self, other: Incident) -> None:
        """The other has the same cause: it is told of here."""
        self.others += [other.problem] if other.problem else []
        self.more += other.more
        self.traffic += other.traffic


def incidents(
    problems: Sequence[Problem], flow: Flow, standing: Iterable[Incident] = (), slow: Incident | None = None
) -> list[Incident]:
    """Problems of objects, what overflow does, fleets that stand still and a p95 that doubled, worst first."""
    found: dict[tuple[str, int], Incident] = {}
    for problem in problems:
        if not _follows(problem, problems):
            _add_problem(found, problem)
    for use in flow.regions if flow.at is not None and not flow.stale else ():
        _add_overflow(found, flow, use)
    every = [*_same_cause_once(found.values()), *standing, *([slow] if slow else [])]
    return sorted(every, key=lambda each: (each.severity, -each.traffic))


def _follows(problem: Problem, problems: Sequence[Problem]) -> bool:
    """A peer that is lost because its node cannot be reached is no second incident."""
    gone = (Reason.DOES_NOT_ANSWER, Reason.NO_WORKER)
    silent = [each.label for each in problems if each.kind == "node" and each.reason in gone]
    return problem.reason == Reason.PEER_LOST and any(f" {label}" in problem.sentence for label in silent)


def _add_problem(found: dict[tuple[str, int], Incident], problem: Problem) -> None:
    """Of one object the worst is the incident; the rest stands beside it."""
    key = problem.kind, problem.object_id
    if key in found:
        found[key].more.append(problem.sentence)
        return
    found[key] = Incident(problem.severity, problem.sentence, _page_of(problem), problem=problem, about=key)


def _page_of(problem: Problem) -> str:
    """Where it is told, else the list to look in."""
    if problem.kind in LISTS:
        return reverse(LISTS[problem.kind])
    return reverse(PAGES[problem.kind], args=[problem.object_id]) if problem.kind in PAGES else ""


def _add_overflow(found: dict[tuple[str, int], Incident], flow: Flow, use: RegionUse) -> None:
    if use.drained:
        if use.sentences:
            key = "region", int(use.region_id.removeprefix("rgn-"))
            resume = reverse("web:region-drain", args=[use.name])
            found[key] = Incident(SICK, use.sentences[0], resume, "Resume traffic", use.demand_rps, about=key)
        return
    rows = [(each.pool_id, each.use) for each in use.pools] or [(pool, use) for pool in flow.pools]
    for pool_id, row in rows:
        worst = urgency(row)[0]
        if worst == 1 or not row.sentences:
            continue
        number = int(pool_id.removeprefix("pool-"))
        url, action = f"{reverse('web:overflow')}?pool={number}", "Open overflow"
        if row.capacity_rps and not row.drained and row.healthy:
            url, action = f"{reverse('web:pool', args=[number])}#servers", "Change limit"
        new = Incident(DOWN if worst > 2 else SICK, row.sentences[0], url, action, about=("pool", number))
        known = found.setdefault(("pool", number), new)
        known.traffic += row.demand_rps
        known.severity = min(known.severity, new.severity)
        known.more += row.sentences[1:] if known is new else row.sentences


def _same_cause_once(found: Iterable[Incident]) -> list[Incident]:
    """Pools that are sick by the same words or by the same servers are one incident, told of the worst of them."""
    every: list[Incident] = []
    told: dict[Hashable, Incident] = {}
    for incident in sorted(found, key=lambda each: each.severity):
        marks = _marks(incident.problem)
        known = next((told[mark] for mark in marks if mark in told), None)
        if known is None:
            every.append(incident)
        else:
            known.take_over(incident)
        told |= dict.fromkeys(marks, known or incident)
    return every


def _marks(problem: Problem | None) -> list[Hashable]:
    """By what one knows that two pools are sick for one reason: the verdict's very words, or a failing server."""
    if problem is None or problem.kind != "pool" or not problem.message:
        return []
    return [(problem.reason, problem.message), *problem.at]


def _said_of_others(worst: Problem, others: Sequence[Problem]) -> list[str]:
    """Who is in the same state word for word, and who merely has some of the same servers."""
    words = worst.reason, worst.message
    alike = [each.label for each in others if (each.reason, each.message) == words]
    sharing = [each.label for each in others if (each.reason, each.message) != words]
    said = [f"The same applies to {_named(alike)}."] if alike else []
    return said + ([f"The same servers also fail in {_named(sharing)}."] if sharing else [])


def _named(labels: Sequence[str]) -> str:
    more = len(labels) - SHOWN
    return ", ".join(labels[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def standing_still(words: Mapping[int, str], *, own: Iterable[int] | None = None) -> list[Incident]:
    """Fleets (of `words`: fleet id → how it stands) that do not take what is stored; `own` are those of a customer."""
    if own is not None:
        held = any(words.get(pk) == "held" for pk in own)
        title = "Your changes are queued. The operator holds a fleet at an earlier revision."
        return (
            [Incident(SICK, title, more=["Saved changes go live when the operator resumes the fleet."])] if held else []
        )
    said = {
        "held": (
            SICK,
            "is held at an earlier revision.",
            "Later changes queue until someone resumes the fleet.",
        ),
        "refused": (DOWN, "rejected the newest revision.", "The previous configuration stays live."),
    }
    stuck = {pk: said[word] for pk, word in words.items() if word in said}
    names = dict(Fleet.objects.filter(pk__in=stuck).values_list("pk", "name")) if stuck else {}
    return [
        Incident(severity, f"Fleet {names[pk]} {title}", reverse("web:fleets"), "Open fleets", more=[text])
        for pk, (severity, title, text) in stuck.items()
        if pk in names
    ]


def alerts_alone(firing: int) -> list[Incident]:
    """That alerts fire: said where nothing else is, for most tell of what is an incident already."""
    title = f"{firing} alert{' is' if firing == 1 else 's are'} firing."
    return [Incident(SICK, title, reverse("web:alerts"), "Show alerts")] if firing else []


def slower(numbers: Numbers, series: Series) -> Incident | None:
    """A p95 that doubled against the hour before; None where too little was measured."""
    before = [value for value in series.p95_ms[:-NEWEST] if value is not None]
    if numbers.p95_ms is None or numbers.stale or len(before) < POINTS:
        return None
    usual = statistics.median(before)
    if numbers.p95_ms < DOUBLED * usual or numbers.p95_ms - usual < SLOWER_MS:
        return None
    title = f"The p95 latency is {_ms(numbers.p95_ms)}; in the last hour it was {_ms(usual)}."
    return Incident(SICK, title, reverse("web:request-patterns"), "Find slow requests")


def vanished(numbers: Numbers, series: Series) -> list[Incident]:
    """That no request comes any more, where they came all the hour."""
    before = [value for value in series.requests[:-NEWEST] if value is not None]
    unknown = numbers.requests_rps is None or numbers.stale or numbers.partial
    if numbers.requests_rps or unknown or len(before) < POINTS:
        return []
    usual = statistics.median(before)
    if usual < SOME_RPS:
        return []
    title = f"No requests arrive; in the last hour it was {plain(usual, 2)}/s."
    return [Incident(SICK, title, reverse("web:requests"), "Show requests")]


def _ms(value: float) -> str:
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms"
