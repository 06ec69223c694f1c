"""What the file cannot know: names of ours, and where its servers, certificates and addresses are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """`account` owns what is not the operator's, empty for the operator's own. `fleets` run the load balancers, and
    `region` has the servers; `prefix` is put before every name.

    `servers` says where servers are now (`127.0.0.1:8080` → `app-1:8080`), `certificates` which of ours stand for the
    old files, `addresses` which static IPs for the addresses of `bind`, `passwords` those of users of whom the file has
    only hashes. `environment` are variables of the file.
    """

    account: str = ""
    fleets: tuple[str, ...] = ("europe-west1",)
    region: str = "europe-west1"
    prefix: str = ""
    servers: Mapping[str, str] = field(default_factory=dict)
    certificates: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    passwords: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    local_development: bool = False
