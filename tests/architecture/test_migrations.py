"""A released migration stays as it was, and one that comes after it lets the consoles of before go on writing."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models import NOT_PROVIDED

from deploy.release import ROOT, Rewritten, release, released, rewritten
from deploy.release import migrations as found_now

NONE_YET = "Nothing was released yet: deploy/released_migrations.txt names no migration. The next release fills it."
# What the consoles of the release before cannot live with, while they and the new ones share a database.
CONTRACTS = (
    migrations.DeleteModel,
    migrations.RemoveField,
    migrations.RenameField,
    migrations.RenameModel,
    migrations.AlterModelTable,
)


def hindrances(operation: Operation) -> list[str]:
    """Why a console of the release before fails when this operation has run."""
    if isinstance(operation, CONTRACTS):
        return [f"{type(operation).__name__} {operation.describe()}: contract in the release after the next"]
    if isinstance(operation, migrations.AddField) and not operation.field.many_to_many:
        sole = operation.field.null or operation.field.db_default is not NOT_PROVIDED
        name = f"{operation.model_name}.{operation.name}"
        return [] if sole else [f"{name}: give it null=True or db_default, so that old consoles can insert rows"]
    return []


def test_released_migrations_are_byte_for_byte_what_they_were() -> None:
    if not released():
        pytest.skip(NONE_YET)
    assert rewritten(released(), found_now()) == []


def test_migrations_after_a_release_only_expand() -> None:
    if not released():
        pytest.skip(NONE_YET)
    new = [path for path in found_now() if path not in released()]
    modules = [importlib.import_module(path.removesuffix(".py").replace("/", ".")) for path in new]
    found = [each for module in modules for each in _hindrances_of(module.Migration)]
    assert found == []


def _hindrances_of(migration: type[migrations.Migration]) -> list[str]:
    """None of one that says by `contracts` since which release nobody needs what it takes away."""
    if getattr(migration, "contracts", ""):
        return []
    return [each for operation in migration.operations for each in hindrances(operation)]


def test_what_a_console_of_before_cannot_live_with_is_found() -> None:
    assert hindrances(migrations.RemoveField("node", "url"))
    assert hindrances(migrations.AddField("node", "size", models.IntegerField(default=1)))
    assert not hindrances(migrations.AddField("node", "size", models.IntegerField(null=True)))
    assert not hindrances(migrations.AddField("node", "size", models.IntegerField(default=1, db_default=1)))
    assert not hindrances(migrations.AddIndex("node", models.Index(fields=["url"], name="by_url")))


def test_a_released_migration_that_was_edited_or_removed_is_found_and_not_released_again(tmp_path: Path) -> None:
    file = tmp_path / "released"
    file.write_text("# nothing yet\n")
    folder = tmp_path / "apps" / "x" / "migrations"
    folder.mkdir(parents=True)
    for name in ("0001_initial.py", "0002_more.py", "__init__.py"):
        (folder / name).write_text(name)
    assert release(tmp_path, file) == 2
    assert rewritten(released(file), found_now(tmp_path)) == []
    (folder / "0003_new.py").write_text("new")
    assert release(tmp_path, file) == 3
    (folder / "0001_initial.py").write_text("edited")
    (folder / "0002_more.py").unlink()
    kept = file.read_text()
    assert rewritten(released(file), found_now(tmp_path)) == [
        f"apps/x/migrations/{each}" for each in ("0001_initial.py", "0002_more.py")
    ]
    with pytest.raises(Rewritten, match="0001_initial"):
        release(tmp_path, file)
    assert file.read_text() == kept


def test_every_migration_of_the_tree_is_among_those_that_a_release_writes_down() -> None:
    assert len(found_now()) == sum(1 for _ in ROOT.glob("apps/*/migrations/0*.py"))
