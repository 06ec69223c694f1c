"""The interfaces (API, pages) translate and call: they never write to the database themselves."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.sources import modules, name, tree

WRITES = {
    "save",
    "delete",
    "create",
    "bulk_create",
    "bulk_update",
    "update_or_create",
    "get_or_create",
    "select_for_update",
    "asave",
    "acreate",
    "adelete",
}


def writes_in(module: ast.Module) -> list[str]:
    """Calls that look like writes through the ORM: `x.objects.create()`, `row.save()`, `.filter().update()`."""
    found = []
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in WRITES | {"update"}:
            continue
        chain = ast.unparse(node.func.value)
        if node.func.attr in WRITES and chain not in {"super()", "services"} and not chain.endswith("session"):
            found.append(f"{chain}.{node.func.attr}()")
        if node.func.attr == "update" and (".objects" in chain or ".filter(" in chain):
            found.append(f"{chain}.update()")
    return found


def test_no_door_writes_to_the_database() -> None:
    found = {name(path): writes_in(tree(path)) for path in modules("apps/api", "apps/web")}
    assert {path: calls for path, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "line", ["Route.objects.create(name='x')", "route.save()", "Route.objects.filter(pk=1).update(name='y')"]
)
def test_the_check_for_writing_doors_sees_a_write(line: str) -> None:
    assert writes_in(ast.parse(line))
