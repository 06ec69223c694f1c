"""SCHEDULES, what a run does: one literal registry of the kinds of targets."""

from apps.definitions.models import Schedule
from apps.schedules.targets import capacity_test, change, rollout, topic, webhook
from apps.schedules.targets.contract import Target

KIND = Schedule.TargetKind
TARGETS: dict[str, Target] = {
    KIND.WEBHOOK: Target(webhook.act, waits=True),
    KIND.TOPIC: Target(topic.act, act_on_many=topic.act_on_many),
    # A capacity run is known again by the schedule run's key, and a refused one has to stay where it can be read.
    KIND.CAPACITY_TEST: Target(capacity_test.act),
    KIND.ROLLOUT: Target(rollout.act, in_transaction=True),
    KIND.CHANGE: Target(change.act, in_transaction=True),
}
