"""`error_page`: a page of a file that came along, for statuses of the balancer or of servers."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.logic.decisions import Effect, change
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.traffic.context import Nginx

NO_FILE = "The status is the same, the page is that of nodes: bring this one (--files), or write it into error_pages."
NO_STATUS = "A policy has pages for statuses from 400 to 599 (error_pages), and sends that status."
NO_LOCATION = "No location is asked after an error; a policy has a page (error_pages)."
TYPES = {".json": "application/json", ".txt": "text/plain; charset=utf-8"}


def error_pages(nginx: Nginx, scope: Directive) -> Iterator[Effect]:
    """The first page whose file is there; a policy has one page."""
    intercept = scope.inherited("proxy_intercept_errors")
    said = False
    for each in scope.all_inherited("error_page"):
        statuses = [int(arg) for arg in each.args[:-1] if arg.isdecimal() and 400 <= int(arg) <= 599]
        uri = each.args[-1] if each.args else ""
        text = _page(nginx, scope, uri) if uri.startswith("/") and "$" not in uri else None
        if not statuses or any(arg.startswith("=") for arg in each.args):
            nginx.ledger.impossible(each.line, NO_STATUS if uri.startswith("/") else NO_LOCATION)
        elif text is None and uri.startswith("/") and "$" not in uri:
            nginx.ledger.differs(each.line, NO_FILE)
        elif text is None:
            nginx.ledger.impossible(each.line, NO_LOCATION)
        elif said:
            nginx.ledger.impossible(each.line, "A policy has one page for all of its statuses; this is another one.")
        else:
            try:
                page = grammar.body(text)
            except GrammarError as error:
                nginx.ledger.impossible(each.line, error.message)
                continue
            said = True
            nginx.ledger.mapped(each.line)
            yield change("error_pages", "statuses", tuple(sorted(set(statuses))))
            yield change("error_pages", "body", page)
            suffix = "." + uri.rpartition(".")[2]
            if suffix in TYPES:
                yield change("error_pages", "content_type", TYPES[suffix])
            if intercept is not None and value_of(intercept) == "on":
                yield change("error_pages", "intercept", True)
    if intercept is not None:
        nginx.ledger.mapped(intercept.line)


def _page(nginx: Nginx, scope: Directive, uri: str) -> str | None:
    """The file of the path below any root of the configuration; it is found by its end."""
    root = scope.inherited("root")
    return nginx.context.files.text(f"{value_of(root, '/usr/share/nginx/html').rstrip('/')}{uri}")
