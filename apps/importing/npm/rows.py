"""What became of rows and columns that no file of nginx speaks of."""

from __future__ import annotations

from collections.abc import Iterator

from apps.importing.npm.database import Database, Row
from apps.importing.npm.sites import domains, is_used
from apps.importing.verdicts import LineReport, Verdict

DATABASE = "database"
HOSTS = ("proxy_host", "redirection_host", "dead_host", "stream")
PARTS = frozenset({*HOSTS, "setting", "access_list", "access_list_auth", "access_list_client"})
TABLES = {
    "user": "People sign in to Spillway with accounts of their own; invite them.",
    "auth": "Passwords of people are not moved.",
    "user_permission": "Say what each account may with grants and roles.",
    "audit_log": "Spillway begins a record of its own.",
    "certificate": "Certificates are the files that listeners name; those that Spillway orders it renews itself.",
    "migrations": "Nginx Proxy Manager's own.",
    "migrations_lock": "Nginx Proxy Manager's own.",
}
REAL_ADDRESS = (
    "Of proxies in front the client's address is believed in X-Forwarded-For, Forwarded or the PROXY protocol; "
    "set client_address of the listeners where there are such proxies."
)
NOT_NEEDED = "Nothing that serves requests uses this table."
COLUMNS = {
    "block_exploits": (
        Verdict.NOT_POSSIBLE,
        "Nodes do not search queries for signs of attacks; run a web application firewall as the servers of the pool.",
    ),
    "trust_forwarded_proto": (
        Verdict.DIFFERENT,
        "X-Forwarded-Proto is believed of proxies that client_address of the listener names; name yours.",
    ),
}


def rows_of(database: Database) -> Iterator[LineReport]:
    """One line for each host that is not used, each column that says more, and each other table."""
    for table in HOSTS:
        for row in database.rows(table):
            yield from _of_host(table, row)
    for table in database:
        count = len(database.rows(table))
        if table not in PARTS and count:
            text = f"{table}: {count} row{'s' * (count != 1)}"
            yield _line(table, text, Verdict.NODE_SETTING, TABLES.get(table, NOT_NEEDED))
    yield from _of_default(database)
    yield _line("http", "real_ip_header X-Real-IP", Verdict.DIFFERENT, REAL_ADDRESS)


def _of_host(table: str, row: Row) -> Iterator[LineReport]:
    title = " ".join([table, str(row["id"]), *domains(row)[:1]])
    if not is_used(row):
        why = "It is deleted." if row.get("is_deleted") else "It is disabled."
        yield _line(title, title, Verdict.DEAD, why)
        return
    for column, (verdict, why) in COLUMNS.items():
        if row.get(column):
            yield _line(title, f"{column} = {row[column]}", verdict, why)


def _of_default(database: Database) -> Iterator[LineReport]:
    row = database.row("setting", "default-site")
    if row is None:
        return
    text, verdict, why = f"default-site = {row.get('value')}", Verdict.MAPPED, ""
    if row.get("value") in ("congratulations", "html"):
        verdict, why = Verdict.DIFFERENT, "Unknown hosts get 404; nodes have no page of their own for them."
    yield _line("setting", text, verdict, why)


def _line(section: str, text: str, verdict: Verdict, why: str) -> LineReport:
    return LineReport(0, text, section, verdict, (why,) if why else (), (), DATABASE)
