"""`spillway-admin`: one command for installing, checking, upgrading, saving and restoring a console."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from controlplane.admin import environment_file
from controlplane.admin.environment_file import CannotRead

DESCRIPTION = "Install, check, upgrade, save and restore a console of Spillway."


def parser() -> argparse.ArgumentParser:
    """Every subcommand with its flags."""
    found = argparse.ArgumentParser(prog="spillway-admin", description=DESCRIPTION)
    where = os.environ.get("SPILLWAY_ENVIRONMENT_FILE") or environment_file.DEFAULT
    found.add_argument(
        "--environment", type=Path, default=Path(where), help="file of the settings (default: %(default)s)"
    )
    commands = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    init = commands.add_parser("init", help="write the settings with new secrets, make the tables, the first operator")
    _of_init(init)
    check = commands.add_parser("check", help="say of each part whether it is ok, and what to do")
    check.add_argument("--json", action="store_true", help="print one JSON document")
    check.add_argument(
        "--settings", action="store_true", help="only the settings, before anything is there to be asked"
    )
    upgrade = commands.add_parser("upgrade", help="bring the database and the files of pages to this version")
    upgrade.add_argument("--backup", metavar="FILE", type=Path, help="make a backup there first")
    upgrade.add_argument("--no-backup", action="store_true", help="make none, and do not ask")
    _passphrase(upgrade)
    backup = commands.add_parser("backup", help="write everything into one sealed file")
    backup.add_argument("--to", metavar="FILE", type=Path, required=True, help="a file that does not exist yet")
    backup.add_argument("--with-request-logs", action="store_true", help="and the folder of request lines")
    backup.add_argument("--pki", type=Path, help="folder of certificates and keys (default: beside SPILLWAY_AGENT_CA)")
    _passphrase(backup)
    restore = commands.add_parser("restore", help="read a backup into an empty database")
    _of_restore(restore)
    commands.add_parser("rotate-keys", help="seal everything with the newest SPILLWAY_SECRET_KEY")
    bundle = commands.add_parser("support-bundle", help="what helps to find an error, without secrets")
    bundle.add_argument("--to", metavar="FILE", type=Path, default=Path("spillway-support.tar.gz"))
    return found


def _of_init(init: argparse.ArgumentParser) -> None:
    init.add_argument("--url", help="where people open the console, for example https://console.example")
    init.add_argument("--database", help="URL of the database (default: SQLite below --var)")
    init.add_argument("--redis", help="URL of Redis (default: redis://127.0.0.1:6379/0)")
    init.add_argument("--var", type=Path, help="folder of what is made at run time (default: /var/lib/spillway)")
    init.add_argument("--pki", type=Path, help="folder of certificates (default: pki beside the file of the settings)")
    init.add_argument("--node", nargs="+", action="extend", default=[], help="names of nodes that get a certificate")
    init.add_argument("--username", help="the first operator (default: admin)")
    init.add_argument("--password-file", type=Path, help="a file with their password; else it is asked for")
    init.add_argument("--yes", action="store_true", help="ask nothing; take the defaults of what is not said")


def _of_restore(restore: argparse.ArgumentParser) -> None:
    restore.add_argument("file", type=Path)
    restore.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="another value of a setting")
    restore.add_argument("--replace", action="store_true", help="delete what the database holds")
    restore.add_argument("--without-request-logs", action="store_true", help="leave out lines that the backup has")
    restore.add_argument(
        "--settings-only", action="store_true", help="bring back settings and keys, and leave the database as it is"
    )
    restore.add_argument("--verify", action="store_true", help="read it to its end, and restore nothing")
    _passphrase(restore)


def _passphrase(command: argparse.ArgumentParser) -> None:
    command.add_argument("--passphrase-file", type=Path, help="a file with the passphrase; else it is asked for")


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: done, or all is well. 1: something failed, or a part does. 2: wrong words or settings."""
    options = parser().parse_args(arguments)
    os.umask(0o077)
    from controlplane.admin import commands
    from controlplane.admin.refusal import Refused

    try:
        return commands.COMMANDS[options.command](options)
    except (Refused, CannotRead) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Ended.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
