"""Limits per client of haproxy.cfg: which are kept, what is said of those that differ, and how they join."""

from __future__ import annotations

import pytest

from apps.importing.verdicts import Verdict
from tests.pure.test_importing import frontend, rules_of, verdict_of

LIMITED = "http-request deny deny_status 429 if { sc_http_req_rate(0) gt 50 }"
SCANNED = "http-request deny deny_status 429 if { sc_http_err_rate(0) gt 10 }"


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("deny deny_status 429 if { sc_http_req_rate(0) gt 10 }", Verdict.MAPPED),
        ("deny if { sc_http_req_rate(0) gt 10 }", Verdict.DIFFERENT),
        (
            'deny deny_status 429 content-type text/plain string "no" if { sc_http_req_rate(0) gt 10 }',
            Verdict.DIFFERENT,
        ),
        ('deny content-type text/plain string "no" if { src 192.0.2.0/24 }', Verdict.DIFFERENT),
        ("deny if { src 192.0.2.0/24 }", Verdict.MAPPED),
        ("deny deny_status 413 if { req.body_size gt 10000 }", Verdict.MAPPED),
        ("deny if { req.body_size gt 10000 }", Verdict.DIFFERENT),
    ],
)
def test_another_status_or_text_of_what_a_policy_refuses_is_said(rule: str, verdict: Verdict) -> None:
    table = "stick-table type ip size 1m expire 10m store http_req_rate(60s)"
    found = frontend(table, "http-request track-sc0 src", f"http-request {rule}", "default_backend a")
    assert verdict_of(found, f"http-request {rule}")[0] is verdict


@pytest.mark.parametrize(
    ("periods", "lines", "block", "differs"),
    [
        (("1m", "1m"), (LIMITED, SCANNED), {"requests": 50, "errors": 10, "per": "minute"}, ""),
        (("1s", "1m"), (LIMITED, SCANNED), {"requests": 50, "errors": 1, "per": "second"}, SCANNED),
        (("1s", "1m"), (SCANNED, LIMITED), {"errors": 10, "requests": 3000, "per": "minute"}, LIMITED),
    ],
)
def test_limits_of_requests_and_errors_are_one_in_one_period(
    periods: tuple[str, str], lines: tuple[str, str], block: dict[str, object], differs: str
) -> None:
    table = "stick-table type ip size 1m expire 10m store http_req_rate({}),http_err_rate({})".format(*periods)
    found = frontend(table, "http-request track-sc0 src", *lines, "default_backend a")
    (route,) = [each["spec"] for each in found.documents if each["kind"] == "Route"]
    assert rules_of(found, route)["client_limit"] == block
    for line in lines:
        verdict, said = verdict_of(found, line)
        assert verdict is (Verdict.DIFFERENT if line in (SCANNED, differs) else Verdict.MAPPED)
        assert ("not what is refused here" in said) is (line == SCANNED)
        assert ("as other limits of these clients are" in said) is (line == differs)
