"""Manifests of a load balancer, read by our own importer: on real HAProxy they answer what the nodes answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
import yaml
from django.db import transaction

from apps.accounts.actors import Actor
from apps.compiler.checks.snapshot import examine
from apps.compiler.compile import compile_snapshot
from apps.compiler.matching.hosts import covers
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.portability.standalone import alone
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import apply_document
from apps.exporting.contract import Export
from apps.exporting.gateway import filters, listeners, routes, rules
from apps.exporting.gateway.filters import Filters
from apps.exporting.gateway.writing import FILE, SECRETS, gateway_manifests
from apps.fleet.models import Fleet
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import Request
from apps.importing.replay.stubs import stub_servers
from tests.conformance.exported import CASES, answer, asked, decided_by, names_of_pools, on_stubs, snapshot
from tests.conformance.gateway_api.definitions import schemas
from tests.conformance.kubernetes_schemas import definitions, schema_of
from tests.conformance.test_importing_kubernetes import NAME, TOPOLOGY
from tests.e2e.rendered_proxy import running

pytestmark = [pytest.mark.django_db, pytest.mark.processes]
ADDRESS = re.compile(r"  - type: IPAddress\n    value: '?([0-9a-f.:]+)")
CLOSED = rules.CLOSED.partition("(")[0]
# What changes an answer; all else that is not said does not.
OTHERWISE = (
    CLOSED, *(why.partition("(")[0] for why in (rules.WIDER, rules.LEFT_OUT)), rules.RESPONSES, routes.TWICE,
    filters.QUERIES, filters.VARIABLES, filters.VARIABLES_BACK, filters.CACHING, filters.ASIDE["error_pages"],
    filters.ASIDE["client_limit"], listeners.ASIDE["default_certificate_id"],
)  # fmt: skip
# The rest of them is asked in test-all.
QUICK = ("conditions_and_wildcards", "policies", "routes_of_one_scheme")
CHOSEN = [
    case if case.name in QUICK else pytest.param(case, marks=pytest.mark.exhaustive, id=case.name) for case in CASES
]
# Of https alone on nodes; browsers ignore it over http.
SET_EVERYWHERE = "response header strict-transport-security"


def read_again(actor: Actor, export: Export) -> Snapshot:
    """The snapshot of what the importer makes of the manifests; nothing stays stored."""
    text = export.files[FILE].decode() + export.files.get(SECRETS, b"").decode()
    found = ADDRESS.findall(text)
    addresses = {address: f"address-{number}" for number, address in enumerate(found)}
    options = ImportOptions(fleets=(NAME,), region=NAME, local_development=True, addresses=addresses)
    imported = read_kubernetes(text, {}, options)
    assert not imported.needs
    ips = [{"kind": "StaticIP", "name": name, "spec": {"address": address}} for address, name in addresses.items()]
    with transaction.atomic():
        apply_document(actor=actor, objects=[*TOPOLOGY, *ips, *imported.documents])
        made = snapshot_of(Fleet.objects.get(name=NAME))
        transaction.set_rollback(True)
    return made


@dataclass(frozen=True, slots=True)
class Sides:
    """The nodes of a golden document, and those of what came back; ports of http by those that were meant."""

    front: LoadBalancer
    export: Export
    before: Mapping[int, int]
    after: Mapping[int, int]

    def difference(self, request: Request) -> list[str]:
        """What is answered otherwise."""
        found = answer(self.front, request, self.before).differences(answer(self.front, request, self.after))
        winner = decided_by(self.front, request)
        drawn = ("pool: ",) if winner and len(winner.pools) > 1 else ()
        return [each for each in found if not each.startswith((SET_EVERYWHERE, *drawn))]

    def unsaid(self) -> dict[str, list[str]]:
        """Requests that are answered otherwise although nothing of the export says so."""
        chosen = [each for each in asked(self.front) if each.port in self.after and not self.reasons(each)]
        with ThreadPoolExecutor(8) as threads:
            found = zip(chosen, threads.map(self.difference, chosen), strict=True)
            return {str(request): different for request, different in found if different}

    def opened(self) -> list[str]:
        """Requests of which the export says that they are closed, and that get something else than 500."""
        closed = [each for each in asked(self.front) if any(why.startswith(CLOSED) for why in self.reasons(each))]
        return [str(each) for each in closed if answer(self.front, each, self.after).status != 500]

    def reasons(self, request: Request) -> list[str]:
        """What the export says of why the request is answered otherwise."""
        winner, host, port = decided_by(self.front, request), request.host, request.port
        labels = {f"route {winner.label}"} if winner else set()
        labels |= {f"listener {each.label}" for each in self.front.listeners if each.port == port and each.speaks_tls}
        below = [each for each in self.front.routes
                 if each.hostname.startswith("*.") and host.endswith(each.hostname[1:])]  # fmt: skip
        wide = {f"route {route.label}" for route in below if not covers(route.hostname, host)}
        return [
            said.why for said in self.export.not_said
            if (said.why.startswith(OTHERWISE) and labels & {*said.objects})
            or (said.why == routes.ONE and wide & {*said.objects})
        ]  # fmt: skip


@contextmanager
def both(actor: Actor, golden: Snapshot, front_id: str, folder: Path) -> Iterator[Sides]:
    """Run both."""
    with stub_servers(names_of_pools(golden)) as stubs:
        before = alone(on_stubs(golden, stubs), front_id)
        export = gateway_manifests(before, front_id)
        first, second = compile_snapshot(before), compile_snapshot(read_again(actor, export))
        assert second.left_out == ()
        for name in ("before", "after"):
            (folder / name).mkdir()
        with running(first.output, folder / "before") as old, running(second.output, folder / "after") as new:
            ports = {bind.port: old.ports[bind.listener_id] for bind in first.output.binds}
            now = {bind.port: new.ports[bind.listener_id] for bind in second.output.binds}
            yield Sides(examine(before).accepted.load_balancers[0], export, ports, now)


@pytest.mark.slow(reason="two HAProxies are asked hundreds of times")
@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: getattr(case, "name", ""))
def test_manifests_that_come_back_are_answered_equally_or_say_why_not(
    operator: Actor, case: Path, tmp_path: Path
) -> None:
    golden = snapshot(case)
    for front in golden.load_balancers:
        (tmp_path / front.id).mkdir()
        with both(operator, golden, front.id, tmp_path / front.id) as sides:
            assert sides.unsaid() == {}
            assert sides.opened() == []


@pytest.mark.slow(reason="two HAProxies are started")
def test_a_rule_that_gets_lost_is_noticed(operator: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without what closes routes, a request is served that nodes refuse."""
    golden = next(case for case in CASES if case.name == "policies")
    monkeypatch.setattr("apps.exporting.gateway.rules.filters_of", lambda *_: Filters())
    with both(operator, snapshot(golden), "lb-1", tmp_path) as sides:
        assert sides.unsaid() != {}


@pytest.mark.exhaustive
@pytest.mark.slow(reason="the definitions are read out of two Go modules")
def test_the_cluster_s_definitions_take_every_manifest() -> None:
    known, core = schemas(), definitions()
    if isinstance(known, str) or isinstance(core, str):
        pytest.skip(f"{known if isinstance(known, str) else core}")
    kinds = set()
    for case in CASES:
        golden = snapshot(case)
        for front in golden.load_balancers:
            files = gateway_manifests(golden, front.id).files
            for manifest in (each for text in files.values() for each in yaml.safe_load_all(text)):
                key = manifest["apiVersion"], manifest["kind"]
                jsonschema.validate(manifest, known[key] if key in known else schema_of(manifest, core))
                kinds.add(manifest["kind"])
    assert kinds >= {"Gateway", "HTTPRoute", "TCPRoute", "TLSRoute", "Service", "EndpointSlice", "Secret"}


@pytest.mark.exhaustive
def test_a_field_that_the_definitions_do_not_have_is_refused() -> None:
    """The control."""
    known = schemas()
    if isinstance(known, str):
        pytest.skip(known)
    route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "x"}}
    schema = known["gateway.networking.k8s.io/v1", "HTTPRoute"]
    jsonschema.validate({**route, "spec": {"hostnames": ["a.example"]}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**route, "spec": {"hosts": ["a.example"]}}, schema)
