"""Answers of certificate authorities' HTTP challenges (RFC 8555, 8.3), by each node itself, from a map.

They come before redirects, policies and routes of the host: what a host does otherwise keeps no certificate from it.
A token without an entry goes on as any other request, so that servers may have certificates of their own. Entries come
and go without a reload.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Snapshot
from apps.compiler.targets.haproxy.writer import Section

PATH = "/.well-known/acme-challenge/"
MAP = "maps/challenges.map"


def challenge_map(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """`host/token` → the answer; no map where nobody issues certificates."""
    if snapshot.challenges is None:
        return {}
    return {MAP: {f"{each.host}/{each.token}": each.answer for each in snapshot.challenges}}


def add_challenges(section: Section, snapshot: Snapshot) -> None:
    """Answer what has an entry; without a line in the log, for no route is meant."""
    if snapshot.challenges is None:
        return
    asked = ("{", "path", "-m", "beg", PATH, "}")
    key = f"%[req.hdr(host),field(1,:),lower]/%[path,bytes({len(PATH)})]"
    section.add("http-request", "set-var-fmt(txn.challenge)", key, "if", *asked)
    section.add("http-request", "set-var(txn.answer)", f"var(txn.challenge),map_str({MAP})", "if", *asked)
    known = ("{", "var(txn.answer)", "-m", "found", "}")
    section.add("http-request", "set-log-level", "silent", "if", *known)
    section.add(
        *("http-request", "return", "status", "200", "content-type", "application/octet-stream"),
        *("lf-string", "%[var(txn.answer)]", "if", *known),
    )
