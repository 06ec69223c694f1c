"""What becomes of fields that no reader took: the cluster's own, of another kind, or nothing that is known here."""

from __future__ import annotations

from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.ingress.annotations.of_nginx import OF_NGINX
from apps.importing.kubernetes.ingress.annotations.unmapped import (
    IMPOSSIBLE,
    NGINX,
    NO_PREFIX,
    NODE_SETTINGS,
    NOT_OF_NGINX,
    OF_CONTROLLERS,
    OF_OTHERS,
    USUAL,
)
from apps.importing.kubernetes.manifests.known import TRAEFIK
from apps.importing.kubernetes.manifests.manifest import ANNOTATIONS, Manifest
from apps.importing.values.parsing import Path
from apps.importing.verdicts import Verdict

READ = frozenset({"Ingress", "IngressRoute", "Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"})
BESIDE = frozenset(
    {"Service", "EndpointSlice", "Endpoints", "Secret", "ConfigMap", "IngressClass", "GatewayClass", "ReferenceGrant",
     "BackendTLSPolicy", "Middleware"}
)  # fmt: skip
# What a cluster runs by itself, whoever balances its traffic.
OF_CLUSTER = frozenset(
    {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Job", "CronJob", "Namespace", "ServiceAccount",
     "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "HorizontalPodAutoscaler", "PodDisruptionBudget",
     "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "NetworkPolicy", "CustomResourceDefinition",
     "Certificate", "Issuer", "ClusterIssuer", "ServiceMonitor", "PodMonitor", "PriorityClass", "LimitRange",
     "PrometheusRule", "VerticalPodAutoscaler", "ExternalSecret", "SealedSecret",
     "ReplicationController", "ResourceQuota", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "List"}
)  # fmt: skip
OF_TRAEFIK = frozenset({"IngressRoute", "Middleware"})
RUNS = "The cluster runs this by itself; no load balancer is made of it."
NAMES = "It names the object."
SERVICE = "How the cluster itself reaches the servers; pools have their addresses."
UNUSED = "Nothing that was imported names it."


def close(context: Context) -> None:
    """Give every open field its verdict."""
    for manifest in context.manifests:
        for path, line in manifest.open_lines():
            verdict, reason = _verdict(manifest, path)
            context.ledger.note(line, verdict, reason)


def _verdict(manifest: Manifest, path: Path) -> tuple[Verdict, str]:
    kind = manifest.kind
    if not path or kind == "no kind":
        return Verdict.NOT_POSSIBLE, "This is no object of Kubernetes; one has apiVersion, kind and metadata."
    if kind in OF_CLUSTER:
        return Verdict.NODE_SETTING, RUNS
    if path[0] == "status":
        return Verdict.NODE_SETTING, "The cluster writes this."
    if kind not in READ | BESIDE or (kind in OF_TRAEFIK and manifest.group not in TRAEFIK):
        return Verdict.NOT_POSSIBLE, f"Objects of the kind {kind} are not read."
    if path[:2] == ANNOTATIONS and len(path) == 3:
        return _annotation(manifest, str(path[2]))
    if path[0] == "metadata":
        reason = NAMES if path[1:2] in (("name",), ("namespace",)) else "Of the cluster, or of whoever wrote it."
        return Verdict.NODE_SETTING, reason
    if path[0] == "apiVersion":
        return Verdict.NODE_SETTING, "The version by which the cluster reads it."
    return _field(manifest, path)


def _annotation(manifest: Manifest, name: str) -> tuple[Verdict, str]:
    if name in USUAL and USUAL[name].fullmatch(manifest.annotations()[name].strip()):
        return Verdict.MAPPED, ""
    if name in IMPOSSIBLE:
        return Verdict.NOT_POSSIBLE, IMPOSSIBLE[name]
    beside = NODE_SETTINGS.get(name) or next((why for begin, why in OF_OTHERS if name.startswith(begin)), "")
    if beside:
        return Verdict.NODE_SETTING, beside
    if name.startswith(NGINX) and name.removeprefix(NGINX) not in OF_NGINX:
        return Verdict.DEAD, NOT_OF_NGINX
    other = next((reason for begin, reason in OF_CONTROLLERS if name.startswith(begin)), "")
    if other:
        return Verdict.NOT_POSSIBLE, other
    if "/" not in name:
        return Verdict.DEAD, NO_PREFIX
    if manifest.kind in BESIDE and "." in name.partition("/")[0]:
        return Verdict.NOT_POSSIBLE, f"This annotation of a {manifest.kind} is not read."
    return Verdict.NOT_POSSIBLE, "This annotation is not known here."


def _field(manifest: Manifest, path: Path) -> tuple[Verdict, str]:
    """Fields of kinds that stand beside others have a meaning where something names them."""
    kind = manifest.kind
    if kind == "ConfigMap":
        return Verdict.NODE_SETTING, "A controller's own settings, or a program's; look what of it you rely on."
    if kind == "Service":
        if path[:2] == ("spec", "ports") or path == ("kind",):
            return Verdict.DEAD, UNUSED
        return Verdict.NODE_SETTING, SERVICE
    if kind in ("EndpointSlice", "Endpoints", "Secret", "ReferenceGrant", "BackendTLSPolicy", "Middleware"):
        unknown = kind in ("ReferenceGrant", "BackendTLSPolicy") and not manifest.is_known(path)
        return (Verdict.NOT_POSSIBLE, f"This field of a {kind} is not read.") if unknown else (Verdict.DEAD, UNUSED)
    if kind in ("IngressClass", "GatewayClass"):
        return Verdict.NODE_SETTING, "Which program reads the objects of the class."
    if kind == "Gateway" and path[:2] in (("spec", "addresses"), ("spec", "infrastructure")):
        return Verdict.NODE_SETTING, "Load balancers are on the addresses of nodes, or on static IPs (addresses)."
    return Verdict.NOT_POSSIBLE, f"This field of {kind} is not read."
