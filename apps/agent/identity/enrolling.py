"""`spillway-agent enroll https://console --token …`: the node makes its key, and a console signs it, once."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from apps.agent.errors import Malformed, Unavailable
from apps.agent.identity.console import Console, Failed, read_token
from apps.agent.identity.store import Identity

STATE_DIR = Path("/var/lib/spillway-agent")
# Apart from the key that a running agent renews with.
PENDING = "enrolling"
STDIN = "-"
LATER = """{node} of fleet {fleet} is enrolled; the console reaches it at {url}.
Its key is in {folder} and leaves this machine in no way. Start the agent:
    spillway-agent --state-dir {state_dir}
"""


def parse(words: list[str]) -> argparse.Namespace:
    """The command line after `enroll`."""
    parser = argparse.ArgumentParser(prog="spillway-agent enroll", description="Let this machine in as a node, once.")
    parser.add_argument("console", help="https://console.example")
    parser.add_argument("--token", required=True, help="what the console made for this node; `-` reads it from stdin")
    parser.add_argument("--state-dir", type=Path, default=STATE_DIR, help="the state directory of the agent")
    parser.add_argument(
        "--address", default="", help="address of this node, for consoles and clients; default: as the console sees it"
    )
    parser.add_argument("--listen", default="0.0.0.0:8443", help="HOST:PORT where this agent will listen")
    parser.add_argument("--environment", type=Path, help="also write NAME, ADDRESS and LISTEN there, for the unit")
    return parser.parse_args(words)


def enroll(words: list[str]) -> int:
    """Ask once, keep what comes; what fails leaves the node as it was."""
    given = parse(words)
    os.umask(0o077)
    state_dir: Path = given.state_dir.absolute()
    try:
        facts = _enroll(given, Identity(state_dir))
    except (Failed, Malformed, Unavailable, OSError) as error:
        print(f"Not enrolled. {error}", file=sys.stderr)  # noqa: T201 - it is what was asked for
        return 1
    print(LATER.format(state_dir=state_dir, folder=state_dir / "identity", **facts), end="")  # noqa: T201
    return 0


def _enroll(given: argparse.Namespace, identity: Identity) -> dict[str, str]:
    """1. Key and request, before the token is shown to anybody. 2. Ask. 3. Put into force. 4. Keep for later starts."""
    token = given.token
    if token == STDIN:
        token = sys.stdin.readline().strip()
    console = Console(given.console, read_token(token))
    port = given.listen.rpartition(":")[2]
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise Failed(f"--listen is HOST:PORT, such as 0.0.0.0:8443; {given.listen!r} is not.")
    request = identity.request("node", PENDING)
    answer = console.ask({"token": token, "request": request, "address": given.address, "port": int(port)})
    try:
        facts = {name: str(answer[name]) for name in ("node", "fleet", "url", "address")}
        certificate, authorities = str(answer["certificate"]), str(answer["authorities"])
    except KeyError as error:
        raise Failed(f"The console's answer lacks {error}; is it Spillway, and not older than this agent?") from None
    identity.take(certificate, authorities, PENDING)
    identity.note({"name": facts["node"], "address": facts["address"], "listen": given.listen})
    if given.environment:
        lines = (f"NAME={facts['node']}", f"ADDRESS={facts['address']}", f"LISTEN={given.listen}")
        given.environment.parent.mkdir(parents=True, exist_ok=True)
        given.environment.write_text("\n".join(lines) + "\n")
    return facts
