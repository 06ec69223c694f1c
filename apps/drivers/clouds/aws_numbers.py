"""Numbers: CloudWatch's counts per minute of target groups (ALB) and of load balancers (NLB).

Metrics and their dimensions are those of "CloudWatch metrics for your Application Load Balancer" and of "… Network Load
Balancer" in AWS's own guides. Counts are there a minute or two after the fact; a minute without requests has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apps.drivers.clouds.contract import Numbers

MINUTE = timedelta(minutes=1)
IN_CALL = 500
ALB, NLB = "AWS/ApplicationELB", "AWS/NetworkELB"


@dataclass(frozen=True, slots=True)
class Counted:
    """One thing that CloudWatch counts for: `dimensions` as it knows them, `is_tcp` for a Network Load Balancer."""

    group: str
    object_id: str
    dimensions: tuple[tuple[str, str], ...]
    is_tcp: bool = False


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    statistic: str
    field: str
    factor: float = 1.0


_OF_ALB = (
    _Metric("RequestCount", "Sum", "requests"),
    _Metric("HTTPCode_Target_2XX_Count", "Sum", "status_2xx"),
    _Metric("HTTPCode_Target_3XX_Count", "Sum", "status_3xx"),
    _Metric("HTTPCode_Target_4XX_Count", "Sum", "status_4xx"),
    _Metric("HTTPCode_Target_5XX_Count", "Sum", "status_5xx"),
    _Metric("TargetResponseTime", "p50", "p50_ms", 1000),
    _Metric("TargetResponseTime", "p95", "p95_ms", 1000),
    _Metric("TargetResponseTime", "p99", "p99_ms", 1000),
)
_OF_NLB = (_Metric("NewFlowCount", "Sum", "requests"), _Metric("ActiveFlowCount", "Average", "connections"))
_WHOLE = frozenset({"requests", "status_2xx", "status_3xx", "status_4xx", "status_5xx", "connections"})


def read_numbers(cloudwatch: Any, counted: Sequence[Counted], since: datetime, until: datetime) -> list[Numbers]:
    """Whole minutes from `since` to `until` of everything in `counted`, oldest first."""
    found: dict[tuple[Counted, datetime], dict[str, float]] = defaultdict(dict)
    asked = list(_questions(counted))
    for part in _parts(asked):
        queries = [_query(number, each, metric) for number, (each, metric) in enumerate(part)]
        for name, moment, value in _answers(cloudwatch, queries, since, until):
            each, metric = part[int(name[1:])]
            found[each, moment + MINUTE][metric.field] = value * metric.factor
    rows = [_numbers(each, moment, values) for (each, moment), values in found.items()]
    return sorted(rows, key=lambda row: (row.at, row.group))


def _questions(counted: Iterable[Counted]) -> Iterator[tuple[Counted, _Metric]]:
    for each in counted:
        for metric in _OF_NLB if each.is_tcp else _OF_ALB:
            yield each, metric


def _parts(asked: list[tuple[Counted, _Metric]]) -> Iterator[list[tuple[Counted, _Metric]]]:
    for at in range(0, len(asked), IN_CALL):
        yield asked[at : at + IN_CALL]


def _query(number: int, each: Counted, metric: _Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in each.dimensions]
    stat = {
        "Metric": {"Namespace": NLB if each.is_tcp else ALB, "MetricName": metric.name, "Dimensions": dimensions},
        "Period": 60,
        "Stat": metric.statistic,
    }
    return {"Id": f"m{number}", "MetricStat": stat, "ReturnData": True}


def _answers(
    cloudwatch: Any, queries: list[dict[str, Any]], since: datetime, until: datetime
) -> Iterator[tuple[str, datetime, float]]:
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries, StartTime=since, EndTime=until, ScanBy="TimestampAscending"
    )
    for page in pages:
        for result in page["MetricDataResults"]:
            for moment, value in zip(result["Timestamps"], result["Values"], strict=True):
                yield result["Id"], moment, float(value)


def _numbers(each: Counted, moment: datetime, values: dict[str, float]) -> Numbers:
    counts: dict[str, Any] = {name: round(value) if name in _WHOLE else value for name, value in values.items()}
    return Numbers(each.group, each.object_id, moment, **counts)
