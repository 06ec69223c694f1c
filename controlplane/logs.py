"""How every process logs: to standard error, as text or as JSON; the newest errors are kept for the page System."""

from __future__ import annotations

from typing import Any

from controlplane import environment


def configuration() -> dict[str, Any]:
    """The setting LOGGING; reads two variables."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {
                "class": "apps.core.redaction.WithoutSecrets",
                "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
            },
            "json": {"class": "apps.core.redaction.JsonLines"},
            "short": {"class": "apps.core.redaction.WithoutSecrets", "format": "%(message)s"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": environment.one_of(
                    "SPILLWAY_LOG_FORMAT",
                    ("plain", "json"),
                    "`json` writes one object a line, with the ids of request, account and rollout",
                ),
            },
            "newest": {"class": "apps.system.recent_errors.RecentErrors", "formatter": "short"},
        },
        "root": {
            "handlers": ["stderr", "newest"],
            "level": environment.one_of(
                "SPILLWAY_LOG_LEVEL", ("INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL"), "least level of what is logged"
            ),
        },
    }
