"""SHOW to machines, written down: what each URL of clouds, static IPs and DNS zones does."""

from __future__ import annotations

from apps.api.v1.schemas import clouds, zones
from apps.api.v1.schemas.building import Table, noun, written

ACCOUNT = noun(clouds.CloudAccount, clouds.CloudAccountEnvelope, "a cloud account", "cloud accounts")
STACK = noun(clouds.Stack, clouds.StackEnvelope, "a stack", "stacks")
POOL = noun(clouds.AddressPool, clouds.AddressPoolEnvelope, "a pool of addresses", "pools of addresses")
ADDRESS = noun(clouds.StaticIP, clouds.StaticIPEnvelope, "a static IP", "static IPs")
ZONE = noun(zones.Zone, zones.ZoneEnvelope, "a zone", "zones")
RECORD = noun(zones.Record, zones.RecordEnvelope, "a set of records", "sets of records")
OPERATIONS: Table = {
    **written("cloud-accounts", ACCOUNT, "name"),
    **written("stacks", STACK, "name", "region"),
    **written("address-pools", POOL, "name", "region"),
    **written("static-ips", ADDRESS, "name", "region"),
    **written("zones", ZONE, "name", "account"),
    **written("records", RECORD, "name", "account", "zone"),
}
