"""Programs that a replay runs for as long as it asks them: HAProxy, nginx and Caddy."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from apps.importing.replay.contract import NotReplayable

PATIENCE_S = 30.0


@contextmanager
def run_haproxy(config: Path, folder: Path) -> Iterator[None]:
    """HAProxy with this file. Raises NotReplayable where it does not take it."""
    if complaint := haproxy_complaint(config):
        raise NotReplayable(f"HAProxy does not take {config.name}: {complaint}")
    with _running([*_haproxy(config), "-db"], folder / "haproxy.log"):
        yield


def haproxy_complaint(config: Path) -> str:
    """Why HAProxy does not take this file; empty if it does. Raises NotReplayable where there is no HAProxy."""
    try:
        checked = subprocess.run(
            [*_haproxy(config), "-c"], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except FileNotFoundError as error:
        raise NotReplayable("HAProxy is not installed here.") from error
    alerts = [line for line in checked.stderr.splitlines() if "ALERT" in line]
    return "; ".join(alerts[:3]) or "it says nothing" if checked.returncode != 0 else ""


def _haproxy(config: Path) -> list[str]:
    node = config.parent / "node.cfg"
    return ["haproxy", *(("-f", str(node)) if node.exists() else ()), "-f", str(config)]


@contextmanager
def run_nginx(config: Path, folder: Path) -> Iterator[None]:
    """nginx with this file, in the foreground. Raises NotReplayable where it does not take it."""
    if complaint := nginx_complaint(config, folder):
        raise NotReplayable(f"nginx does not take {config.name}: {complaint}")
    with _running(_nginx(config, folder), folder / "nginx.log"):
        yield


def nginx_complaint(config: Path, folder: Path) -> str:
    """Why nginx does not take this file; empty if it does. Raises NotReplayable where there is no nginx."""
    checked = _ask_nginx([*_nginx(config, folder), "-t"])
    alerts = [line for line in checked.stderr.splitlines() if "[emerg]" in line]
    return "; ".join(alerts[:3]) or "it says nothing" if checked.returncode != 0 else ""


def stream_module() -> str:
    """The line that loads what `stream` needs; empty where nginx was built with it or without."""
    built = _ask_nginx(["nginx", "-V"]).stderr
    modules = re.search(r"--modules-path=(\S+)", built)
    return f"load_module {modules[1]}/ngx_stream_module.so;" if modules and "--with-stream=dynamic" in built else ""


def _nginx(config: Path, folder: Path) -> list[str]:
    return ["nginx", "-p", str(folder), "-c", str(config), "-e", str(folder / "nginx-error.log")]


def _ask_nginx(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except FileNotFoundError as error:
        raise NotReplayable("nginx is not installed here.") from error


@contextmanager
def run_caddy(config: Path, folder: Path) -> Iterator[None]:
    """Caddy with this JSON; what it stores stays in the folder. Raises NotReplayable where it does not take it."""
    settings = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    checking = ["caddy", "validate", "--config", str(config)]
    try:
        checked = subprocess.run(
            checking, env=settings, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )  # fmt: skip
    except FileNotFoundError as error:
        raise NotReplayable("Caddy is not installed here.") from error
    if checked.returncode != 0:
        said = [line for line in checked.stderr.splitlines() if line.startswith("Error")]
        raise NotReplayable(f"Caddy does not take {config.name}: {'; '.join(said[:3])}")
    with _running(["caddy", "run", "--config", str(config)], folder / "caddy.log", settings):
        yield


@contextmanager
def _running(command: list[str], log: Path, settings: Mapping[str, str] | None = None) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=settings)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
