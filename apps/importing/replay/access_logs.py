"""Requests of an access log (nginx, Apache, Caddy, HAProxy): a replay asks them beside those that it makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from apps.importing.values.fields import mapping

# Of the lines of a log most are alike; more different ones than these show nothing more.
MOST = 2_000
_REQUEST = re.compile(r'"([A-Z]{3,10}) (\S+) HTTP/[0-9.]+"')
_NAME = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}"
# A virtual host at the beginning, or a header that HAProxy captured.
_HOSTS = (re.compile(rf"^({_NAME})(?::[0-9]+)? ", re.IGNORECASE), re.compile(rf"[{{|]({_NAME})(?::[0-9]+)?[|}}]"))
_PATH = re.compile(r"/[\x21-\x7e]*")
# A body is not in a log, and the others make no request of a client's.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Logged:
    """A request of the log; its host is empty where the log does not have it."""

    method: str
    host: str
    path: str


def logged(lines: Iterable[str]) -> list[Logged]:
    """The first MOST different requests; lines that are none are passed over."""
    found: dict[Logged, None] = {}
    for line in lines:
        if (each := _read(line)) is not None:
            found[each] = None
        if len(found) == MOST:
            break
    return list(found)


def _read(line: str) -> Logged | None:
    found = _of_json(line) if line.lstrip().startswith("{") else _of_text(line)
    if found is None:
        return None
    method, host, target = found
    url = urlsplit(target) if target.startswith(("http://", "https://")) else None
    if url is not None:  # as HTTP/2 has it in logs of HAProxy
        host, target = host or url.hostname or "", (url.path or "/") + (f"?{url.query}" if url.query else "")
    known = method in METHODS and _PATH.fullmatch(target)
    return Logged(method, host.lower().partition(":")[0], target) if known else None


def _of_text(line: str) -> tuple[str, str, str] | None:
    request = _REQUEST.search(line)
    if request is None:
        return None
    before = line[: request.start()]
    host = next((found[1] for each in _HOSTS if (found := each.search(before))), "")
    return request[1], host, request[2]


def _of_json(line: str) -> tuple[str, str, str] | None:
    """Caddy's `request`, or fields of these names."""
    try:
        said = mapping(json.loads(line))
    except ValueError:
        return None
    said = mapping(said.get("request")) or said
    target = said.get("uri") or said.get("path")
    return (str(said.get("method")), str(said.get("host") or ""), str(target)) if target else None


def hosts_of(each: Logged, known: list[str]) -> Iterator[str]:
    """The host of the request; where the log does not have it, each that the configuration knows."""
    yield from [each.host] if each.host else known
