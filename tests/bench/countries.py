"""What a map from half a million networks to countries costs one HAProxy: `python -m tests.bench.countries`.

Networks are made up: 350 000 of IPv4 and 150 000 of IPv6, about as many as published lists have. It is loaded as a
file, then replaced at run time as network lists are, in chunks below 12 kB, while requests ask for it.
"""

from __future__ import annotations

import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from tests.bench.tables import facts, table
from tests.ports import spare_port

V4, V6 = 350_000, 150_000
CHUNK = 400  # lines of at most 30 bytes
CONFIG = """global
    nbthread 2
    stats socket {folder}/api.sock level admin
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend f
    bind 127.0.0.1:{port}
    {rule}
    http-request return status 200
"""


def networks(seed: int = 7) -> list[str]:
    """Lines of a map: each network once, with a made-up country."""
    drawn = random.Random(seed)
    found: set[str] = set()
    while len(found) < V4:
        found.add(f"{drawn.randrange(1, 224)}.{drawn.randrange(256)}.{drawn.randrange(256)}.0/24")
    while len(found) < V4 + V6:
        found.add(f"2{drawn.randrange(4096):03x}:{drawn.randrange(65536):x}:{drawn.randrange(65536):x}::/48")
    return [f"{each} {chr(drawn.randrange(65, 91))}{chr(drawn.randrange(65, 91))}\n" for each in sorted(found)]


def measure(folder: Path, lines: list[str]) -> list[str]:
    """Seconds to start, resident MB, seconds to replace all, MB at most, the slowest request meanwhile in ms."""
    port, path = spare_port(), folder / "countries.map"
    path.write_text("".join(lines))
    rule = f"http-request set-var(txn.country) src,map_ip({path},unknown)" if lines else ""
    (folder / "haproxy.cfg").write_text(CONFIG.format(folder=folder, port=port, rule=rule))
    began = time.monotonic()
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    process = subprocess.Popen([program, "-db", "-f", str(folder / "haproxy.cfg")])
    try:
        while not _asked(port):
            assert process.poll() is None
            time.sleep(0.02)
        started, resident = time.monotonic() - began, _memory(process.pid, "VmRSS")
        if not lines:
            return [f"{started:.2f}", f"{resident:.0f}", "", "", ""]
        waited: list[float] = []
        done = threading.Event()
        asking = threading.Thread(target=_ask_until, args=(port, done, waited))
        asking.start()
        began = time.monotonic()
        _replace(folder, path, lines)
        replaced = time.monotonic() - began
        done.set()
        asking.join()
        most = _memory(process.pid, "VmHWM")
        slowest = max(waited) * 1000
        usual = statistics.median(waited) * 1000
        return [f"{started:.2f}", f"{resident:.0f}", f"{replaced:.1f}", f"{most:.0f}", f"{slowest:.0f} ({usual:.1f})"]
    finally:
        process.terminate()
        process.wait(30)


def _replace(folder: Path, path: Path, lines: list[str]) -> None:
    version = _command(folder, f"prepare map {path}").split()[-1]
    for start in range(0, len(lines), CHUNK):
        chunk = "".join(lines[start : start + CHUNK])
        _command(folder, f"add map @{version} {path} <<\n{chunk}")
    _command(folder, f"commit map @{version} {path}")


def _command(folder: Path, line: str) -> str:
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.connect(str(folder / "api.sock"))
        runtime.sendall(line.encode() + b"\n")
        return b"".join(iter(lambda: runtime.recv(65536), b"")).decode()


def _asked(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
            return client.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _ask_until(port: int, done: threading.Event, waited: list[float]) -> None:
    while not done.is_set():
        began = time.monotonic()
        assert _asked(port)
        waited.append(time.monotonic() - began)
        time.sleep(0.005)


def _memory(pid: int, name: str) -> float:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(name)) / 1024


def main() -> None:
    """Print the table."""
    print(facts())
    heads = ["map", "start, s", "memory, MB", "replace all, s", "memory then, MB", "slowest request, ms (median)"]
    cases: list[tuple[str, list[str]]] = [("none", []), (f"{V4 + V6:,} networks", networks())]
    rows: list[list[str]] = []
    for name, lines in cases:
        with tempfile.TemporaryDirectory(prefix="sw-") as folder:
            rows.append([name, *measure(Path(folder), lines)])
    print(table(heads, rows))


if __name__ == "__main__":
    main()
