"""Words of commands that change objects which a pipeline may manage."""

from __future__ import annotations

import argparse


def add_managed(words: argparse.ArgumentParser) -> None:
    """Whose objects these are, or that they are changed all the same."""
    words.add_argument("--manager", default="", metavar="NAME", help="the pipeline that manages these objects")
    add_glass(words)


def add_glass(words: argparse.ArgumentParser) -> None:
    """That what a pipeline manages is changed all the same."""
    words.add_argument(
        "--break-glass", action="store_true", help="change what a pipeline manages; the audit log records it"
    )


def add_take_over(words: argparse.ArgumentParser) -> None:
    """Which limits are set although a capacity run set them."""
    words.add_argument(
        "--take-over",
        action="append",
        default=[],
        metavar="ACCOUNT/POOL/REGION",
        help="a limit to set even though a capacity run set it; repeat for more",
    )


def said(asked: argparse.Namespace) -> dict[str, str]:
    """What every write of the command says in its query."""
    found = {"manager": getattr(asked, "manager", ""), "take_over": ",".join(getattr(asked, "take_over", ()))}
    found["break_glass"] = "true" if getattr(asked, "break_glass", False) else ""
    return {name: text for name, text in found.items() if text}
