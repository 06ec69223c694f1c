"""Manifests in, documents and a verdict for each field out. It never guesses, asks no cluster, and stores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apps.importing.contract import Import
from apps.importing.kubernetes.context import Context, give_addresses
from apps.importing.kubernetes.gateway.reading import read_gateways
from apps.importing.kubernetes.ingress.reading import read_ingresses
from apps.importing.kubernetes.manifests.closing import close
from apps.importing.kubernetes.manifests.manifest import Manifest, manifests, only_last
from apps.importing.kubernetes.objects.pools import Pools
from apps.importing.naming import Names, shared_rules
from apps.importing.options import ImportOptions
from apps.importing.results.owners import owned
from apps.importing.values.parsing import Count, Refused, documents
from apps.importing.verdicts import Ledger, LineReport, Verdict


def read_kubernetes(text: str, files: Mapping[str, str], options: ImportOptions) -> Import:
    """The whole file, or all files where there are several: then there is no text but theirs.

    1. Documents become objects; each of their fields waits for a verdict.
    2. Ingresses and Gateways become load balancers and routes, the Services that these name become pools.
    3. What several routes say alike becomes a policy.
    4. Fields that no reader took are judged by their kind.
    """
    ledger = Ledger()
    found: list[Manifest] = []
    count = Count()
    for file, each in sorted(files.items()) if files else (("", text),):
        try:
            found += manifests(documents(each, count), ledger, file)
        except Refused as refused:
            return Import((), (_refused(refused, file, each),))
    context = Context(only_last(found), ledger, options, Names(options.prefix))
    pools = Pools(context)
    read_ingresses(context, pools)
    read_gateways(context, pools)
    give_addresses(context)
    close(context)
    return Import(owned(options.account, _documents(context)), ledger.report(), tuple(context.needs))


def _refused(refused: Refused, file: str, text: str) -> LineReport:
    """Nothing is made of the other files either: what this one says is not known."""
    lines = text.splitlines()
    shown = lines[refused.line - 1].strip()[:80] if refused.line <= len(lines) else ""
    return LineReport(refused.line, shown, "", Verdict.NOT_POSSIBLE, (refused.why,), file=file)


def _documents(context: Context) -> Iterator[dict[str, Any]]:
    """In an order in which they can be applied."""
    lists = {
        name: {"entries": [{"network": network} for network in networks]}
        for name, networks in context.network_lists.items()
    }
    policies = {name: {"rules": rules} for name, rules in shared_rules(context.names.name, context.routes).items()}
    made = (
        ("Certificate", context.certificates), ("NetworkList", lists), ("Pool", context.pools), ("Policy", policies),
        ("LoadBalancer", context.load_balancers), ("Route", context.routes),
    )  # fmt: skip
    for kind, specs in made:
        for name, spec in specs.items():
            yield {"kind": kind, "name": name, "spec": spec}
