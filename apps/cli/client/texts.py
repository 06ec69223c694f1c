"""What people read: answers of the API as text or Markdown, with nothing in it that a terminal would obey."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

SIGNS = {"create": "+", "update": "~", "delete": "-"}
NOTHING: tuple[object, ...] = (None, "", [], {})
LONGEST_VALUE = 120
LONGEST_RENDERED = 20_000
Body = Mapping[str, Any]


def plain(value: object) -> str:
    """One line: control characters are shown as what they are."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _short(value: object) -> str:
    text = plain(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def lines(text: str) -> str:
    """Many lines, each of them plain."""
    return "\n".join(plain(line.replace("\t", "    ")) for line in text.split("\n"))


def title(change: Body) -> str:
    """`Route acme/shop`."""
    owner = f"{change['account']}/" if change.get("account") else ""
    return plain(f"{change['kind']} {owner}{change['name']}")


def counted(counts: Mapping[str, int], *, done: bool) -> str:
    """`1 to create, 2 to update, 0 to delete, 5 unchanged`."""
    words = ("created", "updated", "deleted") if done else ("to create", "to update", "to delete")
    parts = [f"{counts.get(action, 0)} {word}" for action, word in zip(SIGNS, words, strict=True)]
    return ", ".join([*parts, f"{counts.get('unchanged', 0)} unchanged"])


def changes(body: Body) -> Iterable[str]:
    """Object by object, field by field."""
    for change in body.get("changes", ()):
        if change["action"] not in SIGNS:
            continue
        yield f"{SIGNS[change['action']]} {title(change)}"
        for entry in change.get("fields", ()):
            if change["action"] != "update" and entry["before"] in NOTHING and entry["after"] in NOTHING:
                continue
            yield f"    {plain(entry['path'])}: {_difference(change['action'], entry)}"


def _difference(action: str, entry: Body) -> str:
    if action == "create":
        return _short(entry["after"])
    return _short(entry["before"]) if action == "delete" else f"{_short(entry['before'])} → {_short(entry['after'])}"


def warnings(body: Body) -> list[str]:
    """Of the whole and of each fleet, stack and zone, each once; what a cloud would leave out comes first."""
    found = list(body.get("warnings", ()))
    for fleet in body.get("fleets", ()):
        found += [f"{fleet['fleet']}: {warning}" for warning in fleet.get("warnings", ())]
    for stack in body.get("stacks", ()):
        where = stack["stack"] or stack["target"]
        found += [f"{where} would leave out {refused}" for refused in stack.get("refused", ())]
        found += [f"{where}: {warning}" for warning in stack.get("warnings", ())]
    for zone in body.get("zones", ()):
        found += zone.get("warnings", ())
    return [plain(warning) for warning in dict.fromkeys(found)]


def kept(body: Body) -> list[str]:
    """Fields that stay as their owner set them, whatever the file says."""
    return [f"The {plain(line)}." for line in body.get("kept", ())]


def stacks(body: Body) -> Iterable[tuple[str, list[str]]]:
    """Each stack with what its plan would hold; those of which nothing is known but warnings are left to these."""
    for stack in body.get("stacks", ()):
        if stack.get("decision") is None:
            continue
        # An older console does not know what would be replaced.
        counts = ((stack.get(f"to_{word}"), word) for word in ("add", "change", "replace", "delete"))
        resources = ", ".join(f"{count} to {word}" for count, word in counts if count is not None)
        head = f"Stack {plain(stack['stack'])} ({plain(stack['target'])}): {resources}"
        yield head, [*map(plain, stack["changes"]), plain(stack["reason"])]


def zones(body: Body) -> Iterable[tuple[str, list[str]]]:
    """Each zone with the records that would be served otherwise, a line for each set of them."""
    for zone in body.get("zones", ()):
        found = [_record(change) for change in zone["changes"]]
        if zone.get("more"):
            found.append(f"… and {zone['more']} more.")
        if found:
            yield f"Zone {plain(zone['domain'])}", found


def _record(change: Body) -> str:
    before, after = (_record_side(change[side], change["before"], change["after"]) for side in ("before", "after"))
    said = {"create": after, "delete": before}.get(change["action"], f"{before} → {after}")
    note = f" ({plain(change['note'])})" if change.get("note") else ""
    return f"{SIGNS[change['action']]} {plain(change['name'])} {plain(change['type'])}: {said}{note}"


def _record_side(side: Body | None, before: Body | None, after: Body | None) -> str:
    """Values, with the time to live where that differs as well."""
    if side is None:
        return "nothing"
    values = _short(", ".join(side["values"])) if side["values"] else "nothing yet"
    same_ttl = before and after and before["ttl"] == after["ttl"]
    return values if same_ttl else f"{values} (ttl {side['ttl']})"


def has_changes(body: Body) -> bool:
    """Whether a plan would change anything."""
    return any(body["counts"].get(action, 0) for action in SIGNS)


def _nothing(body: Body) -> str:
    return f"Nothing to do: everything {'else ' if body.get('kept') else ''}is as the file says."


def plan(body: Body) -> str:
    """A plan for the terminal."""
    if not has_changes(body):
        return "\n".join([*kept(body), _nothing(body)])
    parts = [*changes(body), ""]
    for fleet in body.get("fleets", ()):
        parts += [f"Fleet {plain(fleet['fleet'])}", *(f"    {plain(said)}" for said in fleet.get("changes", ()))]
    for head, said in (*stacks(body), *zones(body)):
        parts += [head, *(f"    {line}" for line in said)]
    parts += [f"Warning: {warning}" for warning in warnings(body)] + kept(body)
    parts.append(f"Plan: {counted(body['counts'], done=False)}.")
    if body.get("plan_id"):
        parts.append(f"Apply exactly this plan: spillway apply --plan {plain(body['plan_id'])}")
    return "\n".join(parts)


def markdown(body: Body) -> str:
    """A plan as a comment on a pull request; the last line holds the id of the plan."""
    if not has_changes(body):
        said = [f"\n> {_escaped(line)}" for line in kept(body)]
        return "\n".join([f"### Spillway: nothing to do\n\n{_nothing(body).partition(': ')[2].capitalize()}", *said])
    parts = [f"### Spillway: {counted(body['counts'], done=False)}", "", *_fenced("diff", changes(body))]
    for warning in warnings(body):
        parts += ["", f"> ⚠️ {_escaped(warning)}"]
    for line in kept(body):
        parts += ["", f"> {_escaped(line)}"]
    for fleet in body.get("fleets", ()):
        rendered = lines(str(fleet.get("rendered") or ""))
        if rendered.strip():
            cut = rendered if len(rendered) <= LONGEST_RENDERED else f"{rendered[:LONGEST_RENDERED]}\n… and more"
            parts += ["", f"<details><summary>Configuration of the nodes of {_escaped(fleet['fleet'])}</summary>", ""]
            parts += [*_fenced("diff", cut.split("\n")), "", "</details>"]
    for head, said in stacks(body):
        parts += ["", f"<details><summary>{_escaped(head)}</summary>", "", *_fenced("text", said), "", "</details>"]
    for head, said in zones(body):
        parts += ["", f"<details><summary>{_escaped(head)}</summary>", "", *_fenced("diff", said), "", "</details>"]
    if body.get("plan_id"):
        parts += ["", f"<!-- spillway-plan: {_escaped(body['plan_id'])} -->"]
    return "\n".join(parts)


def _fenced(language: str, content: Iterable[str]) -> list[str]:
    """A block that its content cannot end."""
    found = list(content)
    fence = "```"
    while any(fence in line for line in found):
        fence += "`"
    return [f"{fence}{language}", *found, fence]


def _escaped(value: object) -> str:
    return plain(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "&#96;")


def applied(body: Body) -> str:
    """What an apply did."""
    if not has_changes(body):
        return "\n".join([*kept(body), _nothing(body)])
    parts = [*changes(body), "", *kept(body), f"Done: {counted(body['counts'], done=True)}."]
    parts += [f"Fleet {plain(name)}: generation {number}" for name, number in body.get("generations", {}).items()]
    if body.get("live"):
        parts.append("It is live on every node.")
    if body.get("change"):
        parts.append(f"Revert with: spillway revert {plain(body['change'])}")
    return "\n".join(parts)


def table(rows: Iterable[Iterable[object]], headings: Iterable[str]) -> str:
    """Columns as wide as their widest cell."""
    cells = [[plain("" if cell is None else cell) for cell in row] for row in (list(headings), *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def outline(value: object, depth: int = 0) -> str:
    """Any answer as an outline, a line per value."""
    pad = "  " * depth
    if isinstance(value, dict):
        return "\n".join(_entry(f"{pad}{plain(str(name))}:", each, depth) for name, each in value.items())
    if isinstance(value, list):
        return "\n".join(_entry(f"{pad}-", each, depth) for each in value)
    return f"{pad}{plain(value)}"


def _entry(head: str, value: object, depth: int) -> str:
    if isinstance(value, dict | list) and value:
        return f"{head}\n{outline(value, depth + 1)}"
    return f"{head} {plain('none' if value is None else value)}"
