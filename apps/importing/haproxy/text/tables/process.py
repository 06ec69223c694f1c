"""Keywords of the section `global`, and of sections that hold no traffic."""

from __future__ import annotations

from apps.importing.haproxy.text.tables.classes import Kind, facts

MACHINE = "A setting of the machine; the agent and its unit have their own."
SIZE = "A node setting of the fleet (max_connections, threads, buffer_bytes, http2_streams)."
TLS = "A node setting of the fleet (tls_preset), or tls of a listener."
LOGS = "Nodes write a request log of their own; log forwards send it on."
STATS = "The agent has its own socket; pages and metrics show the numbers."
TUNING = "Tuning of the process; nodes have tested values."
LUA = "Nodes run no Lua. Say with routes and policies what the script decided, or run it as a server."
ENGINE = "Nodes run no such engine; run it as a server in front of the pool."
PEERS = "Nodes of a region are peers by themselves."
NAMES = "The agent of each node resolves the names of servers."

GLOBAL = facts(
    (
        Kind.NODE,
        MACHINE,
        """
        user group uid gid chroot daemon quick-exit pidfile node description localpeer nosplice noepoll nopoll nokqueue
        noevports nogetaddrinfo noreuseport nothreads set-dumpable ulimit-n fd-hard-limit strict-limits
        master-worker mworker-max-reloads mworker-prealloc-max grace close-spread-time hard-stop-after unix-bind
        presetenv setenv unsetenv resetenv insecure-fork-wanted insecure-setuid-wanted cluster-secret default-path
        ca-base crt-base key-base anonkey numa-cpu-mapping cpu-map cpu-set cpu-policy stats-file busy-polling quiet
        debug external-check expose-deprecated-directives expose-experimental-directives no-quic
        harden.reject-privileged-ports.tcp harden.reject-privileged-ports.quic prealloc-fd setcap
        warn-blocked-traffic-after no-memory-trimming force-cfg-parser-pause limited-quic shm-stats-file
        shm-stats-file-max-objects warning dns-accept-family http-err-codes http-fail-codes max-threads-per-group
        stats-timeout jwt.decrypt_alg_list
        """,
    ),
    (
        Kind.NODE,
        SIZE,
        """
        maxconn maxpipes maxconnrate maxcomprate maxcompcpuusage maxsessrate maxsslconn maxsslrate maxzlibmem nbproc
        nbthread thread-group thread-groups thread-hard-limit spread-checks max-spread-checks tune.bufsize
        tune.maxrewrite tune.http.maxhdr tune.h2.max-concurrent-streams tune.bufsize.small
        tune.h2.fe.max-concurrent-streams tune.h2.be.max-concurrent-streams
        """,
    ),
    (
        Kind.NODE,
        TLS,
        """
        ssl-default-bind-ciphers ssl-default-bind-ciphersuites ssl-default-bind-options ssl-default-bind-curves
        ssl-default-bind-sigalgs ssl-default-bind-client-sigalgs ssl-default-server-ciphers
        ssl-default-server-ciphersuites ssl-default-server-options ssl-default-server-curves
        ssl-default-server-sigalgs ssl-default-server-client-sigalgs ssl-dh-param-file ssl-engine ssl-mode-async
        ssl-load-extra-files ssl-load-extra-del-ext ssl-propquery ssl-provider ssl-provider-path ssl-security-level
        ssl-server-verify ssl-skip-self-issued-ca issuers-chain-path ssl-passphrase-cmd ssl-f-use acme.scheduler
        httpclient.ssl.ca-file httpclient.ssl.verify httpclient.resolvers.id httpclient.resolvers.prefer
        httpclient.resolvers.disabled httpclient.retries httpclient.timeout.connect ocsp-update.disable
        ocsp-update.httpproxy ocsp-update.mode
        """,
    ),
    (Kind.OURS, LOGS, "log log-send-hostname log-tag"),
    (
        Kind.OURS,
        STATS,
        """
        stats stats~socket stats~timeout stats~maxconn stats~bind-process server-state-base server-state-file
        stats~calculate-max-counters set-var set-var-fmt
        """,
    ),
    (
        Kind.NODE,
        TUNING,
        """
        h1-case-adjust h1-case-adjust-file h1-accept-payload-with-any-method
        h1-do-not-close-on-insecure-transfer-encoding h2-workaround-bogus-websocket-clients pp2-never-send-local
        profiling.tasks profiling.tasks.automatic profiling.tasks.on profiling.tasks.off profiling.memory
        zero-warning trace http-keep-alive wurfl-information-list
        """,
    ),
    (Kind.NEVER, LUA, "lua-load lua-load-per-thread lua-prepend-path"),
    (
        Kind.NEVER,
        ENGINE,
        """
        51degrees-data-file 51degrees-property-name-list 51degrees-property-separator 51degrees-cache-size
        51degrees-use-performance-graph 51degrees-use-predictive-graph 51degrees-drift 51degrees-difference
        51degrees-allow-unmatched deviceatlas-json-file deviceatlas-log-level deviceatlas-properties-cookie
        deviceatlas-separator wurfl-data-file wurfl-information-list-separator wurfl-patch-file wurfl-cache-size
        wurfl-engine-mode wurfl-useragent-priority
        """,
    ),
)
# Whole families; a keyword that begins like this is one of them.
FAMILIES = {"tune.": (Kind.NODE, TUNING), "httpclient.": (Kind.NODE, TLS), "ocsp-update.": (Kind.NODE, TLS)}

# Sections without traffic: what all of their lines are.
SECTIONS = {
    "peers": (Kind.OURS, PEERS),
    "resolvers": (Kind.OURS, NAMES),
    "mailers": (Kind.OURS, "Alerts have their own channels; an e-mail is one of them."),
    "program": (Kind.NODE, MACHINE),
    "ring": (Kind.OURS, LOGS),
    "log-forward": (Kind.NEVER, "Nodes forward no log of others. Send it to its receiver without HAProxy."),
    "log-profile": (Kind.OURS, LOGS),
    "traces": (Kind.OURS, LOGS),
    "fcgi-app": (Kind.NEVER, "Servers are asked by HTTP, not by FastCGI. Put a web server in front of the program."),
    "acme": (Kind.OURS, "Certificates are objects of their own; renew them where you do today, or by the API."),
}
