"""Makes a plain document by a shape, of a specification or of a stored row with the same attributes.

A row may have a row where the shape has a name, and a manager of rows where it has a list. Every default is written
out, lists that have no order of their own stand in one.
"""

from __future__ import annotations

from typing import Any

from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.shape import Shape

Document = dict[str, Any]


def write(shape: type[Shape], source: object, owner: int | None = None) -> Document:
    """The document; `owner` is the id of the account in whose words other objects are named."""
    found: Document = {}
    for field in fields_of(shape):
        value: Any = getattr(source, field.name, None)
        value = list(value.all()) if hasattr(value, "all") else value
        left_out = value is None and (field.sparse or field.about.stays is not None)
        holds_nothing = field.about.absent_when_empty and value in (None, "", (), [])  # 0 says something
        if not (left_out or field.about.secret or holds_nothing):
            found[field.name] = _written(field, value, owner)
    return found


def _written(field: Field, value: Any, owner: int | None) -> Any:
    if not field.many:  # a column says nothing with an empty text
        return None if value is None or (value == "" and field.null) else _one(field, value, owner)
    entries = [_one(field, each, owner) for each in value]
    if field.distinct is None or not field.distinct.keys:
        return sorted(entries) if field.sorted else entries
    keys = field.distinct.keys[0]
    return sorted(entries, key=lambda entry: [str(entry.get(key, "")) for key in keys])


def _one(field: Field, value: Any, owner: int | None) -> Any:
    if field.child:
        if isinstance(value, dict):  # a column that keeps the document as it is, in any order
            return {each.name: value[each.name] for each in fields_of(field.child) if each.name in value}
        return write(field.child, value, owner)
    if hasattr(value, "pk"):  # a row, where documents have its name
        return reference(value, owner) if field.grammar and field.grammar.with_account else value.name
    return field.grammar.write(value) if field.grammar else value


def reference(row: Any, owner: int | None) -> str:
    """How an account (its id) names an object: `acme/shop` where it belongs to another one."""
    return str(row.name) if row.account_id == owner else f"{row.account.name}/{row.name}"


def settled(shape: type[Shape], stored: Document, said: Document) -> Document:
    """The document of a specification with what it leaves as it is: taken from that of the stored object."""
    staying = {field.name: field.about.stays for field in fields_of(shape) if field.about.stays is not None}
    return {name: stored.get(name, new) for name, new in staying.items()} | said


def copy_objects(spec: Shape, row: object, *names: str) -> None:
    """Put objects of a specification, and lists of them, on a row that keeps each as its document; null for none."""
    for name in names:
        value = getattr(spec, name)
        if isinstance(value, tuple):
            setattr(row, name, [write(type(each), each) for each in value] or None)
        else:
            setattr(row, name, None if value is None else write(type(value), value))


def copy_plain(spec: Shape, row: object) -> None:
    """Put the values of a specification on a row with the same attributes.

    What has a shape of its own or is the name of another object is left out, and what stays as it is.
    """
    for field in fields_of(type(spec)):
        value = getattr(spec, field.name)
        if field.grammar and not field.grammar.refers and (value is not None or field.null):
            setattr(row, field.name, value if field.plain else _written(field, value, None))
