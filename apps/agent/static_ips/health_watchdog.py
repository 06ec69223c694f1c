"""Does haproxy answer with what it should? Asked by keepalived each second, and watched for BIRD.

The agent writes this file and its facts into the state directory and does not take part any more: what moves
addresses must not depend on the program that makes changes. It therefore stands alone, on the standard library.

    health_watchdog.py FACTS           once: exits with 0 when this node may have addresses, else says why and with 1
    health_watchdog.py FACTS --watch   starts BIRD and lets it announce while the answer is yes; ends BIRD with itself
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import types
from typing import Any

# A slow haproxy is not a dead one: were it left, its load would make the next one slow, and so on to the last.
ANSWER_SECONDS = 4.0
WATCH_SECONDS = 0.5
RISE, FALL = 2, 2


def trouble(facts: dict[str, Any]) -> str:
    """Why this node must not have addresses now, in words; empty when all is well.

    1. Somebody asked for maintenance.
    2. The worker must say that it was started with what is live; while the agent switches, the old or the new one.
    3. So must every listener of an address that moves, on its private socket.
    """
    if os.path.exists(facts["maintenance"]):  # noqa: PTH110 — the file stands alone and starts every second
        return "maintenance"
    wanted = [tuple(each) for each in facts["wanted"]]
    try:
        found = worker_identity(facts["worker"])
        if found not in wanted:
            return f"haproxy runs generation {found[0] or '?'}"
        for listener, path in sorted(facts["listeners"].items()):
            found = listener_identity(path, facts["secret"])
            if found not in wanted:
                return f"{listener} answers with generation {found[0] or '?'}"
    except OSError as error:
        return f"haproxy does not answer ({error})"
    return ""


def worker_identity(path: str) -> tuple[str, str]:
    """Generation and digest that the worker was started with; raises OSError."""
    words = dict(line.partition("=")[::2] for line in ask(path, b"show env\n").splitlines())
    return words.get("SPILLWAY_GENERATION", ""), words.get("SPILLWAY_DIGEST", "")


def listener_identity(path: str, secret: str) -> tuple[str, str]:
    """Generation and digest by which a listener answers its probe; raises OSError."""
    answer = ask(path, f"GET /{secret} HTTP/1.1\r\nhost: spillway-probe\r\nconnection: close\r\n\r\n".encode())
    lines = answer.split("\r\n\r\n")[0].split("\r\n")
    if " 200 " not in lines[0] + " ":
        return "", ""
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return headers.get("x-spillway-generation", ""), headers.get("x-spillway-digest", "")


def ask(path: str, question: bytes) -> str:
    """Send a question to a Unix socket and read its answer to the end, all within ANSWER_SECONDS; raises OSError."""
    end = time.monotonic() + ANSWER_SECONDS
    parts: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(ANSWER_SECONDS)
        stream.connect(path)
        stream.sendall(question)
        while True:
            stream.settimeout(max(0.01, end - time.monotonic()))
            part = stream.recv(65536)
            if not part:
                return b"".join(parts).decode("latin-1")
            parts.append(part)


def read_facts(path: str) -> dict[str, Any]:
    """What the agent wrote down; raises OSError or ValueError."""
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123
        facts: dict[str, Any] = json.load(stream)
    return facts


def command(path: str, words: str) -> str:
    """One command on BIRD's control socket and its answer; raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(ANSWER_SECONDS)
        stream.connect(path)
        read_reply(stream)
        stream.sendall(words.encode() + b"\n")
        return read_reply(stream)


def read_reply(stream: socket.socket) -> str:
    """Read to the line that ends a reply: four digits and a space; raises OSError."""
    text = b""
    while True:
        last = text.rpartition(b"\n")[0].rpartition(b"\n")[2] if text.endswith(b"\n") else b""
        if last[:4].isdigit() and last[4:5] == b" ":
            return text.decode("latin-1")
        part = stream.recv(65536)
        if not part:
            raise OSError("BIRD closed its control socket")
        text += part


def write_announcing(path: str, *, yes: bool) -> None:
    """The one word that BIRD's filter asks, in a file that its configuration includes; replaced in one step."""
    draft = path + ".new"
    with open(draft, "w", encoding="ascii") as stream:  # noqa: PTH123
        stream.write(f"define announcing = {'true' if yes else 'false'};\n")
    os.replace(draft, path)  # noqa: PTH105


def announce(bird: dict[str, Any], *, yes: bool) -> None:
    """Let BIRD announce the addresses, or take them back; raises OSError."""
    write_announcing(bird["announcing"], yes=yes)
    command(bird["control"], "configure")


class Watch:
    """Counts answers in a row; `announcing` changes after RISE good or FALL bad ones. `told` is what BIRD knows."""

    def __init__(self) -> None:
        self.announcing = False
        self.told = False
        self._row = 0

    def note(self, well: bool) -> bool:
        """Take one answer in; returns whether to announce."""
        self._row = 0 if well == self.announcing else self._row + 1
        if self._row >= (FALL if self.announcing else RISE):
            self.announcing, self._row = well, 0
        return self.announcing


def ask_once(path: str) -> str:
    """The trouble by the facts as they stand now; facts that cannot be read are trouble too."""
    try:
        return trouble(read_facts(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"the facts cannot be read ({error})"


def look(path: str, bird: dict[str, Any], watch: Watch, known: str) -> str:
    """One look, of which BIRD is told when it changes anything; `known` is the trouble that was found last.

    Raises OSError when BIRD does not answer: the next look tells it again.
    """
    why = ask_once(path)
    if why != known:
        sys.stderr.write(f"health watchdog: {why or 'all is well'}\n")
        sys.stderr.flush()
    if watch.note(not why) != watch.told:
        announce(bird, yes=watch.announcing)
        watch.told = watch.announcing
    return why


def keep_watch(path: str) -> int:
    """Run BIRD, which announces nothing at first, and watch until it ends, or SIGTERM; BIRD's exit status."""
    bird = read_facts(path)["bird"]
    write_announcing(bird["announcing"], yes=False)
    process = subprocess.Popen(bird["command"], stdin=subprocess.DEVNULL)

    def end(_number: int, _frame: types.FrameType | None) -> None:
        process.terminate()

    signal.signal(signal.SIGTERM, end)
    watch, known = Watch(), "nothing was asked yet"
    while process.poll() is None:
        try:
            known = look(path, bird, watch, known)
        except OSError as error:
            sys.stderr.write(f"health watchdog: BIRD does not answer ({error})\n")
        time.sleep(WATCH_SECONDS)
    return process.returncode


def main(words: list[str]) -> int:
    """`FACTS` or `FACTS --watch`."""
    if words[1:] == ["--watch"]:
        return keep_watch(words[0])
    why = ask_once(words[0])
    if why:
        sys.stdout.write(f"{why}\n")
    return int(bool(why))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
