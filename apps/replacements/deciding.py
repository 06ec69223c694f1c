"""Decides what a replacement does next; pure.

A batch goes through these steps, all its servers together:

1. choose: as many as may be out at once; servers of the region that are down count, and one that is up always stays.
2. drain (weight 0), until no connection is left or the time for that is over: clients with a cookie may end here.
3. take_out (maintenance), until every node says so: from then on no request and no check reaches them.
4. replace: their owner has been told, and says when it is done.
5. admit: drained again, until every node says that it checks them; no request comes.
6. check: each node must find them well; the time for that begins now, however long a push took.
7. rest, only with slow start: HAProxy starts slowly after maintenance and not after a drain.
8. return: ready, and up at every node.
9. watch: they stay up and answer.

What is not seen is not believed: a node that says nothing stops the replacement after `CONFIRM_S`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from apps.replacements.plan import ReplacementPlan

# How long nodes may take to do what they were told, and to say so.
CONFIRM_S = 60.0
# A share of errors says nothing of fewer responses.
LEAST_RESPONSES = 20
READY, DRAIN, MAINTENANCE = "ready", "drain", "maintenance"
WAITING, OUT, DONE, FAILED, LEFT, GONE = "waiting", "out", "done", "failed", "left", "gone"
UP = frozenset({"up", "unchecked"})
CHECKED = UP | {"down"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A server as one node saw it `age_s` ago; the rates are of about ten seconds before."""

    word: str
    connections: int = 0
    responses: float = 0.0
    errors: float = 0.0
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Member:
    """A server of the pool: how it is stored, what every node of its region sees, how far the replacement is with it.

    `state` is None for servers that are not replaced; `set_to` and `message` as in the row. A backup serves nobody, nor
    does one of weight 0.
    """

    key: int
    region: str
    name: str
    stored: str
    seen: Sequence[Seen] = ()
    state: str | None = None
    set_to: str = ""
    serves: bool = True
    message: str = ""

    @property
    def up(self) -> bool:
        """Whether every node gives it requests."""
        return self.stored == READY and self.says(UP)

    def says(self, words: Iterable[str]) -> bool:
        """Whether there is a node, and all nodes say one of the words."""
        known = frozenset(words)
        return bool(self.seen) and all(each.word in known for each in self.seen)


@dataclass(frozen=True, slots=True)
class Facts:
    """A replacement as it stands; `in_step_s` seconds in its step, `settle_s` the longest that one check takes."""

    plan: ReplacementPlan
    step: str
    in_step_s: float
    members: Sequence[Member]
    settle_s: float = 0.0
    slow_start_s: float = 0.0

    @property
    def out(self) -> list[Member]:
        """The servers of the batch."""
        return [each for each in self.members if each.state == OUT]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do: the next step (None for the same), servers' new outcomes with why, and states that they get.

    `message` is what it waits for or why it `stops`; `over` says that no server is left.
    """

    step: str | None = None
    outcomes: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    states: Mapping[int, str] = field(default_factory=dict)
    message: str = ""
    stops: bool = False
    over: bool = False


def decide(facts: Facts) -> Decision:
    """What follows from the facts."""
    if meddled := _meddled(facts):
        return meddled
    before = [each.message for each in facts.members if each.state == FAILED]
    if len(before) > facts.plan.max_failures:
        found = Decision()
    elif facts.step != "choose" and not facts.out:
        found = Decision("choose")  # all of the batch failed, or left the pool
    else:
        found = _STEPS[facts.step](facts)
    failed = before + [text for state, text in found.outcomes.values() if state == FAILED]
    if len(failed) > facts.plan.max_failures and not found.stops:
        return replace(found, stops=True, message=f"{_count(len(failed), 'server')} failed. {failed[-1]}")
    return found


def _meddled(facts: Facts) -> Decision | None:
    """Somebody else gave a server that is out another state: whoever did so knows more than we do."""
    for each in facts.out:
        if each.stored != each.set_to:
            text = f"{each.name} was set to {each.stored} by somebody else."
            return Decision(outcomes={each.key: (FAILED, text)}, stops=True, message=text)
    return None


def _choose(facts: Facts) -> Decision:
    waiting = [each for each in facts.members if each.state == WAITING]
    if not waiting:
        return Decision(over=True)
    # One that somebody took out meanwhile is theirs; one that we took out before is ours.
    left = {
        each.key: (LEFT, f"It was set to {each.stored}.") for each in waiting if each.stored != (each.set_to or READY)
    }
    waiting = [each for each in waiting if each.key not in left]
    if not waiting:
        return Decision(outcomes=left)
    region = waiting[0].region
    chosen, why = _batch(facts, region, [each for each in waiting if each.region == region])
    if not chosen:
        return Decision(outcomes=left, message=why, stops=facts.in_step_s > facts.plan.health_s)
    return Decision(
        "drain",
        {**left, **{each.key: (OUT, "") for each in chosen}},
        {each.key: DRAIN for each in chosen if each.stored == READY},
        f"Draining {_names(chosen)}.",
    )


def _batch(facts: Facts, region: str, waiting: Sequence[Member]) -> tuple[list[Member], str]:
    """The servers that go next, or why none may."""
    here = [each for each in facts.members if each.region == region]
    if not any(each.seen for each in here):
        return [], f"No node of {region} reports on this pool."
    missing = [each for each in here if _missing(each)]
    up = [each for each in here if each.up and each.serves]
    first = [each for each in waiting if each in missing][: facts.plan.batch_size]
    room = min(facts.plan.batch_size - len(missing), len(up) - 1)
    chosen = first + [each for each in waiting if each not in missing][: max(room, 0)]
    if chosen:
        return chosen[: facts.plan.batch_size], ""
    if len(up) <= 1 and not missing:
        return [], f"{region} has no other server that is up."
    down = _names([each for each in missing if each not in waiting] or missing)
    return [], f"Waiting for {down} in {region}: so many servers may not be out at once."


def _missing(member: Member) -> bool:
    """Whether a server counts as out: down, or taken out by us; not what failed, nor what somebody else took out."""
    if member.state == FAILED:
        return False
    return not member.up if member.stored == READY else bool(member.set_to)


def _drain(facts: Facts) -> Decision:
    """A drained server is up like any other, so what proves that no request comes is left to the next step."""
    silent = [each for each in facts.out if not _looked_at(facts, each)]
    if silent:
        return _unconfirmed(facts, silent, "looked at")
    if waits := _waits_for_connections(facts):
        return waits
    return _go("take_out", facts.out, MAINTENANCE, "Taking out")


def _take_out(facts: Facts) -> Decision:
    late = [each for each in facts.out if not each.says((MAINTENANCE,))]
    if late:
        return _unconfirmed(facts, late, "taken out")
    if waits := _waits_for_connections(facts):
        return waits
    return Decision("replace", message=f"Waiting for the owner to replace {_names(facts.out)}.")


def _waits_for_connections(facts: Facts) -> Decision | None:
    busy = [each for each in facts.out if any(one.connections for one in each.seen)]
    if not busy or facts.in_step_s >= facts.plan.drain_s:
        return None
    count = sum(one.connections for each in busy for one in each.seen)
    return Decision(message=f"Waiting for {_count(count, 'connection')} of {_names(busy)}.")


def _looked_at(facts: Facts, member: Member, after_s: float = 0.0) -> bool:
    """Whether every node has told of it since the step began, and `after_s` later."""
    return bool(member.seen) and all(
        each.word != "unknown" and facts.in_step_s - each.age_s >= after_s for each in member.seen
    )


def _replace(facts: Facts) -> Decision:
    if facts.in_step_s < facts.plan.replace_s:
        return Decision(message=f"Waiting for the owner to replace {_names(facts.out)}.")
    text = f"Nobody said within {facts.plan.replace_s} s that it is replaced."
    return Decision(outcomes={each.key: (FAILED, text) for each in facts.out})


def _admit(facts: Facts) -> Decision:
    late = [each for each in facts.out if not each.says(CHECKED)]
    return _unconfirmed(facts, late, "begun to check") if late else Decision("check")


def _check(facts: Facts) -> Decision:
    """Well is what every node finds up after its checks have had time for an answer."""
    ill = [each for each in facts.out if not each.says(UP) or not _looked_at(facts, each, facts.settle_s)]
    if ill and facts.in_step_s < facts.plan.health_s + facts.settle_s:
        return Decision(message=f"Waiting until {_names(ill)} {'are' if len(ill) > 1 else 'is'} healthy.")
    text = f"It was not healthy within {facts.plan.health_s} s."
    failed = {each.key: (FAILED, text) for each in ill}
    well = [each for each in facts.out if each.key not in failed]
    if len(failed) + sum(each.state == FAILED for each in facts.members) > facts.plan.max_failures or not well:
        return Decision(outcomes=failed)  # those that are well stay out: it stops, and somebody decides
    if facts.slow_start_s:
        return replace(_go("rest", well, MAINTENANCE, "Preparing the slow start of"), outcomes=failed)
    return replace(_go("return", well, READY, "Bringing back"), outcomes=failed)


def _rest(facts: Facts) -> Decision:
    late = [each for each in facts.out if not each.says((MAINTENANCE,))]
    return _unconfirmed(facts, late, "taken out") if late else _go("return", facts.out, READY, "Bringing back")


def _return(facts: Facts) -> Decision:
    late = [each for each in facts.out if not each.up or not _looked_at(facts, each)]
    if not late:
        return Decision("watch", message=f"Watching {_names(facts.out)}.")
    if facts.in_step_s < CONFIRM_S:
        return Decision(message=f"Waiting until every node sends requests to {_names(late)}.")
    return _failing({each.key: f"Not every node found it up within {CONFIRM_S:.0f} s." for each in late})


def _watch(facts: Facts) -> Decision:
    failing = {each.key: text for each in facts.out if (text := _trouble(facts, each))}
    if failing:
        return _failing(failing)
    if facts.in_step_s < max(facts.plan.watch_s, facts.slow_start_s):
        return Decision(message=f"Watching {_names(facts.out)}.")
    return Decision("choose", {each.key: (DONE, "") for each in facts.out})


def _trouble(facts: Facts, member: Member) -> str:
    """What is wrong with a server that came back; nodes that say nothing for a moment say nothing wrong."""
    if any(each.word == "down" for each in member.seen):
        return "It went down after it came back."
    fresh = [each for each in member.seen if each.age_s < facts.in_step_s]
    responses, errors = sum(each.responses for each in fresh), sum(each.errors for each in fresh)
    if responses >= LEAST_RESPONSES and errors > facts.plan.max_error_rate * responses:
        return f"{100 * errors / responses:.0f} % of its responses were 5xx after it came back."
    return ""


def _failing(texts: Mapping[int, str]) -> Decision:
    """Servers that came back and should not have are drained again."""
    return Decision(outcomes={key: (FAILED, text) for key, text in texts.items()}, states=dict.fromkeys(texts, DRAIN))


def _unconfirmed(facts: Facts, late: Sequence[Member], what: str) -> Decision:
    """Wait for nodes to do what they were told; whether a silent one did, nobody knows."""
    if facts.in_step_s < CONFIRM_S:
        return Decision(message=f"Waiting until every node has {what} {_names(late)}.")
    return Decision(stops=True, message=f"Not every node said within {CONFIRM_S:.0f} s that {_names(late)} is {what}.")


def _go(step: str, members: Sequence[Member], state: str, what: str) -> Decision:
    return Decision(step, states={each.key: state for each in members}, message=f"{what} {_names(members)}.")


def _names(members: Sequence[Member], most: int = 5) -> str:
    names = [each.name for each in members]
    more = [f"{len(names) - most} more"] if len(names) > most else []
    *others, last = [*names[:most], *more] or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


_STEPS: Mapping[str, Callable[[Facts], Decision]] = {
    "choose": _choose,
    "drain": _drain,
    "take_out": _take_out,
    "replace": _replace,
    "admit": _admit,
    "check": _check,
    "rest": _rest,
    "return": _return,
    "watch": _watch,
}
