"""The search for the highest rate that meets an objective; pure: seconds in, steps out.

Warm up at a tenth of the guess, double until the objective breaks, bisect to 2 %, confirm with one longer step. Which
rate is meant by "highest": with constant arrivals the rate up to which the queue does not grow (c servers of s seconds:
c / s); with Poisson arrivals the rate at which just so many requests are slow as the objective allows, in the long run
– that is less, because independent callers come in bunches: there all steps together say where the border lies most
likely (fitting.border), and the time that is left goes into longer steps near it. How long the target is overloaded is
counted every second; the search asks for nothing bolder once little is left of `OVERLOAD_S`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log, log2
from statistics import fmean

from apps.capacity.measure.fitting import LEAST_SHARE, Crossing, border, crossing
from apps.capacity.measure.judging import (
    RAMP_SECONDS,
    Known,
    allowed_slow,
    behind,
    enough_requests,
    judge_drain,
    judge_step,
    overloaded,
    owed,
    usual_latency,
)
from apps.capacity.measure.measuring import measure
from apps.capacity.measure.results import Result
from apps.capacity.measure.summing import Ending, result_of_search
from apps.capacity.run.steps import Outcome, Purpose, Status, StepPlan, Verdict
from apps.definitions.reading.specs import ObjectiveSpec
from apps.drivers.load.contract import Arrivals, Second

PRECISION = 0.02
FIT_PRECISION = 0.025
SURE = 0.06
CLOSE = 0.03
CAREFUL = 1.05
CLOSER_S = 30.0
LUCK = 0.05
BELOW_SATURATION = 0.985
JUST_BELOW = 0.995
BELOW_FIT = 0.985
FURTHER_BELOW = (0.0, 0.03, 0.08, 0.2)
OVERLOAD_S = 10.0
BOLD_UNTIL_S = 6.0
STEP_OVERLOAD_S = 2.5
LOWEST_RATE = 0.1
WARM_UP = 0.1
WARM_RATE = 1.0
HALF_BUSY = 0.5
UNGUESSED_RATE = 5.0
SERVICE_TIMES = 30
PROBE_SERVICE_TIMES = 10
QUEUES = 2
STILL_FULL = 0.1
FEW, MANY = 10, 50
DRAIN_S = 30.0
CONFIRMATIONS = 4
VOIDS = 3
PAUSE_S = 2  # so many bad seconds may be a pause of the target (a collection of garbage, a checkpoint), not its limit
GROWTH_S = 10.0  # a queue that grows is seen within so many seconds


class Search:
    """One search. `start_rate` is a guess (0: none), `max_rate` is never exceeded, all ends within `seconds`."""

    def __init__(
        self,
        *,
        objective: ObjectiveSpec,
        start_rate: float = 0.0,
        max_rate: float,
        arrivals: str = Arrivals.POISSON,
        seconds: float = 300.0,
    ) -> None:
        self.objective = objective
        self.max_rate = float(max_rate)
        self.constant = arrivals == Arrivals.CONSTANT
        self.seconds = seconds
        self.outcomes: list[Outcome] = []
        self.elapsed = 0.0
        self.overloaded_s = 0.0
        self.usual_ms: float | None = None
        self._guess = start_rate
        # A single server that meets the objective at all keeps up with one request at a time.
        one_at_a_time = (1.0 if self.constant else HALF_BUSY) * 1000 / objective.max_latency_ms
        self._warm_rate = min(max(LOWEST_RATE, min(WARM_RATE, one_at_a_time)), self.max_rate)
        self._good: list[float] = []
        self._bad: list[float] = []
        self._full: dict[float, list[int]] = {}
        self._seen_twice: set[float] = set()
        self._overloaded_at: dict[float, int] = {}
        self._dear: dict[float, int] = {}
        self._ceiling = self.max_rate
        self._voids = 0
        self._drain = False
        self._ending: Ending | None = None
        self._confirmed: float | None = None
        self._confirmations = 0

    # What is known

    @property
    def low(self) -> float | None:
        """The highest rate that was good and below all bad ones."""
        return max((rate for rate in self._good if rate < self.high), default=None)

    @property
    def high(self) -> float:
        """The lowest rate that was bad; infinite before."""
        return min(self._bad, default=float("inf"))

    def _left(self) -> float:
        return self.seconds - self.elapsed

    # Steps

    def next_step(self) -> StepPlan | None:
        """The step to make now; None when all is known that can be known."""
        if self._ending is not None:
            return None
        if self._drain:
            rate = max(LOWEST_RATE, min(self._warm_rate, WARM_UP * self.high))
            return StepPlan(
                Purpose.DRAIN, 1, min(DRAIN_S, max(1.0, self._left())), rate, saying="Waiting for the queue to drain."
            )
        step = self._choose()
        if step is None or step.seconds_min > self._left():
            self._ending = self._ending or Ending.TIME
            return None
        return replace(step, seconds_max=min(step.seconds_max, self._left()))

    def _choose(self) -> StepPlan | None:
        if self._confirmed is not None:
            closer = self._closer()
            if closer is None:
                self._ending = self._border() if self._bad else self._ceiling_reached()
            return closer
        if self.usual_ms is None and not self._bad:
            return self._warm_up()
        low, high = self.low, self.high
        if low is None:
            return self._lower()
        if high == float("inf"):
            return self._double(low)
        return self._narrow(low, high)

    def _closer(self) -> StepPlan | None:
        """One more long step near the border while independent callers leave it uncertain; None when that is enough."""
        found = self._likely()
        spent = self.overloaded_s >= BOLD_UNTIL_S
        if found is None or spent or found.high - found.low <= 2 * CLOSE * found.rate or self._left() < CLOSER_S + 5:
            return None
        length = min(60.0, self._left() - 5)
        rate = found.rate * BELOW_FIT
        return StepPlan(Purpose.CONFIRM, length, length, rate, saying=f"Looking closer at {rate:.4g}/s.")

    def _likely(self) -> Crossing | None:
        """The most likely border for independent callers; even arrivals have a sharp one, which bisection finds."""
        return border(self.outcomes, self.objective) if not self.constant and self._bad else None

    def _estimate(self) -> Crossing | None:
        """The same within what was found: hardly below what was confirmed, which may be luck, nor above `high`."""
        found, held = self._likely(), self._confirmed or 0.0
        if found is None:
            return None
        lowest, highest = held * (1 - LUCK), max(self.high, held)
        rate, low, high = (min(max(each, lowest), highest) for each in (found.rate, found.low, found.high))
        return Crossing(rate, low, high)

    def _border(self) -> Ending:
        """The border was found, or what kept the search from coming closer to it."""
        low = self._confirmed or 0.0
        fit = self._fit()
        sure = fit is not None and self._sure(fit) and abs(fit.rate - low) <= SURE * low
        if sure or (self.high - low) / low <= SURE:
            return Ending.OBJECTIVE
        return Ending.OVERLOAD if self.overloaded_s >= BOLD_UNTIL_S else Ending.TIME

    def _sure(self, fit: Crossing) -> bool:
        return fit.high - fit.low <= 2 * SURE * fit.rate

    def _warm_up(self) -> StepPlan:
        length = max(4.0, min(20.0, 5 / self._warm_rate))
        return StepPlan(Purpose.WARM_UP, 3, length, self._warm_rate, saying=f"Warming up at {self._warm_rate:g}/s.")

    def _lower(self) -> StepPlan | None:
        """Even the warm-up was too much: half of it, until there is hardly anything left to halve."""
        rate = self.high / 2
        if rate < LOWEST_RATE or self.overloaded_s > BOLD_UNTIL_S:
            self._ending = Ending.NOTHING
            return None
        return self._step(Purpose.DOUBLE, rate, f"{self.high:g}/s was too much; trying half of it.")

    def _double(self, low: float) -> StepPlan | None:
        if low >= self._ceiling:
            return self._confirm(low)
        rate = min(self._ceiling, max(low * self._factor(), self._first_rate()))
        return self._step(Purpose.DOUBLE, rate, f"{low:g}/s met the objective; trying {rate:g}/s.")

    def _first_rate(self) -> float:
        """What the target surely bears, once it is known how long a request takes: one at a time, half of the time.

        A guess only makes it less: one that is far too high must not be what the search begins with.
        """
        safe = HALF_BUSY * 1000 / max(1.0, self.usual_ms or 1000.0)
        return min(safe, WARM_UP * self._guess) if self._guess else min(safe, UNGUESSED_RATE)

    def _factor(self) -> float:
        """Two while latency is as it was; less as soon as it has risen, because the knee is near."""
        last = max((o for o in self.outcomes if o.step.rate == self.low), key=lambda o: o.measured.seconds)
        slow = last.measured.p95_ms if self.objective.percentile == 95 else last.measured.p99_ms
        if slow is None or self.usual_ms is None:
            return 2.0
        used = (slow - self.usual_ms) / max(1.0, self.objective.max_latency_ms - self.usual_ms)
        if last.measured.in_flight > 1 + 2 * last.step.rate * self.usual_ms / 1000:
            return 1.2
        return 2.0 if used < 0.25 else 1.5 if used < 0.5 else 1.2

    def _narrow(self, low: float, high: float) -> StepPlan | None:
        bold = self._bold() and self._left() > self._confirm_s() + 2 * self._length()
        if bold and not self._close(low, high):
            rate = self._between(low, high)
            return self._step(Purpose.BISECT, rate, f"Between {low:.4g} and {high:.4g}/s: trying {rate:.4g}/s.")
        if self.constant and not bold and self._affords_one_more() and not self._close(low, high):
            rate = min(low * CAREFUL, (low + high) / 2)
            return self._step(Purpose.BISECT, rate, f"Stepping up from {low:.4g}/s: trying {rate:.4g}/s.")
        if self._doubtful(high) and bold:
            self._seen_twice.add(high)
            return self._step(Purpose.BISECT, high, f"Repeating {high:.4g}/s to confirm that it is too much.")
        spent = self.overloaded_s >= self._most_overloaded()
        if self._confirmations >= CONFIRMATIONS or self.overloaded_s > OVERLOAD_S - 2:
            self._ending = Ending.OVERLOAD if spent else Ending.NOISE
            return None
        return self._confirm(low)

    def _bold(self) -> bool:
        """Whether one more step that turns out bad, as dear as the last one, is not too much."""
        dear = self._dear.get(self.high, 0)
        return self.overloaded_s < BOLD_UNTIL_S and self.overloaded_s + dear <= OVERLOAD_S - 1

    def _affords_one_more(self) -> bool:
        """Whether one small step too far, which is ended at once, would still be borne; good steps cost nothing."""
        left = self._left() > self._confirm_s() + 2 * self._length()
        return left and self.overloaded_s + STEP_OVERLOAD_S <= OVERLOAD_S - 1

    def _close(self, low: float, high: float) -> bool:
        """Whether the border is known well enough: by the bracket, or by the line through the shares."""
        fit = self._fit()
        known = fit is not None and fit.high - fit.low <= 2 * FIT_PRECISION * fit.rate
        near = fit is not None and fit.rate * (1 - FIT_PRECISION) < low
        return (high - low) / low <= PRECISION or (known and near)

    def _doubtful(self, high: float) -> bool:
        """Whether a pause of the target may have been what made a rate bad: it is tried once more."""
        unsure = high not in self._seen_twice and self._fit() is None and not self._steep(high)
        return unsure and self.overloaded_s < BOLD_UNTIL_S / 2

    def _between(self, low: float, high: float) -> float:
        """Where the border may be: as the shares of slow requests say, or what a saturated target answered.

        Close to the border on either side the steps grow from 2 % on, so that a wrong hint costs little; without a
        hint it is the middle.
        """
        middle = (low + high) / 2
        hint = self._hint()
        if hint is None:
            return middle
        if hint <= low * 1.005:
            return min(middle, low * (1 + PRECISION * self._stride(Status.GOOD)))
        if hint >= high * 0.995:
            return max(middle, high * (1 - PRECISION * self._stride(Status.BAD)))
        return hint

    def _hint(self) -> float | None:
        """The best guess at the border.

        Of a saturated target c requests/s are answered. With independent callers the share of requests that wait
        longer than x is about exp(−(c − rate) x) or less, so the rate that meets the objective is about
        c − ln(1 / allowed) / x, or more.
        """
        fit = self._fit()
        if fit is not None:
            return fit.rate
        if not self._enough_known():
            return None
        full = fmean(self._full[self.high])
        if self.constant:
            return full * BELOW_SATURATION
        return full + log(allowed_slow(self.objective)) / (self.objective.max_latency_ms / 1000)

    def _enough_known(self) -> bool:
        """Whether so much was answered at the border that the rate of it means something."""
        return self._fit() is not None or sum(self._full.get(self.high, ())) >= (FEW if self.constant else MANY)

    def _fit(self) -> Crossing | None:
        """The line through the shares; even arrivals need a good step with slow requests, else it is a cliff."""
        soft = (o.measured.slow_share > LEAST_SHARE for o in self.outcomes if o.verdict.status is Status.GOOD)
        if self.constant and not any(soft):
            return None
        rates = [fmean(found) for found in self._full.values() if sum(found) >= MANY]
        full = [rate for rate in rates if rate > (self.low or 0.0)]
        return crossing(self.outcomes, self.objective, saturated=max(full, default=None))

    def _stride(self, status: Status) -> float:
        """Twice as long with each of the last steps that had this verdict."""
        found = 0
        for outcome in reversed(self.outcomes):
            if outcome.verdict.status is not status or outcome.step.purpose not in {Purpose.BISECT, Purpose.CONFIRM}:
                break
            found += 1
        return 2.0 ** max(0, found - 1)

    def _steep(self, rate: float) -> bool:
        """Whether a rate was refused beyond doubt: the queue grew, or most were slow or failed longer than a pause."""
        last = [outcome for outcome in self.outcomes if outcome.step.rate == rate][-1]
        most = max(last.measured.slow_share, last.measured.error_rate) > 0.5
        return "grows" in last.verdict.message or (most and self._overloaded_at.get(rate, 0) > PAUSE_S)

    def _confirm(self, low: float) -> StepPlan:
        rate = self._below(low) if self._bad else low
        length = min(self._confirm_s(), max(self._length(), self._left() - 1))
        return StepPlan(Purpose.CONFIRM, length, length, rate, saying=f"Confirming {rate:.4g}/s for {length:.0f} s.")

    def _below(self, low: float) -> float:
        """Just below the border, and after each confirmation that failed further below."""
        spent = self.overloaded_s >= self._most_overloaded()
        further = self.high * (1 - FURTHER_BELOW[-2 if spent else min(self._confirmations, len(FURTHER_BELOW) - 1)])
        fit, rate = self._fit(), low * JUST_BELOW
        if self._confirmations and (spent or fit is None or not self._sure(fit)):
            return further
        if fit is not None and self._sure(fit):
            return min(further, max(low * 0.9, fit.rate * BELOW_FIT))
        return min(further, max(rate, (self._hint() or 0.0) * BELOW_FIT))

    # Lengths, s

    def _length(self) -> float:
        """The shortest step that means something: 30 service times."""
        return self._long(SERVICE_TIMES)

    def _long(self, services: int) -> float:
        service = (self.usual_ms or self.objective.max_latency_ms / 2) / 1000
        # A queue that makes requests slow must have the time to come.
        queue = QUEUES * self.objective.max_latency_ms / 1000
        return RAMP_SECONDS + max(3.0, min(30.0, float(ceil(max(services * service, queue)))))

    def _confirm_s(self) -> float:
        return min(max(20.0 if self.constant else 45.0, 2.5 * self._length()), self.seconds / 4)

    def _step(self, purpose: Purpose, rate: float, saying: str) -> StepPlan:
        if purpose is Purpose.DOUBLE:
            shortest = self._long(PROBE_SERVICE_TIMES)
            return StepPlan(purpose, shortest, max(shortest, GROWTH_S, min(15.0, 20 / rate)), rate, saying=saying)
        return StepPlan(purpose, self._length(), self._longest(rate), rate, saying=saying)

    def _longest(self, rate: float) -> float:
        """What a step of the bisection may take: an equal part of the time that is left before the confirmation."""
        low = self.low or rate
        steps = 2 if self._bad == [] else max(1, ceil(log2(max(1.01, (self.high - low) / low / PRECISION)))) + 1
        fair = (self._left() - self._confirm_s() - 5) / steps
        needed = 1.2 * enough_requests(self.objective) / rate + RAMP_SECONDS
        cap = max(self._length(), needed, GROWTH_S) if self.constant else 40.0
        return max(self._length(), min(fair, cap))

    # Verdicts

    def judge(self, step: StepPlan, seconds: Sequence[Second]) -> Verdict:
        """What the seconds of the step so far say; decided at the latest after `seconds_max`."""
        if step.purpose is Purpose.DRAIN:
            return judge_drain(step, seconds, self.usual_ms or float(self.objective.max_latency_ms))
        known = Known(self.usual_ms, self.low or 0.0)
        verdict = judge_step(step, seconds, self.objective, constant=self.constant, known=known)
        return verdict if verdict.decided else self._spared(step, seconds, known)

    def _most_overloaded(self) -> float:
        """Seconds of overload after which steps end for that: what waits then comes on top, longer at slow targets."""
        return OVERLOAD_S - min(3.0, max(1.5, self.objective.max_latency_ms / 1000))

    def _spared(self, step: StepPlan, seconds: Sequence[Second], known: Known) -> Verdict:
        """A step ends before the target is overloaded for longer than it ever should be."""
        spent = self.overloaded_s + sum(overloaded(second, self.objective) for second in seconds)
        owing = owed(seconds, step.rate, self.objective, known, constant=self.constant)
        if owing and spent + owing > self._most_overloaded():
            return Verdict(Status.BAD, f"Stopped: the target was overloaded for {spent:.0f} s.")
        if owing > STEP_OVERLOAD_S:
            return Verdict(Status.BAD, f"Queued requests would keep responses slow for another {owing:.0f} s.")
        return Verdict(Status.UNDECIDED)

    def record(self, step: StepPlan, seconds: Sequence[Second], verdict: Verdict) -> Outcome:
        """Take note of a step that is over."""
        judged = seconds[RAMP_SECONDS:] if len(seconds) > RAMP_SECONDS else seconds
        outcome = Outcome(step, measure(judged, self.objective), verdict)
        self.elapsed += len(seconds)
        if verdict.status is Status.BAD or step.purpose is Purpose.DRAIN:
            spent = sum(overloaded(second, self.objective) for second in seconds)
            self.overloaded_s += spent
            self._overloaded_at[step.rate] = spent
            rate = self.high if step.purpose is Purpose.DRAIN else step.rate
            self._dear[rate] = self._dear.get(rate, 0) * (rate != step.rate) + spent
        self._learn_full(step, seconds)
        if step.purpose is Purpose.DRAIN:
            self._drain = False
            if verdict.status is Status.BAD:
                self._ending = Ending.NO_RECOVERY
            return outcome
        self.outcomes.append(outcome)
        self._learn(outcome, seconds)
        return outcome

    def _learn(self, outcome: Outcome, seconds: Sequence[Second]) -> None:
        step, verdict = outcome.step, outcome.verdict
        if verdict.status is Status.VOID:
            self._learn_void()
            return
        self._voids = 0
        if verdict.status is Status.GOOD:
            self._learn_good(step, seconds)
        elif verdict.status is Status.BAD:
            self._learn_bad(step)
            failed = outcome.measured.error_rate >= 2 * self.objective.max_error_rate
            if failed and step.rate <= self._first_rate():
                self._ending = Ending.NOTHING  # what fails where one server has half of its time is no matter of load

    def _learn_good(self, step: StepPlan, seconds: Sequence[Second]) -> None:
        if self.usual_ms is None:
            self.usual_ms = usual_latency(seconds)
        self._good.append(step.rate)
        self._bad = [rate for rate in self._bad if rate > step.rate]
        if step.purpose is Purpose.CONFIRM:
            self._confirmed = step.rate

    def _learn_bad(self, step: StepPlan) -> None:
        self._drain = True
        self._bad.append(step.rate)
        self._good = [rate for rate in self._good if rate < step.rate]
        if step.purpose is Purpose.CONFIRM:
            self._confirmations += 1
            self._good = [rate for rate in self._good if rate < step.rate * (1 - PRECISION / 2)]

    def _learn_full(self, step: StepPlan, seconds: Sequence[Second]) -> None:
        """What a target answers that never waits for work: while more is open than at one that keeps up."""
        found = self._full.setdefault(self.high if step.purpose is Purpose.DRAIN else step.rate, [])
        if step.purpose is Purpose.DRAIN:
            slow = [second for second in seconds if overloaded(second, self.objective)]
            found += [second.answered for second in slow if second.in_flight > 1 + second.answered * STILL_FULL]
        else:
            known = Known(self.usual_ms)
            full = [behind(second, step.rate, self.objective, known, constant=self.constant) for second in seconds]
            sure = [seconds[at].answered for at in range(1, len(seconds)) if full[at - 1] and full[at]]
            # An overload that was cut off at once has no such second; its last one answered hardly less.
            found += sure or [second.answered for second in seconds[RAMP_SECONDS:][-1:] if full[-1]]

    def _learn_void(self) -> None:
        """Once or twice it may be a busy machine, three times in a row it is what the generator can do."""
        self._voids += 1
        if self._voids < VOIDS:
            return
        if self.low is None:
            self._ending = Ending.GENERATOR
            return
        self._ceiling = min(self._ceiling, self.low)
        if self.high != float("inf"):
            self._ending = Ending.GENERATOR

    def _ceiling_reached(self) -> Ending:
        return Ending.GENERATOR if self._ceiling < self.max_rate else Ending.MAX_RATE

    # The result

    def _capacity(self) -> float | None:
        """The most likely border, else what was confirmed; before a confirmation failed, the highest good rate."""
        if self._ending is Ending.NOTHING:
            return None
        estimate = self._estimate()
        if estimate is not None:
            return estimate.rate
        doubted = self._confirmations and self._ending is not Ending.OVERLOAD
        return self._confirmed if self._confirmed is not None or doubted else self.low

    def result(self) -> Result:
        """What is known by now."""
        return result_of_search(
            objective=self.objective,
            outcomes=self.outcomes,
            bounds=(self._capacity(), self.low, self.high),
            likely=None if self._ending is Ending.NOTHING else self._estimate(),
            confirmed=self._confirmed is not None,
            ending=self._ending or Ending.STOPPED,
            overloaded_s=self.overloaded_s,
            seconds=self.elapsed,
        )
