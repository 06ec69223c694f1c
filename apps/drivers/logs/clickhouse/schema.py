"""The table of lines in ClickHouse, and the view of it that people ask in SQL."""

from __future__ import annotations

from apps.drivers.logs.clickhouse.asking import Client, Values
from apps.drivers.logs.contract import NUMBER_FIELDS
from apps.drivers.logs.files.columns import NAMES

TABLE, VIEW = "lines", "requests"
# Texts of which most lines have their own.
_OWN = frozenset({"id", "parent_id", "client", "path", "query", "headers", "trace_id", "span_id", "parent_span_id"})
# So many batches are known again by their token, should two collectors store the same one at once.
TOKENS = 10_000
# What the view reads: the account and the window in milliseconds, each a number. A reader without them sees an error.
ASKED = "log_comment"
_MADE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (account UInt64, batch LowCardinality(String), {{columns}})
ENGINE = MergeTree PARTITION BY (account, toYYYYMMDD(time)) ORDER BY (account, time, id)
SETTINGS non_replicated_deduplication_window = {TOKENS}, fsync_after_insert = 1, fsync_part_directory = 1
"""
_SHOWN = f"""
CREATE {{how}} {VIEW} DEFINER = {{owner}} SQL SECURITY DEFINER AS
SELECT {", ".join(NAMES)} FROM {TABLE}
WHERE account = toUInt64(splitByChar(' ', getSetting('{ASKED}'))[1])
AND time >= fromUnixTimestamp64Milli(toInt64(splitByChar(' ', getSetting('{ASKED}'))[2]), 'UTC')
AND time < fromUnixTimestamp64Milli(toInt64(splitByChar(' ', getSetting('{ASKED}'))[3]), 'UTC')
"""


def make(client: Client) -> None:
    """Make what is missing. Raises LogStoreError."""
    columns = ", ".join(f"{name} {_type_of(name)}" for name in NAMES)
    client.ask(_MADE.format(columns=columns))
    how = "VIEW IF NOT EXISTS"
    for name in _missing(client):
        client.ask(f"ALTER TABLE {TABLE} ADD COLUMN IF NOT EXISTS {name} {_type_of(name)}")
        how = "OR REPLACE VIEW"
    owner = quoted(client.endpoint.owner.name)
    client.ask(_SHOWN.format(how=how, owner=owner), settings={ASKED: asked(0, 0, 0)})


def _missing(client: Client) -> list[str]:
    """Columns that the version which made the table did not know."""
    values = Values()
    database = values.put("String", client.endpoint.database)
    where = f"database = {database} AND table = '{TABLE}'"
    known = {name for (name,) in client.rows(f"SELECT name FROM system.columns WHERE {where}", values)}
    return [name for name in NAMES if name not in known]


def asked(account: int, start: int, end: int) -> str:
    """What a question in SQL is about."""
    return f"{account} {start} {end}"


def quoted(name: str) -> str:
    """A name as it stands in a statement."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _type_of(name: str) -> str:
    if name == "time":
        return "DateTime64(3, 'UTC')"
    if name in NUMBER_FIELDS:
        return "Int64" if name.startswith("bytes") else "Nullable(Int32)"
    return "String" if name in _OWN else "LowCardinality(String)"
