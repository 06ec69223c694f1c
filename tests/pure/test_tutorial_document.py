"""The tutorial: every object of deploy/examples/tutorial.yaml is one that `apply` reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.core.errors import Invalid
from apps.definitions.reading.documents import read_object
from deploy.demo.config import DemoConfig
from deploy.demo.topology import DemoTopology


def test_every_object_of_the_tutorial_is_read(tmp_path: Path) -> None:
    kinds = [read_object(entry).kind for entry in DemoTopology(DemoConfig(var=tmp_path)).document["objects"]]
    assert kinds.count("Node") == 4
    assert kinds.count("Route") == 5


def test_a_misspelt_field_of_the_tutorial_would_be_named(tmp_path: Path) -> None:
    entry = next(DemoTopology(DemoConfig(var=tmp_path)).objects("Pool"))
    entry["spec"]["balanse"] = "leastconn"
    with pytest.raises(Invalid, match="balanse"):
        read_object(entry)
