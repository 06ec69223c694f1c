"""The manifests of the Gateway API's own conformance cases, imported, and asked what documents of ours are asked."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import transaction

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import apply_document
from apps.fleet.models import Fleet
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.options import ImportOptions
from tests.conformance.gateway_api.asking import check
from tests.conformance.gateway_api.backends import running_backends
from tests.conformance.gateway_api.cases import Ask, Case, cases
from tests.conformance.gateway_api.documents import Environment
from tests.conformance.gateway_api.suite import archive, manifests_in
from tests.conformance.test_importing_kubernetes import NAME, TOPOLOGY
from tests.e2e.rendered_proxy import running

pytestmark = [pytest.mark.django_db, pytest.mark.processes, pytest.mark.exhaustive]
# Cases that an import cannot answer as its file stands, with the reason.
OTHERWISE = {
    "BackendTLSPolicy": "its authorities are made while the case runs",
    "BackendTLSPolicyConflictResolution": "its authorities are made while the case runs",
    "BackendTLSPolicyInvalidCACertificateRef": "its authorities are asked for",
    "BackendTLSPolicyInvalidKind": "its authorities are asked for",
    "BackendTLSPolicySANValidation": "its authorities are made while the case runs",
    "HTTPRoute303Redirect": "the redirect leads to itself, so it gets 500",
    "HTTPRoute307Redirect": "the redirect leads to itself, so it gets 500",
    "HTTPRoute308Redirect": "the redirect leads to itself, so it gets 500",
    "HTTPRouteCORS": "credentials for any origin are not allowed, which is said",
    "HTTPRouteInvalidNonExistentBackendRef": "servers of a Service that is not in the file are asked for",
    "HTTPRouteRedirectHostAndStatus": "the redirect may lead to itself, so the plan refuses it",
    "HTTPRouteRedirectPortAndScheme": "the redirect may lead to itself, so the plan refuses it",
    "HTTPRouteReferenceGrant": "the grant is taken back while the case runs",
    "HTTPRouteRetry": "our documents are asked more than the case",
    "HTTPRouteRetryConnectionError": "our documents are asked more than the case",
    "HTTPRouteRetryWithRequestTimeout": "our documents are asked more than the case",
    "HTTPRouteRuleOrder": "servers of a Service that is not in the file are asked for",
    "HTTPRouteServiceTypes": "its servers are made while the case runs",
}


def plain(case: Case) -> list[Ask]:
    """What is asked without TLS."""
    return [each for each in case.asks if not (each.tls or each.grpc or each.websocket)]


ASKED = [each for each in cases() if plain(each) and len(each.gateways) == 1 and each.name not in OTHERWISE]


@pytest.fixture(scope="module")
def manifests() -> tuple[str, dict[str, str]]:
    found = archive()
    if isinstance(found, str):
        pytest.skip(found)
    return manifests_in(found)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    with running_backends(tmp_path_factory.mktemp("backends")) as found:
        yield found


def documents_of(base: str, case: str, environment: Environment) -> list[dict[str, Any]]:
    """What becomes of the case's file and of those Gateways and Services that it names, on the servers of tests."""
    own = [each for each in yaml.safe_load_all(case) if each]
    named = {ref["name"] for each in own for ref in each.get("spec", {}).get("parentRefs", ())}
    beside = [each for each in yaml.safe_load_all(base) if each and _is_needed(each, named)]
    servers = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}:{port['port']}": "10.0.0.1:80"
        for each in (*beside, *own) if each["kind"] == "Service" for port in each["spec"]["ports"]
    }  # fmt: skip
    text = yaml.safe_dump_all([*beside, *own], sort_keys=False)
    found = read_kubernetes(text, {}, ImportOptions(fleets=(NAME,), region=NAME, servers=servers))
    documents = [each for each in found.documents if each["kind"] != "Certificate"]
    for each in documents:
        if each["kind"] == "LoadBalancer":
            each["spec"]["listeners"] = [one for one in each["spec"]["listeners"] if one["protocol"] == "http"]
        if each["kind"] == "Pool":
            name = max((one for one in environment.ports if f"-{one}-" in each["name"]), key=len, default="")
            at = {"name": "s", "address": "127.0.0.1", "port": environment.ports.get(name, 9)}
            each["spec"]["backends"][0]["servers"] = [at]
    return documents


def _is_needed(manifest: dict[str, Any], gateways: set[str]) -> bool:
    named = manifest["kind"] == "Gateway" and manifest["metadata"]["name"] in gateways
    return named or manifest["kind"] in ("Namespace", "Service")


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_each_case_is_answered_as_its_manifests_say(
    operator: Actor, manifests: tuple[str, dict[str, str]], environment: Environment, case: Case, tmp_path: Path
) -> None:
    base, texts = manifests
    if case.name not in texts:
        pytest.skip("The case makes its objects while it runs.")
    documents = documents_of(base, texts[case.name], environment)
    with transaction.atomic():
        apply_document(actor=operator, objects=[*TOPOLOGY, *documents])
        snapshot = snapshot_of(Fleet.objects.get(name=NAME))
        transaction.set_rollback(True)
    with running(compile_snapshot(snapshot).output, tmp_path) as proxy:
        (port,) = proxy.ports.values()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(check, plain(case), [port] * len(case.asks)))


def test_enough_cases_are_asked() -> None:
    assert len(ASKED) >= 25
    assert {each.name for each in cases()} > OTHERWISE.keys()
