"""Whether this machine has a Terraform provider without asking the registry; tests are skipped loudly without."""

from __future__ import annotations

from collections.abc import Mapping

from apps.drivers.infra.mirrors import REGISTRY, mirror


def provides(source: str, given: Mapping[str, str] | None = None) -> bool:
    """Whether the mirror has a provider (`hashicorp/aws`)."""
    found = mirror(given)
    return found is not None and (found / REGISTRY / source).is_dir()
