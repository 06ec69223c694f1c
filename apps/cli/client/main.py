"""The words of the command line and what each asks the server for; exit codes 0, 1 for errors, 2 for changes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import __version__
from .api import Api, Failure, Problem
from .commands import (
    adopting,
    applying,
    banning,
    changing,
    clouds,
    exporting,
    looking,
    managing,
    measuring,
    scheduling,
    watching,
)
from .error_lines import line_of
from .texts import plain
from .words import said

NOTHING_TO_DO, ERROR, CHANGES = 0, 1, 2
EXITS = "Exit codes: 0 done or nothing to do, 1 an error, 2 (plan) there are changes."


class Parser(argparse.ArgumentParser):
    """Errors in the words end with 1: 2 would say that a plan has changes."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how it is meant."""
        self.print_usage(sys.stderr)
        self.exit(ERROR, f"{self.prog}: {message}\n")


def parser() -> Parser:
    """Every command with its options."""
    every = argparse.ArgumentParser(add_help=False)
    every.add_argument("--url", default=os.environ.get("SPILLWAY_URL", ""), help="default: SPILLWAY_URL")
    every.add_argument("--token", help="prefer SPILLWAY_TOKEN or --token-file: other users can see command lines")
    every.add_argument("--token-file", type=Path, metavar="FILE", help="a file that holds the token")
    every.add_argument("--plain-http", action="store_true", help="send the token over http:// to another computer")
    every.add_argument("--output", choices=("text", "json"), default="text")
    found = Parser(prog="spillway", description="Spillway from the command line.", epilog=EXITS)
    found.add_argument("--version", action="version", version=f"spillway {__version__}")
    commands = found.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    reading = (looking, watching, exporting)
    for module in (applying, changing, *reading, scheduling, measuring, clouds, adopting, banning, managing):
        module.add_to(commands, every)
    version = commands.add_parser("version", help="print the version of this command")
    version.set_defaults(run=None)
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    asked = parser().parse_args(words)
    if asked.run is None:
        print(f"spillway {__version__}")
        return NOTHING_TO_DO
    try:
        return _run(asked)
    except Problem as problem:
        _complain(problem, asked)
    except Failure as failure:
        print(f"spillway: {failure}", file=sys.stderr)
    except BrokenPipeError:
        # Whoever read has seen enough; nothing more is written, also not while Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("spillway: stopped; a change that was already sent may have taken effect.", file=sys.stderr)
    return ERROR


def _run(asked: argparse.Namespace) -> int:
    run: Callable[[Api, argparse.Namespace], tuple[Any, str, int]] = asked.run
    body, text, code = run(Api(asked.url, _token(asked), _origin(asked), asked.plain_http, said(asked)), asked)
    if asked.output == "json":
        text = json.dumps(body, indent=2, ensure_ascii=False)
    if text:
        print(text)
    return code


def _token(asked: argparse.Namespace) -> str:
    if asked.token_file:
        try:
            return str(asked.token_file.read_text(encoding="ascii")).strip()
        except (OSError, ValueError) as error:
            raise Failure(f"The token file cannot be read: {error}") from None
    return (asked.token or os.environ.get("SPILLWAY_TOKEN", "")).strip()


def _origin(asked: argparse.Namespace) -> dict[str, str]:
    """Headers that say why, of which commit and in which run of a pipeline a change is made."""
    given = {
        "X-Change-Reason": getattr(asked, "reason", None),
        "X-Change-Commit": getattr(asked, "commit", None),
        "X-Change-Pipeline": getattr(asked, "pipeline_url", None),
    }
    if bad := next((name for name, text in given.items() if text and not text.isprintable()), None):
        raise Failure(f"{bad} must be a single line.")
    # Headers travel as Latin-1; the server reads UTF-8 in them.
    return {name: text.encode().decode("latin-1") for name, text in given.items() if text}


def _complain(problem: Problem, asked: argparse.Namespace) -> None:
    """Every error as `file:line pointer: detail`, and the id of the request."""
    source = getattr(asked, "source", None)
    field_errors = problem.field_errors
    head = str(problem) if len(field_errors) < 2 else f"{len(field_errors)} errors; nothing was changed."
    print(f"spillway: {plain(head)}", file=sys.stderr)
    for field_error in field_errors:
        pointer, detail = str(field_error.get("pointer", "")), str(field_error.get("detail", ""))
        line = line_of(source, pointer) if source else None
        where = f"{plain(asked.file)}:{line}: " if line else ""
        print(f"  {where}{plain(pointer) or '(the whole)'}: {plain(detail)}", file=sys.stderr)
    if problem.request_id:
        print(f"  request {plain(problem.request_id)}", file=sys.stderr)
