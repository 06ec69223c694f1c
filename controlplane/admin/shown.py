"""Findings on a terminal, a line each, or as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable

from controlplane.admin.findings import Finding


def show(found: Iterable[Finding], *, as_json: bool) -> int:
    """Print them; 1 where something fails, else 0."""
    each_one = list(found)
    failed = any(each.state == "failed" for each in each_one)
    if as_json:
        print(json.dumps({"ok": not failed, "findings": [each.document() for each in each_one]}, indent=1))
        return int(failed)
    for each in each_one:
        remedy = f" {each.remedy}" if each.remedy and each.state != "ok" else ""
        print(f"{each.state:<8} {each.name}: {each.message}{remedy}")
    return int(failed)
