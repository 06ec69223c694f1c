"""What is of a machine: clocks, folders, the certificates that this console shows to agents, the key."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cryptography import x509
from django.conf import settings

from apps.core.clock import ahead_of_database_s, now
from apps.core.secrets import keys
from apps.fleet.models import Node
from apps.observe.collect.consoles import FORGOTTEN
from apps.observe.collect.fitness import CLOCK_TOLERANCE_S
from apps.observe.models import Console
from apps.system.parts.part import Answer, Detail, State, worst

ENDS_SOON_DAYS, ENDS_DAYS = 30, 7
LITTLE_SHARE, LITTLE_BYTES = 0.1, 2_000_000_000
NO_ROOM_BYTES = 200_000_000
TIME_SERVICE = "Let a time service set it: timedatectl set-ntp true."


def key() -> Answer:
    """Whether this process has the key of the database."""
    said = keys.said()
    if said == keys.OPENS_NOTHING:
        return Answer(State.FAILED, said, "Give this console the SPILLWAY_SECRET_KEY of the others.")
    if said == keys.FALLBACK:
        return Answer(State.WARNING, "Some secrets are still sealed with a fallback.", "Run manage.py rotate_keys.")
    return Answer(State.OK, "It opens what the database holds.")


def clocks() -> Answer:
    """Of this machine, and of those whose collectors tell theirs, against the database's."""
    found = {row.name: row.clock_ahead_ms / 1000 for row in Console.objects.filter(heard_at__gte=now() - FORGOTTEN)}
    mine = ahead_of_database_s()
    if mine is not None:
        found["this console"] = mine
    details = tuple(_clock(each, ahead) for each, ahead in sorted(found.items()))
    state = worst(each.state for each in details)
    if state == State.UNKNOWN:
        return Answer(state, "No clock was compared with the database's lately.")
    if state == State.OK:
        return Answer(state, "They agree with the database's.", details=details)
    off = ", ".join(each.name for each in details if each.state != State.OK)
    return Answer(state, f"The clock of {off} differs from the database's.", TIME_SERVICE, details)


def _clock(name: str, ahead_s: float) -> Detail:
    off = abs(ahead_s) > CLOCK_TOLERANCE_S
    side = "ahead" if ahead_s >= 0 else "behind"
    return Detail(name, State.WARNING if off else State.OK, f"{abs(ahead_s):.3f} s {side}")


def certificates() -> Answer:
    """The console's own, by which agents know it, and the authority."""
    files = _files()
    if not any(files.values()):
        remedy = (
            "Name them in SPILLWAY_AGENT_CA, SPILLWAY_AGENT_CERTIFICATE and SPILLWAY_AGENT_KEY, or enrol the nodes."
        )
        lacking = Node.objects.filter(url__startswith="https://", certificates=None).count()
        if lacking:
            return Answer(State.FAILED, f"None is named; nodes that were never enrolled: {lacking}.", remedy)
        return Answer(State.OK, "None is named, and every node was enrolled or is on this machine.")
    details = tuple(_certificate(each, path) for each, path in files.items())
    key_file = settings.AGENT_KEY_FILE
    if not os.access(key_file, os.R_OK):
        details += (Detail("key", State.FAILED, f"{key_file or 'SPILLWAY_AGENT_KEY'} cannot be read"),)
    state = worst(each.state for each in details)
    remedy = "" if state == State.OK else "Issue new ones: manage.py issue_certificates; see operate/recovery.md."
    said = "; ".join(f"{each.name} {each.text}" for each in details)
    return Answer(state, f"{said}.".capitalize(), remedy, details)


def ends() -> dict[str, datetime]:
    """When the certificates end that can be read, by what they are."""
    found = {name: _end(path) for name, path in _files().items()}
    return {name: end for name, end in found.items() if isinstance(end, datetime)}


def _files() -> dict[str, str]:
    return {"authority": settings.AGENT_CA_FILE, "console": settings.AGENT_CERTIFICATE_FILE}


def _certificate(name: str, path: str) -> Detail:
    end = _end(path)
    if isinstance(end, str):
        return Detail(name, State.FAILED, end)
    days = (end - now()).total_seconds() / 86400
    if days <= 0:
        return Detail(name, State.FAILED, f"ended on {end:%Y-%m-%d}")
    state = State.FAILED if days < ENDS_DAYS else State.WARNING if days < ENDS_SOON_DAYS else State.OK
    return Detail(name, state, f"ends on {end:%Y-%m-%d}, in {days:.0f} days")


def _end(path: str) -> datetime | str:
    try:
        return x509.load_pem_x509_certificate(Path(path).read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return f"{path or 'its file'} cannot be read"


def folders() -> Answer:
    """Whether this machine may write to the folders of the settings, and how much room they have."""
    wanted = {"SPILLWAY_VAR": settings.VAR_DIR}
    logs = urlsplit(settings.LOGS_URL)
    if logs.scheme == "logs+file":
        wanted["SPILLWAY_LOGS_URL"] = Path(unquote(logs.path))
    details = tuple(_folder(each, path) for each, path in wanted.items())
    state = worst(each.state for each in details)
    said = "; ".join(f"{each.name} {each.text}" for each in details)
    remedy = "" if state == State.OK else "Give its owner to the user spillway, and make room."
    return Answer(state, f"{said}.", remedy, details)


def _folder(name: str, path: Path) -> Detail:
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK):
        return Detail(name, State.FAILED, f"{path} cannot be written")
    room = shutil.disk_usage(there)
    text = f"{path} has {room.free / 1e9:.1f} GB free"
    if room.free < NO_ROOM_BYTES:
        return Detail(name, State.FAILED, text)
    little = room.free < LITTLE_BYTES and room.free < LITTLE_SHARE * room.total
    return Detail(name, State.WARNING if little else State.OK, text)
