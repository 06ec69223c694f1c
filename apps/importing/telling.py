"""The report of an import as text: lines by verdict, what differs everywhere, open questions, then the counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apps.importing.contract import Import
from apps.importing.verdicts import LineReport, Verdict

HEADINGS = {
    Verdict.NOT_POSSIBLE: "Not possible",
    Verdict.DIFFERENT: "Mapped with a difference",
    Verdict.DEAD: "Never used",
    Verdict.NODE_SETTING: "Settings of nodes, or done by Spillway itself",
    Verdict.MAPPED: "Mapped",
}
SHOWN = (Verdict.NOT_POSSIBLE, Verdict.DIFFERENT, Verdict.DEAD)


def report(found: Import, everywhere: Iterable[str], *, every_line: bool = False) -> Iterator[str]:
    """The lines of the report; mapped lines and settings of nodes only where every line is asked for."""
    for verdict, heading in HEADINGS.items():
        lines = [line for line in found.report if line.verdict is verdict]
        if lines and (every_line or verdict in SHOWN):
            yield f"{heading}:"
            yield from (text for line in lines for text in _line(line, every_line=every_line))
    yield "Different everywhere:"
    yield from (f"  {sentence}" for sentence in everywhere)
    if found.needs:
        yield "Before this can be applied, say:"
        yield from (f"  {need}" for need in found.needs)
    yield counts(found)


def counts(found: Import) -> str:
    """How many lines have each verdict, and how many objects came of them."""
    by_verdict = Counter(line.verdict for line in found.report)
    by_kind = Counter(document["kind"] for document in found.documents)
    verdicts = ", ".join(f"{by_verdict[verdict]} {verdict.replace('_', ' ')}" for verdict in HEADINGS)
    kinds = ", ".join(f"{count} {kind}" for kind, count in by_kind.items()) or "no objects"
    return f"{len(found.report)} lines: {verdicts}. Objects: {kinds}."


def _line(line: LineReport, *, every_line: bool) -> Iterator[str]:
    yield f"  {line.number or '':>5}  {line.text}" + (f"  ({line.file})" if line.file else "")
    yield from (f"         {reason}" for reason in line.reasons)
    if every_line and line.objects:
        shown = ", ".join(line.objects[:5])
        more = f" and {len(line.objects) - 5} more" if len(line.objects) > 5 else ""
        yield f"         → {shown}{more}"


_OPTIONS = re.compile(r"--(map-servers|certificate|address|password|env|files)\b( ?)")
_FIELDS = {
    "map-servers": "servers",
    "certificate": "certificates",
    "address": "addresses",
    "password": "passwords",
    "env": "environment",
    "files": "files",
}


def by_fields(sentence: str) -> str:
    """A sentence that names an option of the command, for who fills in fields: `--env A=…` is `environment: A=…`."""
    return _OPTIONS.sub(lambda match: _FIELDS[match[1]] + (": " if match[2] else ""), sentence)


def as_data(found: Import, everywhere: Iterable[str]) -> Mapping[str, Any]:
    """The whole import as plain data, for programs."""
    return {
        "objects": list(found.documents),
        "everywhere": list(everywhere),
        "needs": list(found.needs),
        "report": [
            {
                "line": line.number,
                "file": line.file,
                "text": line.text,
                "section": line.section,
                "verdict": str(line.verdict),
                "reasons": list(line.reasons),
                "objects": list(line.objects),
            }
            for line in found.report
        ],
    }
