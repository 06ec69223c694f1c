"""The kind CapacityTest: what to load and how, read from its document and written out again.

`{target: {pool, region, hostname, path, server}, load, objective, guards, policy}`. What a test may do is bounded
here by sense and by its own guards; what it may do now is asked again before every run (apps/capacity/run/checking.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from django.db.models import Q, QuerySet

from apps.accounts.hostnames.claims import wildcards_over
from apps.accounts.models import Account, Hostname
from apps.accounts.rights import may_load_test
from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import CapacityTest, Pool, Route
from apps.definitions.reading.fields import Reader, boolean, integer, number, reference
from apps.definitions.reading.specs import CapacityTestSpec, GuardSpec, LoadSpec, ObjectiveSpec, PolicySpec
from apps.fleet.models import Fleet, Region

LOADS = ("search", "constant", "users", "ramp", "soak")
ARRIVALS = ("constant", "poisson")
PROTOCOLS = ("http1",)
# Methods that change nothing where they arrive: a test asks the same thing many thousand times.
METHODS = ("GET", "HEAD", "OPTIONS")
APPLY = ("by_hand", "automatic")
HIGHEST_RATE, MOST_CONNECTIONS, LONGEST_S = 1_000_000, 20_000, 24 * 3600
MOST_CHANGE = 0.2
PARTS = ("load", "objective", "guards", "policy")


def _word(*words: str) -> Callable[[object], str]:
    def allowed(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise GrammarError("choice", f"Use one of {', '.join(words)}.")

    return allowed


def _protocol(value: object) -> str:
    if value == "http2":
        raise GrammarError("choice", "Capacity tests speak HTTP/1.1 only: use http1, or leave protocol out.")
    return _word(*PROTOCOLS)(value)


def _plain_hostname(value: object) -> str:
    text = grammar.hostname(value)
    if text.startswith("*."):
        raise GrammarError("wildcard", "Name one host; load generators cannot request a wildcard.")
    return text


def _server(value: object) -> str:
    return "" if value == "" else grammar.name(value)


def _percentile(value: object) -> int:
    if type(value) is not int or value not in (95, 99):
        raise GrammarError("choice", "Use 95 or 99.")
    return value


def read_capacity_test(reader: Reader) -> CapacityTestSpec:
    """The specification of a test; every part but the target may be left out."""
    target = reader.child("target")
    if target is None:
        reader.fault("target", "missing", "Set target to {pool, region, hostname, path}.")
        target = Reader({}, f"{reader.pointer}/target", [])
    spec = CapacityTestSpec(
        pool=target.required("pool", reference),
        region=target.required("region", grammar.name),
        hostname=target.required("hostname", _plain_hostname),
        path=target.optional("path", grammar.path, "/"),
        server=target.optional("server", _server, ""),
        load=_load(_part(reader, "load")),
        objective=_objective(_part(reader, "objective")),
        guards=_guards(_part(reader, "guards")),
        policy=_policy(_part(reader, "policy")),
    )
    target.close()
    if not reader.faults:
        _refuse_contradictions(reader, spec)
    return spec


def _part(reader: Reader, name: str) -> Reader:
    return reader.child(name) or Reader({}, f"{reader.pointer}/{name}", reader.faults)


def _load(reader: Reader) -> LoadSpec:
    rate = number(0, HIGHEST_RATE)
    found = LoadSpec(
        kind=reader.optional("kind", _word(*LOADS), "search"),
        rate=reader.optional("rate", rate, 0.0),
        to_rate=reader.optional("to_rate", rate, 0.0),
        step=reader.optional("step", rate, 0.0),
        users=reader.optional("users", integer(0, MOST_CONNECTIONS), 0),
        duration_s=reader.optional("duration_s", integer(1, LONGEST_S), 60),
        arrivals=reader.optional("arrivals", _word(*ARRIVALS), "poisson"),
        protocol=reader.optional("protocol", _protocol, "http1"),
        tls=reader.optional("tls", boolean, default=False),
        keep_alive=reader.optional("keep_alive", boolean, default=True),
        method=reader.optional("method", _word(*METHODS), "GET"),
    )
    reader.close()
    return found


def _objective(reader: Reader) -> ObjectiveSpec:
    found = ObjectiveSpec(
        percentile=reader.optional("percentile", _percentile, 95),
        max_latency_ms=reader.optional("max_latency_ms", integer(1, 600_000), 600),
        max_error_rate=reader.optional("max_error_rate", number(0.0001, 1), 0.01),
    )
    reader.close()
    return found


def _guards(reader: Reader) -> GuardSpec:
    found = GuardSpec(
        max_rate=reader.optional("max_rate", integer(1, HIGHEST_RATE), 100),
        max_connections=reader.optional("max_connections", integer(1, MOST_CONNECTIONS), 200),
        max_duration_s=reader.optional("max_duration_s", integer(5, LONGEST_S), 300),
        headroom=reader.optional("headroom", number(0, 10), 0.0),
    )
    reader.close()
    return found


def _policy(reader: Reader) -> PolicySpec:
    found = PolicySpec(
        apply=reader.optional("apply", _word(*APPLY), "by_hand"),
        margin=reader.optional("margin", number(0, 0.9), 0.1),
        max_change=reader.optional("max_change", number(0, MOST_CHANGE), MOST_CHANGE),
    )
    reader.close()
    return found


def _refuse_contradictions(reader: Reader, spec: CapacityTestSpec) -> None:
    """Faults of fields that are right by themselves and not together; nothing that is sent is ignored silently."""
    for wrong, field, code, detail in (*_beyond_guards(spec.load, spec.guards), *_of_other_kinds(spec)):
        if wrong:
            reader.faults.append(FieldError(f"{reader.pointer}/load/{field}", code, detail))


Rule = tuple[bool, str, str, str]  # whether it is broken, field of the load, code, what to do


def _beyond_guards(load: LoadSpec, guards: GuardSpec) -> Iterator[Rule]:
    within = "Stay within guards.{} ({} {}), or raise that."
    rate = within.format("max_rate", guards.max_rate, "requests/s")
    yield load.rate > guards.max_rate, "rate", "guard", rate
    yield load.to_rate > guards.max_rate, "to_rate", "guard", rate
    connections = within.format("max_connections", guards.max_connections, "connections")
    yield load.users > guards.max_connections, "users", "guard", connections
    longer = load.kind != "search" and load.duration_s > guards.max_duration_s
    yield longer, "duration_s", "guard", within.format("max_duration_s", guards.max_duration_s, "s")


def _of_other_kinds(spec: CapacityTestSpec) -> Iterator[Rule]:
    load, kind = spec.load, spec.load.kind
    needs_rate = kind in ("constant", "soak", "ramp") and not load.rate
    yield needs_rate, "rate", "missing", f"Fill in the rate (requests/s) of a load of kind {kind}."
    few = kind == "users" and not load.users
    yield few, "users", "missing", "Fill in the number of users (concurrent requests)."
    flat = kind == "ramp" and (load.to_rate <= load.rate or not load.step)
    yield flat, "to_rate", "ramp", "A ramp goes from rate up to a higher to_rate by a step above 0."
    ramped = kind != "ramp" and bool(load.to_rate or load.step)
    yield ramped, "to_rate", "kind", "Only a ramp has to_rate and step; leave them out."
    used = kind != "users" and bool(load.users)
    yield used, "users", "kind", "Only a load of kind users has users; leave them out."
    rated = kind == "users" and bool(load.rate)
    yield rated, "rate", "kind", "A load of kind users has no rate; leave it out."
    direct = bool(spec.server) and load.tls
    yield direct, "tls", "server", "Requests to a single server are sent without TLS; leave out tls or server."


def capacity_test_document(spec: CapacityTestSpec) -> dict[str, Any]:
    """The document of a specification, every default written out."""
    target = {name: getattr(spec, name) for name in ("pool", "region", "hostname", "path", "server")}
    return {"target": target} | {name: asdict(getattr(spec, name)) for name in PARTS}


def capacity_test_row(row: CapacityTest) -> dict[str, Any]:
    """The document of a stored test; the pool with its account in front where that is another one."""
    pool = row.pool.name if row.pool.account_id == row.account_id else f"{row.pool.account.name}/{row.pool.name}"
    target = {
        "pool": pool, "region": row.region.name, "hostname": row.hostname, "path": row.path, "server": row.server,
    }  # fmt: skip
    return {"target": target} | {name: dict(getattr(row, name)) for name in PARTS}


def spec_of(document: dict[str, Any]) -> CapacityTestSpec:
    """The specification that a stored document (`Run.plan`) holds. Raises Invalid when it is none."""
    faults: list[FieldError] = []
    reader = Reader(document, "", faults)
    spec = read_capacity_test(reader)
    reader.close()
    if faults:
        raise Invalid(faults)
    return spec


def hostname_may_be_tested(owner: Account, hostname: str, region: Region) -> bool:
    """Whether the account may load the name now: its own verified one; operators any claimed one, all in development.

    Where every fleet of the region is marked as local development, nothing of anybody else's can be hit.
    """
    if may_load_test(owner, hostname):
        return True
    if not owner.is_operator:
        return False
    names = [hostname, *wildcards_over(hostname)]
    rows = Hostname.objects.filter(name__in=names, released_at=None).exclude(verification="")
    return is_local(region) or rows.exists()


def is_local(region: Region) -> bool:
    """Whether there are fleets in the region and all are marked for local development."""
    return set(Fleet.objects.filter(region=region).values_list("local_development", flat=True)) == {True}


def routes_to(owner: Account, pool: Pool, region: Region, hostname: str, path: str) -> QuerySet[Route]:
    """Routes of the host that take the path and lead it to the pool, on load balancers with a fleet in the region."""
    names = [hostname, *wildcards_over(hostname)]
    prefixes = {"/", *(path[:end] for end, sign in enumerate(path) if sign == "/" and end), path}
    covering = Q(path_kind="exact", path=path) | Q(path_kind="prefix", path__in=prefixes)
    rows = Route.objects.filter(covering, hostname__name__in=names, hostname__released_at=None)
    rows = rows.filter(pools__pool=pool, pools__weight__gt=0, load_balancer__fleets__region=region)
    return (rows if owner.is_operator else rows.filter(account=owner)).distinct()


def testable_hostnames(account: Account) -> list[str]:
    """Names of the account's routes that it may load now, for choosing from; a wildcard stands for what is below it."""
    rows = Hostname.objects.filter(released_at=None).exclude(verification="")
    if not account.is_operator:
        rows = rows.filter(account=account)
    names = rows.filter(routes__isnull=False).distinct().order_by("name").values_list("name", flat=True)
    return [name for name in names[:1000] if account.is_operator or may_load_test(account, name)]
