"""The fields that have a meaning here, by kind: no other one is ever said to work, whatever stands around it."""

from __future__ import annotations

from collections.abc import Mapping

from apps.importing.values.parsing import Path

# Groups of Traefik's own kinds, with the one of its version 2.
TRAEFIK = ("traefik.io", "traefik.containo.us")
_REFS = ("group", "kind", "name", "namespace", "port", "weight")
_HEADERS = tuple(f"{part}.{field}" for part in ("set", "add") for field in ("name", "value"))
_NEW_PATH = ("path.type", "path.replaceFullPath", "path.replacePrefixMatch")
_FILTERS = (
    "type", *(f"requestHeaderModifier.{each}" for each in (*_HEADERS, "remove")),
    *(f"responseHeaderModifier.{each}" for each in (*_HEADERS, "remove")),
    *(f"requestRedirect.{each}" for each in ("scheme", "hostname", "port", "statusCode", *_NEW_PATH)),
    *(f"urlRewrite.{each}" for each in ("hostname", *_NEW_PATH)),
    *(f"cors.{each}" for each in
      ("allowOrigins", "allowMethods", "allowHeaders", "exposeHeaders", "allowCredentials", "maxAge")),
)  # fmt: skip
_MATCHES = (
    "path.type", "path.value", "method", "method.type", "method.service", "method.method",
    *(f"{part}.{field}" for part in ("headers", "queryParams") for field in ("type", "name", "value")),
)  # fmt: skip
_RULE = (
    "name", *(f"matches.{each}" for each in _MATCHES), *(f"filters.{each}" for each in _FILTERS),
    *(f"backendRefs.{each}" for each in _REFS),
    *(f"backendRefs.filters.{each}" for each in _FILTERS),
    "timeouts.request", "timeouts.backendRequest", "retry.attempts", "retry.codes",
    *(f"sessionPersistence.{each}" for each in ("type", "sessionName", "idleTimeout", "absoluteTimeout")),
)  # fmt: skip
_ROUTE = (
    *(f"spec.parentRefs.{each}" for each in (*_REFS[:5], "sectionName")), "spec.hostnames",
    *(f"spec.rules.{each}" for each in _RULE),
)  # fmt: skip
# The last two are how v1beta1 wrote it.
_INGRESS_BACKEND = ("service.name", "service.port.number", "service.port.name", "serviceName", "servicePort")
_LISTENER = (
    "name", "port", "protocol", "hostname", "tls.mode", *(f"tls.certificateRefs.{each}" for each in _REFS[:4]),
    *(f"tls.frontendValidation.caCertificateRefs.{each}" for each in _REFS[:4]), "allowedRoutes.namespaces.from",
    "allowedRoutes.namespaces.selector.matchLabels.*", "allowedRoutes.kinds.group", "allowedRoutes.kinds.kind",
)  # fmt: skip
_VALIDATION = tuple(
    f"{way}.{each}" for way in ("default.validation", "perPort.tls.validation")
    for each in ("mode", *(f"caCertificateRefs.{part}" for part in _REFS[:4]))
)  # fmt: skip
KNOWN: Mapping[str, frozenset[str]] = {
    "Ingress": frozenset(
        {"spec.ingressClassName", "spec.tls.hosts", "spec.tls.secretName", "spec.rules.host",
         "spec.rules.http.paths.path", "spec.rules.http.paths.pathType",
         *(f"spec.rules.http.paths.backend.{each}" for each in _INGRESS_BACKEND),
         *(f"spec.{field}.{each}" for field in ("defaultBackend", "backend") for each in _INGRESS_BACKEND)}
    ),
    "IngressRoute": frozenset(
        {"spec.entryPoints", "spec.tls.secretName", "spec.tls.certResolver",
         *(f"spec.routes.{each}" for each in ("match", "kind", "priority")),
         *(f"spec.routes.middlewares.{each}" for each in ("name", "namespace")),
         *(f"spec.routes.services.{each}" for each in
           ("name", "namespace", "port", "kind", "weight", "scheme", "passHostHeader", "sticky.cookie.*"))}
    ),
    "Middleware": frozenset(
        {"spec.chain.middlewares.name", "spec.chain.middlewares.namespace", "spec.stripPrefix.prefixes",
         "spec.stripPrefix.forceSlash", "spec.addPrefix.prefix", "spec.replacePath.path",
         *(f"spec.redirectScheme.{each}" for each in ("scheme", "permanent", "port")),
         *(f"spec.basicAuth.{each}" for each in ("secret", "realm", "removeHeader")),
         "spec.ipAllowList.sourceRange", "spec.ipWhiteList.sourceRange",
         *(f"spec.rateLimit.{each}" for each in ("average", "period", "burst")), "spec.inFlightReq.amount",
         "spec.buffering.maxRequestBodyBytes", "spec.retry.attempts", "spec.headers.*",
         "spec.headers.customRequestHeaders.*", "spec.headers.customResponseHeaders.*"}
    ),
    "Gateway": frozenset(
        {"spec.gatewayClassName", "spec.addresses.type", "spec.addresses.value", "spec.tls.frontend.perPort.port",
         *(f"spec.tls.frontend.{each}" for each in _VALIDATION),
         *(f"spec.listeners.{each}" for each in _LISTENER)}
    ),
    **dict.fromkeys(("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"), frozenset(_ROUTE)),
    "Service": frozenset(
        {"spec.type", "spec.externalName",
         *(f"spec.ports.{each}" for each in ("name", "port", "targetPort", "protocol", "appProtocol", "nodePort"))}
    ),
    "EndpointSlice": frozenset(
        {"metadata.labels.kubernetes.io/service-name", "addressType", "endpoints.addresses",
         *(f"endpoints.conditions.{each}" for each in ("ready", "serving", "terminating")),
         *(f"ports.{each}" for each in ("name", "port", "protocol", "appProtocol"))}
    ),
    "Endpoints": frozenset(
        {"subsets.addresses.ip", *(f"subsets.ports.{each}" for each in ("name", "port", "protocol", "appProtocol"))}
    ),
    "Secret": frozenset({"type", "data.*", "stringData.*"}),
    "ConfigMap": frozenset({"data.*"}),
    "ReferenceGrant": frozenset(
        {*(f"spec.from.{each}" for each in ("group", "kind", "namespace")),
         *(f"spec.to.{each}" for each in ("group", "kind", "name"))}
    ),
    "BackendTLSPolicy": frozenset(
        {*(f"spec.targetRefs.{each}" for each in ("group", "kind", "name", "sectionName")),
         "spec.validation.hostname", "spec.validation.wellKnownCACertificates",
         *(f"spec.validation.caCertificateRefs.{each}" for each in ("group", "kind", "name"))}
    ),
    "IngressClass": frozenset({"spec.controller"}),
    "GatewayClass": frozenset({"spec.controllerName"}),
}  # fmt: skip


def is_known(kind: str, path: Path) -> bool:
    """Whether a field has a meaning; annotations are asked for by name."""
    if path == ("kind",) or path[:2] == ("metadata", "annotations"):
        return True
    names = [part for part in path if isinstance(part, str)]
    known = KNOWN.get(kind, frozenset())
    return ".".join(names) in known or ".".join([*names[:-1], "*"]) in known
