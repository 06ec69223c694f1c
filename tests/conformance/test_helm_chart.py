"""The chart, rendered by helm: Kubernetes' own schema takes every object, and what runs is what systemd would run.

helm is a program in Go, built below `var/` from `helm/go.mod`; without Go or the proxy of its modules the tests are
skipped. No cluster is asked.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from controlplane import environment, settings  # noqa: F401 - reading the settings fills what is known
from controlplane.admin import findings
from tests.architecture.sources import ROOT
from tests.conformance.kubernetes_schemas import definitions, schema_of
from tests.golang import CACHE, go

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(1800)]
MODULE = Path(__file__).with_name("helm")
PROGRAM = CACHE / "bin" / "helm"
BUILT_IN_S = 1500
CHART = ROOT / "deploy" / "helm" / "spillway"
LEAST = {
    "host": "console.example",
    "existingSecret": "spillway",
    "settings": {"SPILLWAY_LOGS_URL": "logs+s3://lines?region=eu-central-1"},
}
EVERYTHING = {
    **LEAST,
    "logs": {"existingClaim": "lines"},
    "consoleCa": {"existingSecret": "console-tls", "key": "tls.crt"},
    "agentCertificates": {"existingSecret": "agents"},
    "programs": {"terraform": {"replicas": 1}},
    "ingress": {"enabled": True, "className": "haproxy", "tlsSecret": "console-tls"},
    "trustedProxies": ["10.0.0.0/8", "fd00::/8"],
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "console", "operator": "Exists"}],
    "podAnnotations": {"a": "b"},
}
CASES: dict[str, Mapping[str, Any]] = {"least": LEAST, "everything": EVERYTHING}
Document = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    """The program is there."""
    built = go("build", "-o", str(PROGRAM), "helm.sh/helm/v3/cmd/helm", cwd=MODULE, patience_s=BUILT_IN_S)
    if isinstance(built, str) or built.returncode:
        pytest.skip(f"helm was not built. {built if isinstance(built, str) else built.stderr[-300:]}")


def helm(*words: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """What helm said to the chart with these values."""
    command = [str(PROGRAM), *words, str(CHART), "--kube-version", "1.35.0", "--values", "-"]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False, timeout=60)


def rendered(values: Mapping[str, Any]) -> list[Document]:
    """Every object."""
    done = helm("template", "front", values=values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def of_kind(kind: str, found: list[Document]) -> dict[str, Document]:
    """Those of a kind, by the last word of their names."""
    return {each["metadata"]["name"].removeprefix("front-spillway-"): each for each in found if each["kind"] == kind}


def containers(found: list[Document]) -> list[Document]:
    """Every container of every pod."""
    pods = [each["spec"]["template"]["spec"] for each in found if each["kind"] in ("Deployment", "Job")]
    return [container for pod in pods for container in pod["containers"]]


@pytest.mark.parametrize("case", CASES)
def test_helm_finds_nothing_to_complain_of(case: str) -> None:
    done = helm("lint", "--strict", values=CASES[case])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES)
def test_kubernetes_takes_every_object(case: str) -> None:
    known = definitions()
    if isinstance(known, str):
        pytest.skip(known)
    found = rendered(CASES[case])
    assert len(found) >= 12
    for each in found:
        jsonschema.Draft4Validator(schema_of(each, known)).validate(each)
    first = {**found[0], "spec": {"replica": 1}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(schema_of(first, known)).validate(first)


def test_every_program_runs_and_none_that_is_not_wanted() -> None:
    programs = {"worker", "webhook-worker", "schedule", "collector", "log-collector", "loadgen"}
    assert set(of_kind("Deployment", rendered(LEAST))) == {"console", *programs}
    assert set(of_kind("Deployment", rendered(EVERYTHING))) == {"console", "terraform", *programs}
    words = [each["args"][0] for each in containers(rendered(EVERYTHING))]
    assert sorted(words) == sorted(["front", "web", "events", "migrate", "terraform", *programs])


@pytest.mark.parametrize("case", CASES)
def test_no_container_has_more_rights_than_it_needs(case: str) -> None:
    found = rendered(CASES[case])
    for each in containers(found):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        written = {mount["mountPath"] for mount in each["volumeMounts"] if not mount.get("readOnly")}
        assert written <= {"/tmp", "/run/spillway", "/var/lib/spillway", "/var/lib/spillway-logs"}
    for each in found:
        if each["kind"] in ("Deployment", "Job"):
            pod = each["spec"]["template"]["spec"]
            assert pod["automountServiceAccountToken"] is False
            assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)


@pytest.mark.parametrize("case", CASES)
def test_each_setting_is_known_has_its_shape_and_is_no_secret(case: str) -> None:
    given = {(each["name"], each["value"]) for one in containers(rendered(CASES[case])) for each in one.get("env", ())}
    assert {"SPILLWAY_ALLOWED_HOSTS", "SPILLWAY_ORIGINS", "SPILLWAY_STATE_URL"} <= {name for name, _ in given}
    for name, value in given:
        known = environment.KNOWN.get(name)
        assert known is not None or name in findings.ALSO_KNOWN, name
        if known is not None:
            assert not known.secret, name
            assert (known.optional and not value) or known.shape.fits(value), name


def test_the_database_is_brought_to_this_version_before_anything_starts() -> None:
    job = of_kind("Job", rendered(LEAST))["migrate"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    pod = job["spec"]["template"]["spec"]
    assert "serviceAccountName" not in pod, "the account of the chart is made after the hook"
    assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "spillway"}}]


def test_the_service_leads_to_the_port_where_the_front_listens_and_nothing_else_is_open() -> None:
    found = rendered(EVERYTHING)
    (front, *_) = of_kind("Deployment", found)["console"]["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each["value"] for each in front["env"]}
    (port,) = front["ports"]
    assert given == {"SPILLWAY_BIND": f":{port['containerPort']}", "SPILLWAY_TRUSTED_PROXIES": "10.0.0.0/8 fd00::/8"}
    services = [each for each in found if each["kind"] == "Service"]
    assert [each["spec"]["ports"][0]["targetPort"] for each in services] == [port["name"]]
    labels = of_kind("Deployment", found)["console"]["spec"]["template"]["metadata"]["labels"]
    assert services[0]["spec"]["selector"].items() <= labels.items()
    policies = [each["spec"] for each in found if each["kind"] == "NetworkPolicy"]
    opened = [each for each in policies if each["ingress"]]
    assert len(policies) == 2
    assert [each["ingress"][0]["ports"][0]["port"] for each in opened] == [port["name"]]
    assert opened[0]["podSelector"]["matchLabels"].items() <= labels.items()


def test_what_runs_twice_may_not_be_taken_away_at_once() -> None:
    found = rendered(EVERYTHING)
    twice = {name for name, each in of_kind("Deployment", found).items() if each["spec"]["replicas"] > 1}
    assert set(of_kind("PodDisruptionBudget", found)) == twice == {"console", "worker", "collector"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({**LEAST, "settings": {"SPILLWAY_LOG_LEVELS": "INFO"}}, "SPILLWAY_LOG_LEVELS"),
        ({**LEAST, "settings": {"SPILLWAY_SECRET_KEY": "k" * 40}}, "SPILLWAY_SECRET_KEY"),
        ({**LEAST, "settings": {"SPILLWAY_LOADGEN_THREADS": 8}}, "SPILLWAY_LOADGEN_THREADS"),
        ({**LEAST, "replicas": 3}, "replicas"),
        ({**LEAST, "programs": {"beat": {"replicas": 1}}}, "beat"),
        ({**LEAST, "host": "https://console.example"}, "host"),
        ({**LEAST, "host": ""}, "host"),
        ({**LEAST, "existingSecret": ""}, "existingSecret"),
        ({**LEAST, "trustedProxies": ["10.0.0.0/8 evil"]}, "trustedProxies"),
        ({**LEAST, "settings": {}}, "Say where request lines are kept"),
    ],
)
def test_what_the_chart_does_not_know_is_refused_by_its_name(values: Mapping[str, Any], said: str) -> None:
    done = helm("template", "front", values=values)
    assert done.returncode != 0
    assert said in done.stderr
