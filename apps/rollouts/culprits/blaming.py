"""Whom a refusal is about: HAProxy's own words, mapped back to the objects that wrote the lines and files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.compiler.bundle import Bundle
from apps.compiler.questions.withholding import KINDS, kind_of
from apps.drivers.proxy.contract import Refused

_LINE = re.compile(r"haproxy\.cfg:(\d+)\]")
_CERTIFICATE = re.compile(r"certs/(crt-\d+)\.pem")
_MAP_LINE = re.compile(r"line (\d+) (?:of|in) file .(maps/[A-Za-z0-9_.-]+)")
_OBJECT = re.compile(r"\b(?:proxy|backend|server) .?(?:pool-\d+/)?((?:pool|srv|route)-\d+)", re.IGNORECASE)
_VALUE = re.compile(r"(?:route|pool)-\d+")


def owners_named(refusal: Refused, bundle: Bundle) -> dict[str, str]:
    """Customers' objects by id, with HAProxy's complaint about each; the surest way first for each alert.

    1. Who wrote the line: we know that ourselves, whatever text of theirs HAProxy repeats.
    2. The file, or the line of a map, that it could not read.
    3. The section that it complains about.
    """
    alerts = [line for line in refusal.output.splitlines() if "[ALERT]" in line] or [refusal.message]
    found: dict[str, str] = {}
    for alert in alerts:
        for way in (_writers(alert, refusal, bundle), _files(alert, bundle), _OBJECT.findall(alert)):
            if owners := [key for key in way if kind_of(key) in KINDS]:
                # Without the node: that is nobody's business but the operators'.
                found = dict.fromkeys(owners, alert.rpartition(" : ")[2]) | found
                break
    return found


def _writers(alert: str, refusal: Refused, bundle: Bundle) -> Iterator[str]:
    lines = [int(number) for number in _LINE.findall(alert)]
    if not lines and not refusal.output and refusal.line:
        lines = [refusal.line]
    return (bundle.line_owners.get(line, "") for line in lines)


def _files(alert: str, bundle: Bundle) -> Iterator[str]:
    yield from _CERTIFICATE.findall(alert)
    for number, path in _MAP_LINE.findall(alert):
        lines = bundle.files.get(path, b"").decode("ascii", "replace").splitlines()
        if 0 < int(number) <= len(lines):
            yield from _VALUE.findall(lines[int(number) - 1].partition(" ")[2])
