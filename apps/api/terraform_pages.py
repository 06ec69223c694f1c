"""The pages of the Terraform provider as a registry shows them, made of the shapes and of examples that tests apply."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.api import terraform
from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.pages import default_of, values_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.traffic.authentication import SECRETS

FOLDER = terraform.CHECKED_IN.parent
ACCOUNT = "- `account` (String) The account that owns it.{}"
WORDS = {"string": "String", "integer": "Number", "number": "Number", "boolean": "Boolean", "map": "Map of String"}
IDENTITY = "What imports call it: `account/name`, or `name` for what belongs to the platform."
BELOW = " (see [below for nested schema](#nestedatt--{}))"
REPLACES = " Another value replaces the object."


def pages() -> dict[Path, str]:
    """Every page that is made, by where it is."""
    found = {}
    for kind, shape in zip(terraform.kinds(), SHAPES.values(), strict=True):
        found[FOLDER / "docs" / "resources" / f"{kind['type']}.md"] = _resource(kind, shape)
        found[FOLDER / "docs" / "data-sources" / f"{kind['type']}.md"] = _data_source(kind, shape)
    return found


def example_of(kind: str) -> Path:
    """The example of a kind, which tests apply."""
    return FOLDER / "examples" / "resources" / f"spillway_{kind}" / "resource.tf"


def _resource(kind: dict[str, Any], shape: type[Shape]) -> str:
    label, own = _called(kind["type"])
    what, identity = f"spillway_{kind['type']}.{label}", f"operator/{own}" if kind["owned"] else own
    imported = f'import {{\n  to = {what}\n  id = "{identity}"\n}}'
    required = [
        *([ACCOUNT.format(REPLACES)] if kind["owned"] else []),
        f"- `name` (String) Its name: lower-case letters, digits and hyphens.{REPLACES}",
        f"- `spec` (Attributes) The definition, as in documents{BELOW.format('spec')}",
    ]
    parts = [
        _head(kind, "Resource"),
        f"## Example Usage\n\n```terraform\n{example_of(kind['type']).read_text()}```",
        "## Schema\n\n### Required\n\n" + "\n".join(required),
        _read_only(),
        *(_nested(at, child, shown=False) for at, child in _objects("spec", shape)),
        f"## Import\n\nFrom Terraform 1.5 on with a block:\n\n```terraform\n{imported}\n```",
        f"With the command:\n\n```shell\nterraform import {what} {identity}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _data_source(kind: dict[str, Any], shape: type[Shape]) -> str:
    label, own = _called(kind["type"])
    account = '  account = "operator"\n' if kind["owned"] else ""
    space = "   " if kind["owned"] else ""
    used = f'data "spillway_{kind["type"]}" "{label}" {{\n{account}  name {space}= "{own}"\n}}\n'
    required = [*([ACCOUNT.format("")] if kind["owned"] else []), "- `name` (String) Its name."]
    shown = f"- `spec` (Attributes) The definition with its defaults; secrets are never shown{BELOW.format('spec')}"
    parts = [
        _head(kind, "Data Source"),
        f"## Example Usage\n\n```terraform\n{used}```",
        "## Schema\n\n### Required\n\n" + "\n".join(required),
        f"{_read_only()}\n{shown}",
        *(_nested(at, child, shown=True) for at, child in _objects("spec", shape)),
    ]
    return "\n\n".join(parts) + "\n"


def _head(kind: dict[str, Any], what: str) -> str:
    """What a registry reads of a page, and its first words."""
    title = f"spillway_{kind['type']}"
    return (
        f'---\npage_title: "{title} {what} - spillway"\nsubcategory: ""\ndescription: |-\n  {kind["help"]}\n---\n\n'
        f"<!-- `make openapi` writes this page. -->\n\n# {title} ({what})\n\n{kind['help']}"
    )


def _called(kind: str) -> tuple[str, str]:
    """How the example of a kind calls its object in Terraform, and in Spillway."""
    block = example_of(kind).read_text().partition(f'resource "spillway_{kind}" "')[2]
    name = block.partition("  name ")[2].partition("\n")[0]
    return block.partition('"')[0], name.strip(' ="')


def _read_only() -> str:
    version = "- `version` (Number) Increases with each change, whoever makes it."
    return f"### Read-Only\n\n- `id` (String) {IDENTITY}\n{version}"


def _objects(at: str, shape: type[Shape], parent: str = "") -> Iterator[tuple[str, tuple[type[Shape], str]]]:
    yield at, (shape, parent)
    for field in fields_of(shape):
        if field.child:
            yield from _objects(f"{at}--{field.name}", field.child, field.name)


def _nested(at: str, child: tuple[type[Shape], str], *, shown: bool) -> str:
    shape, parent = child
    lines: dict[str, list[str]] = {"Required": [], "Optional": [], "Read-Only": []}
    for field in fields_of(shape):
        group = "Read-Only" if shown else "Required" if field.required else "Optional"
        lines[group].append(_line(at, field, parent))
    groups = [f"{group}:\n\n" + "\n".join(found) for group, found in lines.items() if found]
    title = at.replace("--", ".")
    return "\n\n".join([f'<a id="nestedatt--{at}"></a>\n### Nested Schema for `{title}`', *groups])


def _line(at: str, field: Field, parent: str) -> str:
    """A field with its type, what it may be and its default."""
    secret = ", Sensitive" if field.about.secret or (parent, field.name) in SECRETS else ""
    below = BELOW.format(f"{at}--{field.name}") if field.child else ""
    values = values_of(field.grammar.schema) if field.grammar else "text"
    plain = "" if values in ("text", "`true`, `false`") else f" {'Each takes' if field.many else 'Takes'} {values}."
    default = default_of(field).replace("`True`", "`true`").replace("`False`", "`false`")
    default = f" Default: {default}." if default not in ("", "required") else ""
    return f"- `{field.name}` ({_type(field)}{secret}) {field.about.help}{plain}{default}{below}"


def _type(field: Field) -> str:
    word = terraform.type_of(field)
    if word == "object":
        return "Attributes List" if field.many else "Attributes"
    one = WORDS.get(word, "String")
    if not field.many:
        return one
    return f"{'Set' if field.sorted else 'List'} of {one}"
