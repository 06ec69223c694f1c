"""A database of Nginx Proxy Manager in, documents and a verdict for each line of its files, rows and columns out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from apps.importing.contract import Import
from apps.importing.nginx.reading import read_nginx
from apps.importing.npm.database import Database, NoDatabase
from apps.importing.npm.rows import rows_of
from apps.importing.npm.sites import MAIN, as_nginx
from apps.importing.options import ImportOptions
from apps.importing.verdicts import LineReport, Verdict

# What it wrote itself and is written anew here; a file of a host that is gone would come back.
_OWN_FILES = re.compile(r"nginx/(?:\w+_host|stream)/[^/]+\.conf$")


def read_npm(dump: str, files: Mapping[str, str], options: ImportOptions) -> Import:
    """The files that it writes for nginx, read as any nginx.conf; certificates are looked for in `files`."""
    try:
        database = Database(dump)
    except NoDatabase as error:
        first = dump.strip().partition("\n")[0]
        return Import((), (LineReport(1, first, "", Verdict.NOT_POSSIBLE, (str(error),)),))
    found = read_nginx(*_nginx(database, files), options)
    return replace(found, report=(*found.report, *rows_of(database)))


def nginx_of(dump: str, files: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The main file for nginx, and the files that it includes. Raises NoDatabase."""
    return _nginx(Database(dump), files)


def _nginx(database: Database, files: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    given = {name: text for name, text in files.items() if not _OWN_FILES.search(name)}
    return f"include {MAIN};\n", given | as_nginx(database)
