"""What each target can do, as a page: `python -m tests.conformance.capabilities_page` writes it from the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.compiler.portability.table.asking import TABLE
from apps.compiler.portability.table.cells import Column, Row, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "capabilities.md"
MARKS = {Verdict.EXACT: "exact", Verdict.LOSSY: "with loss", Verdict.NOT: "**not**", Verdict.UNUSED: "–"}
TITLES = {"Route": "Routes", "LoadBalancer": "Listeners", "Pool": "Pools"}
_INTRODUCTION = """# What each target can do

Each field of routes, policies, listeners and pools, for each target: *exact*, *with loss* (it works and differs, or
some values are refused), *not* (refused), or – where the field has no use there. The checks of the compiler ask the
same table, and a test compiles a use of each field for each target.

Forms ask it too. They grey a field that a target of the load balancer refuses, with the reason beside it, say what is
lost of a field *with loss*, and follow the load balancer that is chosen; a pool and a policy follow all that use them.
A field that has a value stays as it is, with a warning, so that the value can be removed. Of a fleet, the oldest
HAProxy that its nodes reported counts; where none is known, nothing is greyed because of a version.

HTTP/3 also needs a HAProxy that is built with QUIC.

`python -m tests.conformance.capabilities_page` writes this page.
"""


def page() -> str:
    """The whole page."""
    return _INTRODUCTION + "".join("".join(_section(title, TABLE[kind])) for kind, title in TITLES.items())


def _section(title: str, rows: tuple[Row, ...]) -> Iterator[str]:
    yield f"\n## {title}\n\n| field | {' | '.join(Column)} |\n|---|{'---|' * len(Column)}\n"
    for row in rows:
        yield f"| `{row.name}` | {' | '.join(MARKS[row.on(column).verdict] for column in Column)} |\n"
    yield f"\n### {title}: what is lost, and what to do\n\n| field | targets | what |\n|---|---|---|\n"
    for row in rows:
        said: dict[str, list[str]] = {}
        for column in Column:
            cell = row.on(column)
            if cell.verdict in (Verdict.LOSSY, Verdict.NOT):
                said.setdefault(cell.sentence, []).append(column)
        for sentence, columns in said.items():
            yield f"| `{row.name}` | {', '.join(columns)} | {sentence} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
