"""What each URL of clouds, static IPs and DNS zones does."""

from __future__ import annotations

from dataclasses import replace

from apps.api.v1.schemas.envelopes import Generation
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

ACCOUNT = noun("CloudAccount", "a cloud account", "cloud accounts")
STACK = noun("Stack", "a stack", "stacks", facts=Generation)
POOL = noun("AddressPool", "an address pool", "address pools")
ADDRESS = noun(
    "StaticIP",
    "a static IP",
    "static IPs",
    about="A static IP, with the addresses that it has and the load balancer that it serves.",
    facts=clouds.StaticIPFacts,
)
ZONE = noun("Zone", "a zone", "zones", facts=Generation)
RECORD = noun(
    "Record", "a DNS record", "DNS records", about="A set of records, with its whole name.", facts=zones.RecordFacts
)


def _moved(summary: str, sent: Schema | None) -> Operation:
    """Something that is done to an address and travels to nodes."""
    found = write(summary, {200: ADDRESS.item}, sent, *MANAGED)
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
    ("static-ips-release", "POST"): _moved("Detach a static IP from its listeners", None),
    ("load-balancers-portability", "GET"): detail(
        clouds.Portability, "the portability of a load balancer", "target-word-cloud", version=False
    ),
    ("load-balancers-named-export", "GET"): Operation(
        summary="Export a load balancer as a zip that works without Spillway",
        shown={200: None},
        query=("format", "fleet-word-export", "stack-word-export"),
        refuses=(*READ_REFUSALS, 404),
        media=("application/zip",),
    ),
    **RUNS,
    ("stack-runs-detail", "GET"): detail(clouds.StackRunDetail, "a run of a stack and its plan", version=False),
    ("stack-runs-approve", "POST"): of_one("Approve exactly this plan", {200: clouds.StackRun}, clouds.Approval),
    ("stack-runs-discard", "POST"): of_one("Discard a plan that waits for approval", {200: clouds.StackRun}),
    ("stack-runs-cancel", "POST"): of_one("Stop a run", {200: clouds.StackRun}),
    ("stack-runs-retry", "POST"): of_one("Retry a failed run", {200: clouds.StackRun}),
    ("stacks-runs", "GET"): replace(
        RUNS["stack-runs-list", "GET"], summary="List the runs of a stack", refuses=(*READ_REFUSALS, 404)
    ),
    ("stacks-states", "GET"): replace(
        listing(clouds.StateVersion, "the state versions of a stack"), refuses=(*READ_REFUSALS, 404)
    ),
    ("stacks-state-content", "GET"): detail(clouds.StateContent, "the content of a state version", version=False),
    ("stacks-revisions", "GET"): replace(
        listing(clouds.StackRevision, "the revisions of a stack"), refuses=(*READ_REFUSALS, 404)
    ),
    ("stacks-revision", "GET"): detail(clouds.StackRevisionDetail, "a revision of a stack", version=False),
    ("stacks-revision-differences", "GET"): detail(
        clouds.RevisionDifferences, "the differences between two revisions of a stack", "against", version=False
    ),
    ("stacks-check", "POST"): _begun("Check a stack for drift"),
    ("stack-runs-events", "GET"): replace(
        listing(clouds.StackRunEvent, "the Terraform output of a run", "after-word-number"),
        refuses=(*READ_REFUSALS, 404),
    ),
    ("stacks-state", "GET"): detail(clouds.StackState, "the status of a stack and its resources", version=False),
    ("stacks-lock", "GET"): detail(clouds.StateLock, "the lock of a stack's state", version=False),
    ("stacks-force-unlock", "POST"): of_one("Force-unlock a stack's state", {204: None}, clouds.ForceUnlock),
    ("stacks-plan", "POST"): _begun("Plan a stack now"),
    ("stacks-destroy", "POST"): _begun("Plan the destruction of all resources of a stack"),
    ("zones-state", "GET"): detail(zones.ZoneState, "the status of a zone and what is served", version=False),
    ("zones-differences", "GET"): replace(
        detail(zones.ZoneDifferences, "the changes that a push of a zone would write", version=False),
        refuses=(*READ_REFUSALS, 404, 409),
    ),
    ("zones-repair", "POST"): of_one("Repair records that were changed outside Spillway", {202: None}, zones.Repair),
}
