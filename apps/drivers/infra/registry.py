"""The choice: which driver plans and applies, by the name of the binary (TERRAFORM_BIN)."""

from __future__ import annotations

from apps.drivers.infra.contract import InfraDriver
from apps.drivers.infra.memory import MemoryDriver
from apps.drivers.infra.terraform import TerraformDriver

MEMORY = "memory"


def open_driver(binary: str) -> InfraDriver:
    """`terraform`, `tofu`, a path to one of them; `memory` for tests and for looking at pages."""
    return MemoryDriver() if binary == MEMORY else TerraformDriver(binary)
