"""The bundle for support: an archive of small JSON files, each of them cleaned of secrets before it is written."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Count

from apps.core.clock import now
from apps.fleet.models import Fleet, Node
from apps.observe.models import Condition, NodeReport
from apps.system import selectors
from apps.system.models import Backup, Process
from apps.system.support.removing import clean
from apps.system.version import version

MOST_ROWS = 500


def write(path: Path, settings: Mapping[str, str], checks: list[dict[str, Any]], secrets: Iterable[str]) -> None:
    """Write the archive for its owner alone. Raises FileExistsError."""
    known = list(secrets)
    files = {
        "settings.json": dict(settings),
        "checks.json": checks,
        "versions.json": _versions(),
        "processes.json": _rows(Process, "kind", "host", "pid", "queues", "version", "began_at", "heard_at"),
        "nodes.json": _rows(
            NodeReport, "node__name", "seen_at", "generation", "haproxy_version", "agent_version", "error"
        ),
        "conditions.json": _rows(
            Condition.objects.exclude(status=True), "object_kind", "object_id", "type", "status", "reason", "message"
        ),
        "errors.json": [
            {"at": each.at.isoformat(), "process": each.process, "text": each.text} for each in selectors.errors()
        ],
        "migrations.json": sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()),
        "sizes.json": _sizes(),
        "backups.json": _rows(Backup, "at", "restored", "host", "bytes", "seconds"),
    }
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream, tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            _add(archive, name, json.dumps(_cleaned(content, known), indent=1, ensure_ascii=False))


def _cleaned(content: Any, known: list[str]) -> Any:
    """The same with every text cleaned; what is no JSON becomes a text first."""
    if isinstance(content, Mapping):
        return {clean(str(name), known): _cleaned(each, known) for name, each in content.items()}
    if isinstance(content, list | tuple):
        return [_cleaned(each, known) for each in content]
    return content if content is None or isinstance(content, int | float) else clean(str(content), known)


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    entry = tarfile.TarInfo(f"spillway-support/{name}")
    entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
    archive.addfile(entry, io.BytesIO(data))


def _rows(found: Any, *names: str) -> list[dict[str, Any]]:
    rows = getattr(found, "_default_manager", found)
    return list(rows.order_by("-pk").values(*names)[:MOST_ROWS])


def _versions() -> dict[str, Any]:
    packages = {each.metadata["Name"]: each.version for each in metadata.distributions() if each.metadata["Name"]}
    return {
        "spillway": version(),
        "made_at": now().isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": dict(sorted(packages.items())),
        "haproxy": _first_line("haproxy", "-v"),
        "terraform": _first_line("terraform", "-version"),
    }


def _first_line(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return "not installed"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout.splitlines() or ["unknown"])[0][:200]


def _sizes() -> dict[str, Any]:
    """Rows by table, and what is counted of fleets."""
    counted = {model._meta.label: model._default_manager.count() for model in apps.get_models()}
    by_fleet = Fleet.objects.annotate(count=Count("nodes")).order_by("-count").values_list("count", flat=True)
    return {"rows": counted, "nodes": Node.objects.count(), "nodes_of_fleets": list(by_fleet[:MOST_ROWS])}
