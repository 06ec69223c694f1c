"""The old side of a replay of nginx.conf: its servers and locations on real nginx, with stub servers behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from apps.importing.contract import Import
from apps.importing.files import Files
from apps.importing.nginx.pools.reaching import Url, read_url
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.text.environment import with_environment
from apps.importing.nginx.text.tree import Tree
from apps.importing.nginx.text.words import shown
from apps.importing.nginx.traffic.locations import modifier_of
from apps.importing.nginx.traffic.ports import LOOPBACK, endpoints_of
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import Answer, Asked, NotReplayable, Opening, Request
from apps.importing.replay.old_streams import OldStreams
from apps.importing.replay.programs import nginx_complaint, run_nginx, stream_module
from apps.importing.verdicts import Ledger, Verdict

KEPT = frozenset(
    """
    server location server_name return rewrite set if break map geo default_type proxy_pass proxy_set_header
    proxy_hide_header add_header allow deny internal limit_except try_files root satisfy error_page
    proxy_intercept_errors proxy_next_upstream proxy_next_upstream_tries merge_slashes client_max_body_size
    auth_basic auth_basic_user_file expires
    """.split()  # noqa: SIM905 - as a list it would take a screen
)
DECIDES = frozenset(
    """
    return rewrite if location proxy_pass grpc_pass try_files root alias listen server_name error_page auth_request
    satisfy limit_except set map fastcgi_pass uwsgi_pass scgi_pass allow deny auth_basic stub_status
    """.split()  # noqa: SIM905 - as a list it would take a screen
)
CHANGES = {
    "location": ("return", "rewrite", "location", "if"),
    "path of the server": ("proxy_pass", "rewrite", "location", "if"),
    "request header host": ("proxy_pass", "proxy_set_header", "grpc_pass", "grpc_set_header"),
}
# Another location answers, so all that follows may differ.
ELSEWHERE = re.compile(r"decided by another line|answered alike")
HEAD = """daemon off;
master_process off;
pid {0}/nginx.pid;
{1}
events {{}}
http {{
access_log off;
port_in_redirect off;
variables_hash_bucket_size 256;
map_hash_bucket_size 256;
server_names_hash_bucket_size 256;"""
PASSED = "$passed"
FOLDERS = "".join(f"{name}_temp_path {{0}}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))


class OldNginx:
    """An nginx.conf that runs here with stub servers."""

    def __init__(self, text: str, files: Mapping[str, str], options: ImportOptions, found: Import) -> None:
        given = {path: with_environment(each, options.environment) for path, each in files.items()}
        self._tree = Tree(with_environment(text, options.environment), given, Ledger())
        self._files = Files(files)
        self._upstreams = {value_of(each): each for each in self._tree.root.everything() if each.name == "upstream"}
        # Lines that say a difference, with what they say.
        self._said = {
            (line.file, line.number, line.text): " ".join(line.reasons)
            for line in found.report if line.verdict in (Verdict.DIFFERENT, Verdict.NOT_POSSIBLE)
        }  # fmt: skip
        self.ports: dict[int, int] = {}
        self.encrypted: dict[int, bool] = {}
        self._pairs(found)
        listens = (endpoints_of(value_of(each)) for server in self._servers for each in server.each("listen"))
        self._of_ipv4 = {port for address, numbers in listens if ":" not in address for port in numbers}
        self._streams = OldStreams(list(self._tree.root.each("stream")), self._pools_of)
        self._stubs: Mapping[str, int] = {}
        self._folder = Path()
        self._certificate = Path()

    def _pairs(self, found: Import) -> None:
        """Every target of proxy_pass is a server of its own; several pools of one have the same."""
        names = {each["name"] for each in found.documents if each["kind"] == "Pool"}
        self.pools = {name: name for name in names}
        self._pool_at: dict[tuple[str, int, str], list[str]] = {}
        for line in found.report:
            pools = [each.removeprefix("Pool ") for each in line.objects if each.startswith("Pool ")]
            self._pool_at[line.file, line.number, line.text] = pools

    @property
    def _servers(self) -> list[Directive]:
        return [server for http in self._https for server in http.each("server")]

    @property
    def _https(self) -> list[Directive]:
        return list(self._tree.root.each("http")) or [self._tree.root]

    def words(self) -> list[str]:
        """Words of servers, locations and maps of tcp."""
        found = [each for server in self._servers for each in server.everything() if each.name in KEPT]
        return [
            *(re.sub(r"\$\w+", "", arg).replace("\\", "") for each in found for arg in each.args),
            *self._streams.words(),
        ]

    def write(self, stubs: Mapping[str, int], folder: Path, spare: Iterator[int], certificate: Path) -> None:
        """The file for this machine; without `stream` where nginx has no module for it."""
        self._stubs, self._folder, self._certificate = stubs, folder, certificate
        requests = "\n".join([*self._requests(spare), "}", ""])
        connections = "\n".join([*self._streams.lines(stubs, spare, certificate), ""])
        path = folder / "old.conf"
        path.write_text(HEAD.format(folder, stream_module()) + requests + connections)
        if self._streams.ports and nginx_complaint(path, folder):
            path.write_text(HEAD.format(folder, "") + requests)
        else:
            self.ports, self.encrypted = self._streams.ports | self.ports, self._streams.encrypted | self.encrypted
        if not self.ports:
            raise NotReplayable("No server of this file takes connections at a port.")

    def _requests(self, spare: Iterator[int]) -> Iterator[str]:
        """What takes requests."""
        yield FOLDERS.format(self._folder)
        for http in self._https:
            for each in http.block or ():
                if each.name == "server":
                    yield from self._server(each, spare)
                elif each.name == "upstream":
                    yield self._upstream(each)
                elif each.name in KEPT and each.name not in ("root", "server"):
                    yield from self._directive(each)

    @contextmanager
    def running(self, folder: Path) -> Iterator[None]:
        """nginx with that file."""
        with run_nginx(folder / "old.conf", folder):
            yield

    def _server(self, server: Directive, spare: Iterator[int]) -> Iterator[str]:
        yield "server {"
        listening: dict[str, list[str]] = {}  # another one for QUIC, or for another address, is the same port here
        for each in list(server.each("listen")) or [Directive("listen", ("80",), server.line)]:
            found, numbers = endpoints_of(value_of(each))
            if found.startswith(LOOPBACK):
                continue
            if "proxy_protocol" in each.args or server.inherited("ssl_verify_client") is not None:
                raise NotReplayable("Clients would have to speak the PROXY protocol or show certificates.")
            tls = "ssl" in each.args or value_of(server.last("ssl")) == "on"
            is_default = not {"default_server", "default"}.isdisjoint(each.args)
            words = [*(["ssl"] if tls else ()), *(["default_server"] if is_default else ())]
            for port in numbers:
                self.ports.setdefault(port, next(spare))
                self.encrypted[port] = self.encrypted.get(port, False) or tls
                is_second = ":" in found and port in self._of_ipv4
                address = f"[::1]:{self.ports[port]}" if is_second else f"127.0.0.1:{self.ports[port]}"
                listening.setdefault(address, words)
        yield from (f"listen {' '.join([address, *words])};" for address, words in listening.items())
        if any(self.encrypted.values()):
            yield f"ssl_certificate {self._certificate};\nssl_certificate_key {self._certificate};"
        for each in server.block or ():
            yield from self._directive(each)
        yield "}"

    def _directive(self, each: Directive) -> Iterator[str]:
        name, args = each.name.replace("grpc_", "proxy_", 1), each.args
        in_map = each.parent is not None and each.parent.name in ("map", "geo")
        if (name not in KEPT and not in_map) or (name == "expires" and "$" in value_of(each)):
            return
        if name == "auth_basic_user_file":
            args = (self._beside(value_of(each)),)
        if name == "root":
            args = (str(self._folder / "nothing"),)
        if name == "proxy_pass":
            yield from self._own_host(each)
            args = (self._passed(each),)
            if "$" in value_of(each) and args[0].startswith("http://127.0.0.1:"):
                yield shown("set", (PASSED, args[0])) + ";"  # a path in a variable is the whole path
                args = (PASSED,)
        if each.block is None:
            yield shown(name if not in_map else json.dumps(name), args) + ";"
            return
        yield shown(name, args) + " {"
        for one in each.block:
            yield from self._directive(one)
        yield "}"

    def _beside(self, path: str) -> str:
        """A file that came along, where it is now."""
        here = self._folder / re.sub(r"[^a-z0-9]+", "-", path.lower())
        here.write_text(self._files.text(path) or "")
        return str(here)

    def _passed(self, each: Directive) -> str:
        """Where requests go here; servers speak plain http, and nobody answers at port 9."""
        pools = self._pools_of(each)
        url = _url(each)
        if url is None:
            return value_of(each)
        upstream = self._upstreams.get(url.target)
        if "$" in url.target or (upstream is not None and pools in ([], self._pools_of(upstream)[:1])):
            return f"http://{url.target}{url.uri}"
        if len(pools) > 1:
            raise NotReplayable(f"Line {each.line.number} passes requests to several pools.")
        return f"http://127.0.0.1:{self._stubs[pools[0]] if pools else 9}{url.uri}"

    def _own_host(self, passing: Directive) -> Iterator[str]:
        """Servers get the name of where requests went, which is not here, unless a line says another host."""
        is_grpc, scope = passing.name == "grpc_pass", passing.parent
        url = _url(passing)
        if url is None or scope is None or "$" in url.target:
            return
        if not is_grpc and url.target in self._upstreams and self._passed(passing) == f"http://{url.target}{url.uri}":
            return
        if scope.name in ("if", "limit_except"):  # where nginx sets no headers
            return
        name = passing.name.replace("_pass", "_set_header")
        said = list(scope.all_inherited(name))
        if any(value_of(each).lower() == "host" for each in said):
            return
        if not any(scope.each(name)):  # a line of its own would take those around it away
            yield from (shown("proxy_set_header", each.args) + ";" for each in said)
        target = url.target.removesuffix(":80" if not url.is_encrypted else ":443")
        yield shown("proxy_set_header", ("Host", target)) + ";"

    def _pools_of(self, each: Directive) -> list[str]:
        return self._pool_at.get(_key(each), [])

    def _upstream(self, each: Directive) -> str:
        pools = self._pools_of(each)
        return f"upstream {value_of(each)} {{ server 127.0.0.1:{self._stubs[pools[0]] if pools else 9}; }}"

    def lines(self, request: Asked, before: Answer, after: Answer) -> tuple[int, ...]:
        """Lines of the servers of the port, at locations of the path, that make such a difference."""
        if isinstance(request, Opening):
            asking = ((each, _key(each)) for each in self._streams.asked(request))
            return tuple({each.line.number: None for each, key in asking if key in self._said})
        path = request.path.partition("?")[0]
        asked = [(each, self._said[_key(each)]) for each in self._asked(request, path) if _key(each) in self._said]
        found: dict[int, None] = {}
        differences = before.differences(after)
        deciding = [each for each in differences if each.startswith(("status:", "pool:"))]
        for difference in deciding or differences:
            name = difference.partition(":")[0]
            saying = [each.line.number for each, why in asked if _says(each, name) or ELSEWHERE.search(why)]
            if not saying:
                return ()
            found |= dict.fromkeys(saying)
        return tuple(found)

    def _asked(self, request: Request, path: str) -> Iterator[Directive]:
        """Directives of the server that answers, and those around it, in locations that may take the path."""
        server = self._server_of(request)
        for each in self._tree.root.everything():
            block: Directive | None = each
            while block is not None and _may_take(block, path) and (block.name != "server" or block is server):
                block = block.parent
            if block is None:
                yield each

    def _server_of(self, request: Request) -> Directive | None:
        host = request.host.lower().partition(":")[0]
        listening = [each for each in self._servers if request.port in _ports_of(each)]
        names = [(name.lower(), each) for each in listening for one in each.each("server_name") for name in one.args]
        for name, each in sorted(names, key=lambda pair: -len(pair[0])):
            if name.removeprefix(".") == host:
                return each
        for name, each in sorted(names, key=lambda pair: -len(pair[0])):
            if name.startswith(("*.", ".")) and host.endswith(name.removeprefix("*")):
                return each
        said = (
            each for each in listening for one in each.each("listen")
            if not {"default_server", "default"}.isdisjoint(one.args)
        )  # fmt: skip
        return next(said, next(iter(listening), None))


def _url(passing: Directive) -> Url | None:
    """Where it passes requests, with what `set` around it says once and for all."""
    text, scope = value_of(passing), passing.parent
    while scope is not None and scope.name != "":
        for each in scope.each("set"):
            name, value = (*each.args, "")[:2]
            others = [one for one in scope.everything() if one.name == "set" and value_of(one) == name]
            if len(others) == 1:
                text = re.sub(rf"{re.escape(name)}\b", lambda _, value=value: value, text)  # type: ignore[misc]
        scope = scope.parent
    return read_url(text, is_grpc=passing.name == "grpc_pass")


def _key(each: Directive) -> tuple[str, int, str]:
    """What a line of the report says it of."""
    return each.line.file, each.line.number, each.line.text


def _ports_of(server: Directive) -> set[int]:
    return {port for each in server.each("listen") for port in endpoints_of(value_of(each))[1]} or {80}


def _may_take(block: Directive, path: str) -> bool:
    if block.name != "location":
        return True
    sign, text = modifier_of(block)
    if sign in ("~", "~*"):
        named = text.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
        try:
            return re.search(named, path, re.IGNORECASE if sign == "~*" else 0) is not None
        except re.error:  # it is written for PCRE; whatever it takes may be what the request met
            return True
    return sign == "@" or path.startswith(text.rstrip("/"))


def _says(each: Directive, name: str) -> bool:
    if name in ("status", "pool"):
        return each.name in DECIDES or "_by_lua" in each.name
    if name in CHANGES:
        return each.name in CHANGES[name]
    header = name.rpartition(" ")[2]
    by_time = each.name == "expires" and header in ("expires", "cache-control")
    return by_time or any(header in word.lower() for word in each.args)
