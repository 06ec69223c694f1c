"""Assertions of a route, as they are sent, stored and compiled.

`{method?, host?, path, headers?, expect}`; `expect` has one of `pool` (a reference), `route` (a name of the same
account), `redirect` (a location, or true for any) and `status`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from apps.compiler import grammar
from apps.compiler.model.fleet import Assertion
from apps.definitions.reading.fields import Reader, integer, reference

MOST = 20
MOST_HEADERS = 10
EXPECTED = ("pool", "route", "redirect", "status")
# A location is only compared with ours, so it is as wide as those can be.
_LOCATION = re.compile(r"https?://[A-Za-z0-9.:-]{1,260}/[A-Za-z0-9._~+=:@&!%?/-]{0,2048}")


def read_assertions(reader: Reader, hostname: str | None) -> tuple[Assertion, ...] | None:
    """The field `assertions` of a route of this hostname, None where it is left out: they stay as they are."""
    if not reader.has("assertions"):
        return None
    children = reader.children("assertions")
    if len(children) > MOST:
        reader.fault("assertions", "too_many", f"Use at most {MOST} assertions in one route.")
        return ()
    return tuple(_assertion(child, hostname) for child in children)


def _assertion(reader: Reader, hostname: str | None) -> Assertion:
    method = reader.optional("method", grammar.method, "GET")
    path = reader.required("path", grammar.path)
    host = reader.optional("host", grammar.redirect_host, "")
    if host and hostname and hostname not in (host, "*." + host.partition(".")[2]):
        reader.fault("host", "other_host", f"Use a host that this route matches ({hostname}), or leave it out.")
    headers = tuple(_header(child) for child in reader.children("headers"))
    if len(headers) > MOST_HEADERS:
        reader.fault("headers", "too_many", f"Use at most {MOST_HEADERS} headers in one assertion.")
    pool, route, redirect, status = _expect(reader.child("expect"), reader)
    reader.close()
    return Assertion(path, method, host, tuple(sorted(headers)), pool, route, redirect, status)


def _header(reader: Reader) -> tuple[str, str]:
    found = reader.required("name", grammar.header_name), reader.required("value", grammar.header_value)
    reader.close()
    return str(found[0]), str(found[1])


def _expect(reader: Reader | None, parent: Reader) -> tuple[str, str, str | None, int | None]:
    if reader is None:
        parent.fault("expect", "missing", "Set expect to exactly one of pool, route, redirect and status.")
        return "", "", None, None
    if len([field for field in EXPECTED if reader.has(field)]) != 1:
        reader.fault("", "one_expectation", "Expect exactly one of pool, route, redirect and status.")
    found = (
        reader.optional("pool", reference, ""),
        reader.optional("route", grammar.name, ""),
        reader.optional("redirect", _location, None),
        reader.optional("status", integer(200, 599), None),
    )
    reader.close()
    return found


def _location(value: object) -> str:
    if value is True:
        return ""
    if not isinstance(value, str) or not _LOCATION.fullmatch(value):
        raise grammar.GrammarError(
            "location", "Write the redirect target, such as https://host/path, or true for any target."
        )
    return value


def assertion_document(assertion: Assertion) -> dict[str, Any]:
    """An assertion as it is stored and shown."""
    headers = [{"name": name, "value": value} for name, value in assertion.headers]
    if assertion.pool:
        expect: dict[str, Any] = {"pool": assertion.pool}
    elif assertion.route:
        expect = {"route": assertion.route}
    elif assertion.redirect is not None:
        expect = {"redirect": assertion.redirect or True}
    else:
        expect = {"status": assertion.status}
    return {
        "method": assertion.method,
        "host": assertion.host or None,
        "path": assertion.path,
        "headers": headers,
        "expect": expect,
    }


def frozen_assertions(documents: Iterable[dict[str, Any]], account: str) -> tuple[Assertion, ...]:
    """Stored assertions as the compiler reads them: pools and routes by their labels."""
    return tuple(_frozen(document, account) for document in documents)


def _frozen(document: dict[str, Any], account: str) -> Assertion:
    expect, redirect = document["expect"], document["expect"].get("redirect")
    pool, route = expect.get("pool", ""), expect.get("route", "")
    return Assertion(
        path=document["path"],
        method=document["method"],
        host=document["host"] or "",
        headers=tuple((header["name"], header["value"]) for header in document["headers"]),
        pool=f"{account}/{pool}" if pool and "/" not in pool else pool,
        route=f"{account}/{route}" if route else "",
        redirect="" if redirect is True else redirect,
        status=expect.get("status"),
    )
