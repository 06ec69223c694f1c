"""What answers in a location: servers behind proxy_pass, a named location, or nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.logic.decisions import NOWHERE, Effect, change, fixed
from apps.importing.logic.formulas import Formula, negated
from apps.importing.nginx.pools.reaching import SAME_PATH, Url, note_websocket, pool_key, proxy_host, read_url
from apps.importing.nginx.rules.access import AS_WRITTEN, REFUSED, access, basic_auth, body, limits, refusal
from apps.importing.nginx.rules.headers import request_headers, response_headers, sets_host
from apps.importing.nginx.rules.pages import error_pages
from apps.importing.nginx.rules.rewriting import moved
from apps.importing.nginx.rules.targets import Captured
from apps.importing.nginx.rules.variables import Variables
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.nginx.traffic.locations import modifier_of
from apps.importing.verdicts import Line

NOTHING_HERE = fixed(404, "No server is there for this request.\n")
ONE_SLASH = "Servers get one slash where nginx sent two."
WITHOUT_QUERY = change("rewrite", "drop_query", True)
Content = tuple[Formula, Line, list[Effect]]
STATIC = ("root", "alias", "index", "try_files", "autoindex", "fastcgi_pass", "uwsgi_pass", "scgi_pass",
          "memcached_pass", "stub_status", "empty_gif")  # fmt: skip


@dataclass(slots=True)
class Contents:
    """`variables` and `server_name` are those of the server that is read."""

    nginx: Nginx
    variables: Variables
    server_name: str = ""

    def of(self, scope: Directive, captured: Captured) -> Iterator[Content]:
        """Conditions, the line that says it, and effects; the last one holds always."""
        ledger = self.nginx.ledger
        internal = scope.last("internal")
        if internal is not None:
            ledger.differs(internal.line, AS_WRITTEN)
            yield True, internal.line, [NOTHING_HERE]
            return
        if (named := self._named(scope)) is not None:
            yield from self.of(named, captured)
            return
        passing = next(iter([*scope.each("proxy_pass", "grpc_pass")][-1:]), None)
        guards = self._guards(scope)
        yield from self._excepted(scope)
        if guards and guards[-1].kind != "change":
            yield True, scope.line, [guards[-1]]
        elif passing is None:
            yield True, self._why(scope), [*response_headers(scope, self.variables, ledger), NOTHING_HERE]
        else:
            yield from self._passing(scope, passing, guards)

    def _guards(self, scope: Directive) -> list[Effect]:
        """Who may ask; the last of them is an answer where nobody may."""
        closed = refusal(self.nginx.context, scope)
        found = [*access(self.nginx.context, scope), *basic_auth(self.nginx.context, scope)]
        found += limits(self.nginx.context, scope, self.nginx.zones)
        final = closed or next((each for each in found if each.kind != "change"), None)
        return [*(each for each in found if each.kind == "change"), *([final] if final else ())]

    def _excepted(self, scope: Directive) -> Iterator[Content]:
        """`limit_except GET { deny all; }`."""
        for each in scope.each("limit_except"):
            methods = tuple(arg.upper() for arg in each.args)
            methods += ("HEAD",) if "GET" in methods and "HEAD" not in methods else ()
            asked = self.nginx.context.questions.atoms.get("method", "str", methods)
            self.nginx.ledger.mapped(each.line)
            for one in each.block or ():
                self.nginx.ledger.mapped(one.line)
                if (one.name, one.args) != ("deny", ("all",)):
                    self.nginx.ledger.impossible(one.line, "All other methods get 403, whoever asks.")
            yield negated(asked), each.line, [REFUSED]

    def _why(self, scope: Directive) -> Line:
        """The line that says who would answer; it is no server."""
        found = next((each for each in scope.block or () if each.name in STATIC), None)
        return found.line if found is not None else scope.line

    def _named(self, scope: Directive) -> Directive | None:
        """`try_files … @app`: without files the named location answers."""
        files = scope.last("try_files")
        if files is None or not files.args or not files.args[-1].startswith("@"):
            return None
        server: Directive | None = scope
        while server is not None and server.name != "server":
            server = server.parent
        for each in server.everything() if server is not None else ():
            if each.name == "location" and "".join(modifier_of(each)) == files.args[-1]:
                why = f"Nodes serve no files: every request goes to {files.args[-1]}, whose servers must have them."
                self.nginx.ledger.impossible(files.line, why)
                return each
        return None

    def replaces_path(self, scope: Directive) -> bool:
        """Whether its proxy_pass says a path."""
        urls = [read_url(value_of(each), is_grpc=False) for each in scope.each("proxy_pass")]
        return any(url is not None and url.uri for url in urls)

    def _passing(self, scope: Directive, passing: Directive, guards: list[Effect]) -> Iterator[Content]:
        ledger, word = self.nginx.ledger, "grpc" if passing.name == "grpc_pass" else "proxy"
        common = [*guards, *request_headers(scope, f"{word}_set_header", self.variables, ledger)]
        common += response_headers(scope, self.variables, ledger, proxied=word)
        common += [*body(self.nginx.context, scope), *error_pages(self.nginx, scope)]
        note_websocket(self.nginx, scope)
        ledger.mapped(passing.line)
        text = value_of(passing)
        for condition, one in self.variables.choices(text):
            url = read_url(one, is_grpc=word == "grpc")
            if url is None or "$" in url.target:
                why = "A pool is named in the file; where a server is cannot be made of the request."
                ledger.impossible(passing.line, f"{why} Requests get 503 here.")
                yield condition, passing.line, [*guards, NOWHERE]
                continue
            path = self._moved(scope, passing, url, by_variable="$" in text)
            if path is None:
                yield condition, passing.line, [*guards, NOWHERE]
                continue
            key = pool_key(self.nginx, scope, passing, url)
            host = proxy_host(url)
            own = [] if sets_host(scope, f"{word}_set_header") or not host else [change("rewrite", "host", host)]
            yield condition, passing.line, [*common, *own, *path, Effect("backend", (key,))]

    def _moved(self, scope: Directive, passing: Directive, url: Url, *, by_variable: bool) -> list[Effect] | None:
        """What the path behind the server says: it takes the place of the location's. None where it cannot be said."""
        ledger, uri = self.nginx.ledger, url.uri
        if uri in ("", *SAME_PATH):
            return [WITHOUT_QUERY] if uri == "$uri" else []
        sign, text = modifier_of(scope)
        plain = uri.removesuffix("$is_args$args")
        # Of variables nginx takes path and query as they are.
        query = [WITHOUT_QUERY] if by_variable and plain == uri else []
        if sign == "~" and "$" in plain and (new := moved(text, plain)) is not None:
            return [*new.effects, *query]
        if "$" in plain or "?" in plain:
            ledger.impossible(passing.line, "The path of servers is a fixed text here, so requests get 503.")
            return None
        if by_variable or sign == "=":
            whole = self._whole(passing, plain)
            return None if whole is None else [*whole, *query]
        if scope.name != "location" or sign in ("~", "~*", "@"):
            ledger.impossible(passing.line, "nginx takes no path behind the server here, so requests get 503.")
            return None
        if not text.endswith("/") and plain.endswith("/") and len(text) > 1:
            ledger.differs(passing.line, ONE_SLASH)
        return [] if text == plain else [Effect("change", ("path", text, plain))]

    def _whole(self, passing: Directive, path: str) -> list[Effect] | None:
        try:
            return [change("rewrite", "path", grammar.path(path))]
        except GrammarError as error:
            self.nginx.ledger.impossible(passing.line, f"{error.message} Requests get 503 here.")
            return None
