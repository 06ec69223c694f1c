"""DEFINE, writes: each is one transaction of change, audit entry and intent (a higher desired generation)."""

from apps.definitions.services.documents import Plan, apply_document, plan_document
from apps.definitions.services.limits import set_limit
from apps.definitions.services.objects import Change, FieldChange, delete_object, save_object
from apps.definitions.services.regions import drain_region, set_latency
from apps.definitions.services.servers import set_server

__all__ = [
    "Change",
    "FieldChange",
    "Plan",
    "apply_document",
    "delete_object",
    "drain_region",
    "plan_document",
    "save_object",
    "set_latency",
    "set_limit",
    "set_server",
]
