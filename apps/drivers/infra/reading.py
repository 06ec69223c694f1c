"""What Terraform says: its JSON of plans, events and outputs becomes plain data without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from apps.drivers.infra.contract import InfraError, Locked, Plan, PlannedChange, Progress, StalePlan

SENSITIVE = "(sensitive)"
UNKNOWN = "(known after apply)"
HIDDEN = "•••"
SHORTEST_SECRET = 6
LONGEST = 2000
NAMES = ("arn", "id", "self_link", "zone_id")
LOCKED = ("Error acquiring the state lock", "Error locking state")
STALE = ("Saved plan is stale", "Saved plan does not match", "Inconsistent dependency lock file")
KINDS = {"apply_start": "start", "apply_progress": "progress", "apply_complete": "complete", "apply_errored": "errored"}
_PEM = re.compile(r"-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|\Z)", re.DOTALL)


def plan_of(shown: Mapping[str, Any], file: bytes) -> Plan:
    """The plan that `show -json` describes."""
    changes = tuple(_changes(shown.get("resource_changes")))
    touched = {change.address for change in changes}
    drift = tuple(each for each in _changes(shown.get("resource_drift")) if each.address in touched)
    outputs = (shown.get("planned_values") or {}).get("outputs") or {}
    moves = (shown.get("output_changes") or {}).values()
    return Plan(
        file=file,
        changes=changes,
        drift=drift,
        names=names_of(shown.get("prior_state") or {}),
        outputs=known_outputs(outputs),
        outputs_change=any(move.get("actions") != ["no-op"] for move in moves),
        terraform_version=str(shown.get("terraform_version") or ""),
    )


def _changes(rows: Any) -> Iterator[PlannedChange]:
    """Those that do something; Terraform also lists what stays and what is only read."""
    for row in rows or []:
        change = row["change"]
        actions, imported = tuple(change["actions"]), bool(change.get("importing"))
        if row.get("mode") == "data" or (actions in {("no-op",), ("read",)} and not imported):
            continue
        after = _shown(change.get("after"), change.get("after_sensitive"))
        yield PlannedChange(
            address=row["address"],
            type=row["type"],
            actions=actions,
            before=_shown(change.get("before"), change.get("before_sensitive")),
            after=_with_unknown(after, change.get("after_unknown")),
            replaced_by=tuple(".".join(map(str, path)) for path in change.get("replace_paths") or []),
            imported=imported,
        )


def _shown(value: Any, marks: Any) -> Any:
    """The value with a word where Terraform marks a secret."""
    if marks is True:
        return None if value is None else SENSITIVE
    if isinstance(value, dict) and isinstance(marks, dict):
        return {key: _shown(entry, marks.get(key)) for key, entry in value.items()}
    if isinstance(value, list) and isinstance(marks, list):
        padded = [*marks, *[None] * (len(value) - len(marks))]
        return [_shown(entry, mark) for entry, mark in zip(value, padded, strict=False)]
    return value


def _with_unknown(value: Any, marks: Any) -> Any:
    """The value with a word where only the apply will tell."""
    if marks is True:
        return UNKNOWN
    if isinstance(marks, dict) and (value is None or isinstance(value, dict)):
        known = dict(value or {})
        for key, mark in marks.items():
            found = _with_unknown(known.get(key), mark)
            if found is not None:
                known[key] = found
        return known if known or value is not None else None
    if isinstance(marks, list) and isinstance(value, list):
        padded = [*marks, *[None] * (len(value) - len(marks))]
        return [_with_unknown(entry, mark) for entry, mark in zip(value, padded, strict=False)]
    return value


def names_of(prior: Mapping[str, Any]) -> dict[str, str]:
    """What the cloud calls things → the resource of ours that it is."""
    found: dict[str, str] = {}
    for row in ((prior.get("values") or {}).get("root_module") or {}).get("resources") or []:
        values = row.get("values") or {}
        for name in NAMES:
            if isinstance(values.get(name), str) and values[name]:
                found.setdefault(values[name], row["address"])
    return found


def known_outputs(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the outputs that are known and no secret."""
    return {
        name: entry["value"]
        for name, entry in outputs.items()
        if "value" in entry and not entry.get("sensitive", False)
    }


def event_of(line: bytes) -> dict[str, Any] | None:
    """One line of `-json` output, None when it is something else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def progress_of(event: Mapping[str, Any]) -> Progress | None:
    """What of an event is worth telling."""
    kind, hook = KINDS.get(event.get("type", "")), event.get("hook") or {}
    if kind is not None:
        resource = hook.get("resource") or {}
        return Progress(
            kind=kind,
            address=str(resource.get("addr") or ""),
            action=str(hook.get("action") or ""),
            seconds=float(hook.get("elapsed_seconds") or 0.0),
        )
    if event.get("type") == "diagnostic":
        said = event.get("diagnostic") or {}
        return Progress(kind="message", address=str(said.get("address") or ""), message=_sentence(said))
    return None


def error_of(events: Collection[Mapping[str, Any]], words: str) -> InfraError:
    """The error that stands in the events, else in the words of a command that speaks none."""
    said = [event.get("diagnostic") or {} for event in events if event.get("type") == "diagnostic"]
    errors = [each for each in said if each.get("severity") == "error"]
    message = " ".join(_sentence(each) for each in errors) or _last_words(words)
    address = next((str(each["address"]) for each in errors if each.get("address")), "")
    kind: type[InfraError] = InfraError
    if any(word in message or word in words for word in LOCKED):
        kind = Locked
    elif any(word in message or word in words for word in STALE):
        kind = StalePlan
    return kind(message[:LONGEST], output=words[-LONGEST:], address=address)


def _sentence(said: Mapping[str, Any]) -> str:
    parts = [str(said.get(word) or "").strip() for word in ("summary", "detail")]
    return ": ".join(" ".join(part.split()) for part in parts if part)


def _last_words(words: str) -> str:
    lines = [line.strip("│╷╵ \t") for line in words.splitlines()]
    return " ".join(line for line in lines if line) or "Terraform failed without a message."


def without(text: str, secrets: Collection[str]) -> str:
    """The text with dots where a secret stood, and where a PEM block did."""
    text = _PEM.sub(HIDDEN, text)
    for secret in sorted((each for each in secrets if len(each) >= SHORTEST_SECRET), key=len, reverse=True):
        for form in {secret, json.dumps(secret)[1:-1]}:
            text = text.replace(form, HIDDEN)
    return text
