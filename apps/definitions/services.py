"""Each is one transaction of change, audit entry and intent (a higher desired generation)."""

from apps.definitions.writing.actions.bans import as_network, ban_network, lift_ban
from apps.definitions.writing.actions.key_sets import fetch_key_set_of_policy, fetch_key_set_of_route
from apps.definitions.writing.actions.limits import set_limit
from apps.definitions.writing.actions.moving import move_static_ip, release_static_ip
from apps.definitions.writing.actions.regions import drain_region, set_latency
from apps.definitions.writing.actions.reverting import revert_change
from apps.definitions.writing.actions.servers import set_server, set_servers
from apps.definitions.writing.batches import Batch, ItemResult, write_batch
from apps.definitions.writing.documents import Plan, apply_document, plan_document
from apps.definitions.writing.dry_runs.dry_runs import DryRun, dry_run
from apps.definitions.writing.dry_runs.fleet_differences import FleetDifference
from apps.definitions.writing.dry_runs.stack_differences import Decision, StackDifference
from apps.definitions.writing.dry_runs.zone_differences import RecordDifference, ZoneDifference
from apps.definitions.writing.intent import request_zone_push
from apps.definitions.writing.kinds.registry import KINDS, PLATFORM
from apps.definitions.writing.objects import Change, FieldChange, differences, hold_object
from apps.definitions.writing.plans import apply_plan, store_plan, summary_of
from apps.definitions.writing.rules.emptying import ANYTHING, confirming
from apps.definitions.writing.rules.managed import managing
from apps.definitions.writing.single import delete_object, save_object

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
    "as_network",
    "ban_network",
    "confirming",
    "delete_object",
    "differences",
    "drain_region",
    "dry_run",
    "fetch_key_set_of_policy",
    "fetch_key_set_of_route",
    "hold_object",
    "lift_ban",
    "managing",
    "move_static_ip",
    "plan_document",
    "release_static_ip",
    "request_zone_push",
    "revert_change",
    "save_object",
    "set_latency",
    "set_limit",
    "set_server",
    "set_servers",
    "store_plan",
    "summary_of",
    "write_batch",
]
