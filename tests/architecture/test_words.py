"""One word per idea, in plain English: identifiers and phrases that were replaced do not come back."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, modules, name

# What is gone → what it is called now (docs/glossary.md, docs/changes.md).
GONE = {
    "Abilities": "Capabilities",
    "AdoptOrder": "Adopt",
    "ApiDoor": "ApiMiddleware",
    "BlackoutOrder": "CreateBlackout",
    "Brake": "Abort",
    "COURIER_THREADS": "WEBHOOK_WORKER_THREADS",
    "CloudPlace": "CloudAccess",
    "ComparisonOrder": "CreateComparison",
    "Course": "LoadProfile",
    "Fault": "FieldError",
    "Fire": "ScheduleRun",
    "HOSTNAME_GRACE_DAYS": "HOSTNAME_COOLDOWN_DAYS",
    "HostnameRest": "HostnameCooldown",
    "InvitationOrder": "CreateInvitation",
    "LimitOrder": "SetLimit",
    "LiveOn": "DeploymentStatus",
    "LockOrder": "ForceUnlock",
    "Meeting": "EditConflict",
    "Moment": "SecondSample",
    "OwnPlaces": "OwnAddresses",
    "PlaceName": "ByName",
    "QuestionRequest": "WhatIfRequest",
    "Remembered": "CachedFixture",
    "RepairOrder": "Repair",
    "RunOrder": "CreateRun",
    "RunPass": "BypassToken",
    "TESTER_THREADS": "LOADGEN_THREADS",
    "TokenOrder": "CreateToken",
    "TraceQuestion": "Trace",
    "TriggerOrder": "CreateTrigger",
    "UnixDoor": "UnixHTTPServer",
    "VIEWING": "IMPERSONATION",
    "Whereabouts": "AddressLocation",
    "Workplace": "Workspace",
    "abilities": "capabilities",
    "account_viewed": "account_impersonated",
    "add_cloud_names": "PORTS",
    "add_family": "METRICS",
    "add_passes": "PORTS",
    "add_stack_foresight": "PORTS",
    "add_weights": "PORTS",
    "address_stage": "address_env",
    "aws_world": "aws_env",
    "aws_worlds": "aws_fixtures",
    "below_ms": "max_latency_ms",
    "brake": "abort_for",
    "brakes": "abort_conditions",
    "broken_promises": "failed_assertions",
    "capacity_per_s": "capacity_rps",
    "capacity_world": "capacity_env",
    "capacity_worlds": "capacity_fixtures",
    "check_said": "last_check_message",
    "cloud_place": "cloud_location",
    "clouds_world": "clouds_env",
    "compiler_worlds": "compiler_fixtures",
    "concern_hostname": "add_hostname",
    "courier": "webhook-worker",
    "course_of": "load_profile_of",
    "disabled_why": "disabled_reason",
    "end_rest": "end_cooldown",
    "error_share": "error_rate",
    "errors_below": "max_error_rate",
    "errors_share": "error_rate",
    "faults_in_place": "foreign_id_errors",
    "fire_by_trigger": "run_by_trigger",
    "fire_key": "request_key",
    "fires": "schedule-runs",
    "foresee": "preview",
    "foreseen": "dry_run",
    "foresight": "preview",
    "forget_second_factor": "reset_mfa",
    "free_place": "free_config",
    "gave_way": "bottleneck",
    "google_worlds": "google_fixtures",
    "in_per_s": "overflow_in_rps",
    "judge_all": "evaluate_all",
    "judge_balance": "evaluate_balance",
    "judge_clock": "evaluate_clock",
    "judge_drain": "evaluate_drain",
    "judge_errors": "evaluate_errors",
    "judge_fitness": "evaluate_fitness",
    "judge_limits": "evaluate_limits",
    "judge_node": "evaluate_node",
    "judge_pool": "evaluate_pool",
    "judge_pools": "evaluate_pools",
    "judge_queue": "evaluate_queue",
    "judge_server": "evaluate_server",
    "judge_step": "evaluate_step",
    "judge_version": "check_version",
    "leash": "process_guard",
    "live_on": "deployment_status",
    "lose_a_region": "n_minus_1",
    "lose_proof": "lose_verification",
    "losses_of": "incompatibilities_of",
    "make_world": "make_env",
    "named_place": "named_endpoint",
    "needs_pass": "needs_bypass_token",
    "objections": "violations",
    "observe_world": "observe_env",
    "offered_per_s": "demand_rps",
    "only_allowed": "check_allowlist",
    "out_per_s": "overflow_out_rps",
    "overflow_stage": "overflow_env",
    "overflow_world": "overflow_env",
    "own_per_s": "local_rps",
    "own_places": "own_addresses",
    "pass_digest": "bypass_digest",
    "passes_of": "bypass_tokens_of",
    "place_of": "position_of, endpoint_of …",
    "place_of_guard": "position_of_guard",
    "place_url": "local_url",
    "places_of": "endpoints_of, paths_of …",
    "places_of_installation": "addresses_of_installation",
    "prove_hostname": "verify_hostname",
    "proved_at": "verified_at",
    "put_world": "put_env",
    "queued_per_s": "queued_rps",
    "raise_generation": "bump_generation",
    "raise_version": "bump_version",
    "read_place": "read_endpoint",
    "receipt": "config_verification",
    "refuse_broken": "reject_failed_assertions",
    "refuse_emptying": "reject_emptying",
    "refuse_impossible": "reject_unsupported",
    "refused_per_s": "rejected_rps",
    "remembering": "fixture_cache",
    "requests_per_s": "requests_rps",
    "rest_ended": "cooldown_ended",
    "retry_fire": "retry_run",
    "running_stage": "running_env",
    "save_or_foresee": "save_or_dry_run",
    "saved_or_blamed": "save and refusals_in",
    "schedules_crew": "schedules_workers",
    "schedules_judge": "schedules_checker",
    "schedules_rival": "schedules_baseline",
    "schedules_stage": "schedules_env",
    "schedules_world": "schedules_env",
    "sentry": "health_watchdog",
    "served_per_s": "served_rps",
    "stack_stage": "stack_env",
    "stacks_runs_world": "stacks_runs_env",
    "stacks_world": "stacks_env",
    "stop_looking": "stop_impersonating",
    "stop_viewing": "stop_impersonating",
    "sync_words": "sync_statuses",
    "take_faults": "drain_errors",
    "take_place": "take_slot",
    "taste": "trial_run",
    "test_passes": "bypass_tokens",
    "test_walls": "test_forbidden_calls",
    "tester": "loadgen",
    "three_way": "edit_conflict",
    "to_prove": "challenge",
    "touch_everywhere": "add_all_fleets",
    "turn_back": "start_rollback",
    "tutorial_world": "tutorial_env",
    "viewer_of": "impersonator_of",
    "viewing_stopped": "impersonation_stopped",
    "waits_for_proof": "waits_for_verification",
    "wake_after_commit": "enqueue_on_commit",
    "want_push": "request_push",
    "want_stack_push": "request_stack_push",
    "want_zone_push": "request_zone_push",
    "whereabouts": "address_locations",
    "workplace": "open_workspace",
}
# Names that variables, parameters, attributes, functions, classes and modules no longer have; prose may use the word.
NAMES = {
    "AwsWorld": "AwsEnv",
    "Stage": "Env",
    "World": "Env, DemoTopology",
    "crew": "workers, processes",
    "judge": "evaluate, check",
    "judged": "evaluated, checked",
    "judging": "evaluation",
    "rival": "baseline",
    "world": "env, topology, case",
    "worlds": "envs, cases",
    "_fault": "_field_error, _error",
    "_faults": "_field_errors, _errors",
    "fault": "field_error, error",
    "faults": "field_errors, errors",
    "Place": "Location, Endpoint, Position …",
    "place": "location, pointer, endpoint, address, position, index …",
    "places": "locations, pointers, endpoints, addresses, topology …",
}
# Phrases of pages that are gone (a regular expression, in any case) → what to write instead.
PHRASES = {
    r"\bMake (?:it|one|the \w+)\b": "Create …",
    r"\bone (?:a|in a) line\b": "one per line",
    r"\bwhat stands (?:here|there|below)\b": "contents, this version",
    r"\bstands before\b": "attached to",
    r"\bgive your word\b|\byour word is\b": "verify as an operator",
    r"\bwait(?:s|ing)? for (?:its |the |a )?proof\b": "needs verification",
    r"\b(?:is|are) proved\b|\bhas proved\b": "is verified, has verified",
    r"\bpeople come in\b|\bwhoever has it comes in\b": "access is by invitation",
    r"\bsigns nobody in\b": "no longer signs you in",
    r"\btakes? traffic again\b": "resumes traffic",
    r"\bclients want\b": "demand",
    r"\bsent (?:away|elsewhere)\b|\btaken from elsewhere\b": "overflow out, overflow in",
    r"\bthe traffic of now\b|\btraffic of now\b": "current traffic",
    r"\ball the same\b": "anyway",
    r"\bwhat came of it\b": "result",
    r"\bwhat happens by itself\b": "recurring and scheduled actions",
    r"\binstants (?:went|of its own)\b": "runs, timetable",
    r"\bmade up for\b": "caught up",
    r"\bthe chosen\b": "selected",
    r"\bcompared as\b": "path match",
    r"\banswer by itself\b|\banswers by itself\b": "return a fixed response",
    r"\bconnect within\b": "connect timeout",
    r"\bwho does the work\b": "load distribution",
    r"\bwhat gave way\b|\bgave way\b": "bottleneck",
    r"\bhas not the scope\b": "does not have the scope",
    r"\bdoes not work any more\b": "no longer works",
    r"\baudit record\b": "audit log",
    r"\bempty: ": "default: …, or leave empty to …",
    r"\blower[- ]case letters, digits and hyphens[.;]": "lowercase letters, digits and hyphens",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in PHRASES.items()}
TEMPLATES = sorted((ROOT / "frontend" / "templates").rglob("*.html"))
COMMENT = re.compile(r"{% comment %}.*?{% endcomment %}|{#.*?#}", re.DOTALL)
SUFFIXES = {".html", ".js", ".json", ".md", ".py", ".service", ".toml"}
# A table of old → new is no use of the old: snapshots and audit entries were stored under old names.
ITSELF = {
    "apps/compiler/codec.py",
    "apps/web/accounts/audit_words.py",
    "docs/changes.md",
    "docs/decisions",
    "tests/architecture/test_words.py",
    "tests/interfaces/web/test_pages_audit.py",
    "tests/pure/test_compiler_compile.py",
}


def gone_in(text: str) -> Iterator[str]:
    """Each identifier of the text that is gone, with what it is called now."""
    for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text):
        if word in GONE:
            yield f"{word} → {GONE[word]}"


def _files() -> Iterable[Path]:
    for folder in ("apps", "controlplane", "deploy", "docs", "frontend/templates", "frontend/static/js", "tests"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)


@pytest.mark.slow(reason="every file of the project is searched")
def test_words_that_are_gone_do_not_come_back() -> None:
    found = []
    for path in _files():
        path_name = name(path)
        if "migrations" not in path.parts and not path_name.startswith(tuple(ITSELF)):
            found += [f"{path_name}: {each}" for each in gone_in(path.read_text())]
    assert found == []


def test_a_word_that_is_gone_is_noticed_only_as_a_whole() -> None:
    assert list(gone_in("losses_of(balancer)")) == ["losses_of → incompatibilities_of"]
    assert list(gone_in("capabilities and disabilities")) == []


# Most modules have none of these words, and reading one token by token takes long.
ANY_NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")


def names_in(source: str) -> set[str]:
    """Each name of a module that is gone as a name, keyword arguments and imported modules too."""
    if not ANY_NAME.search(source):
        return set()
    words = tokenize.generate_tokens(io.StringIO(source).readline)
    return {word.string for word in words if word.type == tokenize.NAME and word.string in NAMES}


@pytest.mark.slow(reason="every file of the project is searched")
def test_names_that_are_gone_do_not_come_back() -> None:
    sources = {path: path.read_text() for path in _files() if path.suffix == ".py" and "migrations" not in path.parts}
    found = {
        name(path): names for path, source in sources.items() if (names := names_in(source) | {path.stem} & set(NAMES))
    }
    assert found == {}


def test_a_name_that_is_gone_is_noticed_in_code_alone() -> None:
    assert names_in("def f(place): return place") == {"place"}
    assert names_in('"""In place of another."""  # takes place') == set()


def gone_from(text: str) -> list[str]:
    """`phrase → what to write` for each phrase of the table in a text."""
    return [f"{found[0]} → {instead}" for pattern, instead in PATTERNS.items() if (found := pattern.search(text))]


def texts_of(path: Path) -> Iterator[str]:
    """What a module may show: its literals, docstrings left out; those explain the code to developers."""
    tree = ast.parse(path.read_text())
    shown = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shown:
            yield node.value


@pytest.mark.parametrize("line", ["Make the token", "One a line.", "Clients want", "It is kept in the audit record."])
def test_a_phrase_that_is_gone_is_found(line: str) -> None:
    assert gone_from(line)


@pytest.mark.parametrize("line", ["Create token", "One per line.", "Demand", "Recorded in the audit log."])
def test_plain_english_is_left_alone(line: str) -> None:
    assert gone_from(line) == []


def test_no_template_uses_a_phrase_that_is_gone() -> None:
    found = {name(path): gone_from(COMMENT.sub("", path.read_text())) for path in TEMPLATES}
    assert {path: words for path, words in found.items() if words} == {}


def test_no_page_shows_a_phrase_that_is_gone() -> None:
    found = [
        (name(path), words) for path in modules("apps/web") for text in texts_of(path) if (words := gone_from(text))
    ]
    assert found == []
