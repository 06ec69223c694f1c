"""A port of a Service as a pool; the same port with other settings is another pool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.objects.endpoints import Target, backend_of, port_of


@dataclass(slots=True)
class Pools:
    """Names of pools by Service, port and settings."""

    context: Context
    _names: dict[tuple[str, str, str, str], str] = field(default_factory=dict)

    def name_of(self, target: Target, settings: Mapping[str, Any], protocol: str = "http") -> str:
        """The pool of this port; made when it is first asked for."""
        number = self._number(target)
        said = json.dumps({**settings, "protocol": protocol}, sort_keys=True)
        key = (target.namespace, target.service, number, said)
        if key not in self._names:
            again = sum(each[:3] == key[:3] for each in self._names)
            called = f"{target.namespace}-{target.service}-{number}" + (f"-{again + 1}" if again else "")
            name = self.context.names.name("Pool", called)
            self._names[key] = name
            self.context.pools[name] = self._spec(target, settings, protocol, f"Pool {name}")
        return self._names[key]

    def _number(self, target: Target) -> str:
        service = self.context.find("Service", (target.namespace, target.service))
        port = port_of(service, target.port)
        return str(port.number) if port else target.port

    def _spec(self, target: Target, settings: Mapping[str, Any], protocol: str, owner: str) -> dict[str, Any]:
        try:
            servers = backend_of(self.context, target, owner)
        except GrammarError as error:
            servers = {}
            self.context.need(f"Where the servers of {target.key} are: {error.message} (--map-servers {target.key}=…).")
        return {
            "protocol": protocol,
            "balance": "roundrobin",
            **settings,
            "backends": [{"region": self.context.options.region, **servers}],
        }
