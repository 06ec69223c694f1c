"""Writes the table of results, docs/reference/gateway-api.md: every case with what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.conformance.gateway_api.cases import KINDS, Case, cases
from tests.conformance.gateway_api.suite import RELEASE

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "gateway-api.md"
HEAD = f"""\
# Gateway API

Spillway is no controller of Kubernetes: it has documents of its own. This page says which conformance cases of the
[Gateway API](https://gateway-api.sigs.k8s.io/) {RELEASE} such documents can express. For each case, a load balancer
with its routes, pools and policies is compiled, a HAProxy runs it, and the case's requests are sent through it.

`python -m tests.conformance.gateway_api` writes this page from the documents and requests in
`tests/conformance/gateway_api/`; `tests/conformance/test_gateway_api.py` asks every one of them.

* **pass**: every request of the case gets what the case expects. The conditions that a controller writes to
  Kubernetes objects are never asked. A remark says where our documents differ from the case's.
* **not supported**: the case, or a part of it, cannot be expressed; the remark says why.
* **status only**: the case sends no request.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, _summary()]
    for kind in KINDS:
        of_kind = [each for each in cases() if each.kind == kind]
        parts.append(f"## {kind}\n\n{_table(of_kind)}")
    return "\n".join(parts)


def _summary() -> str:
    lines = ["| kind | core: pass | extended: pass | not supported | status only |", "|---|---|---|---|---|"]
    for kind in KINDS:
        of_kind = [each for each in cases() if each.kind == kind]
        core = [each for each in of_kind if not each.extended]
        extended = [each for each in of_kind if each.extended]
        left = [sum(each.verdict == verdict for each in of_kind) for verdict in ("not supported", "status only")]
        lines.append(f"| {kind} | {_share(core)} | {_share(extended)} | {left[0]} | {left[1]} |")
    return "\n".join(lines) + "\n"


def _share(found: Iterable[Case]) -> str:
    """How many pass of those that send requests."""
    asking = [each.verdict == "pass" for each in found if not each.status]
    return f"{sum(asking)} of {len(asking)}" if asking else ""


def _table(found: Iterable[Case]) -> str:
    lines = ["| case | features beyond the core | result | remark |", "|---|---|---|---|"]
    for each in found:
        remark = (each.unsupported or each.status or each.note).replace("|", "\\|")
        lines.append(f"| {each.name} | {', '.join(each.extended)} | {each.verdict} | {remark} |")
    return "\n".join(lines) + "\n"
