"""`python -m apps.definitions.shapes` writes docs/reference/, a page for each kind that is declared."""

from __future__ import annotations

from pathlib import Path

from apps.definitions.shapes.base.pages import page
from apps.definitions.shapes.kinds import SHAPES, file_name

REFERENCE = Path("docs/reference")


def main() -> None:
    """Write every page anew."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for kind, shape in SHAPES.items():
        (REFERENCE / file_name(kind)).write_text(page(kind, shape))


if __name__ == "__main__":
    main()
