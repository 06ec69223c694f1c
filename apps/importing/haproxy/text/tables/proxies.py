"""Keywords of the sections `defaults`, `frontend`, `backend` and `listen`."""

from __future__ import annotations

from apps.importing.haproxy.text.tables.classes import Kind, facts
from apps.importing.haproxy.text.tables.process import ENGINE, LOGS, MACHINE, STATS, TUNING

PROXY = "Nodes are no forward proxy. Use one, such as Squid."

PROXY_WORDS = facts(
    (
        Kind.TRAFFIC,
        "",
        """
        mode bind acl use_backend default_backend server default-server server-template balance cookie appsession
        redirect block reqadd reqidel reqdel reqirep reqrep reqideny reqdeny reqipass reqpass reqiallow reqallow
        reqitarpit reqtarpit reqisetbe reqsetbe rspadd rspdel rspidel rsprep rspirep rspdeny rspideny compression
        errorfile errorfiles errorloc errorloc302 errorloc303 http-error monitor-uri monitor maxconn fullconn
        retries retry-on http-reuse http-check tcp-check http-send-name-header hash-type hash-balance-factor stick
        stick-table use-server filter enabled disabled rate-limit dispatch source use-fcgi-app contimeout clitimeout
        srvtimeout timeout http-request http-response http-after-response tcp-request tcp-response option stats
        declare monitor-net transparent quic-initial dynamic-cookie-key redisp redispatch
        cliexp srvexp usesrc
        """,
    ),
    (
        Kind.OURS,
        LOGS,
        "capture log log-format log-format-sd log-tag error-log-format unique-id-format unique-id-header log-steps",
    ),
    (
        Kind.NODE,
        MACHINE,
        """
        bind-process description id guid backlog grace server-state-file-name load-server-state-from-file
        clitcpka-cnt clitcpka-idle clitcpka-intvl srvtcpka-cnt srvtcpka-idle srvtcpka-intvl max-session-srv-conns
        force-persist ignore-persist external-check max-keep-alive-queue hash-preserve-affinity persist
        """,
    ),
    (Kind.OURS, "Alerts have their own channels; an e-mail is one of them.", "email-alert"),
    (
        Kind.OURS,
        STATS,
        """
        stats~auth stats~enable stats~hide-version stats~realm stats~refresh stats~scope stats~show-desc
        stats~show-legends stats~show-node stats~show-modules stats~uri stats~admin stats~http-request stats~socket
        stats~timeout stats~maxconn
        """,
    ),
)

OPTIONS = facts(
    (
        Kind.TRAFFIC,
        "",
        """
        forwardfor originalto httpclose forceclose http-server-close http-keep-alive http-tunnel httpchk tcp-check
        mysql-check pgsql-check redis-check smtpchk ldap-check ssl-hello-chk external-check spop-check redispatch
        allbackups http-buffer-request http_proxy prefer-last-server abortonclose transparent forwarded
        http-restrict-req-hdr-names http-drop-request-trailers http-drop-response-trailers checkcache
        accept-invalid-http-request accept-invalid-http-response accept-unsafe-violations-in-http-request
        accept-unsafe-violations-in-http-response
        """,
    ),
    (
        Kind.OURS,
        LOGS,
        """
        httplog httpslog tcplog dontlognull dontlog-normal logasap log-separate-errors log-health-checks clf
        socket-stats contstats
        """,
    ),
    (
        Kind.NODE,
        TUNING,
        """
        tcpka clitcpka srvtcpka splice-auto splice-request splice-response nolinger tcp-smart-accept tcp-smart-connect
        http-no-delay independent-streams idle-close-on-response disable-h2-upgrade http-pretend-keepalive
        http-ignore-probes persist http-use-htx h1-case-adjust-bogus-client h1-case-adjust-bogus-server
        http-use-proxy-header nolinger http-try-keepalive use-small-buffers
        """,
    ),
)

# http-request, http-response and http-after-response.
HTTP_RULES = facts(
    (
        Kind.TRAFFIC,
        "",
        """
        allow deny tarpit reject silent-drop auth redirect return set-header add-header del-header replace-header
        replace-value set-path replace-path set-pathq replace-pathq set-uri replace-uri set-query set-method
        set-status set-timeout set-var set-var-fmt unset-var wait-for-body set-bandwidth-limit block set-src set-dst
        set-dst-port set-src-port track-sc0 track-sc1 track-sc2 track-sc cache-use cache-store normalize-uri
        early-hint disable-l7-retry use-service lua do-resolve send-spoe-group send-spop-group set-map add-acl
        del-acl del-map set-acl ot-group do-log pause set-retries set-headers-bin add-headers-bin del-headers-bin
        set-priority-class set-priority-offset
        """,
    ),
    (Kind.OURS, LOGS, "capture set-log-level"),
    (
        Kind.NODE,
        TUNING,
        """
        set-nice set-mark set-tos set-fc-mark set-fc-tos set-bc-mark set-bc-tos strict-mode wait-for-handshake
        set-fc-cc
        """,
    ),
    (
        Kind.TRAFFIC,
        "",
        "sc-inc-gpc sc-inc-gpc0 sc-inc-gpc1 sc-add-gpc sc-set-gpt sc-set-gpt0",
    ),
)
TCP_RULES = facts(
    (
        Kind.TRAFFIC,
        "",
        """
        accept reject inspect-delay expect-proxy expect-netscaler-cip close silent-drop use-service switch-mode
        set-var set-var-fmt unset-var track-sc0 track-sc1 track-sc2 track-sc set-src set-dst set-dst-port
        set-src-port sc-inc-gpc sc-inc-gpc0 sc-inc-gpc1 sc-add-gpc sc-set-gpt sc-set-gpt0 do-resolve send-spoe-group
        send-spop-group ot-group lua set-bandwidth-limit attach-srv fail pause do-log
        """,
    ),
    (Kind.OURS, LOGS, "capture set-log-level"),
    (
        Kind.NODE,
        TUNING,
        """
        set-nice set-mark set-tos set-fc-mark set-fc-tos set-bc-mark set-bc-tos set-priority-class
        set-priority-offset set-fc-cc
        """,
    ),
)
TIMEOUTS = facts(
    (
        Kind.TRAFFIC,
        "",
        "client connect server queue http-request http-keep-alive tunnel check tarpit clitimeout contimeout srvtimeout",
    ),
    (Kind.NODE, TUNING, "client-fin server-fin client-hs mail"),
)
SERVER_OPTIONS = facts(
    (
        Kind.TRAFFIC,
        "",
        """
        check inter fastinter downinter rise fall port addr weight backup cookie maxconn minconn maxqueue slowstart
        ssl verify verifyhost ca-file crt sni send-proxy send-proxy-v2 send-proxy-v2-ssl send-proxy-v2-ssl-cn
        check-ssl check-send-proxy check-sni check-alpn check-proto check-via-socks4 no-check-ssl no-ssl
        no-send-proxy no-send-proxy-v2 no-backup no-check no-verifyhost disabled enabled observe error-limit
        on-error agent-check agent-port agent-inter agent-addr agent-send no-agent-check alpn proto redir track
        source usesrc socks4 crl-file non-stick namespace proxy-v2-options ws set-proxy-v2-tlv-fmt rhttp
        on-marked-down on-marked-up
        no-check-send-proxy no-send-proxy-v2-ssl no-send-proxy-v2-ssl-cn check-reuse-pool check-pool-conn-name
        """,
    ),
    (
        Kind.NODE,
        "",
        """
        id init-addr resolvers resolve-prefer resolve-opts resolve-net pool-max-conn pool-low-conn pool-purge-delay
        max-reuse tcp-ut tfo no-tfo log-proto ciphers ciphersuites curves sigalgs
        client-sigalgs force-sslv3 force-tlsv10 force-tlsv11 force-tlsv12 force-tlsv13 no-sslv3 no-tlsv10 no-tlsv11
        no-tlsv12 no-tlsv13 no-tls-tickets tls-tickets ssl-min-ver ssl-max-ver ssl-reuse no-ssl-reuse allow-0rtt npn
        stick guid hash-key init-state idle-ping log-bufsize maxreuse pool-conn-name shard tls-ticket-keys cc
        strict-maxconn renegotiate no-renegotiate
        """,
    ),
)
BIND_OPTIONS = facts(
    (
        Kind.TRAFFIC,
        "",
        """
        ssl crt crt-list alpn accept-proxy accept-netscaler-cip verify ca-file ca-verify-file crl-file strict-sni
        maxconn ssl-min-ver no-sslv3 no-tlsv10 no-tlsv11 no-tlsv12 no-tlsv13 force-tlsv12 force-tlsv13 force-tlsv10
        force-tlsv11 force-sslv3 ssl-max-ver proto interface generate-certificates ca-sign-file ca-sign-pass
        default-crt name ocsp-update transparent
        """,
    ),
    (
        Kind.NODE,
        "",
        """
        backlog curves ecdhe ciphers ciphersuites defer-accept expose-fd gid group id level mode mss namespace nice
        no-ca-names npn prefer-client-ciphers process shards severity-output sigalgs client-sigalgs tcp-ut tfo
        thread tls-ticket-keys tls-tickets no-tls-tickets uid user v4v6 v6only allow-0rtt ca-ignore-err
        crt-ignore-err idle-ping quic-cc-algo quic-force-retry quic-socket guid-prefix label no-alpn cc nbconn
        default-path ktls tcp-md5sig renegotiate no-renegotiate no-strict-sni ech
        """,
    ),
)
# What stands in rules that no reader of ours takes, and why.
WHY_NOT = {
    "use-service": ENGINE,
    "lua": "Nodes run no Lua. Say with routes and policies what the script decided, or run it as a server.",
    "filter": ENGINE,
    "send-spoe-group": ENGINE,
    "do-resolve": "The agent resolves the names of servers; a request cannot name its server.",
    "set-dst": PROXY,
    "http_proxy": PROXY,
    "transparent": "Servers see the node's address; X-Forwarded-For or the PROXY protocol name the client.",
    "source": "Servers see the node's address; X-Forwarded-For or the PROXY protocol name the client.",
    "set-map": "Requests change no maps here; a pipeline changes routes and lists by the API.",
    "del-map": "Requests change no maps here; a pipeline changes routes and lists by the API.",
    "add-acl": "Requests change no lists here; a client limit bans by itself (ban_after).",
    "del-acl": "Requests change no lists here; a client limit bans by itself (ban_after).",
    "dispatch": "A pool that has servers sends all requests to those.",
    "use-server": "Name a server of this backend, as HAProxy does not start without it.",
    "spop-check": ENGINE,
}
