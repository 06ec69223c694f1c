"""Prints what the corpus is and how much of it goes where: `python -m tests.hostile`."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")


def main() -> None:
    """Tables of Markdown."""
    import django

    django.setup()
    from tests.bench.tables import table
    from tests.hostile.corpus import CORPUS, SHARP, VALUES
    from tests.hostile.entrypoints import dozen, each_field, every_sharp, fields_of, tour
    from tests.hostile.orders import fields_of_orders
    from tests.hostile.test_grammars import distinct_uses

    fields, orders, grammars = fields_of(), fields_of_orders(), len(distinct_uses())
    print(table(["class", "values"], [[name, str(len(values))] for name, values in CORPUS.items()]), "\n")
    told = [("values, none twice", len(VALUES)), ("grammars by what they take", grammars)]
    told += [("fields of documents", len(fields)), ("fields of other bodies", len(orders))]
    print(table(["what", "count"], [[what, str(count)] for what, count in told]), "\n")
    sharp, whole = (
        sum(not field.legal(value) for field in fields for value in values)
        for values in (SHARP, [value for _, value in VALUES])
    )
    asked = [
        ("values asked of each grammar", len(VALUES), len(VALUES)),
        ("pairs of value and field, all read by the one entry", sharp, whole),
        ("through POST", len([*each_field(fields)]), len([*tour(fields, whole=True)])),
        ("through apply, and through the command", len([*dozen(fields)]), len([*tour(fields)])),
        ("through the small calls", len([*every_sharp(orders)]), len([*tour(orders, whole=True)])),
    ]
    rows = [[what, str(each_change), str(each_tag)] for what, each_change, each_tag in asked]
    print(table(["what", "make test", "make test-all"], rows))


if __name__ == "__main__":
    main()
