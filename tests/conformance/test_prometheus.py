"""The alert rules and dashboards that we ship, before Prometheus' own tool and Grafana's own types."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
POOL = 'account="acme",pool="shop",region="eu",node="eu-1"'
BURN = 'spillway_objective_burn_rate{account="acme",kind="route",name="shop",objective="availability"'
BUCKETS = "spillway_request_duration_seconds_bucket"
# Two and a half hours of a minute each: what counters and gauges say while all is well.
WELL = {
    f"spillway_requests_total{{{POOL}}}": "0+600x150",
    f'spillway_responses_total{{{POOL},class="2xx"}}': "0+599x150",
    f'spillway_responses_total{{{POOL},class="5xx"}}': "0+1x150",
    f'{BUCKETS}{{{POOL},le="0.1"}}': "0+600x150",
    f'{BUCKETS}{{{POOL},le="5"}}': "0+600x150",
    f'{BUCKETS}{{{POOL},le="+Inf"}}': "0+600x150",
    f'spillway_refused_requests_total{{{POOL},reason="full"}}': "7x150",
    f'spillway_overflow_requests_total{{{POOL},to="us",reason="rate"}}': "7x150",
    'spillway_limit_requests_per_second{account="acme",pool="shop",region="eu"}': "20x150",
    'spillway_certificate_not_after_seconds{account="acme",name="shop"}': f"{30 * 86400}x150",
    **{f'{BURN},window="{window}"}}': "0.5x150" for window in ("5m", "30m", "1h", "6h")},
    'spillway_node_up{node="eu-1",fleet="eu",region="eu"}': "1x150",
    'spillway_node_serving{node="eu-1",fleet="eu",region="eu"}': "1x150",
    'spillway_node_drifted{node="eu-1",fleet="eu",region="eu"}': "0x150",
    'spillway_node_generation{node="eu-1",fleet="eu",region="eu"}': "7x150",
    'spillway_fleet_generation_wanted{fleet="eu",region="eu"}': "7x150",
    "spillway_collector_up": "1x150",
    'spillway_queue_length{queue="push"}': "3x150",
    'spillway_queue_oldest_seconds{queue="push"}': "2x150",
    'spillway_part_failed{part="redis"}': "0x150",
    'spillway_http_responses_total{console="a",kind="page",class="2xx"}': "0+60x150",
    'spillway_http_responses_total{console="a",kind="page",class="5xx"}': "0+1x150",
    'spillway_http_duration_seconds_bucket{console="a",kind="page",le="0.5"}': "0+60x150",
    'spillway_http_duration_seconds_bucket{console="a",kind="page",le="5"}': "0+60x150",
    'spillway_http_duration_seconds_bucket{console="a",kind="page",le="+Inf"}': "0+60x150",
    "spillway_backup_age_seconds": "3600x150",
    'spillway_clock_ahead_seconds{console="a"}': "-0.2x150",
    'spillway_console_certificate_not_after_seconds{certificate="console"}': f"{30 * 86400}x150",
    "spillway_rollouts_oldest_unfinished_seconds": "0x150",
    "spillway_schedules_behind_seconds": "0x150",
    'spillway_log_forward_failing_seconds{account="acme",forward="siem"}': "0x150",
    "spillway_zones_behind": "0x150",
    'spillway_zone_records{zone="acme.example",why="drifted"}': "0x150",
}
# What raises each alert, in place of what is well; None takes the series away.
TROUBLES: dict[str, dict[str, str | None]] = {
    "SpillwayPoolDown": {
        'spillway_problem{kind="pool",account="acme",name="shop",reason="NoServerUp",severity="1"}': "1x150"
    },
    "SpillwayRequestsRefused": {f'spillway_refused_requests_total{{{POOL},reason="full"}}': "0+60x150"},
    "SpillwayErrorsHigh": {f'spillway_responses_total{{{POOL},class="5xx"}}': "0+60x150"},
    "SpillwayResponsesSlow": {f'{BUCKETS}{{{POOL},le="0.1"}}': "0+300x150"},
    "SpillwayRegionAtItsLimit": {
        'spillway_limit_requests_per_second{account="acme",pool="shop",region="eu"}': "10x150"
    },
    "SpillwayOverflowLasts": {f'spillway_overflow_requests_total{{{POOL},to="us",reason="rate"}}': "0+60x150"},
    "SpillwayErrorBudgetBurns": {f'{BURN},window="{window}"}}': "15x150" for window in ("5m", "1h")},
    "SpillwayErrorBudgetShrinks": {f'{BURN},window="{window}"}}': "7x150" for window in ("30m", "6h")},
    "SpillwayCertificateEnds": {
        'spillway_certificate_not_after_seconds{account="acme",name="shop"}': f"{13 * 86400}x150"
    },
    "SpillwayNodeDown": {'spillway_node_up{node="eu-1",fleet="eu",region="eu"}': "0x150"},
    "SpillwayNodeNotServing": {'spillway_node_serving{node="eu-1",fleet="eu",region="eu"}': "0x150"},
    "SpillwayNodeDrifted": {'spillway_node_drifted{node="eu-1",fleet="eu",region="eu"}': "1x150"},
    "SpillwayNodeBehind": {'spillway_node_generation{node="eu-1",fleet="eu",region="eu"}': "6x150"},
    "SpillwayGone": {"spillway_collector_up": None},
    "SpillwayCollectorDown": {"spillway_collector_up": "0x150"},
    "SpillwayQueueLong": {'spillway_queue_length{queue="push"}': "1001x150"},
    "SpillwayQueueOld": {'spillway_queue_oldest_seconds{queue="push"}': "301x150"},
    "SpillwayPartFails": {'spillway_part_failed{part="redis"}': "1x150"},
    "SpillwayConsoleErrors": {'spillway_http_responses_total{console="a",kind="page",class="5xx"}': "0+10x150"},
    "SpillwayConsoleSlow": {'spillway_http_duration_seconds_bucket{console="a",kind="page",le="0.5"}': "0+30x150"},
    "SpillwayBackupOld": {"spillway_backup_age_seconds": f"{3 * 86400}x150"},
    "SpillwayClockOff": {'spillway_clock_ahead_seconds{console="a"}': "-3x150"},
    "SpillwayConsoleCertificateEnds": {
        'spillway_console_certificate_not_after_seconds{certificate="console"}': f"{20 * 86400}x150"
    },
    "SpillwayRolloutStuck": {"spillway_rollouts_oldest_unfinished_seconds": "1801x150"},
    "SpillwaySchedulesBehind": {"spillway_schedules_behind_seconds": "121x150"},
    "SpillwayLogForwardFailing": {'spillway_log_forward_failing_seconds{account="acme",forward="siem"}': "0+60x150"},
    "SpillwayZonesBehind": {"spillway_zones_behind": "1x150"},
    "SpillwayRecordsWrong": {'spillway_zone_records{zone="acme.example",why="drifted"}': "1x150"},
}


def alerts() -> list[str]:
    """Names of all alerts."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def known_metrics() -> set[str]:
    """Names from the page of reference; a histogram has its parts."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+)", (ROOT / "docs" / "reference" / "metrics.md").read_text(), re.MULTILINE)
    return {name for name, _ in rows} | {f"{name}_bucket" for name, kind in rows if kind == "histogram"}


def metrics_in(expression: str) -> set[str]:
    """Names of ours in an expression."""
    return set(re.findall(r"\bspillway_\w+", expression))


def promtool(folder: Path, *words: str, content: Any) -> subprocess.CompletedProcess[str]:
    """Prometheus' tool on a file; JSON is YAML."""
    path = folder / "asked.yaml"
    path.write_text(json.dumps(content))
    return subprocess.run(["promtool", *words, str(path)], capture_output=True, text=True, check=False)


def case(raised: str, **troubles: Any) -> dict[str, Any]:
    """A test of the rules: which alert is raised after two hours, if any."""
    series = {name: values for name, values in (WELL | troubles).items() if values is not None}
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "2h",
                "exp_samples": [{"labels": f'{{alertname="{raised}"}}', "value": 1}] if raised else [],
            }
        ],
    }


def question(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """What Prometheus' tool is asked; rules are looked at every twenty minutes, as each look takes it milliseconds."""
    return {"rule_files": [str(RULES)], "evaluation_interval": "20m", "tests": cases}


@pytest.mark.slow(reason="promtool evaluates each rule over hours")
def test_each_alert_is_raised_for_its_trouble_alone_and_none_while_all_is_well(tmp_path: Path) -> None:
    cases = [case(""), *(case(name, **troubles) for name, troubles in TROUBLES.items())]
    done = promtool(tmp_path, "test", "rules", content=question(cases))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(TROUBLES) == sorted(alerts()), "every alert is tried"


def test_an_alert_that_is_not_raised_is_noticed(tmp_path: Path) -> None:
    done = promtool(tmp_path, "test", "rules", content=question([case("SpillwayNodeDown")]))
    assert done.returncode != 0


def test_rules_name_metrics_that_exist_and_say_what_to_do() -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert {name for rule in rules for name in metrics_in(rule["expr"])} <= known_metrics()
    assert all(rule["annotations"]["action"] and rule["labels"]["severity"] for rule in rules)


def expressions(dashboard: dict[str, Any]) -> list[str]:
    """Queries of all panels, as Prometheus gets them."""
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return [expr.replace("$__rate_interval", "1m") for expr in targets]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_of_grafanas_types_and_asks_for_what_exists(path: Path, tmp_path: Path) -> None:
    dashboard = json.loads(path.read_text())
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    assert read == dashboard, "a word that Grafana does not know was dropped"
    asked = expressions(dashboard)
    assert asked
    assert {name for expr in asked for name in metrics_in(expr)} <= known_metrics()
    rules = [{"record": f"asked:{index}", "expr": expr} for index, expr in enumerate(asked)]
    done = promtool(tmp_path, "check", "rules", content={"groups": [{"name": path.stem, "rules": rules}]})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_word_that_grafana_does_not_know_is_noticed() -> None:
    dashboard = json.loads(DASHBOARDS[0].read_text()) | {"sizes": 3}
    assert json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard))) != dashboard


@pytest.mark.parametrize("path", [RULES, *DASHBOARDS], ids=lambda path: path.name)
def test_pools_of_one_name_in_two_accounts_are_never_added_up(path: Path) -> None:
    found = re.findall(r"by \(([^)]*\bpool\b[^)]*)\)", path.read_text())
    assert all("account" in labels for labels in found), found
