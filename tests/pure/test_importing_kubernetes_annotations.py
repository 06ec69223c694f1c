"""Annotations of Ingresses that do nothing, that ask for what is not in the file, and snippets that say the usual."""

from __future__ import annotations

import pytest

from apps.importing.verdicts import Verdict
from tests.pure.test_importing_kubernetes import annotated, ingress, read, routes, said

USUAL = """proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection "upgrade";
proxy_set_header Host $host;
proxy_set_header X-Forwarded-Proto $scheme;
"""


@pytest.mark.parametrize(
    "name",
    ["ingress.kubernetes.io/ssl-redirect", "nginx.kubernetes.io/proxy-body-size", "dashboard.example/name", "class"],
)
def test_what_ingress_nginx_does_not_read_does_nothing(name: str) -> None:
    found = annotated("ssl-redirect", "true")
    found["metadata"]["annotations"][name] = "x"
    assert said(read(found), name)[0] is Verdict.DEAD


def test_a_name_that_may_keep_somebody_out_closes_its_paths_whoever_reads_it() -> None:
    found = read(annotated("a.example/allowlist", "192.0.2.0/24"))
    assert said(found, "a.example/allowlist")[0] is Verdict.NOT_POSSIBLE
    assert [route[-1] for route in routes(found)] == [503]


def test_users_that_are_not_in_the_file_are_asked_for_and_nobody_comes_in_until_then() -> None:
    found = read(ingress(auth_type="basic", auth_secret="users", auth_realm="Shop"))
    assert [said(found, each)[0] for each in ("auth-type", "auth-realm")] == [Verdict.MAPPED] * 2
    verdict, why = said(found, "auth-secret")
    assert (verdict, "answer 503 until you add its manifest" in why) == (Verdict.DIFFERENT, True)
    assert [route[-1] for route in routes(found)] == [503]
    assert any("Secret default/users" in each for each in found.needs)


@pytest.mark.parametrize("annotation", ["configuration-snippet", "server-snippet"])
def test_a_snippet_that_says_what_nodes_do_says_nothing_more(annotation: str) -> None:
    found = read(annotated(annotation, USUAL))
    assert said(found, annotation)[0] is Verdict.MAPPED
    assert "request_headers" not in str(found.documents)


@pytest.mark.parametrize(
    ("name", "value", "usual"),
    [
        ("alb.ingress.kubernetes.io/listen-ports", '[{"HTTP": 80}, {"HTTPS":443}]', True),
        ("alb.ingress.kubernetes.io/listen-ports", '[{"HTTPS": 8443}]', False),
        ("kubernetes.io/ingress.allow-http", "true", True),
        ("kubernetes.io/ingress.allow-http", "false", False),
    ],
)
def test_ports_that_a_load_balancer_has_anyhow_need_no_word(name: str, value: str, usual: bool) -> None:
    found = annotated(name, value)
    found["spec"]["ingressClassName"] = "alb"
    assert said(read(found), name)[0] is (Verdict.MAPPED if usual else Verdict.NOT_POSSIBLE)
