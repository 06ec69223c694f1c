"""Error pages of a frontend: files of `errorfile`, which hold a whole response."""

from __future__ import annotations

import re
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line

_TYPE = re.compile(r"^content-type:\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)


Pages = list[tuple[Line, str, str]]


def error_pages(context: Context, lines: Pages) -> dict[str, Any]:
    """The block of a policy for the lines of a request: of its frontend, then of its backend, whose pages come first.

    It has one page; where the file has several, that of 503 is for all of their statuses.
    """
    found: dict[int, dict[str, str]] = {}
    for line, status, path in lines:
        page = _page(context, line, path)
        if page is not None and status.isdecimal() and 400 <= int(status) <= 599:
            found[int(status)] = page
    if not found:
        return {}
    page = found.get(503) or next(iter(found.values()))
    if any(each != page for each in found.values()):
        for line, _, _ in lines:
            context.ledger.differs(line, "Routes have one error page for all of their statuses, with {status} in it.")
    return {"error_pages": {"statuses": sorted(found), **page}}


def pages_of(context: Context, section: Section) -> Pages:
    """The lines of a section with status and path of their page."""
    lines = [(line, line.words[1], line.words[2]) for line in section.each("errorfile") if len(line.words) > 2]
    for line in section.each("errorfiles"):
        lines += _of_section(context, line)
    for line in (*section.each("errorloc"), *section.each("errorloc302"), *section.each("errorloc303")):
        context.ledger.differs(line, "Clients get an error page of Spillway, and no redirect to one.")
    return lines + [each for line in section.each("http-error") for each in _of_error(context, line)]


def _of_error(context: Context, line: Line) -> list[tuple[Line, str, str]]:
    """`http-error status 503 content-type text/html file PATH`; of texts it is said that they have no place."""
    words = line.words
    status = words[words.index("status") + 1] if "status" in words[:-1] else ""
    for word in ("errorfile", "file", "lf-file"):
        if word in words[:-1]:
            return [(line, status, words[words.index(word) + 1])]
    context.ledger.differs(line, "Write the page into error_pages of a policy; clients get HAProxy's own page.")
    return []


def _of_section(context: Context, line: Line) -> list[tuple[Line, str, str]]:
    for each in context.configuration.of_kind("http-errors"):
        if each.name == line.words[1]:
            context.ledger.mapped(each.header)
            context.ledger.mapped(line)
            return [(own, own.words[1], own.words[2]) for own in each.each("errorfile") if len(own.words) > 2]
    context.ledger.impossible(line, f"There is no section http-errors {line.words[1]}.")
    return []


def _page(context: Context, line: Line, path: str) -> dict[str, str] | None:
    text = context.files.text(path)
    if path == "/dev/null":
        context.ledger.differs(line, "Clients get an error page and not an empty answer.")
        return None
    if text is None:
        context.ledger.differs(line, f"The page {path} was not given; clients get HAProxy's own page.")
        return None
    head, _, body = text.replace("\r\n", "\n").partition("\n\n")
    if not head.startswith("HTTP/"):
        head, body = "", text
    kind = _TYPE.search(head)
    try:
        page = {"body": grammar.body(body.replace("{", "&#123;") if "{" in body else body)}
        if kind:
            page["content_type"] = grammar.content_type(kind[1].lower())
    except GrammarError as error:
        context.ledger.differs(line, f"The page {path} cannot be used: {error.message}")
        return None
    context.ledger.mapped(line)
    return page
