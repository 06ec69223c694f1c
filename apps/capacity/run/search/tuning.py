"""Every number of the search with its unit and its reason; rates are requests/s."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the search tries and tolerates; the comment above a field says its unit and why it has this value."""

    # Where to begin

    # requests/s; below that a step of a minute has too few requests to say anything.
    lowest_rate: float = 0.1
    # requests/s, the most a warm-up sends: connections and caches warm up at any rate, and this one harms nobody.
    warm_rate: float = 1.0
    # share of a rate: a tenth of it lets any queue drain, and a guess is trusted no further than a tenth.
    warm_share: float = 0.1
    # share of the time in which one server works: independent callers make it wait seldom at one half.
    half_busy: float = 0.5
    # requests/s, the first rate after the warm-up where nobody guessed.
    unguessed_rate: float = 5.0
    # ms, what a request is taken to need before one was answered: so slow that the search begins gently.
    unknown_latency_ms: float = 1000.0
    # s, least time of a warm-up before its verdict counts.
    warm_up_min_s: float = 3.0
    # s, bounds of a warm-up; between them it lasts for `warm_up_requests`.
    warm_up_s: tuple[float, float] = (4.0, 20.0)
    # requests: so many show a usual latency.
    warm_up_requests: float = 5.0

    # How far up in one step

    # factor of the rate: doubling reaches any rate in few steps while latency is as it was.
    stride: float = 2.0
    # factor, once latency has risen a little; and once it has risen much or requests queue: the knee is near.
    stride_risen: float = 1.5
    stride_near: float = 1.2
    # share of the way from the usual latency to the objective at which latency has risen a little, and much.
    risen: float = 0.25
    near: float = 0.5
    # times the requests that should be open (Little): with more, a queue has begun.
    queue_begun: float = 2.0
    # share: what fails is halved until it holds.
    lower_share: float = 0.5

    # How near is near enough

    # share of the rate at which bisection ends: nobody measures a rate more sharply (summing.RESOLUTION).
    precision: float = 0.02
    # share, half of the fitted interval that is as good as a bracket of `precision`.
    fit_precision: float = 0.025
    # share, half of an interval up to which a number is called sure.
    sure: float = 0.06
    # share, half of an interval up to which no further step looks closer.
    close: float = 0.03
    # share of the rate by which the likeliest border may lie below a confirmed rate, which may have been luck.
    luck: float = 0.05
    # factor of a good rate: the small step up that may be afforded when a bold one may not.
    careful: float = 1.05
    # share of a bound: a hint nearer to it than this says no more than the bound.
    hint_margin: float = 0.005

    # Just below the border

    # share of what a saturated target answers with even arrivals: there it works off a queue no more.
    below_saturation: float = 0.985
    # share of the highest good rate that is confirmed without a fit.
    just_below: float = 0.995
    # share of the fitted border that is confirmed: a fit may lie above the border as well as below.
    below_fit: float = 0.985
    # share of the highest good rate: a fit may take a confirmation no further below it.
    fit_floor: float = 0.9
    # shares by which each confirmation lies below the lowest bad rate, one for each that failed before.
    further_below: tuple[float, ...] = (0.0, 0.03, 0.08, 0.2)
    # failed confirmations after which the target is too noisy to be measured.
    confirmations: int = 4

    # Overload

    # s, about the most that a target is overloaded in a whole search, as docs/use/capacity-tests.md says.
    overload_s: float = 10.0
    # s, kept of that for what waits when a step is cut off: one for a bold step, two before a confirmation.
    overload_reserve_s: float = 1.0
    confirm_reserve_s: float = 2.0
    # s of overload after which nothing bolder is asked for; the rest is for the confirmation.
    bold_until_s: float = 6.0
    # s of overload in one step: longer says nothing more about it.
    step_overload_s: float = 2.5
    # s, bounds of what is kept for the answers that come after a cut; in between the objective's latency.
    cut_reserve_s: tuple[float, float] = (1.5, 3.0)
    # s: so many bad ones may be a pause of the target (a collection of garbage, a checkpoint), not its limit.
    pause_s: float = 2.0
    # share of slow or failed requests above which a step was refused beyond doubt.
    beyond_doubt: float = 0.5
    # factor of the objective's error rate: what fails twice as often at a safe rate is no matter of load.
    failing: float = 2.0

    # How long steps are

    # service times of the shortest step that means something, and of one that only probes.
    service_times: int = 30
    probe_service_times: int = 10
    # share of the objective's latency that a request is taken to need while nothing is known.
    unknown_service: float = 0.5
    # times the objective's latency: a queue that makes requests slow must have the time to come.
    queues: float = 2.0
    # s, bounds of the shortest step.
    shortest_s: tuple[float, float] = (3.0, 30.0)
    # s: a queue that grows is seen within so many.
    growth_s: float = 10.0
    # s and requests: a probe lasts for so many requests, but no longer.
    probe_most_s: float = 15.0
    probe_requests: float = 20.0
    # factor: a step of even arrivals may have so much more than the requests that a verdict needs.
    spare_requests: float = 1.2
    # s, the most that a step of independent callers takes.
    longest_s: float = 40.0
    # s, a confirmation with even arrivals, and with independent callers, who come in bunches.
    confirm_even_s: float = 20.0
    confirm_bunched_s: float = 45.0
    # factor of the shortest step, least length of a confirmation; and its largest share of the whole time.
    confirm_lengths: float = 2.5
    confirm_share: float = 0.25
    # shortest steps that must fit beside the confirmation before one more is tried.
    spare_lengths: float = 2.0
    # s that stay free at the end of bisection and of looking closer, and after a confirmation.
    spare_s: float = 5.0
    confirm_spare_s: float = 1.0
    # s, the shortest step that looks closer after the confirmation, and the longest.
    closer_s: float = 30.0
    closer_most_s: float = 60.0
    # s, the longest wait for a queue to drain; slower is no recovery.
    drain_s: float = 30.0

    # What is known of a saturated target

    # share of a second's answers that stay open: with more, the target never waits for work.
    still_full: float = 0.1
    # answers at the border that say its rate: even arrivals need few, independent callers many.
    few_answers: int = 10
    many_answers: int = 50

    # void steps in a row: once or twice is a busy machine, three times is what the generator can do.
    voids: int = 3


TUNING = Tuning()
