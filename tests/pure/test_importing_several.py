"""Several files are one import: all manifests are read together, and every line says in which file it stands."""

from __future__ import annotations

from apps.importing.formats import FORMATS, configuration_of, divided
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.nginx.reading import read_nginx
from apps.importing.nginx.text.tree import Tree
from apps.importing.options import ImportOptions
from apps.importing.values import parsing
from apps.importing.verdicts import Ledger, Verdict

INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, annotations: {nginx.ingress.kubernetes.io/auth-url: "https://sso.example.com"}}
spec:
  ingressClassName: nginx
  rules:
    - host: shop.example.com
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
"""
OPEN = INGRESS.replace(', annotations: {nginx.ingress.kubernetes.io/auth-url: "https://sso.example.com"}', "")
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: web}
subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 8080}]}]
"""


def status_of(files: dict[str, str]) -> object:
    (route,) = (each for each in read_kubernetes("", files, ImportOptions()).documents if each["kind"] == "Route")
    return route["spec"]["action"].get("fixed_response", {}).get("status")


def test_an_object_of_one_file_is_found_by_those_of_another_and_each_line_says_its_file() -> None:
    found = read_kubernetes("", {"b/ingress.yaml": OPEN, "a/web.yaml": SERVICE}, ImportOptions())
    assert found.needs == ()
    (pool,) = (each for each in found.documents if each["kind"] == "Pool")
    assert "10.0.0.1" in str(pool)
    assert {line.file for line in found.report} == {"a/web.yaml", "b/ingress.yaml"}
    together = read_kubernetes(f"{SERVICE}---\n{OPEN}", {}, ImportOptions())
    assert found.documents == together.documents
    assert len(found.report) == len(together.report)


def test_of_an_object_that_stands_in_two_files_the_last_one_counts_and_the_other_is_dead() -> None:
    assert status_of({"1.yaml": OPEN, "2.yaml": INGRESS, "web.yaml": SERVICE}) == 503
    assert status_of({"1.yaml": INGRESS, "2.yaml": OPEN, "web.yaml": SERVICE}) is None, "as kubectl apply has it"
    report = read_kubernetes("", {"1.yaml": INGRESS, "2.yaml": OPEN, "web.yaml": SERVICE}, ImportOptions()).report
    dead = [line for line in report if line.file == "1.yaml"]
    assert {line.verdict for line in dead} == {Verdict.DEAD}
    assert "2.yaml" in dead[0].reasons[0]


def test_a_file_that_cannot_be_read_is_named_and_nothing_is_made_of_the_others() -> None:
    found = read_kubernetes("", {"web.yaml": SERVICE, "x.yaml": "kind: [{{ .Values.kind }}"}, ImportOptions())
    assert found.documents == ()
    (line,) = found.report
    assert (line.file, line.verdict) == ("x.yaml", Verdict.NOT_POSSIBLE)


def test_the_ceiling_of_values_holds_for_all_files_together() -> None:
    count = parsing.Count()
    list(parsing.documents(SERVICE, count))
    one = count.values
    list(parsing.documents(SERVICE, count))
    assert count.values == 2 * one


def test_several_manifests_need_no_main_file_and_others_do() -> None:
    manifests = {"b.yaml": OPEN, "a.yaml": SERVICE}
    assert configuration_of(manifests, None) == "a.yaml"
    assert divided(FORMATS["kubernetes"], "a.yaml", manifests) == ("", manifests)
    assert divided(FORMATS["kubernetes"], "a.yaml", {"a.yaml": SERVICE}) == (SERVICE, {})
    two = {"a.cfg": "frontend a\n", "b.cfg": "frontend b\n"}
    assert configuration_of(two, None) == ""
    assert configuration_of(manifests | two, None) == "", "two formats are two imports"


def test_files_of_an_include_folder_say_where_their_lines_stand() -> None:
    files = {
        "sites-enabled/shop.conf": "server { listen 80; server_name a.example.com; proxy_pass_x 1;\n"
        "location / { proxy_pass http://10.0.0.1:80; } }",
        "sites-enabled/wiki.conf": "server { listen 80; server_name b.example.com;\n"
        "location / { proxy_pass http://10.0.0.2:80; } }",
    }
    found = read_nginx("http { include /etc/nginx/sites-enabled/*.conf; }", files, ImportOptions())
    assert [each["spec"]["hostname"] for each in found.documents if each["kind"] == "Route"].count("*") <= 1
    assert {line.file for line in found.report} == {"", *files}
    (unknown,) = (line for line in found.report if "proxy_pass_x" in line.text)
    assert (unknown.file, unknown.verdict) == ("sites-enabled/shop.conf", Verdict.NOT_POSSIBLE)


def test_directives_of_several_names_come_in_the_order_of_the_file() -> None:
    root = Tree("deny a; allow b; deny c; gzip on;", {}, Ledger()).root
    assert [each.args[0] for each in root.each("allow", "deny")] == ["a", "b", "c"]
    assert [each.args[0] for each in root.each("deny", "satisfy")] == ["a", "c"]
    assert list(root.each("satisfy", "auth_basic")) == []


def test_paths_of_many_hosts_in_one_ingress_get_a_name_each() -> None:
    rule = INGRESS.splitlines()[-2:]
    rules = "\n".join("\n".join(rule).replace("shop.", f"shop-{at}.") for at in range(20))
    ingress = "\n".join([*OPEN.splitlines()[:-2], rules])
    found = read_kubernetes(f"{SERVICE}---\n{ingress}\n", {}, ImportOptions())
    names = [each["name"] for each in found.documents if each["kind"] == "Route"]
    assert len(set(names)) == len(names) == 20
    assert names[:3] == ["default-shop", "default-shop-2", "default-shop-3"]
