"""Files and functions stay small enough to be read at one sitting."""

from __future__ import annotations

import ast

from tests.architecture.sources import modules, name, tree

LARGEST_FILE = 500
LARGEST_FUNCTION = 60


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring: explaining much is not a fault."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def test_no_file_is_longer_than_500_lines() -> None:
    assert [name(path) for path in modules() if len(path.read_text().splitlines()) > LARGEST_FILE] == []


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{name(path)}:{node.lineno} {node.name} ({lines_of(node)})"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > LARGEST_FUNCTION
    ]
    assert long == []


def test_the_typical_function_has_at_most_20_lines() -> None:
    sizes = sorted(
        lines_of(node)
        for path in modules("apps", "controlplane")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert sizes[len(sizes) * 9 // 10] <= 20
