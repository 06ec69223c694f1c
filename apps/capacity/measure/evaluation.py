"""Whether a step is good or bad, as early as that can be known; pure.

"p95 below 600 ms" means: at most 5 % of the requests take longer. So a step is a count of slow requests among all, and
three observations decide it:

* **Curtailment.** When more requests were slow than the whole step may have, the step is bad whatever follows. That
  includes requests in flight that must already be overdue. An overload is cut within a second or two, and the verdict
  is the one that the full step would have had.
* **Growth.** A latency that rises second after second and would break the objective within a minute is a queue without
  end, although the objective still holds.
* **Certainty.** A step may end early as good when the upper confidence bound of its share of slow requests is below
  what is allowed. Slow requests come in bunches, so the bound counts seconds, not requests: their scatter says how
  many independent observations there really were (design effect).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from statistics import fmean, median

from apps.capacity.measure.measuring import Tally, latencies_of, tally, tally_all
from apps.capacity.measure.results import requests_per_second
from apps.capacity.run.steps import Purpose, Status, StepPlan, Verdict
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Second

UNDECIDED = Verdict(Status.UNDECIDED)
RAMP_SECONDS = 1
FEWEST_BAD = 2
ENOUGH_SECONDS = 20
WARM_ENOUGH, DOUBLE_ENOUGH = 3, 20
Z_95 = 1.645
HORIZON_S = 60.0
SETTLED = 1.25
SETTLED_MS = 3.0
FAILING = 0.05
NEARLY_FULL = 0.7
GROWING = 0.9
PERHAPS_GROWING = 0.6


def allowed_slow(objective: ObjectiveSpec) -> float:
    """The share of requests that may be slower than the objective: 0.05 for a 95th percentile."""
    return 1 - objective.percentile / 100


def enough_requests(objective: ObjectiveSpec) -> int:
    """So many requests without a slow one prove the percentile with 95 %: 59 for p95, 299 for p99."""
    return ceil(log(0.05) / log(1 - allowed_slow(objective)))


def upper_bound(bad: int, all_of_them: float) -> float:
    """The largest share that still fits so many of so many (one-sided Wilson score bound)."""
    if all_of_them <= 0:
        return 1.0
    share, spread = bad / all_of_them, Z_95 * Z_95 / all_of_them
    middle = share + spread / 2
    margin = Z_95 * sqrt(share * (1 - share) / all_of_them + spread / (4 * all_of_them))
    return min(1.0, (middle + margin) / (1 + spread))


def lower_bound(bad: int, all_of_them: float) -> float:
    """The smallest share that still fits so many of so many."""
    return 1 - upper_bound(round(all_of_them) - bad, all_of_them) if all_of_them > 0 else 0.0


def design_effect(tallies: Sequence[Tally]) -> float:
    """How many requests make one independent observation, from the scatter between batches of 1, 2, 4 … seconds."""
    whole = sum(each.ended for each in tallies)
    share = sum(each.slow for each in tallies) / whole if whole else 0.0
    if not 0 < share < 1:
        return 1.0
    found, length = 1.0, 1
    while len(tallies) // length >= 5:
        batches = [tallies[at : at + length] for at in range(0, len(tallies) - length + 1, length)]
        found = max(found, _scatter(batches, share))
        length *= 2
    return found


def _scatter(batches: Sequence[Sequence[Tally]], share: float) -> float:
    """The variance between batches against that of independent requests."""
    sums = [(sum(each.slow for each in batch), sum(each.ended for each in batch)) for batch in batches]
    squares = [(slow - n * share) ** 2 / (n * share * (1 - share)) for slow, n in sums if n]
    return sum(squares) / max(1, len(squares) - 1)


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier steps found: the median latency of a calm one (ms), the highest rate (requests/s) that was good."""

    usual_ms: float | None = None
    good_rate: float = 0.0


NOTHING_KNOWN = Known()


def evaluate_step(
    step: StepPlan,
    seconds: Sequence[Second],
    objective: ObjectiveSpec,
    *,
    constant: bool,
    known: Known = NOTHING_KNOWN,
) -> Verdict:
    """The verdict on a step by the seconds it has had; `constant` says that arrivals come evenly."""
    if _generator_limited(seconds):
        return _void(seconds[-1], step)
    kept = [second for second in seconds if not second.generator_limited]
    evaluated = [second for second in seconds[RAMP_SECONDS:] if not second.generator_limited]
    broken = kept and _curtailed(step, kept, objective, known, constant=constant)
    broken = broken or _growing(evaluated, objective, constant=constant)
    if broken or not evaluated:
        return broken or UNDECIDED
    waits = behind(seconds[-1], step.rate, objective, known, constant=constant) if step.rate else False
    found = _good(step, len(seconds), evaluated, objective, waits=waits)
    tried = step.purpose is Purpose.DOUBLE and found.status is Status.GOOD
    if tried and owed(seconds, step.rate, objective, known, constant=constant) >= 1:
        return Verdict(
            Status.BAD, f"{seconds[-1].in_flight} requests were still open at its end: too many to finish in time."
        )
    return found


def _generator_limited(seconds: Sequence[Second]) -> bool:
    """Two of the last three seconds, or a fifth of all of them."""
    limited = [second.generator_limited for second in seconds[RAMP_SECONDS:]]
    return sum(limited[-3:]) >= 2 or (len(limited) >= 10 and sum(limited) > len(limited) / 5)


def _void(second: Second, step: StepPlan) -> Verdict:
    late = f", the latest left {second.late_ms:.0f} ms late" if second.late_ms > 10 else ""
    asked = requests_per_second(step.rate) if step.rate else f"{step.users} users"
    return Verdict(
        Status.VOID,
        f"The generator sent {second.sent} of {second.offered} at {asked}{late}: the load generator is the limit.",
    )


def overdue(second: Second, rate: float, objective: ObjectiveSpec, *, constant: bool) -> int:
    """How many requests in flight must already be slower than the objective: more are open than came since."""
    recent = rate * objective.max_latency_ms / 1000
    return max(0, int(second.in_flight - recent - (1 if constant else 3 * sqrt(recent) + 1)))


def doomed(seconds: Sequence[Second], rate: float, objective: ObjectiveSpec, known: Known, *, constant: bool) -> int:
    """How many requests in flight will be slower than the objective: more are open than are answered within it.

    A target that keeps up has about rate × latency open (Little). With more than that open, what it answers is all that
    it can, and whoever comes last waits for all before it. That is known long before the first slow answer.
    """
    if not behind(seconds[-1], rate, objective, known, constant=constant):
        return 0
    most = _pace(seconds, objective, known)
    return max(0, int(seconds[-1].in_flight - most * objective.max_latency_ms / 1000 - 1))


def behind(
    second: Second, rate: float, objective: ObjectiveSpec, known: Known, *, constant: bool, spread: int = 2
) -> bool:
    """Whether more is open at the end of a second than at a target that keeps up with so many requests/s (Little).

    Independent callers come in bunches: `spread` is how many standard deviations more is nothing yet.
    """
    usual = rate * _usual_s(objective, known)
    return second.in_flight > usual + (1 if constant else spread * (sqrt(usual) + 1))


def owed(seconds: Sequence[Second], rate: float, objective: ObjectiveSpec, known: Known, *, constant: bool) -> float:
    """For how many seconds slow answers would still come if the load ended now.

    Whoever came while more were open than are answered within the objective is answered too late, for as long as that
    was so; and so is what waits behind them now.
    """
    if not behind(seconds[-1], rate, objective, known, constant=constant, spread=1):
        return 0.0
    pace = _pace(seconds, objective, Known(known.usual_ms))
    waiting_s = seconds[-1].in_flight / pace
    in_time = pace * objective.max_latency_ms / 1000
    came = sum(second.in_flight > NEARLY_FULL * in_time + 1 for second in seconds[-max(1, ceil(waiting_s)) :])
    return min(waiting_s, came + max(0.0, seconds[-1].in_flight - in_time) / pace) if came else 0.0


def _usual_s(objective: ObjectiveSpec, known: Known) -> float:
    return (known.usual_ms or float(objective.max_latency_ms)) / 1000


def _pace(seconds: Sequence[Second], objective: ObjectiveSpec, known: Known) -> float:
    """The most requests/s that the target answers, as the last seconds say."""
    window = seconds[-max(2, ceil(2 * _usual_s(objective, known))) :]
    answered = sum(second.answered for second in window)
    return max(known.good_rate, (answered + 1) / len(window))


def _curtailed(
    step: StepPlan, evaluated: Sequence[Second], objective: ObjectiveSpec, known: Known, *, constant: bool
) -> Verdict | None:
    """Bad when more were slow, or failed, than the whole step may have."""
    counted = tally_all(evaluated, objective)
    length = max(step.seconds_max, len(evaluated))
    planned = max(step.rate * length, counted.ended * length / len(evaluated) if step.users else 0.0)
    waiting, hopeless = 0, False
    if step.rate:
        late = doomed(evaluated, step.rate, objective, known, constant=constant)
        waiting = max(late, overdue(evaluated[-1], step.rate, objective, constant=constant))
        # What is only tried is not held to its end: a queue that is there is reason enough to leave it.
        tried = step.purpose is Purpose.DOUBLE
        hopeless = tried and late > max(FEWEST_BAD, allowed_slow(objective) * sum(each.offered for each in evaluated))
    if hopeless or counted.slow + waiting > max(FEWEST_BAD, allowed_slow(objective) * planned):
        return Verdict(Status.BAD, _slow_sentence(len(evaluated), counted, waiting, objective))
    if counted.failed > max(FEWEST_BAD, objective.max_error_rate * planned):
        return Verdict(Status.BAD, _failed_sentence(counted, objective))
    return None


def _failed_sentence(counted: Tally, objective: ObjectiveSpec) -> str:
    share = counted.failed / max(1, counted.ended)
    allowed = f"{100 * objective.max_error_rate:.1f} %"
    return f"{100 * share:.1f} % of the requests failed; the objective allows less than {allowed}."


def _slow_sentence(seconds: int, counted: Tally, waiting: int, objective: ObjectiveSpec) -> str:
    more = f", and {waiting} more in flight will" if waiting else ""
    found = f"{counted.slow} of {counted.ended} requests in {seconds} s took longer than {objective.max_latency_ms} ms"
    return f"{found}{more}: more than {100 * allowed_slow(objective):.0f} % of the whole step."


def _growing(evaluated: Sequence[Second], objective: ObjectiveSpec, *, constant: bool) -> Verdict | None:
    """Bad when the latency rises nearly every second and would break the objective within a minute."""
    medians = _medians(evaluated)
    if len(medians) < (6 if constant else 8):
        return None
    slope = _slope(medians)
    if concordance(medians) < GROWING or not _breaks_soon(medians, slope, objective):
        return None
    return Verdict(Status.BAD, f"The queue keeps growing: latency rises by {slope:.1f} ms every second.")


def _medians(evaluated: Sequence[Second]) -> list[float]:
    found = (latencies_of(second.histogram).percentile_ms(50) for second in evaluated)
    return [value for value in found if value is not None]


def concordance(values: Sequence[float]) -> float:
    """How steadily values rise: 1 when each is above all before it, 0 without a trend, −1 when they fall (Kendall)."""
    pairs = [(a, b) for at, b in enumerate(values) for a in values[:at]]
    return sum((b > a) - (b < a) for a, b in pairs) / len(pairs) if pairs else 0.0


def _slope(values: Sequence[float]) -> float:
    """How much values rise from one to the next: the median of all slopes between two (Theil and Sen)."""
    return median((b - values[a]) / (at - a) for at, b in enumerate(values) for a in range(at))


def _breaks_soon(medians: Sequence[float], slope: float, objective: ObjectiveSpec) -> bool:
    return slope > 0 and medians[-1] + slope * HORIZON_S > objective.max_latency_ms


def _good(
    step: StepPlan, length: int, evaluated: Sequence[Second], objective: ObjectiveSpec, *, waits: bool
) -> Verdict:
    """Good at the end of the step, or earlier when that is certain and no queue `waits`."""
    counted = tally_all(evaluated, objective)
    over = length >= step.seconds_max
    if not over and (waits or length < step.seconds_min or not _certain(step, evaluated, counted, objective)):
        return UNDECIDED
    if not counted.ended:
        return Verdict(Status.BAD, f"No request was answered in {len(evaluated)} s.")
    doubtful = counted.slow / counted.ended >= 2 * allowed_slow(objective)
    if step.purpose is Purpose.DOUBLE and counted.slow >= FEWEST_BAD and doubtful:
        return Verdict(Status.BAD, _slow_sentence(len(evaluated), counted, 0, objective))
    if counted.failed >= FEWEST_BAD and counted.failed / counted.ended >= 2 * objective.max_error_rate:
        return Verdict(Status.BAD, _failed_sentence(counted, objective))
    return Verdict(Status.GOOD, _good_sentence(evaluated, counted, objective))


def _certain(step: StepPlan, evaluated: Sequence[Second], counted: Tally, objective: ObjectiveSpec) -> bool:
    medians = _medians(evaluated)
    if (
        len(medians) > 2
        and concordance(medians) > PERHAPS_GROWING
        and _breaks_soon(medians, _slope(medians), objective)
    ):
        return False
    if counted.slow > allowed_slow(objective) * counted.ended / 20 and len(evaluated) < ENOUGH_SECONDS:
        return False
    if step.purpose in {Purpose.WARM_UP, Purpose.DOUBLE}:
        enough = WARM_ENOUGH if step.purpose is Purpose.WARM_UP else DOUBLE_ENOUGH
        return counted.ended >= enough and counted.slow + counted.failed == 0
    independent = counted.ended / design_effect([tally(second, objective) for second in evaluated])
    slow = round(counted.slow * independent / max(1, counted.ended))
    return (
        step.purpose is Purpose.BISECT
        and counted.ended >= enough_requests(objective)
        and upper_bound(slow, independent) < allowed_slow(objective)
        and counted.failed / max(1, counted.ended) < objective.max_error_rate
    )


def _good_sentence(evaluated: Sequence[Second], counted: Tally, objective: ObjectiveSpec) -> str:
    slow = counted.slow / max(1, counted.ended)
    return (
        f"{100 * slow:.1f} % of {counted.ended} requests in {len(evaluated)} s "
        f"took longer than {objective.max_latency_ms} ms "
        f"(allowed {100 * allowed_slow(objective):.0f} %), {counted.failed} failed."
    )


def overloaded(second: Second, objective: ObjectiveSpec) -> bool:
    """Whether a second was more than a burst: most of its requests were slow, more than 5 % failed, or nothing ended.

    A queue that grows makes all requests slow within samples. At the border of what a target can take, independent
    callers make a few seconds in a minute slow for more than 5 % of them: that belongs to the objective.
    """
    counted = tally(second, objective)
    if not counted.ended:
        return overdue(second, second.target, objective, constant=False) > 0
    failing = lower_bound(counted.failed, counted.ended) > max(FAILING, objective.max_error_rate)
    return failing or counted.slow > counted.ended / 2


def evaluate_drain(step: StepPlan, seconds: Sequence[Second], usual_ms: float) -> Verdict:
    """Good when latency is back at what it was at the warm-up (`usual_ms`); bad when it does not come back."""
    last = seconds[-1]
    calm = max(1.0, 2 * step.rate * usual_ms / 1000 + 1)
    found = latencies_of(last.histogram).percentile_ms(50)
    if last.in_flight <= calm and (found is None or found <= usual_ms * SETTLED + SETTLED_MS):
        return Verdict(Status.GOOD, f"Latency returned to normal after {len(seconds)} s.")
    if len(seconds) >= step.seconds_max:
        return Verdict(Status.BAD, f"Latency did not return to normal within {len(seconds)} s.")
    return UNDECIDED


def usual_latency(seconds: Sequence[Second]) -> float | None:
    """The median latency of a calm step in ms: what a request takes when nothing waits."""
    medians = _medians(seconds)
    return fmean(sorted(medians)[: max(1, len(medians) // 2)]) if medians else None
