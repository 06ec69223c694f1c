"""Every task that is woken by name exists, and every task is a wake-up: a few lines that call a service."""

from __future__ import annotations

import ast
import re

from celery import current_app

from tests.architecture.sources import ROOT, functions, modules, name, tree

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


# `-Q one,two` in a shell's words, and in Python's.
TAKES = re.compile(r"-Q(?:\s+|\", \")([a-z,]+)")


def workers() -> dict[str, list[set[str]]]:
    """By whom workers are started: the queues that each takes."""
    units = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
    files = {"systemd": units, "the demo": [ROOT / "deploy" / "demo" / "programs.py"]}
    return {
        who: [set(found.split(",")) for path in paths for found in TAKES.findall(path.read_text())]
        for who, paths in files.items()
    }


def test_each_queue_has_a_worker_and_one_that_works_for_minutes_has_one_of_its_own() -> None:
    """A fleet is not pushed to later because Terraform works: tests/e2e/test_stack_beside_fleets.py tries it."""
    routes = current_app.conf.task_routes
    queues = {"default", *(route["queue"] for route in routes.values())}
    for who, started in workers().items():
        assert set().union(*started) == queues, who
        assert {"terraform"} in started, who
        assert {"capacity"} in started, who
        assert not [each for each in started if "push" in each and each & {"terraform", "capacity"}], who
    assert routes["apps.stacks.tasks.*"] == {"queue": "terraform"}
    assert routes["apps.rollouts.tasks.*"] == {"queue": "push"}
