"""What each URL of clouds, static IPs and DNS zones does."""

from __future__ import annotations

from dataclasses import replace

from apps.api.v1.schemas.nouns import clouds, zones
from apps.api.v1.schemas.operations.building import (
    MANAGED,
    READ_REFUSALS,
    Operation,
    Schema,
    Table,
    detail,
    listing,
    noun,
    of_one,
    read,
    write,
    written,
)

ACCOUNT = noun(clouds.CloudAccount, clouds.CloudAccountEnvelope, "a cloud account", "cloud accounts")
STACK = noun(clouds.Stack, clouds.StackEnvelope, "a stack", "stacks")
POOL = noun(clouds.AddressPool, clouds.AddressPoolEnvelope, "a pool of addresses", "pools of addresses")
ADDRESS = noun(clouds.StaticIP, clouds.StaticIPEnvelope, "a static IP", "static IPs")
ZONE = noun(zones.Zone, zones.ZoneEnvelope, "a zone", "zones")
RECORD = noun(zones.Record, zones.RecordEnvelope, "a set of records", "sets of records")


def _moved(summary: str, sent: Schema | None) -> Operation:
    """Something that is done to an address and travels to nodes."""
    found = write(summary, {200: clouds.StaticIP}, sent, *MANAGED)
    return replace(found, tells=("ETag", *found.tells), refuses=(*found.refuses, 404))


def _begun(summary: str) -> Operation:
    """Something that begins a run."""
    found = of_one(summary, {202: clouds.StackRun})
    return replace(found, tells=("Location", *found.tells))


RUNS = read("stack-runs", clouds.StackRun, "a run of a stack", "runs of stacks", version=False)
OPERATIONS: Table = {
    **written("cloud-accounts", ACCOUNT, "name"),
    **written("stacks", STACK, "name", "region"),
    **written("address-pools", POOL, "name", "region"),
    **written("static-ips", ADDRESS, "name", "region"),
    **written("zones", ZONE, "name", "account"),
    **written("records", RECORD, "name", "account", "zone"),
    ("static-ips-move", "POST"): _moved("Move a static IP to another load balancer", clouds.AddressMove),
    ("static-ips-release", "POST"): _moved("Take a static IP from the listeners that bind it", None),
    ("load-balancers-portability", "GET"): detail(
        clouds.Portability, "what targets would lose of a load balancer", "target-word-cloud", version=False
    ),
    **RUNS,
    ("stack-runs-detail", "GET"): detail(clouds.StackRunDetail, "a run of a stack with its plan", version=False),
    ("stack-runs-approve", "POST"): of_one("Let exactly this plan be applied", {200: clouds.StackRun}, clouds.Approval),
    ("stack-runs-discard", "POST"): of_one("Say no to a plan that waits", {200: clouds.StackRun}),
    ("stack-runs-cancel", "POST"): of_one("Stop a run", {200: clouds.StackRun}),
    ("stack-runs-retry", "POST"): of_one("Try a failed run again", {200: clouds.StackRun}),
    ("stacks-runs", "GET"): replace(
        RUNS["stack-runs-list", "GET"], summary="List the runs of a stack", refuses=(*READ_REFUSALS, 404)
    ),
    ("stacks-states", "GET"): replace(
        listing(clouds.StateVersion, "the versions of a stack's state"), refuses=(*READ_REFUSALS, 404)
    ),
    ("stacks-state-content", "GET"): detail(clouds.StateContent, "what a version of a state holds", version=False),
    ("stacks-revisions", "GET"): replace(
        listing(clouds.StackRevision, "the revisions of a stack"), refuses=(*READ_REFUSALS, 404)
    ),
    ("stacks-revision", "GET"): detail(clouds.StackRevisionDetail, "a revision of a stack", version=False),
    ("stacks-revision-differences", "GET"): detail(
        clouds.RevisionDifferences, "how a revision of a stack differs from another", "against", version=False
    ),
    ("stacks-check", "POST"): _begun("Look for what somebody changed in a cloud"),
    ("stack-runs-events", "GET"): replace(
        listing(clouds.StackRunEvent, "what Terraform said during a run", "after-word-number"),
        refuses=(*READ_REFUSALS, 404),
    ),
    ("stacks-state", "GET"): detail(clouds.StackState, "how a stack stands, and what its cloud says", version=False),
    ("stacks-lock", "GET"): detail(clouds.StateLock, "who may write a stack's state", version=False),
    ("stacks-force-unlock", "POST"): of_one("Take a lock away from whoever holds it", {204: None}, clouds.ForceUnlock),
    ("stacks-plan", "POST"): _begun("Plan what is wanted of a stack, now"),
    ("stacks-destroy", "POST"): _begun("Plan to delete everything that stands in a stack"),
    ("zones-state", "GET"): detail(zones.ZoneState, "how far a zone has come, and what is served", version=False),
    ("zones-differences", "GET"): replace(
        detail(zones.ZoneDifferences, "what a push of a zone would write", version=False),
        refuses=(*READ_REFUSALS, 404, 409),
    ),
    ("zones-repair", "POST"): of_one("Write over what somebody changed", {202: None}, zones.Repair),
}
