"""DEFINE, writes: each is one transaction of change, audit entry and intent (a higher desired generation)."""

from apps.definitions.services.batches import Batch, ItemResult, write_batch
from apps.definitions.services.documents import Plan, apply_document, plan_document
from apps.definitions.services.dry_runs import DryRun, dry_run
from apps.definitions.services.emptying import ANYTHING, confirming
from apps.definitions.services.fleet_differences import FleetDifference
from apps.definitions.services.intent import want_zone_push
from apps.definitions.services.limits import set_limit
from apps.definitions.services.managed import managing
from apps.definitions.services.moving import move_static_ip, release_static_ip
from apps.definitions.services.objects import KINDS, PLATFORM, Change, FieldChange, delete_object, save_object
from apps.definitions.services.plans import apply_plan, store_plan
from apps.definitions.services.regions import drain_region, set_latency
from apps.definitions.services.reverting import revert_change
from apps.definitions.services.servers import set_server
from apps.definitions.services.stack_differences import Decision, StackDifference
from apps.definitions.services.zone_differences import RecordDifference, ZoneDifference

__all__ = [
    "ANYTHING",
    "KINDS",
    "PLATFORM",
    "Batch",
    "Change",
    "Decision",
    "DryRun",
    "FieldChange",
    "FleetDifference",
    "ItemResult",
    "Plan",
    "RecordDifference",
    "StackDifference",
    "ZoneDifference",
    "apply_document",
    "apply_plan",
    "confirming",
    "delete_object",
    "drain_region",
    "dry_run",
    "managing",
    "move_static_ip",
    "plan_document",
    "release_static_ip",
    "revert_change",
    "save_object",
    "set_latency",
    "set_limit",
    "set_server",
    "store_plan",
    "want_zone_push",
    "write_batch",
]
