"""No module of apps needs itself by way of others, not even by an import inside of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, modules, tree

APPS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in modules("apps")
}


def imports_in(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that is made when the program runs: what stands under TYPE_CHECKING is for readers alone."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from imports_in(node.orelse)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from imports_in(ast.iter_child_nodes(node))


def needs(module: str, path: Path) -> set[str]:
    """The modules of apps that this one imports."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = set[str]()
    for node in imports_in(tree(path).body):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            continue
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        found.update(name if (name := f"{base}.{alias.name}") in APPS else base for alias in node.names)
    return {name for name in found if name in APPS and name != module}


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One way from a module back to itself; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.slow(reason="every module of apps is parsed")
def test_no_module_of_apps_needs_itself_by_way_of_others() -> None:
    assert circle({module: needs(module, path) for module, path in APPS.items()}) == []


def test_a_circle_is_found_whether_it_is_imported_at_the_top_or_inside_of_a_function(tmp_path: Path) -> None:
    ports, metrics = "apps.observe.ports", "apps.observe.metrics"
    inside = tmp_path / "ports.py"
    for text, found in (
        ("def late():\n    from apps.observe import metrics\n", True),
        ("from .metrics import text\n", True),
        ("if TYPE_CHECKING:\n    from apps.observe import metrics\n", False),
    ):
        inside.write_text(text)
        graph = {ports: needs(ports, inside), metrics: needs(metrics, APPS[metrics])}
        assert bool(circle(graph)) is found
