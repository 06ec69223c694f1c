"""Every query parameter, request header and response header that there is."""

from __future__ import annotations

from typing import Any

from apps.alerts.models import Notification
from apps.canaries.models import Canary
from apps.definitions.models import Route, Schedule
from apps.definitions.shapes.base.words import NAME
from apps.exporting.services import FORMATS
from apps.replacements.models import Replacement
from apps.schedules.models import ScheduleRun
from apps.webhooks.models import Delivery

Schema = dict[str, Any]
BOOLEAN: Schema = {"type": "string", "enum": ["true", "false"]}
BUDGET: Schema = {"type": "string"}

TOPICS = "samples|nodes|rollouts|runs|definitions|lines"

QUERY: dict[str, tuple[Schema, str]] = {
    "limit": ({"type": "integer", "minimum": 1, "maximum": 500, "default": 100}, "Maximum number of rows."),
    "cursor": ({"type": "string", "maxLength": 2500}, "`next_cursor` of the previous page."),
    "name": ({"type": "string", "maxLength": 253}, "Only the object with this name."),
    "account": ({"type": "string", "maxLength": 253}, "Only objects of this account."),
    "filter": (
        {"type": "string", "maxLength": 2000},
        "Words such as `status>=500 route:shop -path:/healthz`.",
    ),
    "fields": ({"type": "string", "maxLength": 400}, "Fields to count, separated by commas."),
    "bins": ({"type": "integer", "minimum": 1, "maximum": 400, "default": 60}, "About how many parts of the time."),
    "link_mbps": (
        {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1000},
        "What the network carries, in megabits per second; for bytes per response.",
    ),
    "region": ({"type": "string", "maxLength": 253}, "Only objects in this region."),
    "fleet": ({"type": "string", "maxLength": 253}, "Only objects in this fleet."),
    "tag": ({"type": "string", "maxLength": 127}, "Only nodes with this tag: `key=value`."),
    "zone": ({"type": "string", "maxLength": 253}, "Only objects in the zone with this name."),
    "route": ({"type": "string", "maxLength": 63}, "Only objects of the route with this name."),
    "pool": ({"type": "string", "maxLength": 253}, "Only objects of this pool; for routes, also as account/name."),
    "rate": ({"type": "number", "exclusiveMinimum": 0, "maximum": 1e7}, "Total requests/s in all regions."),
    "cost_per_server": ({"type": "number", "exclusiveMinimum": 0, "maximum": 1e7}, "Cost of one server per month."),
    "n_minus_1": (BOOLEAN, "Whether the answer covers the failure of any one region (default)."),
    "test": ({"type": "string", "maxLength": 253}, "Only runs of the test with this name."),
    "hostname": ({"type": "string", "maxLength": 253}, "Only routes of this hostname."),
    "load_balancer": ({"type": "string", "maxLength": 253}, "Only objects of this load balancer."),
    "action": ({"type": "string", "enum": Route.Action.values}, "Only routes with this action."),
    "action-word": (
        {"type": "string", "maxLength": 40},
        "Only entries with this action, as recorded: create, update, …",
    ),
    "actor": ({"type": "string", "maxLength": 150}, "Only entries of this person or program."),
    "token": ({"type": "string", "maxLength": 16}, "Only entries of the token with this key ID."),
    "person": ({"type": "string", "maxLength": 150}, "Only this person."),
    "kind": ({"type": "string", "maxLength": 40}, "Only entries about objects of this kind."),
    "object": ({"type": "string", "maxLength": 400}, "Only entries about objects whose label starts with this text."),
    "object_id": (
        {"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
        "Only entries about the object with this ID.",
    ),
    "request_id": ({"type": "string", "maxLength": 64}, "Only entries of this request."),
    "state": ({"type": "string", "enum": Delivery.State.values}, "Only deliveries in this state."),
    "state-word-alert": ({"type": "string", "enum": ["firing", "resolved"]}, "Only alerts in this state."),
    "state-word-message": (
        {"type": "string", "enum": Notification.State.values},
        "Only messages in this state.",
    ),
    "state-word-canary": ({"type": "string", "enum": Canary.State.values}, "Only canaries in this state."),
    "state-word-replacement": (
        {"type": "string", "enum": Replacement.State.values},
        "Only replacements in this state.",
    ),
    "state-word-schedule-run": (
        {"type": "string", "enum": ScheduleRun.State.values},
        "Only schedule runs in this state.",
    ),
    "schedule": ({"type": "string", "maxLength": 253}, "Only objects of the schedule with this name."),
    "region-word-cloud": ({"type": "string", "maxLength": 40}, "The cloud's name of its region; global on Google."),
    "target-word-cloud": ({"type": "string", "enum": ["haproxy", "aws", "google"]}, "Only this target."),
    "format": ({"type": "string", "enum": list(FORMATS)}, "The format of the export. Default: haproxy."),
    "stack-word-export": (
        {"type": "string", "maxLength": 63},
        "The stack that is written as Terraform. Default: the only one of the load balancer.",
    ),
    "fleet-word-export": (
        {"type": "string", "maxLength": 63},
        "The fleet whose servers are written. Default: the only one of the load balancer.",
    ),
    "target": ({"type": "string", "enum": Schedule.TargetKind.values}, "Only schedules with this action."),
    "after": ({"type": "string", "maxLength": 40}, "Only messages after the one with this ID."),
    "after-word-number": ({"type": "integer", "minimum": 0, "maximum": 999999999}, "Only rows with a higher number."),
    "against": (
        {"type": "integer", "minimum": 0, "maximum": 999999999},
        "The number of the other revision. Default: 0, the previous revision.",
    ),
    "since": ({"type": "string", "format": "date-time"}, "Only from this time on."),
    "until": ({"type": "string", "format": "date-time"}, "Only before this time."),
    "topics": (
        {
            "type": "string",
            "pattern": f"^({TOPICS})(,({TOPICS}))*$",
        },
        f"Only these topics, separated by commas: {TOPICS.replace('|', ', ')}.",
    ),
    "q": ({"type": "string", "maxLength": 253}, "Only objects with this text in their names."),
    "at": ({"type": "string", "maxLength": 40}, "A time in the last two weeks: RFC 3339 or Unix seconds."),
    "wait": (
        {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 60}, {"type": "string", "const": "true"}]},
        "Seconds to wait until the change is live or over, `true` for 30; earlier when too many requests wait.",
    ),
    "dry_run": (
        {"type": "string", "enum": ["true", "plan", "false"]},
        "Return what would change, and change nothing. `plan` also stores it as a plan.",
    ),
    "prune": (BOOLEAN, "Delete objects of the same manager that the document does not name."),
    "manager": (
        {"type": "string", "maxLength": 63},
        "The pipeline that sends this: it manages what it creates, and objects that nobody manages yet.",
    ),
    "atomic": (BOOLEAN, "Store all items or none (default), or each one separately."),
    "break_glass": (BOOLEAN, "Change an object that a pipeline manages; recorded in the audit log."),
    "confirm": (
        {"type": "string", "maxLength": 4000},
        "Names (`account/name`, separated by commas) of pools, load balancers and grants that this may empty or end.",
    ),
    "take_over": (
        {"type": "string", "maxLength": 4000},
        "Limits (`account/pool/region`, separated by commas) to set even though a capacity run set them.",
    ),
    "refuse_overload": (BOOLEAN, "Return 409 if a region would exceed its limit with the current traffic."),
}

REQUEST_HEADERS: dict[str, tuple[Schema, str]] = {
    "If-Match": ({"type": "string"}, 'The ETag of the version that you read, such as "rev-17"; `*` for any.'),
    "If-None-Match": (
        {"type": "string"},
        "On GET, the ETag that you have (304 if unchanged). On PUT, `*` creates only.",
    ),
    "Idempotency-Key": (
        {"type": "string", "pattern": "^[!-~]{1,255}$"},
        "The same key and request get the same response for 24 hours; the work is done once.",
    ),
    "Last-Event-ID": ({"type": "string"}, "The ID of the last event that you received; missed events come first."),
    "X-Change-Reason": ({"type": "string", "maxLength": 400}, "The reason; recorded in the audit log."),
    "X-Change-Commit": ({"type": "string", "pattern": "^[0-9a-f]{7,64}$"}, "The commit that the change comes from."),
    "X-Change-Pipeline": (
        {"type": "string", "maxLength": 400},
        "The https URL of the pipeline run that made the change.",
    ),
}

RESPONSE_HEADERS: dict[str, tuple[Schema, str]] = {
    "ETag": (
        {"type": "string", "pattern": '^(W/)?"[a-z0-9-]+"$'},
        'The version, such as "rev-17"; with W/ in front when the response is compressed.',
    ),
    "Location": ({"type": "string"}, "The URL of the object."),
    "Link": ({"type": "string"}, 'The next page, with rel="next".'),
    "X-Spillway-Generation": ({"type": "string"}, "`fleet=number, …`: the generations that make the change live."),
    "X-Spillway-Waits-For": ({"type": "string"}, "`fleet=reason, …`: why the change is not live yet."),
    "X-Spillway-Live": (BOOLEAN, "Whether the change was live when the response was sent; only with `wait`."),
    "X-Spillway-Kept": (
        {"type": "string"},
        "`account/pool/region, …`: limits that were kept because a capacity run set them; `take_over` overwrites them.",
    ),
    "Retry-After": ({"type": "integer", "minimum": 0}, "Seconds to wait before you retry."),
    "WWW-Authenticate": ({"type": "string"}, "The required authentication: a bearer token."),
    "Idempotency-Replayed": (BOOLEAN, "Whether this is the stored response of an earlier request with the same key."),
}

# These stand in every answer.
COMMON_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Request-ID": ({"type": "string"}, "The ID of this request in the server log and in the audit log."),
    "RateLimit": (BUDGET, 'The remaining budget: `"account";r=1199;t=40, "token";r=899;t=40`.'),
    "RateLimit-Policy": (BUDGET, 'The allowed budget: `"account";q=1200;w=60, "token";q=900;w=60`.'),
}

# These stand in refusals of this status.
AGAIN = ("Retry-After",)
REFUSAL_HEADERS: dict[int, tuple[str, ...]] = {401: ("WWW-Authenticate",), 409: AGAIN, 429: AGAIN, 503: AGAIN}

PATH: dict[str, tuple[Schema, str]] = {
    "id": ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "The object's ID."),
    "account": ({"type": "string", "pattern": NAME}, "The account's name."),
    "name": ({"type": "string", "pattern": NAME}, "The object's name."),
    "region": ({"type": "string", "pattern": NAME}, "The region's name."),
    "server": ({"type": "string", "pattern": NAME}, "The server's name."),
    "number": ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "The number of the version."),
    "delivery": ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "The delivery's ID."),
    "kind": ({"type": "string", "enum": ["parquet", "jsonl.gz"]}, "The form of the file."),
    "to": ({"type": "string", "pattern": NAME}, "The other region's name."),
    "plan": ({"type": "string", "pattern": "^[0-9a-f]{32}$"}, "The plan's ID."),
    "record": ({"type": "string", "pattern": "^[0-9a-f-]{1,64}$"}, "The ID of the request, as in `X-Request-ID`."),
    "change": ({"type": "string", "pattern": "^[A-Za-z0-9-]{8,64}$"}, "The `X-Request-ID` of the write."),
}

REFUSALS: dict[int, tuple[str, str]] = {
    400: ("Malformed", "The body cannot be read."),
    401: ("Unauthenticated", "The token is missing, invalid or expired."),
    403: ("NotAllowed", "The account, its role or the token's scopes do not allow this."),
    404: ("NotFound", "There is no such object, or you may not see it."),
    405: ("MethodNotAllowed", "This URL does not support the method."),
    406: ("NotAcceptable", "Responses are JSON only."),
    409: (
        "Conflict",
        "The object is in use, managed by a pipeline, or exists; or its key is in progress.",
    ),
    412: ("Stale", "The object has changed since you read it."),
    413: ("TooLarge", "The body is too large."),
    414: ("TooLong", "The URL is too long for the server."),
    415: ("UnsupportedMediaType", "The body must be JSON or YAML."),
    422: ("Invalid", "The body, the query or a header is invalid; `errors` lists each error."),
    428: ("PreconditionRequired", "Send If-Match with the version that you read."),
    429: ("TooMany", "Too many requests; Retry-After says when to retry."),
    500: ("Broken", "An unexpected error; nothing was stored."),
    503: ("Away", "A service that this request needs is unavailable; try again in a moment."),
}
