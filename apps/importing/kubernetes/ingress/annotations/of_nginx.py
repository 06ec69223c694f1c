"""The names of all annotations that ingress-nginx has or had: it ignores every other one."""

from __future__ import annotations

OF_NGINX = frozenset(
    """
    add-base-url affinity affinity-canary-behavior affinity-mode allowlist-source-range app-root
    auth-always-set-cookie auth-cache-duration auth-cache-key auth-keepalive auth-keepalive-requests
    auth-keepalive-share-vars auth-keepalive-timeout auth-method auth-proxy-set-header auth-proxy-set-headers
    auth-realm auth-request-redirect auth-response-headers auth-secret auth-secret-type auth-signin
    auth-signin-redirect-param auth-snippet auth-tls-error-page auth-tls-match-cn
    auth-tls-pass-certificate-to-upstream auth-tls-secret auth-tls-verify-client auth-tls-verify-depth auth-type
    auth-url backend-protocol base-url-scheme canary canary-by-cookie canary-by-header canary-by-header-pattern
    canary-by-header-value canary-weight canary-weight-total client-body-buffer-size configuration-snippet
    connection-proxy-header cors-allow-credentials cors-allow-headers cors-allow-methods cors-allow-origin
    cors-expose-headers cors-max-age custom-headers custom-http-errors default-backend denylist-source-range
    disable-proxy-intercept-errors enable-access-log enable-cors enable-global-auth enable-influxdb enable-modsecurity
    enable-opentelemetry enable-opentracing enable-owasp-core-rules enable-rewrite-log fastcgi-index
    fastcgi-params-configmap force-ssl-redirect from-to-www-redirect global-rate-limit global-rate-limit-ignored-cidrs
    global-rate-limit-key global-rate-limit-window grpc-backend http2-push-preload influxdb-host influxdb-measurement
    influxdb-port influxdb-server-name limit-allowlist limit-burst-multiplier limit-connections limit-rate
    limit-rate-after limit-rpm limit-rps limit-whitelist load-balance lua-resty-waf lua-resty-waf-debug
    lua-resty-waf-extra-rules lua-resty-waf-ignore-rulesets mirror-host mirror-request-body mirror-target
    modsecurity-snippet modsecurity-transaction-id opentelemetry-operation-name opentelemetry-trust-incoming-span
    opentracing-trust-incoming-span permanent-redirect permanent-redirect-code preserve-trailing-slash proxy-body-size
    proxy-buffer-size proxy-buffering proxy-buffers-number proxy-busy-buffers-size proxy-connect-timeout
    proxy-cookie-domain proxy-cookie-path proxy-http-version proxy-max-temp-file-size proxy-next-upstream
    proxy-next-upstream-timeout proxy-next-upstream-tries proxy-read-timeout proxy-redirect-from proxy-redirect-to
    proxy-request-buffering proxy-send-timeout proxy-ssl-ciphers proxy-ssl-name proxy-ssl-protocols proxy-ssl-secret
    proxy-ssl-server-name proxy-ssl-verify proxy-ssl-verify-depth relative-redirects rewrite-target satisfy
    secure-backends secure-verify-ca-secret server-alias server-snippet service-upstream
    session-cookie-change-on-failure session-cookie-conditional-samesite-none session-cookie-domain
    session-cookie-expires session-cookie-hash session-cookie-max-age session-cookie-name session-cookie-path
    session-cookie-samesite session-cookie-secure ssl-ciphers ssl-passthrough ssl-prefer-server-ciphers ssl-redirect
    stream-snippet temporal-redirect temporal-redirect-code upstream-fail-timeout upstream-hash-by
    upstream-hash-by-subset upstream-hash-by-subset-size upstream-max-fails upstream-vhost use-port-in-redirects
    use-regex whitelist-source-range x-forwarded-prefix
    """.split()  # noqa: SIM905 - as a list it would take a screen
)
