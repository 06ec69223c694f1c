"""Reads what names a source of servers: `dns://name:port`, `srv://…`, an https URL, `etcd://…` and more; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from apps.compiler.grammar import GrammarError
from apps.core.called_urls import Refused, read_url

LONGEST = 400
_LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)({_LABEL}\.)+{_LABEL}")
_WRITE = (
    "Write dns://name:port, srv://_service._tcp.name, kubernetes://cluster/namespace/service:port, "
    "etcd://registry/prefix/, consul://registry/service, autoscaling://registry/group:port, "
    "ecs://registry/cluster/service:port, ec2://registry/tag=value:port, file://name, heartbeat://30, or the https URL "
    "of a target list."
)
# Names of Kubernetes (RFC 1123, 1035), of a port of a Service, and of a zone, which is the value of a label.
_OBJECT = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_SERVICE = re.compile(
    rf"(?P<registry>{_OBJECT})/(?P<namespace>{_OBJECT})/(?P<service>{_OBJECT})"
    rf"(:((?P<port>[1-9][0-9]{{0,4}})|(?P<port_name>(?=[a-z0-9-]{{0,14}}[a-z])[a-z0-9]([a-z0-9-]{{0,13}}[a-z0-9])?)))?"
    r"(\?zone=(?P<zone>[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?))?"
)
_PREFIX = re.compile(rf"(?P<registry>{_OBJECT})(?P<prefix>(/[A-Za-z0-9._~-]+)+/)")
_INSTANCES = re.compile(
    rf"(?P<registry>{_OBJECT})/(?P<name>[A-Za-z0-9._-]{{1,128}})(\?tag=(?P<tag>[A-Za-z0-9._:=/-]{{1,100}}))?"
)
_GROUP = re.compile(rf"(?P<registry>{_OBJECT})/(?P<name>[A-Za-z0-9._-]{{1,255}}):(?P<port>[1-9][0-9]{{0,4}})")
_ECS = re.compile(
    rf"(?P<registry>{_OBJECT})/(?P<name>[A-Za-z0-9_-]{{1,255}}/[A-Za-z0-9_-]{{1,255}}):(?P<port>[1-9][0-9]{{0,4}})"
)
# A tag of AWS and its value; in its filters `*` and `?` would stand for any sign.
_SIGN = "[A-Za-z0-9_.:/+@-]"
_TAGGED = re.compile(
    rf"(?P<registry>{_OBJECT})/(?P<name>{_SIGN}{{1,127}}={_SIGN}{{1,200}}):(?P<port>[1-9][0-9]{{0,4}})"
)
SHORTEST_LEASE_S, LONGEST_LEASE_S = 10, 3600


class Kind(StrEnum):
    """How a source is asked."""

    DNS = "dns"
    SRV = "srv"
    HTTP = "http"
    HEARTBEAT = "heartbeat"
    KUBERNETES = "kubernetes"
    ETCD = "etcd"
    CONSUL = "consul"
    FILE = "file"
    AUTOSCALING = "autoscaling"
    ECS = "ecs"
    EC2 = "ec2"


# These tell by themselves what changes.
WATCHED = (Kind.KUBERNETES, Kind.ETCD, Kind.CONSUL)
AT_CLOUDS = (Kind.AUTOSCALING, Kind.ECS, Kind.EC2)


@dataclass(frozen=True, slots=True)
class Source:
    """A source: `name` is a DNS name, or the URL; `port` is that of all servers, zero where each has its own.

    `lease_s` is how long servers that register themselves stay without saying so again. `registry` is what the
    operator calls a cluster or a file. A Service of Kubernetes is `service` in the namespace `name`; its port may have
    a name, and a `zone` leaves out all others. Of etcd, `name` is the prefix of the keys; of Consul a service, of which
    a `tag` leaves out instances without it; of AWS a group, a cluster and its service, or a tag and its value.
    """

    kind: Kind
    name: str
    port: int = 0
    lease_s: int = 0
    registry: str = ""
    service: str = ""
    port_name: str = ""
    zone: str = ""
    tag: str = ""


def read_source(text: str) -> Source:
    """The source that is named. Raises GrammarError."""
    kind, _, rest = text.partition("://")
    if kind == "https":
        return _url(text)
    read = _READERS.get(kind)
    if read is None:
        raise GrammarError("source", _WRITE)
    return read(rest)


def source(value: object) -> str:
    """The text of a source, empty for none. Raises GrammarError."""
    if value == "":
        return ""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise GrammarError("source", _WRITE)
    read_source(value)
    return value


def _url(text: str) -> Source:
    try:
        read_url(text, schemes=("https",))
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return Source(Kind.HTTP, text)


def _addresses(text: str) -> Source:
    name, _, port = text.rpartition(":")
    if not re.fullmatch("[1-9][0-9]{0,4}", port) or int(port) > 65535:
        raise GrammarError("source", "Add the port of the servers: dns://app.internal:8080.")
    return Source(Kind.DNS, _name(name), int(port))


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise GrammarError("source", "Write the DNS name in lower case, without a final dot: app.internal.")
    return text


def _lease(text: str) -> Source:
    if not re.fullmatch("[1-9][0-9]{1,3}", text) or not SHORTEST_LEASE_S <= int(text) <= LONGEST_LEASE_S:
        raise GrammarError("source", "Say for how many seconds a heartbeat counts, 10 to 3600: heartbeat://30.")
    return Source(Kind.HEARTBEAT, "", lease_s=int(text))


def _file(text: str) -> Source:
    if not re.fullmatch(_OBJECT, text):
        raise GrammarError("source", "Write file:// and the name that the operator gave the file: file://shop.")
    return Source(Kind.FILE, "", registry=text)


def _keys(text: str) -> Source:
    found = _PREFIX.fullmatch(text)
    if found is None:
        raise GrammarError("source", "Write the keys as etcd://registry/services/web/, with a slash at the end.")
    return Source(Kind.ETCD, found["prefix"], registry=found["registry"])


def _instances(text: str) -> Source:
    found = _INSTANCES.fullmatch(text)
    if found is None:
        raise GrammarError("source", "Write the service as consul://registry/web, or consul://registry/web?tag=blue.")
    return Source(Kind.CONSUL, found["name"], registry=found["registry"], tag=found["tag"] or "")


def _at_cloud(kind: Kind, form: re.Pattern[str], example: str, text: str) -> Source:
    found = form.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise GrammarError("source", f"Write {kind}://registry/{example}, with the port of the servers.")
    return Source(kind, found["name"], int(found["port"]), registry=found["registry"])


def _service(text: str) -> Source:
    found = _SERVICE.fullmatch(text)
    if found is None or int(found["port"] or 0) > 65535:
        raise GrammarError(
            "source",
            "Write the Service as kubernetes://cluster/namespace/service:port, with the number or the name of a port "
            "of its pods; ?zone=name leaves out pods of other zones.",
        )
    return Source(
        Kind.KUBERNETES,
        found["namespace"],
        int(found["port"] or 0),
        registry=found["registry"],
        service=found["service"],
        port_name=found["port_name"] or "",
        zone=found["zone"] or "",
    )


_READERS: Mapping[str, Callable[[str], Source]] = {
    Kind.DNS: _addresses,
    Kind.SRV: lambda text: Source(Kind.SRV, _name(text)),
    Kind.KUBERNETES: _service,
    Kind.ETCD: _keys,
    Kind.CONSUL: _instances,
    Kind.FILE: _file,
    Kind.AUTOSCALING: partial(_at_cloud, Kind.AUTOSCALING, _GROUP, "group:8080"),
    Kind.ECS: partial(_at_cloud, Kind.ECS, _ECS, "cluster/service:8080"),
    Kind.EC2: partial(_at_cloud, Kind.EC2, _TAGGED, "role=web:8080"),
    Kind.HEARTBEAT: _lease,
}
