"""What tests say to an agent that others have used before them: a generation is counted from the one that runs."""

from __future__ import annotations

from collections.abc import Sequence

from apps.compiler.bundle import Bundle
from apps.compiler.model.operations import Operation
from apps.drivers.proxy.contract import NodeState
from tests.conformance.real_agent import RealAgent


def push(agent: RealAgent, bundle: Bundle) -> NodeState:
    """The next generation with this bundle."""
    return agent.driver.push_bundle(bundle, agent.state().generation + 1)


def operate(agent: RealAgent, operations: Sequence[Operation], wanted: Bundle, base: Bundle) -> NodeState:
    """The next generation by operations that lead from one bundle to the other."""
    return agent.driver.run_operations(tuple(operations), wanted, base.digest, agent.state().generation + 1)
