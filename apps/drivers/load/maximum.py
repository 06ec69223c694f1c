"""The maximum that generators state: found out on this machine, kept for a while, less a margin.

One process is calibrated (`http1/calibrating.py`), with connections kept or not, as the plan has them. TLS is stated as
a share of that. One core is left for whatever else runs here; each of the others is good for one process.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import threading
import time

from apps.drivers.load.contract import LoadError, Maximum, Plan
from apps.drivers.load.processes import ROOT, environment, words_of

MARGIN = 0.8
# From processor time per request on two cores against HAProxy: 14 µs, with TLS 22; with a connection for each request
# 72, and with TLS 770.
OF_TLS = {True: 0.6, False: 0.06}  # by keep_alive
USUAL = 30_000.0  # requests/s of a process, before anything was found out
KEPT_S = 3600.0
KEPT_WHEN_BUSY_S = 60.0
WITHIN_S = 7.0

_FOUND: dict[bool, Maximum] = {}  # by keep_alive: what one process holds, without the margin
_LOCK = threading.Lock()


def stated(plan: Plan) -> Maximum:
    """What generators state for a plan like this one; waits for a calibration when nothing (fresh) is known.

    Raises LoadError when it cannot be found out.
    """
    with _LOCK:  # two calibrations at once would measure each other
        found = _FOUND.get(plan.keep_alive)
        if found is None or stale(found, time.time()):
            found = _FOUND[plan.keep_alive] = _calibrated(keep_alive=plan.keep_alive)
    processes = max(1, min(found.cores - 1, plan.max_connections // len(plan.endpoints)))
    each = rounded(found.rate * share_of(plan) * MARGIN)
    return Maximum(each * processes, processes, found.measured_at, found.cores, found.load)


def stale(found: Maximum, instant: float) -> bool:
    """Whether to ask again: after an hour, and after a minute when the machine was busy with other things."""
    return not 0 <= instant - found.measured_at < (KEPT_WHEN_BUSY_S if found.busy else KEPT_S)


def per_process(plan: Plan) -> float:
    """What a process is counted on for, requests/s, by what is known already."""
    found = _FOUND.get(plan.keep_alive)
    return USUAL if found is None else max(1.0, rounded(found.rate * share_of(plan) * MARGIN))


def share_of(plan: Plan) -> float:
    """What of the calibrated rate is left for a plan's connections."""
    return OF_TLS[plan.keep_alive] if plan.tls is not None else 1.0


def rounded(rate: float) -> float:
    """Downwards to two digits: it is known no better."""
    if rate < 10:
        return float(math.floor(rate))
    unit = 10 ** (math.floor(math.log10(rate)) - 1)
    return float(rate // unit * unit)


def remember(found: Maximum, *, keep_alive: bool = True) -> None:
    """Know what one process holds without asking it."""
    with _LOCK:
        _FOUND[keep_alive] = found


def forget() -> None:
    """Ask again next time."""
    with _LOCK:
        _FOUND.clear()


def _calibrated(*, keep_alive: bool) -> Maximum:
    """A process is asked what it holds; the load average is that of before, which it has no part in."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    try:
        said = subprocess.run(
            words_of("apps.drivers.load.http1.calibrating", *(() if keep_alive else ("close",))),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            cwd=ROOT,
            env=environment(),
            timeout=WITHIN_S,
            start_new_session=True,
        )
        rate = float(json.loads(said.stdout)["rate"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        raise LoadError("The generator could not find out how much it can send here.") from None
    if not rate:
        raise LoadError("The machine is so busy that the generator kept no rate at all while it found out its maximum.")
    return Maximum(rate, 1, time.time(), cores, round(load, 2))
