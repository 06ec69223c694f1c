"""What storing one small segment costs by the number of files that its hour has already: `--files 100 1000 10000`.

Many nodes with few requests fill an hour with small files until they are merged and their readers have ended, three
minutes later. A segment that may be stored already is looked for among them; one that nobody tried to store is not.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apps.drivers.logs.contract import Record
from apps.drivers.logs.files.folder import FolderFiles
from apps.drivers.logs.files.layout import batch_name, hour_folder
from apps.drivers.logs.parquet import ParquetStore
from tests.bench.tables import facts, table

HOUR = datetime(2026, 11, 22, 8, tzinfo=UTC)
ACCOUNTS, LINES, TIMES = (17, 18, 19), 6, 30
LINE = Record(
    time=HOUR, id="", node="eu-1", fleet="europe", account=0, load_balancer="shop", listener="https", route="shop",
    pool="shop", server="eu-1", status=200, total_ms=20, client="192.0.2.7", method="GET", host="shop.example",
)  # fmt: skip


def segment(number: int) -> list[Record]:
    """Lines of all accounts, in turn."""
    return [
        replace(LINE, id=f"{number:020x}{at:012x}", time=HOUR + timedelta(seconds=at), account=ACCOUNTS[at % 3])
        for at in range(LINES)
    ]


def cost(root: Path, files: int, *, first: bool) -> float:
    """Milliseconds of processor for a segment."""
    store = ParquetStore(FolderFiles(root))
    store.store("n0-warm-1", segment(0))
    for account in ACCOUNTS:
        folder = hour_folder(account, HOUR)
        one = next((root / folder).glob("*.parquet"))
        for number in range(files):
            path = root / batch_name(folder, f"n1-aa-{number}", 2)
            if not path.exists():
                path.hardlink_to(one)
    began = time.process_time()
    for number in range(TIMES):
        store.store(f"n2-{files}{first}-{number}", segment(number + 1), first=first)
    return (time.process_time() - began) / TIMES * 1000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 1000, 10_000])
    rows = []
    for files in sorted(parser.parse_args().files):
        with tempfile.TemporaryDirectory(prefix="spillway-bench-") as root:
            found = [cost(Path(root), files, first=first) for first in (False, True)]
        rows.append([f"{files:,}".replace(",", " "), *(f"{each:.1f}" for each in found)])
    print(facts())
    print(table(("files of each account", "ms, looked for", "ms, first"), rows))


if __name__ == "__main__":
    main()
