"""What servers get instead of what the client asked for: another host, another path, no query."""

from __future__ import annotations

from apps.compiler.model.policy import Rewrite
from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.writer import Opaque, Section, Value


def add(section: Section, listener: Listener, when: tuple[str, ...], rewrite: Rewrite) -> None:
    """After every rule that compares host or path; X-Forwarded-Host keeps what was asked for."""
    del listener
    if rewrite.host is not None:
        section.add("http-request", "set-header", "Host", Value(rewrite.host), "if", *when)
    if rewrite.path is not None:
        section.add("http-request", "set-path", Opaque(rewrite.path.replace("%", "%%")), "if", *when)
    if rewrite.drop_query:
        section.add("http-request", "set-pathq", "%[path]", "if", *when)
