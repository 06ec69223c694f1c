"""Each feature of haproxy.cfg that we say can be said is said, compiled, and found in what HAProxy reads."""

from __future__ import annotations

import copy
import re
from dataclasses import replace

import pytest

from apps.accounts.models import Account
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.capabilities import NodeBuild
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import apply_document
from apps.fleet.models import Fleet
from tests.conformance.haproxy_features import FLEET, PAGE, ROWS, SIMPLE, YES, Row, documents, page
from tests.conftest import actor_of
from tests.fixture_cache import CachedFixture

pytestmark = [pytest.mark.long, pytest.mark.django_db]
SAID = [row for row in ROWS if row.answer == YES]
NOTHING = Row("", None, "")
# What no row says anything of.
SAME = [each for each in SIMPLE if each["kind"] in ("Region", "Fleet", "Certificate", "NetworkList")]


def _build() -> None:
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=copy.deepcopy(SAME))


_WORLD = CachedFixture(_build)


def written(row: Row) -> str:
    """Everything that HAProxy reads of the row's documents."""
    _WORLD.put()
    changed = [each for each in documents(row) if each not in SAME]
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=changed)
    snapshot = snapshot_of(Fleet.objects.get(name=FLEET))
    compilation = compile_snapshot(replace(snapshot, builds=(NodeBuild("n1", (3, 2), http3=True),)))
    assert compilation.left_out == ()
    files = compilation.output.files
    return "\n".join(content.decode() for path, content in files.items() if path.endswith((".cfg", ".map")))


@pytest.mark.parametrize("row", SAID, ids=lambda row: row.feature)
def test_what_can_be_said_is_read_by_haproxy(row: Row) -> None:
    assert re.search(row.writes, written(row), re.MULTILINE)


def test_nothing_of_it_is_read_where_nobody_says_it() -> None:
    plain = written(NOTHING)
    assert [row.feature for row in SAID if row.says and re.search(row.writes, plain, re.MULTILINE)] == []
    assert [row.feature for row in SAID if not row.writes] == []


def test_what_cannot_be_said_has_its_reason() -> None:
    others = [row for row in ROWS if row.answer != YES]
    assert [row.feature for row in others if row.writes or row.says or not row.how.endswith(".")] == []


def test_the_page_has_every_row() -> None:
    assert PAGE.read_text() == page(), "Run python -m tests.conformance.haproxy_features."
