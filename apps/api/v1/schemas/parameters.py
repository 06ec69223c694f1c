"""Every query parameter, request header and response header that there is."""

from __future__ import annotations

from typing import Any

from apps.definitions.models import Route, Schedule
from apps.definitions.shapes.base.words import NAME
from apps.schedules.models import ScheduleRun
from apps.webhooks.models import Delivery

Schema = dict[str, Any]
BOOLEAN: Schema = {"type": "string", "enum": ["true", "false"]}
BUDGET: Schema = {"type": "string"}

QUERY: dict[str, tuple[Schema, str]] = {
    "limit": ({"type": "integer", "minimum": 1, "maximum": 500, "default": 100}, "How many rows at most."),
    "cursor": ({"type": "string", "maxLength": 2500}, "`next_cursor` of the page before."),
    "name": ({"type": "string", "maxLength": 253}, "Only the object with this name."),
    "account": ({"type": "string", "maxLength": 253}, "Only what belongs to this account."),
    "region": ({"type": "string", "maxLength": 253}, "Only what is in this region."),
    "fleet": ({"type": "string", "maxLength": 253}, "Only what is in this fleet."),
    "zone": ({"type": "string", "maxLength": 253}, "Only what is in the zone with this name."),
    "pool": ({"type": "string", "maxLength": 253}, "Only what is of this pool, for routes also as account/name."),
    "rate": ({"type": "number", "exclusiveMinimum": 0, "maximum": 1e7}, "Requests/s in all regions together."),
    "cost_per_server": ({"type": "number", "exclusiveMinimum": 0, "maximum": 1e7}, "What a server costs a month."),
    "n_minus_1": (BOOLEAN, "Whether any one region may fail (the default)."),
    "test": ({"type": "string", "maxLength": 253}, "Only runs of the test with this name."),
    "hostname": ({"type": "string", "maxLength": 253}, "Only routes of this hostname."),
    "load_balancer": ({"type": "string", "maxLength": 253}, "Only what is of this load balancer."),
    "action": ({"type": "string", "enum": Route.Action.values}, "Only routes with this action."),
    "action-word": ({"type": "string", "maxLength": 40}, "Only what was done with this verb: create, update, …"),
    "actor": ({"type": "string", "maxLength": 150}, "Only what this person or program did."),
    "token": ({"type": "string", "maxLength": 16}, "Only what was done with the token of this key id."),
    "person": ({"type": "string", "maxLength": 150}, "Only this person."),
    "kind": ({"type": "string", "maxLength": 40}, "Only what was done to objects of this kind."),
    "object": ({"type": "string", "maxLength": 400}, "Only objects whose label begins so."),
    "object_id": ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "Only the object with this id."),
    "request_id": ({"type": "string", "maxLength": 64}, "Only what this request did."),
    "state": ({"type": "string", "enum": Delivery.State.values}, "Only deliveries in this state."),
    "state-word-schedule-run": (
        {"type": "string", "enum": ScheduleRun.State.values},
        "Only schedule runs in this state.",
    ),
    "schedule": ({"type": "string", "maxLength": 253}, "Only what is of the schedule with this name."),
    "region-word-cloud": ({"type": "string", "maxLength": 40}, "The cloud's word for its region; global on Google."),
    "target-word-cloud": ({"type": "string", "enum": ["haproxy", "aws", "google"]}, "Only this target."),
    "target": ({"type": "string", "enum": Schedule.TargetKind.values}, "Only schedules that do this."),
    "after": ({"type": "string", "maxLength": 40}, "Only messages after the one with this id."),
    "after-word-number": ({"type": "integer", "minimum": 0, "maximum": 999999999}, "Only what has a higher number."),
    "against": (
        {"type": "integer", "minimum": 0, "maximum": 999999999},
        "The number of the other revision; 0 for the one before, which is the default.",
    ),
    "since": ({"type": "string", "format": "date-time"}, "Only from this moment on."),
    "until": ({"type": "string", "format": "date-time"}, "Only before this moment."),
    "topics": (
        {
            "type": "string",
            "pattern": "^(samples|nodes|rollouts|runs|definitions)(,(samples|nodes|rollouts|runs|definitions))*$",
        },
        "Only these, separated by commas: samples, nodes, rollouts, runs, definitions.",
    ),
    "q": ({"type": "string", "maxLength": 253}, "Only what has this text in its names."),
    "at": ({"type": "string", "maxLength": 40}, "A moment of the last two weeks: RFC 3339 or Unix seconds."),
    "wait": (
        {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 60}, {"type": "string", "const": "true"}]},
        "Seconds to wait until it is live or over, `true` for 30; the answer comes earlier when too many wait.",
    ),
    "dry_run": (
        {"type": "string", "enum": ["true", "plan", "false"]},
        "Say what would be done, and do nothing.",
    ),
    "prune": (BOOLEAN, "Delete what the same manager made and the document does not name."),
    "manager": (
        {"type": "string", "maxLength": 63},
        "The pipeline that sends this: it changes what it manages, and manages what it makes or nobody does yet.",
    ),
    "atomic": (BOOLEAN, "All items or none (the default), or each by itself."),
    "break_glass": (BOOLEAN, "Change an object although a pipeline manages it; the audit log says so."),
    "confirm": (
        {"type": "string", "maxLength": 4000},
        "Names (`account/name`, commas between) of what this may empty: pools in use, load balancers.",
    ),
    "take_over": (
        {"type": "string", "maxLength": 4000},
        "Limits (`account/pool/region`, commas between) to set although a capacity run set them.",
    ),
    "refuse_overload": (BOOLEAN, "409 when a region would be over its limit at the traffic of now."),
}

REQUEST_HEADERS: dict[str, tuple[Schema, str]] = {
    "If-Match": ({"type": "string"}, 'The ETag of the version that you saw, such as "rev-17"; `*` for any.'),
    "If-None-Match": ({"type": "string"}, "On GET the ETag that you have (304); `*` on PUT creates only."),
    "Idempotency-Key": (
        {"type": "string", "pattern": "^[!-~]{1,255}$"},
        "The same key and request get the same answer for 24 hours, and the work is done once.",
    ),
    "Last-Event-ID": ({"type": "string"}, "The id of the last event that you heard; what you missed comes first."),
    "X-Change-Reason": ({"type": "string", "maxLength": 400}, "Why; stored in the audit log."),
    "X-Change-Commit": ({"type": "string", "pattern": "^[0-9a-f]{7,64}$"}, "The commit that the change comes from."),
    "X-Change-Pipeline": ({"type": "string", "maxLength": 400}, "https URL of the pipeline run behind the change."),
}

RESPONSE_HEADERS: dict[str, tuple[Schema, str]] = {
    "ETag": (
        {"type": "string", "pattern": '^(W/)?"[a-z0-9-]+"$'},
        'The version, such as "rev-17"; with W/ in front when the answer is packed.',
    ),
    "Location": ({"type": "string"}, "Where the object is read."),
    "Link": ({"type": "string"}, 'The next page, with rel="next".'),
    "X-Spillway-Generation": ({"type": "string"}, "`fleet=number, …`: what makes the change live."),
    "X-Spillway-Waits-For": ({"type": "string"}, "`fleet=reason, …`: what a change that is not live waits for."),
    "X-Spillway-Live": (BOOLEAN, "Whether the change was live when the answer was sent; with `wait`."),
    "X-Spillway-Kept": (
        {"type": "string"},
        "`account/pool/region, …`: limits that stay as a capacity run set them; `take_over` sets them.",
    ),
    "Retry-After": ({"type": "integer", "minimum": 0}, "Seconds after which it is worth to ask again."),
    "WWW-Authenticate": ({"type": "string"}, "That a bearer token is asked for."),
    "Idempotency-Replayed": (BOOLEAN, "Whether this is an answer from before; with a key."),
}

# These stand in every answer.
COMMON_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Request-ID": ({"type": "string"}, "The ID of this request in our log and in the audit log."),
    "RateLimit": (BUDGET, 'What is left: `"account";r=1199;t=40, "token";r=899;t=40`.'),
    "RateLimit-Policy": (BUDGET, 'What is allowed: `"account";q=1200;w=60, "token";q=900;w=60`.'),
}

# These stand in refusals of this status.
REFUSAL_HEADERS: dict[int, tuple[str, ...]] = {401: ("WWW-Authenticate",), 429: ("Retry-After",)}

PATH: dict[str, tuple[Schema, str]] = {
    "id": ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "The object's id."),
    "account": ({"type": "string", "pattern": NAME}, "The account's name."),
    "name": ({"type": "string", "pattern": NAME}, "The object's name."),
    "region": ({"type": "string", "pattern": NAME}, "The region's name."),
    "number": ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "The number of the version."),
    "delivery": ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "The delivery's id."),
    "to": ({"type": "string", "pattern": NAME}, "The other region's name."),
    "plan": ({"type": "string", "pattern": "^[0-9a-f]{32}$"}, "The plan's id."),
    "change": ({"type": "string", "pattern": "^[A-Za-z0-9-]{8,64}$"}, "The `X-Request-ID` of the write."),
}

REFUSALS: dict[int, tuple[str, str]] = {
    400: ("Malformed", "The body cannot be read at all."),
    401: ("Unauthenticated", "There is no token, or one that is not valid (any more)."),
    403: ("NotAllowed", "The account, its role or the token's scopes do not allow this."),
    404: ("NotFound", "There is no such object, or you may not see it."),
    405: ("MethodNotAllowed", "There is something here, but this is not done to it."),
    406: ("NotAcceptable", "Answers are JSON."),
    409: ("Conflict", "The object is in use, managed by another, exists already, or its key is in flight."),
    412: ("Stale", "The object has another version than the one you saw."),
    413: ("TooLarge", "The body is too large."),
    414: ("TooLong", "The URL is too long for the server."),
    415: ("UnsupportedMediaType", "Bodies are JSON or YAML."),
    422: ("Invalid", "Something in the body, the query or a header is wrong; each error is named."),
    428: ("PreconditionRequired", "Say with If-Match which version you saw."),
    429: ("TooMany", "Too many requests in this minute; Retry-After says when to come again."),
    500: ("Broken", "Something went wrong here; nothing was stored."),
    503: ("Away", "Something that this needs is away at present; try again in a moment."),
}
