"""How much the generator says it can send, asked before a run; no number rests on more than that.

A rate that is to be held and lies above it refuses the run. A search is bounded by it, and one that comes to this bound
found the end of the generator, not of the target.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from apps.capacity.measure.results import Result
from apps.capacity.measure.summing import REASONS, Ending
from apps.capacity.run.targets import target_of
from apps.core.written.numbers import plain
from apps.definitions.models import CapacityTest
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.operations.capacity_test import CapacityTestSpec
from apps.drivers.load.contract import LoadError, Plan, Request
from apps.drivers.load.registry import open_generator

logger = logging.getLogger(__name__)
WITHIN_S = 14.0
HELD = ("constant", "soak", "ramp")


Stated = Mapping[str, Any] | None  # as in `Run.generator`


def advertised_max(document: Mapping[str, Any], test: CapacityTest) -> dict[str, Any] | None:
    """What the generator of a test (its document as a run has it) says; None when it could not find out.

    Raises Conflict when the target has no address any more.
    """
    spec, target = read_or_raise(CapacityTestSpec, dict(document)), target_of(test)
    plan = Plan(
        endpoints=target.endpoints,
        request=Request(spec.target.hostname, spec.target.path, spec.load.method),
        rate=1.0,
        max_connections=spec.guards.max_connections,
        keep_alive=spec.load.keep_alive,
        tls=target.tls,
    )
    generator = open_generator(plan)
    try:
        maximum = asyncio.run(asyncio.wait_for(generator.maximum(plan), WITHIN_S))
    except (LoadError, TimeoutError) as problem:
        # Without the number a run is as honest as its seconds, which say when the generator was too slow.
        logger.warning("the maximum of the generator is not known: %s", problem)
        return None
    return asdict(maximum)


def exceeds(spec: CapacityTestSpec, generator: Stated, allowed: float) -> str:
    """Why a rate that the test is to hold is more than can be offered; empty when it is not. A search is bounded."""
    load = spec.load
    if generator is None or load.kind not in HELD:
        return ""
    asked = min(load.to_rate if load.kind == "ramp" else load.rate, allowed)
    if asked <= generator["rate"]:
        return ""
    name = "load.to_rate" if load.kind == "ramp" else "load.rate"
    return (
        f"The test asks for {plain(asked)} requests/s; the generator can offer at most "
        f"{plain(generator['rate'])} here ({_circumstances(generator)}). Lower {name}, or test from a larger machine."
    )


def bound(allowed: float, generator: Stated) -> float:
    """The highest rate of a run, requests/s: what is `allowed`, and what the generator can."""
    return allowed if generator is None else min(allowed, generator["rate"])


def cap_result(found: Result, generator: Stated, allowed: float) -> Result:
    """The result, which says so when it was the generator's maximum that ended a search, not the `allowed` rate."""
    if generator is None or found.limited_by != Ending.MAX_RATE or generator["rate"] >= allowed:
        return found
    why = f" The generator offers no more than {plain(generator['rate'])} requests/s here: the target may take more."
    message = found.message.removesuffix(REASONS[Ending.MAX_RATE]) + why
    return replace(found, limited_by=Ending.GENERATOR.value, message=message)


def sentence_of(generator: Stated) -> str:
    """What the generator of a run stated, for people; empty where it said nothing."""
    if generator is None:
        return ""
    return f"It offers up to {plain(generator['rate'])} requests/s here ({_circumstances(generator)})."


def _circumstances(generator: Mapping[str, Any]) -> str:
    processes, cores = generator["processes"], generator["cores"]
    said = f"{'one process' if processes == 1 else f'{processes} processes'} on {cores} core{'s' * (cores != 1)}"
    return f"{said}, while the machine was busy: load {generator['load']:.1f}" if generator["load"] > cores else said
