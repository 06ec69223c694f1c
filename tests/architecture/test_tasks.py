"""Every task that is woken by name exists, and every task is a wake-up: a few lines that call a service."""

from __future__ import annotations

import ast

from celery import current_app

from tests.architecture.sources import functions, modules, name, tree

LARGEST_TASK = 15


def woken_names() -> set[str]:
    """All string constants of the code that have the form of a task's name."""
    return {
        node.value
        for path in modules("apps", "controlplane")
        if "tasks" in path.read_text()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("apps.")
        and ".tasks." in node.value
        and not node.value.endswith("*")
    }


def test_every_task_that_is_woken_by_name_exists() -> None:
    current_app.loader.import_default_modules()
    names = woken_names()
    assert names
    assert names - set(current_app.tasks) == set()


def test_tasks_have_at_most_15_lines() -> None:
    long = [
        f"{name(path)}:{function.name}"
        for path in modules("apps")
        if path.name == "tasks.py"
        for function in functions(path)
        if function.lines > LARGEST_TASK
    ]
    assert long == []
