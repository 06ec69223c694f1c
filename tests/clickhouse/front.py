"""Runs in var/clickhouse-venv: ClickHouse's HTTP interface over its engine in this process (the package chdb-core).

It hands statement, parameters, settings and rows to the engine and returns what that says; no answer is made here. Who
asks decides which file of users the engine starts with, so grants are the engine's own as well. What stays untried is
what a server has on top: its own reading of HTTP, passwords, replicas. `python front.py PORT FOLDER`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import chdb

OWNER_MAY = (
    "GRANT SELECT, INSERT, CREATE TABLE, CREATE VIEW, DROP VIEW ON spillway.*",
    "GRANT ALTER ADD COLUMN, ALTER DELETE, ALTER UPDATE ON spillway.*",
    "GRANT SELECT ON system.parts",
)
# Who asks, and what the engine lets them do; here all of them are its user `default`.
MAY = {
    "operator": ("GRANT ALL ON *.* WITH GRANT OPTION",),
    "spillway": (*OWNER_MAY, "GRANT SET DEFINER ON spillway"),
    "spillway_reader": ("GRANT SELECT ON spillway.requests",),
    # One who may read more than a reader should.
    "wide_reader": ("GRANT SELECT ON spillway.*",),
}
_OF_HTTP = {"query", "database", "default_format", "wait_end_of_query"}
_CODE = re.compile(r"Code: (\d+)\.")


class Engine:
    """The engine as one user at a time; questions of the same user run at once, another one waits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = threading.Condition()
        self._who = ""
        self._running = 0
        self._held: Any = None
        for name, grants in MAY.items():
            here = folder / name
            here.mkdir(parents=True, exist_ok=True)
            users = _user("default", grants) + _user("spillway", OWNER_MAY)
            (here / "users.xml").write_text(
                f"<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users>{users}</users></clickhouse>"
            )
            (here / "config.xml").write_text(f"<clickhouse><users_config>{here}/users.xml</users_config></clickhouse>")

    def enter(self, who: str) -> Any:
        """A connection of this user."""
        with self._turn:
            self._turn.wait_for(lambda: self._who == who or not self._running)
            if self._who != who:
                if self._held is not None:
                    self._held.close()
                os.chdir(self._folder / who)
                self._held = chdb.connect(str(self._folder / "data"))
                self._who = who
            self._running += 1
            return chdb.connect(str(self._folder / "data"))

    def leave(self, connection: Any) -> None:
        """Nobody asks by it any more."""
        connection.close()
        with self._turn:
            self._running -= 1
            self._turn.notify_all()


class Handler(BaseHTTPRequestHandler):
    """One statement each."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    engine: Engine

    def do_POST(self) -> None:
        """Ask the engine."""
        given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        who = self.headers.get("X-ClickHouse-User", "default")
        if who not in MAY:
            self._say(403, b"Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)", "516")
            return
        connection = self.engine.enter(who)
        try:
            self._say(200, _asked(connection, given, content))
        except Exception as error:  # noqa: BLE001 - whatever the engine says is the answer
            text = str(error)
            code = _CODE.search(text)
            self._say(500, text.encode(), code[1] if code else "1000")
        finally:
            self.engine.leave(connection)

    def _say(self, status: int, content: bytes, code: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if code:
            self.send_header("X-ClickHouse-Exception-Code", code)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
        """Nothing is said."""


def _asked(connection: Any, given: dict[str, str], content: bytes) -> bytes:
    rows = content.decode() if "query" in given else ""
    text = given.get("query") or content.decode()
    if not rows:
        # One statement, as the server has it; this one would run several.
        connection.query(f"SET param_text = {_quoted(_escaped(text))}")
        connection.query("SELECT formatQuery({text:String})")
    if "database" in given and not text.startswith(("CREATE DATABASE", "DROP DATABASE")):
        connection.query(f"USE `{given['database']}`")
    for name, value in given.items():
        if name.startswith("param_"):
            connection.query(f"SET {name} = {_quoted(value)}")
    settings = [f"{name} = {_quoted(value)}" for name, value in given.items() if _is_setting(name)]
    if settings:
        connection.query(f"SET {', '.join(settings)}")
    found = connection.query(f"{text}\n{rows}" if rows else text, given.get("default_format", "TabSeparated"))
    return bytes(found.bytes() or b"")


def _is_setting(name: str) -> bool:
    return not name.startswith("param_") and name not in _OF_HTTP


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _user(name: str, grants: tuple[str, ...]) -> str:
    listed = "".join(f"<query>{grant}</query>" for grant in grants)
    return (
        f"<{name}><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>"
        f"<grants>{listed}</grants></{name}>"
    )


def end_with_whoever_started_this() -> None:
    """Nobody else knows of it."""
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Answer until the input ends."""
    threading.Thread(target=end_with_whoever_started_this, daemon=True).start()
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    Handler.engine = Engine(folder)
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print("ready", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
