"""PowerDNS Authoritative by its HTTP API (version 1): one PATCH is one transaction there.

The API knows no condition, so what was seen before is looked at once more right before a write; the moment in between
is what a second writer could use (https://doc.powerdns.com/authoritative/http-api/zone.html).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import urllib3

from apps.drivers.dns.contract import Contents, Edit, RecordSet, Refused, ServerTarget, Unreachable
from apps.drivers.dns.records import BadValue, manageable, record_set

NO_ANSWER = urllib3.Retry(0, redirect=0, raise_on_redirect=False, raise_on_status=False)


class PowerDnsDriver:
    """One zone on a server at a URL (`https://ns1.example.com:8081`)."""

    at_once = 10_000  # its API takes 2 MB in one request (webserver-max-bodysize)

    def __init__(self, target: ServerTarget) -> None:
        self._target = target
        zone = quote(f"{target.domain}.", safe="")
        self._url = f"{target.server.rstrip('/')}/api/v1/servers/localhost/zones/{zone}"
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=target.seconds / 2, read=target.seconds * 2), retries=NO_ANSWER
        )

    def read(self, _known: Sequence[tuple[str, str]]) -> Contents:
        """The whole zone; disabled records are served to nobody and left out."""
        answer = self._call("GET")
        try:
            found = [self._record_set(each) for each in answer["rrsets"]]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Refused(self._no_api()) from None
        return Contents(tuple(sorted(each for each in found if each is not None)))

    def check(self) -> Contents:
        """The key of the API may do all or nothing: one that may read the zone may write it."""
        return self.read(())

    def write(self, edits: Sequence[Edit]) -> None:
        """One PATCH, after a last look."""
        served = {(each.name, each.type): each for each in self.read(()).records}
        for edit in edits:
            if served.get((edit.name, edit.type)) != edit.before:
                raise Refused(f"{edit.name} {edit.type} has changed since it was read.")
        self._call("PATCH", {"rrsets": [_rrset(edit) for edit in sorted(edits, key=_removals_first)]})

    def _record_set(self, rrset: dict[str, Any]) -> RecordSet | None:
        name = str(rrset["name"]).lower().rstrip(".")
        values = [str(each["content"]) for each in rrset["records"] if not each.get("disabled")]
        if not values or not manageable(name, rrset["type"], self._target.domain):
            return None
        try:
            return record_set(name, rrset["type"], int(rrset["ttl"]), values, self._target.domain)
        except BadValue:
            return None

    def _call(self, method: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"X-API-Key": self._target.secret, "Accept": "application/json"}
        text = None if body is None else json.dumps(body)
        try:
            answer = self._pool.request(method, self._url, body=text, headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(
                f"The API of PowerDNS at {self._target.server} did not answer ({type(error).__name__})."
            ) from None
        if answer.status >= 500:
            raise Unreachable(f"The API of PowerDNS at {self._target.server} answered {answer.status}.")
        if not 200 <= answer.status < 300:
            # A question is refused without what the answer says: whatever answers there may say anything.
            raise Refused(self._why(answer.status, answer.data if body else b""))
        return self._read_json(answer.data) if answer.data else {}

    def _read_json(self, data: bytes) -> dict[str, Any]:
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Refused(self._no_api())
        return found

    def _no_api(self) -> str:
        return f"What answers at {self._target.server} is not the API of PowerDNS."

    def _why(self, status: int, data: bytes) -> str:
        if status == 401:
            return f"The API of PowerDNS at {self._target.server} rejects the key: check the reference."
        if 300 <= status < 400:
            return (
                f"PowerDNS at {self._target.server} redirects ({status}), and its key is not sent there: "
                "write the URL of the API itself."
            )
        if status == 404:
            return f"PowerDNS at {self._target.server} does not serve {self._target.domain}: create the zone there."
        try:
            said = str(json.loads(data)["error"])
        except (ValueError, KeyError, TypeError):
            said = f"HTTP {status}"
        return f"PowerDNS rejects the {'change' if data else 'question'}: {said[:400]}"


def _removals_first(edit: Edit) -> bool:
    return edit.after is not None


def _rrset(edit: Edit) -> dict[str, Any]:
    head: dict[str, Any] = {"name": f"{edit.name}.", "type": edit.type}
    if edit.after is None:
        return head | {"changetype": "DELETE"}
    records = [{"content": value, "disabled": False} for value in edit.after.values]
    return head | {"changetype": "REPLACE", "ttl": edit.after.ttl, "records": records}
