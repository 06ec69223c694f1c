"""haproxy.cfg and its files in, documents and a verdict for each line out. It never guesses, and stores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apps.importing.context import document, documents_of_lists
from apps.importing.contract import Import
from apps.importing.files import Files
from apps.importing.haproxy.listeners.certificates import Certificates
from apps.importing.haproxy.listeners.connections import Connections
from apps.importing.haproxy.pools.backends import pool_of, protocol_of
from apps.importing.haproxy.rules.variables import read_variables
from apps.importing.haproxy.text.keywords import close, fact_of
from apps.importing.haproxy.text.sections import Configuration, Section, mark_unused_defaults
from apps.importing.haproxy.traffic.context import Context, context_of
from apps.importing.haproxy.traffic.frontends import Frontends, Made
from apps.importing.haproxy.traffic.ignored import becomes_http, mark_ignored, mark_passed, without_requests
from apps.importing.haproxy.traffic.passing import mark_scripts, mark_what_nodes_do
from apps.importing.naming import shared_rules
from apps.importing.options import ImportOptions
from apps.importing.results.owners import owned
from apps.importing.verdicts import Ledger, Line, Verdict


def read_haproxy(text: str, files: Mapping[str, str], options: ImportOptions) -> Import:
    """The whole file.

    1. Lines become words and sections; each line waits for a verdict.
    2. Frontends become load balancers and routes, the backends that they use become pools.
    3. What several routes say alike becomes a policy.
    4. Lines that no reader took are judged by their keyword.
    """
    ledger = Ledger()
    configuration = Configuration(text, options.environment, ledger)
    context = context_of(configuration, Files(files), options)
    mark_unused_defaults(configuration)
    certificates = Certificates(context)
    made = Made()
    read_variables(context)
    for section in configuration.of_kind("frontend", "listen"):
        if _is_disabled(section):
            for line in (section.header, *section.lines):
                ledger.note(line, Verdict.DEAD, "The section is disabled.")
        elif _is_stats(section):
            ledger.note(section.header, Verdict.NODE_SETTING, "Statistics are pages and metrics of Spillway.")
            _mark_stats(context, section)
        elif _has_name_of_another(configuration, section):
            continue
        elif protocol_of(section) == "http":
            Frontends(context, certificates, made).read(section)
        elif becomes_http(configuration, section):
            Frontends(context, certificates, made).read(without_requests(section))
        else:
            Connections(context, certificates, made).read(section)
    for section in configuration.of_kind("backend"):
        _has_name_of_another(configuration, section)
    pools = _pools(context, made)
    mark_what_nodes_do(context)
    mark_scripts(context)
    mark_passed(context, made.passed.keys() - made.pools.keys())
    proxies = configuration.of_kind("frontend", "backend", "listen")
    http = frozenset(each.header.number for each in proxies if protocol_of(each) == "http" or each.name in made.asked)
    mark_ignored(context, http, made.pools.keys())
    close(configuration, ledger)
    for name in ledger.variables_asked_for():
        context.need(f"The variable {name} (--env {name}=…).")
    documents = owned(options.account, _documents(context, made, certificates, pools))
    return Import(documents, ledger.report(), tuple(context.needs))


def _has_name_of_another(configuration: Configuration, section: Section) -> bool:
    """Whether nobody can say whose servers are meant; frontends have names that nothing asks for."""
    first = configuration.proxy(section.name)
    if section.kind == "frontend" or first is None or first is section:
        return False
    why = f"Line {first.header.number} has this name already, so HAProxy does not start; rename one of them."
    configuration.ledger.impossible(section.header, why)
    return True


def _is_disabled(section: Section) -> bool:
    """Whether the last of `disabled` and `enabled` is the former."""
    said = [line.keyword for line in section.all_lines() if line.keyword in ("disabled", "enabled")]
    return said[-1:] == ["disabled"]


def _is_stats(section: Section) -> bool:
    """Whether the section shows statistics and nothing else."""
    traffic = ("server", "use_backend", "default_backend", "server-template", "redirect", "dispatch")
    shows = any(
        line.keyword == "stats" or line.words[:3] == ("http-request", "use-service", "prometheus-exporter")
        for line in section.lines
    )
    return shows and not any(line.keyword in traffic or _leads_away(line) for line in section.lines)


def _leads_away(line: Line) -> bool:
    """Whether it redirects clients to another place than a page of statistics."""
    away = any(word in ("scheme", "prefix") or word.startswith("http") for word in line.words[2:])
    return line.words[:2] == ("http-request", "redirect") and away


def _mark_stats(context: Context, section: Section) -> None:
    for line in section.lines:
        if line.keyword in ("monitor-uri", "monitor-net"):
            context.ledger.differs(line, "Nodes answer probes at monitor_path of a listener that stays.")
        elif line.words[:2] in (("http-request", "redirect"), ("http-request", "return")):
            context.ledger.differs(line, "It goes with the statistics of its port; pages and metrics are Spillway's.")
        elif fact_of(section.kind, line.words) is not None:
            context.ledger.note(line, Verdict.NODE_SETTING, "Statistics are pages and metrics of Spillway.")


def _pools(context: Context, made: Made) -> dict[str, dict[str, Any]]:
    found = {}
    both = [*((each, port, "") for each, port in made.pools.items()),
            *((each, port, " tcp") for each, port in made.passed.items())]  # fmt: skip
    for backend, port, suffix in both:
        section = context.configuration.proxy(backend)
        if section is None:
            continue
        name = context.name("Pool", backend + suffix)
        context.ledger.mapped(section.header, f"Pool {name}")
        ports = port or _one_port(made)
        protocol = "tcp" if suffix else "http" if backend in made.asked else protocol_of(section)
        found[name] = pool_of(context, section, name, ports, protocol)
        for line in section.all_lines():
            if context.ledger.verdict_of(line) is Verdict.MAPPED:
                context.ledger.belongs(line, f"Pool {name}")
    return found


def _one_port(made: Made) -> int:
    ports = {each["port"] for spec in made.load_balancers.values() for each in spec["listeners"]}
    return next(iter(ports)) if len(ports) == 1 else 80


def _documents(
    context: Context, made: Made, certificates: Certificates, pools: Mapping[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """In an order in which they can be applied."""
    for name, spec in certificates.documents.items():
        yield document("Certificate", name, spec)
    for kind, name, entries in documents_of_lists(context):
        yield document(kind, name, entries)
    for name, spec in pools.items():
        yield document("Pool", name, spec)
    policies = shared_rules(context.name, made.routes)
    for name, rules in policies.items():
        yield document("Policy", name, {"rules": rules})
    for name, spec in made.load_balancers.items():
        yield document("LoadBalancer", name, spec)
    for name, spec in made.routes.items():
        yield document("Route", name, spec)
