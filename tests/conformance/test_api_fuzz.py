"""A short run of schemathesis before a tag; `python -m tests.conformance.api_fuzz` is the long one."""

from __future__ import annotations

import json

import pytest

from tests.conformance.api_fuzz import DOCUMENT, Asked, for_fuzzing, runs

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


@pytest.mark.exhaustive  # lists, objects and refusals are compared with the document in tests/interfaces each time
def test_no_answer_is_broken_or_other_than_written_down_and_what_is_forbidden_is_refused() -> None:
    operations = sum(len(each) for each in json.loads(DOCUMENT.read_text())["paths"].values())
    for run in runs(Asked(examples=2, phases="fuzzing")):
        assert run.good, f"{run.caller}:\n{run.said[-20_000:]}"
        assert run.cases >= operations


def test_the_document_for_fuzzing_is_closed_and_waits_for_nothing() -> None:
    document = for_fuzzing(json.loads(DOCUMENT.read_text()))
    assert "query-wait" not in json.dumps(document["paths"])
    assert document["components"]["schemas"]["Problem"]["additionalProperties"] is False
    assert "/api/v1/events" not in document["paths"]
