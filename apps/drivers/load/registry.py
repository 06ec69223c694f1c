"""The choice: which generator carries out a plan."""

from __future__ import annotations

from apps.drivers.load.contract import Generator, Plan
from apps.drivers.load.memory import MemoryGenerator, in_memory
from apps.drivers.load.several import process_generator


def open_generator(plan: Plan) -> Generator:
    """A generator for the plan, not started yet."""
    return MemoryGenerator() if in_memory(plan) else process_generator(plan)
