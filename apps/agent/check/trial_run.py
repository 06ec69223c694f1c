"""A throw-away HAProxy loads the new files on spare ports and answers before the real one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from apps.agent.bodies import Manifest
from apps.agent.check.load_time import load_seconds
from apps.agent.check.sandbox import CLEAN_ENV, Sandbox, failure_from, owner_of_trial, readable_group
from apps.agent.errors import Refusal, Unavailable
from apps.agent.release import nodecfg, probes
from apps.agent.release.releases import make_dir, write_file
from apps.agent.settings import Settings

# A trial connects to no server, so it needs no addresses of theirs: names must not cost time there.
NOBODY = "127.0.0.1:9"


def trial_run(
    settings: Settings, sandbox: Sandbox, release: Path, manifest: Manifest, generation: int, probe: str
) -> None:
    """Start, ask every listener, end; raises Refusal or Unavailable with stage "trial_run".

    1. Give every listener a spare loopback port, in a node.cfg of its own.
    2. Start haproxy without forking.
    3. Wait until each listener answers with this generation and digest.
    4. End it, whatever happened.
    """
    endpoints = {bind.listener_id: ("127.0.0.1", probes.spare_port()) for bind in manifest.binds}
    folder = settings.trial_dir
    end_left_over(settings)
    make_dir(folder, readable_group(settings))
    os.chown(folder, owner_of_trial(settings), -1)
    text = nodecfg.render(
        manifest,
        generation=generation,
        probe=probe,
        around=nodecfg.Surroundings(folder, settings.health_file, NOBODY, settings.tickets_dir),
        endpoints=endpoints,
    )
    node_cfg = folder / "node.cfg"
    write_file(node_cfg, text.encode(), readable_group(settings))
    log = folder / "log"
    seconds = settings.check_timeout + load_seconds(release)
    with log.open("wb") as output:
        process = _start(settings, sandbox.prefix(network=True, seconds=seconds), release, node_cfg, output.fileno())
        (folder / "pid").write_text(str(process.pid))
        try:
            _wait(process, manifest, endpoints, (generation, probe), log, release, time.monotonic() + seconds)
        finally:
            _end(process)
            shutil.rmtree(folder, ignore_errors=True)


def end_left_over(settings: Settings) -> None:
    """End the throw-away process of an agent that was killed in the middle of a trial run."""
    folder = settings.trial_dir
    try:
        pid = int((folder / "pid").read_text())
        if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.killpg(pid, signal.SIGKILL)
    except (OSError, ValueError):
        pass
    shutil.rmtree(folder, ignore_errors=True)


def _start(
    settings: Settings, prefix: list[str], release: Path, node_cfg: Path, output: int
) -> subprocess.Popen[bytes]:
    command = [settings.haproxy, "-db", "-f", str(node_cfg), "-f", str(release / "haproxy.cfg")]
    try:
        return subprocess.Popen(
            [*prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=CLEAN_ENV,
            cwd=str(release),
            start_new_session=True,
        )
    except OSError as error:
        raise Unavailable(f"The trial haproxy could not be started: {error}.", "trial_run") from error


def _wait(
    process: subprocess.Popen[bytes],
    manifest: Manifest,
    endpoints: dict[str, tuple[str, int]],
    wanted: tuple[int, str],
    log: Path,
    release: Path,
    deadline: float,
) -> None:
    generation, probe = wanted
    for bind in manifest.binds:
        while True:
            if process.poll() is not None:
                raise _why_ended(log.read_text(errors="replace"), release, process.returncode)
            answer = probes.probe(bind, *endpoints[bind.listener_id], probe, release)
            if not answer.problem and answer.generation in ("", str(generation)):
                break
            if time.monotonic() > deadline:
                message = f"{bind.listener_id} does not answer in the trial run: {answer.problem}."
                if answer.silent:
                    raise Unavailable(message, "trial_run")
                raise Refusal(message, "trial_run", output=log.read_text())
            time.sleep(0.01)


def _why_ended(output: str, release: Path, status: int) -> Refusal | Unavailable:
    if "Address already in use" in output:
        return Unavailable("Another program took a spare port of the trial run.", "trial_run")
    return failure_from(output, "trial_run", release, status)


def _end(process: subprocess.Popen[bytes]) -> None:
    # The master is asked first: it takes its worker along, which nobody might reap otherwise.
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
