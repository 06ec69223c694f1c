"""Tiny hand-made bundles in the shape that the compiler makes, for tests of drivers and the agent."""

from __future__ import annotations

from collections.abc import Mapping

from apps.compiler.bundle import Bind, Bundle, assemble

MAP = "maps/lb-1-prefix.map"
IDLE_CLOSE = "    option idle-close-on-response\n"

TEXT = """global
    default-path config
    master-worker
    hard-stop-after 20s
    stats socket "${{SPILLWAY_RUN}}/worker.sock" mode 600 level admin expose-fd listeners
defaults
    mode http
{idle}    timeout client 10s
    timeout server 10s
    timeout connect 2s
    timeout http-keep-alive 10s
    default-server init-addr none
    load-server-state-from-file global
frontend lst-1
    bind "${{SPILLWAY_BIND_LST_1}}"
    http-request return status 200 hdr x-spillway-generation "${{SPILLWAY_GENERATION}}" hdr x-spillway-digest \
"${{SPILLWAY_DIGEST}}" if {{ path "/${{SPILLWAY_PROBE}}" }}
    http-request return status 404 unless {{ base,lower,concat(/),map_beg(maps/lb-1-prefix.map) -m found }}
    use_backend %[base,concat(/),map_beg(maps/lb-1-prefix.map)]
{extra}backend pool-1
    http-request track-sc0 str(pool-1/100) table st_latency
    http-request sc-inc-gpc0(0)
    http-request return status 200 content-type text/plain string "{answer}"
backend pool-2
    server srv-1 127.0.0.1:{server_port} weight {weight} maxconn {maxconn}
backend st_latency
    stick-table type string len 40 size 1k store gpc0
"""


def map_text(entries: Mapping[str, str]) -> bytes:
    """`key SPACE value LF`, sorted by key."""
    return b"".join(sorted(f"{key} {value}\n".encode() for key, value in entries.items()))


def make_bundle(
    port: int,
    *,
    answer: str = "one",
    entries: Mapping[str, str] | None = None,
    extra: str = "",
    idle_close: bool = True,
    weight: int = 100,
    maxconn: int = 100,
    server_port: int = 9,
    binds: tuple[Bind, ...] = (),
    more: Mapping[str, bytes] | None = None,
) -> Bundle:
    """One http listener lst-1 on `port`; pool-1 answers with `answer` itself, pool-2 has one server.

    `extra` is text between frontend and backends, `binds` what it binds; `more` are files that nothing reads.
    """
    text = TEXT.format(
        answer=answer,
        extra=extra,
        idle=IDLE_CLOSE if idle_close else "",
        weight=weight,
        maxconn=maxconn,
        server_port=server_port,
    )
    files = {
        "haproxy.cfg": text.encode(),
        MAP: map_text({"a.example/": "pool-1"} if entries is None else entries),
        **(more or {}),
    }
    return assemble(files, (Bind("lst-1", None, port, "http"), *binds), {})
