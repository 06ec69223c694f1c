"""Which files the architecture tests look at, and what they ask of them; no tree of a file is kept."""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("apps", "controlplane", "deploy", "frontend", "tests")


@functools.cache
def modules(*folders: str) -> tuple[Path, ...]:
    """Every Python module below the folders (all of the project's by default), migrations left out."""
    found = (path for folder in folders or CODE for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(path for path in found if not {"migrations", "node_modules"} & set(path.parts)))


@dataclass(frozen=True, slots=True)
class Function:
    """Where a function begins, and how many lines it has without its docstring: explaining much is not an error."""

    name: str
    line: int
    lines: int


def tree(path: Path) -> ast.Module:
    """The parsed module; whoever looks for a word asks for the text first, which takes a hundredth of the time."""
    return ast.parse(path.read_text())


@functools.cache
def functions(path: Path) -> tuple[Function, ...]:
    """All functions of a module, also those inside of classes and other functions."""
    return tuple(Function(node.name, node.lineno, _lines_of(node)) for node in _functions_in(tree(path)))


def opening(path: Path) -> str | None:
    """The docstring of a module, read no further than that; None where it opens with something else."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.STRING:
            text = ast.literal_eval(token.string)
            return text if isinstance(text, str) else None
        if token.type not in {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING}:
            return None
    return None


def _functions_in(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions stand among statements: expressions, most of a tree, are not walked."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        inside = getattr(node, part, ())
        for each in inside if isinstance(inside, list) else ():
            yield from _functions_in(each)


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def name(path: Path) -> str:
    """Path relative to the project, for messages."""
    return str(path.relative_to(ROOT))
