"""The choice: which generator carries out a plan, by its protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apps.drivers.load.contract import Generator, LoadError, Plan
from apps.drivers.load.memory import MemoryGenerator, in_memory
from apps.drivers.load.several import process_generator

GENERATORS: Mapping[str, Callable[[Plan], Generator]] = {
    "http1": process_generator,
    "http2": process_generator,
}


def open_generator(plan: Plan) -> Generator:
    """A generator for the plan, not started yet; raises LoadError when nobody speaks its protocol."""
    if in_memory(plan):
        return MemoryGenerator()
    if plan.protocol not in GENERATORS:
        raise LoadError(f"No generator speaks {plan.protocol}.")
    return GENERATORS[plan.protocol](plan)
