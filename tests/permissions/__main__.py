"""Prints the table and how many checks it stands for: `python -m tests.permissions`."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")


def main() -> None:
    """The rows name models, so Django is set up before they are read."""
    import django

    django.setup()
    from tests.permissions.table import as_text

    print(as_text())


if __name__ == "__main__":
    main()
