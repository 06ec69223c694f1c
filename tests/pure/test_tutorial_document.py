"""The tutorial and the examples of the documents: every object is one that `apply` reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.core.errors import Invalid
from apps.definitions.reading.documents import read_object
from deploy.demo.config import DemoConfig
from deploy.demo.topology import DemoTopology

DOCS = Path(__file__).resolve().parents[2] / "docs"


def examples() -> list[Any]:
    """What stands in blocks of YAML on all pages."""
    texts = [page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))]
    return [yaml.safe_load(block) for text in texts for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_every_object_of_the_documents_is_read_and_stands_below_objects() -> None:
    found = examples()
    objects = [entry for each in found if "objects" in each for entry in each["objects"]]
    assert len({read_object(entry).kind for entry in objects}) > 20
    assert [each for each in found if isinstance(each, list) or "kind" in each] == [], "apply would not take these"


def test_every_object_of_the_tutorial_is_read(tmp_path: Path) -> None:
    kinds = [read_object(entry).kind for entry in DemoTopology(DemoConfig(var=tmp_path)).document["objects"]]
    assert kinds.count("Node") == 4
    assert kinds.count("Route") == 5


def test_a_misspelt_field_of_the_tutorial_would_be_named(tmp_path: Path) -> None:
    entry = next(DemoTopology(DemoConfig(var=tmp_path)).objects("Pool"))
    entry["spec"]["balanse"] = "leastconn"
    with pytest.raises(Invalid, match="balanse"):
        read_object(entry)
