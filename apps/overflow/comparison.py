"""How far what the nodes did is from what the planner said."""

from __future__ import annotations

from apps.overflow.flows import Flow


def misplaced(predicted: Flow, actual: Flow) -> float:
    """Requests/s that met another fate than planned: half of all differences, since each is missing elsewhere."""
    plan, fact = _fates(predicted), _fates(actual)
    return sum(abs(plan.get(key, 0.0) - fact.get(key, 0.0)) for key in plan | fact) / 2


def prediction_error(predicted: Flow, actual: Flow) -> float | None:
    """The share (0-1) of the requests that went elsewhere than planned; None without traffic."""
    offered = sum(use.demand_rps for use in actual.regions)
    return misplaced(predicted, actual) / offered if offered and actual.at is not None else None


def _fates(flow: Flow) -> dict[tuple[str, str], float]:
    """Where everything is served, and what was refused or waits."""
    refused = {(use.region_id, "refused"): use.rejected_rps for use in flow.regions}
    queued = {(use.region_id, "queued"): use.queued_rps for use in flow.regions}
    return flow.served() | refused | queued
