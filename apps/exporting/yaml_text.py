"""YAML as people read it: fields in their order, and nothing written as a reference to another place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # written in C where it is compiled in


class _Dumper(_Base):  # type: ignore[misc]  # whichever of the two there is
    def ignore_aliases(self, _data: object) -> bool:
        """Of everything."""
        return True


def yaml_text(documents: Iterable[Any]) -> str:
    """The documents, one after the other."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, allow_unicode=True, width=120)
