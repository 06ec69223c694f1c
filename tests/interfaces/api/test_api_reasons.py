"""Why, from which commit and which run of a pipeline a change came, kept in the audit log."""

from __future__ import annotations

import pytest

from apps.audit.models import Entry
from apps.definitions.models import Pool
from tests.interfaces.api.test_api_objects import Api, api, assert_problem

__all__ = ["api"]
POOL = {"name": "extra", "spec": {"backends": [{"region": "us-central1"}]}}
RUN = "https://ci.example.com/acme/shop/-/jobs/17?attempt=2#log"


def test_where_a_change_comes_from_is_kept_and_forgotten_with_the_request(api: Api) -> None:
    api("POST", "pools", POOL, X_Change_Reason="a sale", X_Change_Commit="1f" * 20, X_Change_Pipeline=RUN)
    api("DELETE", "pools/acme/extra", If_Match="*")
    made, gone = Entry.objects.filter(object_kind="Pool", object_label__contains="extra").order_by("id")
    assert (made.reason, made.commit, made.pipeline_url) == ("a sale", "1f" * 20, RUN)
    assert (gone.reason, gone.commit, gone.pipeline_url) == ("", "", "")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X_Change_Reason", "x" * 401),
        ("X_Change_Reason", "a\tb"),
        ("X_Change_Commit", "5+"),
        ("X_Change_Commit", "ABCDEF1"),
        ("X_Change_Commit", "a" * 65),
        ("X_Change_Pipeline", "http://ci.example.com/1"),
        ("X_Change_Pipeline", "https://user:secret@ci.example.com/1"),
        ("X_Change_Pipeline", "javascript:alert(1)"),
        ("X_Change_Pipeline", "https://ci.example.com/" + "x" * 400),
        ("X_Change_Pipeline", 'https://ci.example.com/"><b>'),
    ],
)
def test_a_wrong_one_is_refused_by_name_in_a_dry_run_too(api: Api, header: str, value: str) -> None:
    for url in ("pools", "pools?dry_run=true"):
        body = assert_problem(api("POST", url, POOL, **{header: value}), 422)
        assert body["errors"][0]["pointer"] == f"/{header.replace('_', '-')}"
    assert not Pool.objects.filter(name="extra").exists()
