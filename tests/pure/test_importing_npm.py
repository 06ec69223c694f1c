"""Reading the database of Nginx Proxy Manager: hosts, lists, streams, and what becomes of every other row."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from apps.importing.contract import Import
from apps.importing.formats import recognised
from apps.importing.npm.database import Database, NoDatabase, dump_of
from apps.importing.npm.reading import read_npm
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Verdict

MYSQL = (Path(__file__).resolve().parents[1] / "import" / "npm" / "house.mysql.sql").read_text()
DUMP = (Path(__file__).resolve().parents[1] / "import" / "npm" / "house.sql").read_text()
HOST = (
    "CREATE TABLE proxy_host (id integer, domain_names json, forward_host text, forward_port integer, advanced_config "
    "text, enabled integer);\n"
)


def read(dump: str, **files: str) -> Import:
    return read_npm(dump, files, ImportOptions(fleets=("eu",), region="eu"))


def host(advanced: str = "", *, name: str = "a.example.com") -> Import:
    names = f'["{name}"]'.replace("'", "''")
    return read(f"{HOST}INSERT INTO proxy_host VALUES(1,'{names}','10.0.0.1',80,'{advanced}',1);")


def spec(found: Import, kind: str, name: str) -> dict[str, Any]:
    return next(dict(each["spec"]) for each in found.documents if (each["kind"], each["name"]) == (kind, name))


def verdict_of(found: Import, text: str, file: str = "database") -> tuple[Verdict, str]:
    line = next(line for line in found.report if line.text == text and line.file == file)
    return line.verdict, " ".join(line.reasons)


def test_a_dump_is_recognised_though_its_rows_hold_lines_of_nginx() -> None:
    form = recognised("backup.txt", DUMP)
    assert form is not None
    assert form.name == "nginx-proxy-manager"


def test_what_mysqldump_prints_says_the_same_as_the_sqlite_file() -> None:
    """MariaDB 10.11 printed it, of the same rows."""
    assert recognised("npm.sql", MYSQL) is recognised("backup.txt", DUMP)
    one, other = read(DUMP), read(MYSQL)
    assert (one.documents, one.report) == (other.documents, other.report)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (r"""'it\'s \"so\"\n\\'""", 'it\'s "so"\n\\'),
        ("""'a;b -- c ''d'''""", "a;b -- c 'd'"),
        ("_binary 'x),(y'", "x),(y"),
        ("NULL", None),
    ],
)
def test_texts_of_mysql_are_read_as_it_writes_them(value: str, text: str | None) -> None:
    dump = "-- MySQL dump 10.13\nCREATE TABLE `proxy_host` (\n  `id` int,\n  `advanced_config` text\n);\n"
    rows = "INSERT INTO `proxy_host` (`id`, `advanced_config`) VALUES"
    database = Database(f"{dump}{rows} (1,{value}),(2,'');\n")
    assert [row["advanced_config"] for row in database.rows("proxy_host")] == [text, ""]


def test_a_dump_of_mysql_runs_nothing() -> None:
    dump = "-- MySQL dump 10.13\nCREATE TABLE `proxy_host` (\n  `id` int\n);\n"
    for value in ("load_extension('x')", "(SELECT 1)", "readfile('/etc/passwd')"):
        with pytest.raises(NoDatabase):
            Database(dump + "INSERT INTO `proxy_host` VALUES" + f" ({value});\n")
    assert not Database(f"{dump}ATTACH DATABASE 'x' AS y;\nDROP TABLE `proxy_host`;\n").rows("proxy_host")


def test_hosts_become_routes_to_pools_and_redirects() -> None:
    found = read(DUMP)
    assert spec(found, "Pool", "10-0-0-5-8096")["backends"][0]["servers"][0]["address"] == "10.0.0.5"
    assert spec(found, "Route", "nginx-443-media-example-com")["action"] == {"pools": [{"pool": "10-0-0-5-8096"}]}
    assert spec(found, "Route", "nginx-80-media-example-com")["action"]["redirect"]["scheme"] == "https"
    assert spec(found, "Route", "nginx-80-www-example-com")["action"]["redirect"]["host"] == "example.com"
    assert spec(found, "Route", "nginx-80-parked-example-com")["action"]["fixed_response"]["status"] == 404
    assert spec(found, "LoadBalancer", "nginx-tcp-2222")["listeners"][0]["default_pool"] == "10-0-0-5-22"


def test_an_access_list_asks_for_its_own_passwords_or_networks() -> None:
    found = read(DUMP)
    rules = spec(found, "Route", "nginx-443-notes-inside-example-com")["rules"]
    assert rules["basic_auth"]["users"] == {"alice": "a long password", "bob": "another long one"}
    assert rules["request_headers"] == {"remove": ["Authorization"]}, "pass_auth is off"
    assert spec(found, "Route", "nginx-80-printer-example-com")["rules"]["access"] == {"allow": ["allow-10-0-0-0-8"]}
    assert not any("long password" in f"{line.text} {line.reasons}" for line in found.report)


def test_what_hosts_say_beside_nginx_is_reported_at_their_rows() -> None:
    found = read(DUMP)
    assert verdict_of(found, "proxy_host 4 old.example.com") == (Verdict.DEAD, "It is disabled.")
    assert verdict_of(found, "proxy_host 5 gone.example.com") == (Verdict.DEAD, "It is deleted.")
    assert verdict_of(found, "block_exploits = 1")[0] is Verdict.NOT_POSSIBLE
    assert verdict_of(found, "user: 1 row")[0] is Verdict.NODE_SETTING
    assert not any("gone.example.com" in str(each) for each in found.documents)


def test_certificates_are_those_of_its_folders() -> None:
    needs = " ".join(read(DUMP).needs)
    assert "/etc/letsencrypt/live/npm-1/fullchain.pem" in needs
    assert "/data/custom_ssl/npm-2/fullchain.pem" in needs


def test_lines_that_somebody_wrote_for_a_host_are_read_as_nginx() -> None:
    found = host('location /x { proxy_pass http://10.0.0.2:81; }\nperl_set $x "y";')
    assert {each["name"] for each in found.documents if each["kind"] == "Pool"} == {"10-0-0-2-81", "10-0-0-1-80"}
    assert verdict_of(found, "perl_set $x y", "/data/nginx/proxy_host/1.conf")[0] is Verdict.NOT_POSSIBLE


def test_a_location_of_its_own_takes_the_place_of_the_default_one() -> None:
    found = host("location / { return 418; }")
    assert [each["name"] for each in found.documents if each["kind"] == "Pool"] == []


def test_a_name_with_signs_of_nginx_stays_one_word() -> None:
    found = host(name="a.example.com; } server { listen 81; server_name b.example.com")
    assert {each["port"] for each in spec(found, "LoadBalancer", "nginx-80")["listeners"]} == {80}
    assert [each["name"] for each in found.documents if each["kind"] == "LoadBalancer"] == ["nginx-80"]


def test_files_of_hosts_that_are_gone_do_not_come_back() -> None:
    stale = {"/data/nginx/proxy_host/9.conf": "server { listen 80; server_name stale.example.com; return 200; }"}
    assert not any("stale.example.com" in str(each) for each in read(DUMP, **stale).documents)


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '/tmp/x.db' AS x;",
        "PRAGMA writable_schema=ON;",
        "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n;",
        "CREATE VIEW v AS SELECT 1;",
        "CREATE TRIGGER t AFTER INSERT ON proxy_host BEGIN DELETE FROM proxy_host; END;",
        "SELECT load_extension('x');",
        "INSERT INTO proxy_host(advanced_config) VALUES(zeroblob(1000000000));",
        "SELECT * FROM",
    ],
)
def test_a_dump_makes_and_fills_tables_and_does_nothing_else(statement: str) -> None:
    with pytest.raises(NoDatabase, match="no dump of an SQLite or MySQL database"):
        Database(HOST + statement)


def test_another_database_is_refused_with_a_sentence() -> None:
    (line,) = read("CREATE TABLE shop (id integer);").report
    assert line.verdict is Verdict.NOT_POSSIBLE
    assert "no table proxy_host" in line.reasons[0]


def test_the_file_itself_says_what_its_dump_says(tmp_path: Path) -> None:
    path = tmp_path / "database.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(DUMP)
    connection.close()
    before = path.read_bytes()
    assert read(dump_of(path)).documents == read(DUMP).documents
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["database.sqlite"]


def test_a_table_that_lacks_a_column_is_named() -> None:
    dump = "CREATE TABLE proxy_host (domain_names TEXT);\nINSERT INTO proxy_host VALUES ('[\"a.example.com\"]');\n"
    (line,) = read(dump).report
    assert line.verdict is Verdict.NOT_POSSIBLE
    assert "The table proxy_host has no column id" in line.reasons[0]
