"""The table of capabilities and the compiler agree: each row is compiled for each target and compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from apps.compiler.portability.table.asking import READ_BY_NO_TARGET, TABLE
from apps.compiler.portability.table.cells import EXACT, VERSIONS, Cell, Column, Row, Verdict, cannot, lossy
from apps.definitions.shapes.kinds import SHAPES
from tests.conformance.capabilities_page import PAGE, page
from tests.conformance.capability_examples import ELSEWHERE, LISTENERS, POLICIES, POOLS, ROUTES, Examples
from tests.conformance.capability_worlds import Example, findings
from tests.pure.test_portability_fields import paths_of

EXAMPLES: dict[str, Examples] = {
    "Route": {**ROUTES, **POLICIES},
    "Policy": POLICIES,
    "LoadBalancer": LISTENERS,
    "Pool": POOLS,
}
ROWS = [(kind, row) for kind in ("Route", "LoadBalancer", "Pool") for row in TABLE[kind]]
# What is lost only beside other listeners, or with more pools than five: tests of AWS prove it.
OF_SEVERAL = {("listeners.tls.http2", Column.ALB), ("action.pools", Column.ALB)}
LATEST = Column.HAPROXY_3_2
Said = tuple[frozenset[str], frozenset[str]]


@cache
def plain(column: Column, *, tcp: bool, https: bool) -> Said:
    """What is said where no field is set."""
    left_out, warnings = findings(Example(tcp=tcp, https=https), column)
    return frozenset(left_out), frozenset(warnings)


def news(example: Example, column: Column) -> Said:
    """What is left out and what is warned of because of the example."""
    tcp = example.tcp or column is Column.NLB
    before = plain(column, tcp=tcp, https=example.https)
    left_out, warnings = findings(replace(example, tcp=tcp), column)
    return frozenset(left_out - before[0]), frozenset(warnings - before[1])


def own(example: Example, column: Column) -> Said:
    """Without what the newest HAProxy says as well: that is a rule of documents, or advice, and not of this target."""
    tcp = example.tcp or column is Column.NLB
    general = news(replace(example, tcp=tcp), LATEST)
    said = news(example, column)
    return said[0] - general[0], said[1] - general[1]


def disagreement(kind: str, row: Row, column: Column, cell: Cell) -> str:
    """How compiling a use of the row's field for this target contradicts the cell; empty where they agree."""
    example = ELSEWHERE.get((row.name, column), EXAMPLES[kind][row.name])
    if cell.verdict is Verdict.UNUSED and (kind == "Route" or (example.tcp and column is Column.ALB)):
        return ""  # an NLB has no routes at all, an ALB nothing for tcp
    if (row.name, column) in OF_SEVERAL:
        return ""
    of_version = column in VERSIONS
    left_out, warnings = news(example, column) if of_version else own(example, column)
    if of_version and column is not LATEST:
        warnings -= news(example, LATEST)[1]
    elif of_version:
        warnings = frozenset()
    if cell.verdict is Verdict.UNUSED:
        # Documents of tcp that have it are refused wherever they go.
        everywhere = news(replace(example, tcp=example.tcp or column is Column.NLB), LATEST)[0]
        return "" if everywhere else "; ".join(sorted(left_out | warnings))
    if cell.verdict is Verdict.EXACT:
        return "; ".join(sorted(left_out | warnings))
    if cell.verdict is Verdict.NOT:
        # A node leaves out what its HAProxy cannot do, and the rest of the object goes on.
        return "" if left_out or (of_version and warnings) else "it is not left out"
    always = any(
        cell.message in text for text in plain(column, tcp=example.tcp or column is Column.NLB, https=False)[1]
    )
    return "" if left_out or warnings or always else "nothing is said"


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=lambda each: getattr(each, "name", None) or str(each))
def test_the_table_says_what_compiling_does(kind: str, row: Row) -> None:
    found = {column.name: disagreement(kind, row, column, row.on(column)) for column in Column}
    assert {column: said for column, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("name", "column", "planted"),
    [
        ("cookies", Column.ALB, EXACT),
        ("cookies", Column.GOOGLE, lossy("Some cookies are compared.")),
        ("cookies", Column.HAPROXY_3_2, cannot("No cookies.", "Leave them out.")),
        ("methods", Column.ALB, lossy("GET alone.")),
        ("mirror", Column.HAPROXY_2_6, EXACT),
        ("rules.bandwidth", Column.HAPROXY_2_6, EXACT),
        ("rules.bandwidth", Column.HAPROXY_2_8, cannot("None.", "Leave it out.")),
    ],
)
def test_a_wrong_cell_is_found(name: str, column: Column, planted: Cell) -> None:
    row = next(row for row in TABLE["Route"] if row.name == name)
    found = disagreement("Route", row, column, planted)
    # A cell that says less than what is refused is a question of words, which the next test asks.
    assert bool(found) == (planted.verdict is not Verdict.LOSSY or name == "methods")


@pytest.mark.parametrize("kind", TABLE)
def test_each_field_has_a_row(kind: str) -> None:
    assert uncovered(kind, TABLE[kind]) == []


def test_a_field_without_a_row_is_found() -> None:
    without = tuple(row for row in TABLE["Pool"] if row.field != "host_header")
    assert uncovered("Pool", without) == ["host_header"]


def uncovered(kind: str, rows: tuple[Row, ...]) -> list[str]:
    """The fields of a kind of which neither a row speaks nor that no target reads them."""
    of_nobody = [Row(field) for field in READ_BY_NO_TARGET[kind]]
    paths = (path for path in paths_of(SHAPES[kind]) if kind == "Route" or "." in path or kind != "LoadBalancer")
    return sorted(path for path in paths if not any(row.covers(path) for row in (*rows, *of_nobody)))


@pytest.mark.parametrize("kind", TABLE)
def test_a_row_speaks_of_a_field_that_there_is_and_has_an_example(kind: str) -> None:
    paths = list(paths_of(SHAPES[kind]))
    fields = [*(row.field for row in TABLE[kind]), *READ_BY_NO_TARGET[kind]]
    assert [field for field in fields if not any(f"{path}.".startswith(f"{field}.") for path in paths)] == []
    assert [row.name for row in TABLE[kind]] == list(dict.fromkeys(row.name for row in TABLE[kind]))
    assert {row.name for row in TABLE[kind]} == set(EXAMPLES[kind])


def test_whoever_loses_something_is_told_what() -> None:
    cells = [row.on(column) for rows in TABLE.values() for row in rows for column in Column]
    assert all(cell.message.endswith(".") for cell in cells if cell.verdict in (Verdict.LOSSY, Verdict.NOT))
    assert all(cell.remedy.endswith(".") for cell in cells if cell.verdict is Verdict.NOT)


def test_the_page_has_every_row() -> None:
    assert PAGE.read_text() == page(), "Run python -m tests.conformance.capabilities_page."
