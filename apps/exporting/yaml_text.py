"""YAML as people read it: fields in their order, and nothing written as a reference to another place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

# Text that Kubernetes and YAML 1.2 read as a boolean or a number, and PyYAML does not.
_NO_TEXT_ELSEWHERE = re.compile(
    r"(?:[yYnN]|[-+]?0[xXoObB][0-9a-fA-F_]+|[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9_]+)?)\Z"
)
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # written in C where it is compiled in


class _Dumper(_Base):  # type: ignore[misc]  # whichever of the two there is
    def ignore_aliases(self, _data: object) -> bool:
        """Of everything."""
        return True


# Text that resolves to something else is quoted.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NO_TEXT_ELSEWHERE, [*"yYnN-+.0123456789"])


def yaml_text(documents: Iterable[Any]) -> str:
    """The documents, one after the other."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, allow_unicode=True, width=120)
