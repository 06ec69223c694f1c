"""nginx.conf and its files in, documents and a verdict for each directive out. It never guesses, and stores nothing."""

from __future__ import annotations

from collections.abc import Mapping

from apps.importing.contract import Import
from apps.importing.nginx.rules.variables import OTHER_MATCH, asks_parts_of_hosts
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.text.known import close
from apps.importing.nginx.traffic.context import Nginx, read_context
from apps.importing.nginx.traffic.routes import read_servers
from apps.importing.nginx.traffic.streams import read_streams
from apps.importing.options import ImportOptions
from apps.importing.results.made import documents_of
from apps.importing.results.owners import owned
from apps.importing.verdicts import Verdict

NOT_USED = "No location of a listener passes requests to it."


def read_nginx(text: str, files: Mapping[str, str], options: ImportOptions) -> Import:
    """The whole file.

    1. Words become directives and blocks, files that were given take the place of `include`.
    2. Each port becomes a load balancer; its servers and locations, in the order of nginx, become routes.
    3. What a location passes requests to becomes a pool.
    4. Directives that no reader took are judged by their name.
    """
    nginx = read_context(text, files, options)
    root = nginx.tree.root
    # A file of conf.d alone has servers without an http block around them.
    alone = not any(root.each("http", "stream"))
    is_stream = alone and _passes_connections(root)
    for http in [root] if alone and not is_stream else root.each("http"):
        read_servers(nginx, http)
    for stream in [root] if is_stream else root.each("stream"):
        read_streams(nginx, stream)
    _mark_maps(nginx)
    for upstream in nginx.upstreams.values():
        if nginx.ledger.verdict_of(upstream.line) is None:
            for each in (upstream, *upstream.everything()):
                nginx.ledger.note(each.line, Verdict.DEAD, NOT_USED)
    close(nginx.ledger, {each.line.position: each for each in root.everything()})
    for name in nginx.ledger.variables_asked_for():
        nginx.context.need(f"The variable {name} (--env {name}=…).")
    documents = owned(options.account, documents_of(nginx.context, nginx.made))
    return Import(documents, nginx.ledger.report(), tuple(nginx.context.needs))


def _passes_connections(root: Directive) -> bool:
    """Whether its servers are those of `stream`: there alone a server passes on what comes, whatever it asks for."""
    return any(any(each.each("proxy_pass")) for each in root.each("server"))


def _mark_maps(nginx: Nginx) -> None:
    """A map is part of the conditions that name its variable."""
    everything = list(nginx.tree.root.everything())
    for name, block in nginx.variables.lines.items():
        users = [
            each for each in everything
            if each.parent is not block and each is not block and any(f"${name}" in arg for arg in each.args)
        ]  # fmt: skip
        verdict = Verdict.MAPPED if users else Verdict.DEAD
        if any(asks_parts_of_hosts(condition) for condition, _ in nginx.variables.given[name]):
            nginx.ledger.differs(block.line, OTHER_MATCH)
        for each in (block, *(block.block or ())):
            if nginx.ledger.verdict_of(each.line) is None:
                nginx.ledger.note(each.line, verdict, "" if users else "No directive names its variable.")
