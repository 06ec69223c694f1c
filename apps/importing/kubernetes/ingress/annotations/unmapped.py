"""Annotations that make no object: what they ask for, and what there is instead."""

from __future__ import annotations

import re
from collections.abc import Mapping

NGINX, HAPROXY, TRAEFIK = "nginx.ingress.kubernetes.io/", "haproxy.org/", "traefik.ingress.kubernetes.io/"
ALB = "alb.ingress.kubernetes.io/"
CERTIFICATES = "Name a certificate in tls of the Ingress; one may be ordered and renewed here (automatic)."
# They restrict who may ask: without them the paths would be open.
CLOSES: Mapping[str, str] = {
    NGINX + "auth-url": "No other server is asked whether a request may pass; use jwt, api_keys or basic_auth.",
    NGINX + "auth-snippet": "Snippets of nginx are not read.",
    NGINX + "enable-global-auth": "No other server is asked whether a request may pass.",
    NGINX + "auth-tls-match-cn": "Names in client certificates are not compared; let the servers do it.",
}
_SNIPPET = "Only headers are read of snippets. Look whether this one keeps anybody out before you apply this."
_ERRORS = "Pages for errors are text: write them in error_pages of a policy (with intercept)."
IMPOSSIBLE: Mapping[str, str] = {
    NGINX + "configuration-snippet": _SNIPPET,
    NGINX + "server-snippet": _SNIPPET,
    NGINX + "stream-snippet": _SNIPPET,
    NGINX + "modsecurity-snippet": _SNIPPET,
    NGINX + "enable-modsecurity": "There is no ModSecurity; what it keeps out comes in.",
    NGINX + "enable-owasp-core-rules": "There is no ModSecurity; what it keeps out comes in.",
    NGINX + "modsecurity-transaction-id": "There is no ModSecurity.",
    NGINX + "auth-signin": "It belongs to auth-url.",
    NGINX + "auth-response-headers": "It belongs to auth-url.",
    NGINX + "auth-cache-key": "It belongs to auth-url.",
    NGINX + "auth-method": "It belongs to auth-url.",
    NGINX + "auth-proxy-set-headers": "It belongs to auth-url.",
    NGINX + "auth-always-set-cookie": "It belongs to auth-url.",
    NGINX + "auth-tls-error-page": "Clients without a certificate get 403, or no connection.",
    NGINX + "custom-http-errors": _ERRORS,
    NGINX + "default-backend": "A pool without servers answers 503; " + _ERRORS,
    NGINX + "disable-proxy-intercept-errors": _ERRORS,
    NGINX + "custom-headers": "Write the headers in response_headers of a policy.",
    NGINX + "mirror-target": "Only Google Cloud copies requests (mirror of a route).",
    NGINX + "mirror-request-body": "Only Google Cloud copies requests (mirror of a route).",
    NGINX + "mirror-host": "Only Google Cloud copies requests (mirror of a route).",
    NGINX + "satisfy": "Networks and passwords both have to fit.",
    NGINX + "limit-rate": "Write bandwidth in a policy; its nodes need HAProxy 2.7 or later.",
    NGINX + "limit-rate-after": "Bandwidth is limited from the first byte on.",
    NGINX + "proxy-cookie-domain": "Cookies of servers are passed on as they are.",
    NGINX + "proxy-cookie-path": "Cookies of servers are passed on as they are.",
    NGINX + "connection-proxy-header": "The header Connection is Spillway's own.",
    NGINX + "upstream-hash-by-subset": "There is no hash of subsets.",
    NGINX + "upstream-hash-by-subset-size": "There is no hash of subsets.",
    NGINX + "proxy-ssl-verify-depth": "Chains may be as long as the authorities allow.",
    NGINX + "proxy-ssl-ciphers": "The ciphers to servers are those of the nodes.",
    NGINX + "proxy-ssl-protocols": "Servers are spoken to by TLS 1.2 or later (min_version).",
    NGINX + "affinity-canary-behavior": "Write split in a policy to keep clients on their side of a canary.",
    HAPROXY + "backend-config-snippet": "Snippets of HAProxy are not read.",
    HAPROXY + "frontend-config-snippet": "Snippets of HAProxy are not read.",
    HAPROXY + "route-acl": "Conditions written for HAProxy are not read here; write them as conditions of routes.",
    TRAEFIK + "router.middlewares": "Middlewares are read of Ingresses of Traefik alone.",
    ALB + "listen-ports": "There is port 80, and 443 where the Ingress has tls; add other listeners.",
    ALB + "certificate-arn": "Name a certificate in tls of the Ingress, or add it to the listener.",
    ALB + "ssl-redirect": "Where the Ingress has tls, http is redirected; else write a redirect as a route.",
    ALB + "backend-protocol": "Write server_tls and http_version of the pool.",
    ALB + "target-group-attributes": "Persistence, slow start and draining are settings of pools.",
    "networking.gke.io/managed-certificates": CERTIFICATES,
    "networking.gke.io/certmap": CERTIFICATES,
    "ingress.gcp.kubernetes.io/pre-shared-cert": CERTIFICATES,
    "kubernetes.io/ingress.allow-http": "Where the Ingress has tls, http is redirected; delete the listener at 80.",
    TRAEFIK + "router.priority": "Routes have one order: the host, the longest path, then conditions.",
}
_PLACE = "Fleets and static IPs say where a load balancer stands; Ingresses of one class are one of them."
_STREAMS = "Spillway streams bodies; how they are buffered is a setting of nodes."
_TLS = "TLS is a setting of listeners and fleets (tls.preset)."
NODE_SETTINGS: Mapping[str, str] = {
    **{NGINX + name: _STREAMS for name in (
        "proxy-buffering", "proxy-buffer-size", "proxy-buffers-number", "proxy-request-buffering",
        "proxy-max-temp-file-size", "client-body-buffer-size", "proxy-busy-buffers-size",
    )},
    **{NGINX + name: _TLS for name in ("ssl-ciphers", "ssl-prefer-server-ciphers")},
    **{NGINX + name: "Requests and their traces are Spillway's own (log, tracing)." for name in (
        "enable-rewrite-log", "enable-opentelemetry", "opentelemetry-trust-incoming-span", "enable-opentracing",
        "opentracing-trust-incoming-span", "opentelemetry-operation-name",
    )},
    NGINX + "proxy-http-version": "Servers are spoken to by HTTP/1.1, or by HTTP/2 for gRPC.",
    NGINX + "http2-push-preload": "Browsers have given up HTTP/2 push.",
    NGINX + "service-upstream": "Servers are endpoints, or what stands for them in the table that was given.",
    NGINX + "preserve-trailing-slash": "Paths are passed on as they are.",
    **{ALB + name: _PLACE for name in (
        "scheme", "target-type", "subnets", "security-groups", "tags", "ip-address-type", "load-balancer-name",
        "group.name", "group.order", "manage-backend-security-group-rules", "target-node-labels",
    )},
    **{f"kubernetes.io/ingress.{name}-static-ip-name": _PLACE for name in ("global", "regional")},
    HAPROXY + "forwarded-for": "Servers always get X-Forwarded-For.",
    HAPROXY + "ingress.class": "It says which controller reads the Ingress.",
    TRAEFIK + "router.tls": "TLS is what the hosts have certificates for.",
    TRAEFIK + "router.pathmatcher": "Paths are prefixes, or exact.",
    TRAEFIK + "router.observability.accesslogs": "The request log is Spillway's own.",
}  # fmt: skip
# Annotations of others, by how they begin.
OF_OTHERS: tuple[tuple[str, str], ...] = (
    ("kubectl.kubernetes.io/", "The cluster's own."),
    ("kubernetes.io/ingress.class", "It says which controller reads the Ingress."),
    ("ingressclass.kubernetes.io/", "It says which controller reads an Ingress without a class."),
    ("meta.helm.sh/", "Of the tool that wrote the manifest."),
    ("helm.sh/", "Of the tool that wrote the manifest."),
    ("argocd.argoproj.io/", "Of the tool that wrote the manifest."),
    ("kustomize.toolkit.fluxcd.io/", "Of the tool that wrote the manifest."),
    ("helm.toolkit.fluxcd.io/", "Of the tool that wrote the manifest."),
    ("reloader.stakater.com/", "Of the tool that wrote the manifest."),
    ("deployment.kubernetes.io/", "The cluster's own."),
    ("endpoints.kubernetes.io/", "The cluster's own."),
    ("field.cattle.io/", "The cluster's own."),
    ("meta.kubernetes.io/", "The cluster's own."),
    ("cert-manager.io/", "Certificates are ordered and renewed here as well: automatic of a Certificate."),
    ("certmanager.k8s.io/", "Certificates are ordered and renewed here as well: automatic of a Certificate."),
    ("acme.cert-manager.io/", "Certificates are ordered and renewed here as well: automatic of a Certificate."),
    ("kubernetes.io/tls-acme", "Certificates are ordered and renewed here as well: automatic of a Certificate."),
    ("external-dns.alpha.kubernetes.io/", "Names are records of zones here."),
    ("cloud.google.com/neg", "The cluster's own."),
    ("prometheus.io/", "Spillway has metrics of its own."),
)
# Annotations of controllers that are not read, by how they begin.
OF_CONTROLLERS: tuple[tuple[str, str], ...] = (
    (ALB + "healthcheck-", "Write the health check of the pool (health_check)."),
    (ALB + "success-codes", "Write the health check of the pool (health_check)."),
    (ALB + "actions.", "Actions are not read; write what they do in routes."),
    (ALB + "conditions.", "Conditions are not read; write them in routes."),
    *((begin, "Annotations of this controller are not read; write what this one does in rules, pools and listeners.")
      for begin in (ALB, "nginx.org/", "nginx.com/", "ingress.kubernetes.io/", "networking.gke.io/", "konghq.com/",
                    "appgw.ingress.kubernetes.io/", "haproxy-ingress.github.io/", "projectcontour.io/")),
)  # fmt: skip
# What these ask for is there anyhow.
USUAL: Mapping[str, re.Pattern[str]] = {
    ALB + "listen-ports": re.compile(r"""\[(?:\s*\{\s*"HTTPS?"\s*:\s*(?:80|443)\s*\}\s*,?)+\s*\]"""),
    "kubernetes.io/ingress.allow-http": re.compile("true"),
}
NOT_OF_NGINX = "ingress-nginx has no such annotation, so it did nothing."
NO_PREFIX = "Controllers read names with a prefix, such as nginx.ingress.kubernetes.io/, so this did nothing."
# What an annotation is called that keeps somebody out.
PROTECTS = re.compile(r"auth|jwt|oidc|oauth|allow-?list|white-?list|deny|black-?list|block|waf|cidrs", re.IGNORECASE)


def is_known(name: str) -> bool:
    """Whether it stands in one of these tables."""
    return name in IMPOSSIBLE or name in NODE_SETTINGS or any(name.startswith(begin) for begin, _ in OF_OTHERS)
