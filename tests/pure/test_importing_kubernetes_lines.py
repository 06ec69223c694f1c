"""Every field of a manifest has one verdict, whatever it is; and YAML that somebody hostile wrote does no harm."""

from __future__ import annotations

import copy
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.definitions.reading.documents import read_object
from apps.importing.contract import Import
from apps.importing.formats import recognised
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.masking import without_secrets
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Verdict
from tests.manifests import tls_secret

CORPUS = Path(__file__).resolve().parents[1] / "import"
FILES = sorted((CORPUS / "kubernetes").glob("*.yaml"))
UNKNOWN = (Verdict.NOT_POSSIBLE, Verdict.NODE_SETTING, Verdict.DEAD)
SEED = 20251124


def read(text: str) -> Import:
    return read_kubernetes(text, {}, ImportOptions())


def leaves(value: Any) -> int:
    """How many values hold no other one."""
    if isinstance(value, dict) and value:
        return sum(leaves(each) for each in value.values())
    if isinstance(value, list) and value:
        return sum(leaves(each) for each in value)
    return 1


def mappings(value: Any) -> list[dict[str, Any]]:
    """Every mapping in a value, itself first."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(found for each in inside for found in mappings(each))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_value_of_the_corpus_has_one_verdict_and_every_object_is_valid(path: Path) -> None:
    found = read(path.read_text())
    values = [each for each in yaml.load_all(path.read_text(), yaml.CSafeLoader) if each is not None]
    assert len(found.report) == sum(leaves(each) for each in values)
    for line in found.report:
        assert line.verdict is Verdict.MAPPED or line.reasons, f"{line.number} {line.text}"
        assert line.reasons != ("This line was not read.",)
        assert path.read_text().splitlines()[line.number - 1].strip(), "the line of the key"
    for document in found.documents:
        read_object(document)
    assert len({(each["kind"], each["name"]) for each in found.documents}) == len(found.documents)


@pytest.mark.parametrize("times", [3, pytest.param(30, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_field_that_nobody_knows_is_reported_wherever_it_stands(path: Path, times: int) -> None:
    chance = random.Random(f"{SEED} {path.name}")
    for number in range(times):
        values = [each for each in yaml.load_all(path.read_text(), yaml.CSafeLoader) if each is not None]
        chance.choice(mappings(chance.choice(values)))[f"frobnicate{number}"] = "seventeen"
        found = read(yaml.dump_all(values, Dumper=yaml.CSafeDumper, sort_keys=False))
        (line,) = [each for each in found.report if each.text.endswith(f"frobnicate{number}: seventeen")]
        assert line.verdict in UNKNOWN, line
        assert len(found.report) == sum(leaves(each) for each in values)


@pytest.mark.parametrize("kind", ["Ingress", "HTTPRoute", "Service", "Gateway"])
def test_an_annotation_that_nobody_knows_is_not_possible(kind: str) -> None:
    found = read(f"apiVersion: x/v1\nkind: {kind}\nmetadata:\n  name: a\n  annotations:\n    example.com/odd: 'yes'\n")
    (line,) = [each for each in found.report if each.text == "example.com/odd: yes"]
    assert (line.number, line.section, line.verdict) == (6, f"{kind} default/a", Verdict.NOT_POSSIBLE)


@pytest.mark.parametrize(
    ("name", "verdict", "why"),
    [
        ("nginx.ingress.kubernetes.io/rate-limit", Verdict.DEAD, "no such annotation"),
        ("nginx.ingress.kubernetes.io/proxy-cookie-path", Verdict.NOT_POSSIBLE, "Cookies"),
        ("nginx.ingress.kubernetes.io/influxdb-host", Verdict.NOT_POSSIBLE, "not known"),
        ("alb.ingress.kubernetes.io/scheme", Verdict.NODE_SETTING, "Fleets"),
        ("alb.ingress.kubernetes.io/healthcheck-path", Verdict.NOT_POSSIBLE, "health_check"),
        ("alb.ingress.kubernetes.io/inbound-cidrs", Verdict.NOT_POSSIBLE, "keep somebody out"),
        ("networking.gke.io/managed-certificates", Verdict.NOT_POSSIBLE, "Name a certificate"),
        ("konghq.com/plugins", Verdict.NOT_POSSIBLE, "this controller"),
    ],
)
def test_annotations_of_other_controllers_say_what_stands_instead(name: str, verdict: Verdict, why: str) -> None:
    found = read(f"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  annotations:\n    {name}: '1'\n")
    (line,) = [each for each in found.report if each.text == f"{name}: 1"]
    assert line.verdict is verdict
    assert why in line.reasons[0]


def test_what_the_cluster_writes_is_no_loss() -> None:
    counts = Counter(line.verdict for line in read((CORPUS / "kubernetes" / "12-list.yaml").read_text()).report)
    assert counts[Verdict.NODE_SETTING] > counts[Verdict.NOT_POSSIBLE] > 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [1, 2", "no YAML"),
        ("a: 1\n\tb: 2", "no YAML"),
        ("[" * 5000 + "]" * 5000, "nested deeper"),
        ("a: &a {b: 1}\nc: {<<: *a}", "Merge keys"),
        ("? [a]\n: b", "list or a mapping"),
        ("a: !!python/object/apply:os.system ['id']\nkind: [", "no YAML"),
        ("a: *nobody", "no YAML"),
        ("a: \x00", "no YAML"),
        ("a: \udc80", "UTF-8"),
        ("{{- if .Values.on }}\nkind: Ingress\n{{- end }}", "render it first"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_line(text: str, why: str) -> None:
    found = read(text)
    (line,) = found.report
    assert (line.verdict, found.documents) == (Verdict.NOT_POSSIBLE, ())
    assert why in line.reasons[0]


def test_a_tag_makes_no_object_of_ours() -> None:
    found = read("kind: Ingress\na: !!python/object/apply:os.system ['id']\n")
    assert [each.text for each in found.report] == ["kind: Ingress", "a[0]: id"]


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_would_become_millions_are_refused_at_once() -> None:
    began = time.monotonic()
    (line,) = read(bomb(9)).report
    assert "Anchors" in line.reasons[0]
    assert len(read(bomb(2)).report) == 9 + 81, "a few are read"
    assert time.monotonic() - began < 20
    assert "Anchors" in read("a: &a [*a]").report[0].reasons[0]


@pytest.mark.parametrize("text", ["", "---\n---\n", "5", "[]", "- a\n- b\n", "kind: Ingress", "null", "kind: {}\n"])
def test_what_is_no_object_is_reported_and_makes_nothing(text: str) -> None:
    found = read(text)
    assert [each for each in found.documents if each["kind"] != "LoadBalancer"] == []
    assert all(line.verdict is not Verdict.MAPPED for line in found.report)


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("wrong", [None, 5, "x", [], {}, [5], {"a": 5}, True])
def test_a_field_of_another_shape_is_never_an_error(wrong: Any, times: int) -> None:
    for path in FILES:
        values = [each for each in yaml.load_all(path.read_text(), yaml.CSafeLoader) if each is not None]
        chance = random.Random(f"{SEED} {path.name} {wrong}")
        for _ in range(times):
            holder = chance.choice([each for value in values for each in mappings(value) if each])
            holder[chance.choice(list(holder))] = copy.deepcopy(wrong)
            found = read(yaml.dump_all(values, Dumper=yaml.CSafeDumper, sort_keys=False))
            for document in found.documents:
                read_object(document)


def test_of_two_equal_keys_the_last_counts_and_the_first_is_dead() -> None:
    found = read("kind: Ingress\nkind: Service\napiVersion: v1\n")
    assert (found.report[0].text, found.report[0].verdict) == ("kind: …", Verdict.DEAD)


def test_no_secret_is_in_the_report() -> None:
    text = tls_secret("a", "b", "x.example.com") + (
        "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: c\n  annotations:\n"
        '    kubectl.kubernetes.io/last-applied-configuration: \'{"data": {"auth": "correct-horse"}}\'\n'
        "stringData: {auth: correct-horse, 'odd key': correct-horse}\n"
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec:\n  rules:\n"
        "  - filters:\n    - type: RequestHeaderModifier\n"
        "      requestHeaderModifier: {set: [{name: X-Api-Key, value: correct-horse}]}\n"
        "---\nkind: ConfigMap\ndata: {key: '-----BEGIN EC PRIVATE KEY----- correct-horse'}\n"
        "---\nkind: Ingress\nmetadata:\n  annotations:\n"
        "    nginx.ingress.kubernetes.io/configuration-snippet: correct-horse\n"
    )
    told = repr(without_secrets(read(text)).report)
    assert "correct-horse" not in told
    assert "LS0tLS1CRUdJTi" not in told
    assert "PRIVATE KEY" not in told


def test_manifests_are_recognised_and_haproxy_cfg_is_not_taken_for_one() -> None:
    for path in FILES:
        found = recognised("a.txt", path.read_text())
        assert found is not None
        assert found.name == "kubernetes"
    for path in (CORPUS / "corpus").glob("*.cfg"):
        other = recognised("a.txt", path.read_text())
        assert other is not None
        assert other.name == "haproxy"
