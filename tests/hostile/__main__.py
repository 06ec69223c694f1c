"""Prints what the corpus is and how much of it goes where: `python -m tests.hostile`."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")


def main() -> None:
    """Tables of Markdown."""
    import django

    django.setup()
    from tests.bench.tables import table
    from tests.hostile.corpus import CORPUS, VALUES
    from tests.hostile.doors import fields_of, tour
    from tests.hostile.orders import fields_of_orders

    fields, orders = fields_of(), fields_of_orders()
    pairs = sum(not field.legal(value) for field in fields for _, value in VALUES)
    print(table(["class", "values"], [[name, str(len(values))] for name, values in CORPUS.items()]), "\n")
    rows = [
        ["values, none twice", str(len(VALUES))],
        ["fields of documents", str(len(fields))],
        ["fields of other bodies", str(len(orders))],
        ["hostile pairs of value and field, all read by the one entry", str(pairs)],
        ["of them through POST (every field with every class)", str(len(list(tour(fields, whole=True))))],
        ["of them through apply, and through the command", str(len(list(tour(fields))))],
        ["through the small calls", str(len(list(tour(orders, whole=True))))],
    ]
    print(table(["what", "count"], rows))


if __name__ == "__main__":
    main()
