"""Every field of alert rules, channels and status pages, with a value that is read."""

from __future__ import annotations

from typing import Any

TELLING_EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "alert_rule": (
        "AlertRule",
        {
            "watches": "pool_errors", "only": ["shop-*"], "threshold": 10.0, "for_s": 60, "severity": "critical",
            "enabled": True,
        },
    ),
    "alert_channel": (
        "AlertChannel",
        {
            "type": "webhook", "url": "https://hooks.example/x", "secret": "whsec_" + "QUJD" * 10,
            "severities": ["critical"], "quiet": {"start": "22:00", "end": "07:00", "zone": "UTC"}, "wait_minutes": 5,
            "enabled": True,
        },
    ),
    "status_page": (
        "StatusPage",
        {
            "title": "Acme", "public": True, "components": [{"name": "Checkout", "routes": ["shop"]}],
            "rules": ["pool-down"],
        },
    ),
    "alert_channel_of_mail": ("AlertChannel", {"type": "email", "to": ["ops@acme.example"]}),
}  # fmt: skip
