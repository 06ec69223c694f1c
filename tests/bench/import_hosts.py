"""Bench of an import of many hosts by command: text to report, and on request what planning and storing it takes.

`python -m tests.bench.import_hosts [--hosts 10000] [--only map acl nginx ingress] [--store]`: a haproxy.cfg whose hosts
stand in a map, one with an ACL for each, an nginx.conf with a server for each, and Ingresses with a rule for each, all
over 100 backends. Each is read in a process of its own, and seconds are processor time of that process, as others use
the machine. `--store` makes the objects in an empty database as well (SQLite, or SPILLWAY_DATABASE_URL): as a plan,
which is undone, and then for good.
Goal: text to report below 20 s of a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from apps.importing.contract import Import
from apps.importing.formats import configuration_of, divided, recognised
from apps.importing.options import ImportOptions
from apps.importing.telling import report
from apps.importing.verdicts import Verdict
from tests.bench.compile import peak_mb
from tests.bench.tables import facts, table
from tests.servers import redis

HOSTS, BACKENDS, GOAL_S = 10_000, 100, 20.0
HEADS = ("configuration", "hosts", "lines", "objects", "read, s", "report, s", "plan, s", "apply, s", "peak, MB")
HAPROXY = """\
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend www
  bind :80
"""


def by_map(hosts: int) -> dict[str, str]:
    """haproxy.cfg and its map."""
    entries = "\n".join(f"h{at}.example.com b{at % BACKENDS}" for at in range(hosts))
    rule = "  use_backend %[req.hdr(host),lower,map(/etc/haproxy/hosts.map,b0)]\n"
    return {"haproxy.cfg": f"{HAPROXY}{rule}{_backends()}", "hosts.map": f"{entries}\n"}


def by_acl(hosts: int) -> dict[str, str]:
    """haproxy.cfg with two lines for each host."""
    rules = "".join(
        f"  acl h{at} hdr(host) -i h{at}.example.com\n  use_backend b{at % BACKENDS} if h{at}\n" for at in range(hosts)
    )
    return {"haproxy.cfg": f"{HAPROXY}{rules}  default_backend b0\n{_backends()}"}


def _backends() -> str:
    return "".join(
        f"backend b{at}\n  balance leastconn\n  server s1 10.0.{at}.1:8080 check\n  server s2 10.0.{at}.2:8080 check\n"
        for at in range(BACKENDS)
    )


def nginx(hosts: int) -> dict[str, str]:
    """nginx.conf with a block for each host."""
    upstreams = "".join(
        f"upstream b{at} {{\n  server 10.0.{at}.1:8080;\n  server 10.0.{at}.2:8080;\n}}\n" for at in range(BACKENDS)
    )
    servers = "".join(
        f"server {{\n  listen 80;\n  server_name h{at}.example.com;\n"
        f"  location / {{ proxy_pass http://b{at % BACKENDS}; }}\n}}\n"
        for at in range(hosts)
    )
    return {"nginx.conf": f"events {{}}\nhttp {{\n{upstreams}{servers}}}\n"}


def ingress(hosts: int) -> dict[str, str]:
    """One Ingress for each hundred hosts, and a Service with its endpoints for each backend."""
    documents = []
    for at in range(BACKENDS):
        named = f"metadata: {{name: b{at}}}\n"
        servers = f"addresses: [{{ip: 10.0.{at}.1}}, {{ip: 10.0.{at}.2}}]"
        documents += [
            f"apiVersion: v1\nkind: Service\n{named}spec: {{ports: [{{port: 80, targetPort: 8080}}]}}",
            f"apiVersion: v1\nkind: Endpoints\n{named}subsets: [{{{servers}, ports: [{{port: 8080}}]}}]",
        ]
    for first in range(0, hosts, 100):
        rules = "".join(
            f"  - host: h{at}.example.com\n    http:\n      paths:\n      - path: /\n        pathType: Prefix\n"
            f"        backend: {{service: {{name: b{at % BACKENDS}, port: {{number: 80}}}}}}\n"
            for at in range(first, min(first + 100, hosts))
        )
        documents.append(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\n"
            f"metadata: {{name: shop-{first}}}\nspec:\n  ingressClassName: nginx\n  rules:\n{rules}"
        )
    return {"cluster.yaml": "\n---\n".join(documents)}


WAYS: Mapping[str, Callable[[int], dict[str, str]]] = {"map": by_map, "acl": by_acl, "nginx": nginx, "ingress": ingress}


def measure(way: str, hosts: int, *, store: bool) -> list[str]:
    """The row of one configuration, of which every line and every host must be there."""
    files = WAYS[way](hosts)
    name = configuration_of(files, None)
    form = recognised(name, files[name])
    if form is None:
        raise SystemExit(f"{way}: the format is not recognised.")
    begun = time.process_time()
    found = form.read(*divided(form, name, files), ImportOptions(prefix="many-"))
    read = time.process_time()
    told = list(report(found, form.everywhere, every_line=True))
    done = time.process_time()
    _expect(way, hosts, found, told)
    stored = _stored(found) if store else ("–", "–")
    lines, objects = f"{len(found.report):,}", f"{len(found.documents):,}"
    seconds = (f"{read - begun:.1f}", f"{done - read:.1f}", *stored)
    return [way, f"{hosts:,}", lines, objects, *seconds, f"{peak_mb():.0f}"]


def _expect(way: str, hosts: int, found: Import, told: list[str]) -> None:
    """Nothing is cut off: hosts of the backend that takes all others need no route."""
    named = {str(each["spec"]["hostname"]) for each in found.documents if each["kind"] == "Route"}
    refused = [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]
    if found.needs or refused or len(named) < hosts - hosts // BACKENDS or len(told) < len(found.report):
        raise SystemExit(f"{way}: {len(named)} of {hosts} hosts, {len(refused)} lines not possible, {found.needs}")


def _stored(found: Import) -> tuple[str, str]:
    """Seconds to plan the objects and to store them, each in one transaction, in an empty database."""
    with tempfile.TemporaryDirectory(prefix="spillway-") as directory, redis(Path(directory)) as url:
        os.environ |= {"SPILLWAY_VAR": directory, "SPILLWAY_REDIS_URL": url, "SPILLWAY_LOG_LEVEL": "CRITICAL"}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
        import django

        django.setup()
        from django.core.management import call_command

        from apps.accounts.actors import platform_actor
        from apps.accounts.bootstrap import found_operator
        from apps.definitions.services import apply_document, plan_document

        call_command("migrate", verbosity=0)
        found_operator(username="bench", password="a password of the bench")
        region, fleet = ImportOptions().region, ImportOptions().fleets[0]
        topology = [
            {"kind": "Region", "name": region, "spec": {"title": "Bench"}},
            {"kind": "Fleet", "name": fleet, "spec": {"region": region}},
        ]
        apply_document(actor=platform_actor(), objects=topology)
        moments = [time.process_time()]
        plan_document(actor=platform_actor(), objects=list(found.documents))
        moments.append(time.process_time())
        apply_document(actor=platform_actor(), objects=list(found.documents))
        return f"{moments[1] - moments[0]:.1f}", f"{time.process_time() - moments[1]:.1f}"


def main() -> int:
    """Print a table; 1 when a report takes longer than the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--only", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--store", action="store_true", help="plan and store the objects as well, which takes minutes")
    parser.add_argument("--alone", action="store_true", help="one configuration, in this process")
    asked = parser.parse_args()
    if asked.alone:
        print(json.dumps(measure(asked.only[0], asked.hosts, store=asked.store)))
        return 0
    found = []
    for way in asked.only:
        command = [sys.executable, "-m", "tests.bench.import_hosts", "--alone", "--only", way]
        command += ["--hosts", str(asked.hosts), *(["--store"] if asked.store else [])]
        found.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
    print(facts())
    print(table(HEADS, found))
    return int(any(float(each[4]) + float(each[5]) > GOAL_S for each in found))


if __name__ == "__main__":
    sys.exit(main())
