"""Commands about clouds: static IPs, runs of stacks, DNS zones, and what a target would lose; apply defines them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .. import texts
from ..api import Api, Failure
from ..finding import every, name_in_path, one
from ..numbers import number
from ..words import add_managed

Done = tuple[Any, str, int]
RUN_FIELDS = ("id", "stack", "revision", "kind", "state", "to_add", "to_change", "to_replace", "to_delete", "message")
DECISIONS = {
    "approve": "approve exactly the plan of a run",
    "discard": "discard a plan that needs approval",
    "cancel": "stop a run; the operation in progress finishes",
    "retry": "retry a failed run",
}


def add_to(commands: Any, every: argparse.ArgumentParser) -> None:
    """The words of address, stack, zone and portability."""
    _addresses(commands, every)
    _stacks(commands, every)
    _zones(commands, every)
    portability = commands.add_parser("portability", parents=[every], help="show what a target does not support")
    portability.add_argument("load_balancer", metavar="LOAD_BALANCER", help="name or id")
    portability.add_argument("--target", choices=("haproxy", "aws", "google"))
    portability.set_defaults(run=show_portability)


def _actions(commands: Any, word: str, words: str) -> Any:
    command = commands.add_parser(word, help=words)
    return command.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(command))


def _action(actions: Any, every: argparse.ArgumentParser, name: str, run: Callable[..., Done], words: str) -> Any:
    action = actions.add_parser(name, parents=[every], help=words)
    action.set_defaults(run=run)
    return action


def _addresses(commands: Any, every: argparse.ArgumentParser) -> None:
    actions = _actions(commands, "address", "addresses that stay the same")
    _action(actions, every, "list", list_addresses, "list static IPs and what they serve")
    move = _action(actions, every, "move", move_address, "move it to another load balancer in one change")
    release = _action(actions, every, "release", release_address, "detach it from the listeners that bind it")
    for action in (move, release):
        action.add_argument("address", metavar="STATIC_IP", help="name of the static IP")
    move.add_argument("load_balancer", metavar="LOAD_BALANCER")
    move.add_argument("--listener", action="append", metavar="NAME", help="repeat for more; default: by its ports")
    for action in (move, release):
        action.add_argument("--reason", help="reason, for the audit log")
        add_managed(action)


def _stacks(commands: Any, every: argparse.ArgumentParser) -> None:
    actions = _actions(commands, "stack", "cloud stacks and their plans")
    _action(actions, every, "list", list_stacks, "every stack")
    runs = _action(actions, every, "runs", list_runs, "runs, newest first")
    runs.add_argument("stack", metavar="STACK", nargs="?", help="of one stack; default: all")
    show = _action(actions, every, "run", show_run, "show one run and its plan")
    show.add_argument("id", metavar="RUN", type=number)
    for name, run, words in (
        ("plan", plan_stack, "plan now"),
        ("destroy", destroy_stack, "plan the destruction of all resources"),
    ):
        action = _action(actions, every, name, run, words)
        action.add_argument("stack", metavar="STACK")
        action.add_argument("--reason", required=name == "destroy", help="reason, for the audit log")
    for name, words in DECISIONS.items():
        action = _action(actions, every, name, decide, words)
        action.add_argument("id", metavar="RUN", type=number)
        action.add_argument("--reason", help="reason, for the audit log")
    unlock = _action(actions, every, "unlock", unlock_stack, "remove the lock of the state")
    unlock.add_argument("stack", metavar="STACK")
    unlock.add_argument("--reason", required=True, help="reason, for the audit log")


def _zones(commands: Any, every: argparse.ArgumentParser) -> None:
    actions = _actions(commands, "zone", "DNS zones: what is defined, and what is served")
    _action(actions, every, "list", list_zones, "list the zones in which you can manage records")
    show = _action(actions, every, "show", show_zone, "show one zone and your records as they are served")
    repair = _action(actions, every, "repair", repair_zone, "repair records that were changed on the server")
    for action in (show, repair):
        action.add_argument("zone", metavar="ZONE", help="name, account/name or id")
    repair.add_argument("--reason", help="reason, for the audit log")


def list_addresses(api: Api, _asked: argparse.Namespace) -> Done:
    """A line per static IP."""
    items = every(api, "static-ips", {})
    rows = [
        (each["name"], each["spec"]["kind"], " ".join(each["addresses"]) or "none yet", each["load_balancer"] or "")
        for each in items
    ]
    return items, texts.table(rows, ("NAME", "KIND", "ADDRESSES", "SERVES")), 0


def move_address(api: Api, asked: argparse.Namespace) -> Done:
    """One change: the former listeners lose it in the moment in which the new ones get it."""
    wanted: dict[str, Any] = {"load_balancer": asked.load_balancer}
    if asked.listener:
        wanted["listeners"] = asked.listener
    body = api("POST", f"static-ips/{name_in_path(asked.address)}/move", body=wanted)
    return body, texts.plain(f"{body['name']} now serves {body['load_balancer']}."), 0


def release_address(api: Api, asked: argparse.Namespace) -> Done:
    """It stays, with its owner and the records that follow it."""
    body = api("POST", f"static-ips/{name_in_path(asked.address)}/release")
    return body, texts.plain(f"{body['name']} is detached; you keep it."), 0


def list_stacks(api: Api, _asked: argparse.Namespace) -> Done:
    """A line per stack with its last run."""
    items = every(api, "stacks", {})
    last: dict[str, Any] = {}
    for run in reversed(api("GET", "stack-runs", query={"limit": "500"})["items"]):
        last[run["stack"]] = run
    rows = [
        (each["name"], each["spec"]["cloud_account"], each["spec"]["cloud_region"], *_last(last.get(each["name"])))
        for each in items
    ]
    return items, texts.table(rows, ("NAME", "CLOUD ACCOUNT", "REGION", "LAST RUN", "STATE", "SAYS")), 0


def _last(run: Any) -> tuple[object, object, object]:
    return (run["id"], run["state"], run["message"]) if run else ("", "no runs yet", "")


def list_runs(api: Api, asked: argparse.Namespace) -> Done:
    """The last fifty."""
    path = f"stacks/{name_in_path(asked.stack)}/runs" if asked.stack else "stack-runs"
    items = api("GET", path, query={"limit": "50"})["items"]
    rows = [[each[name] for name in RUN_FIELDS] for each in items]
    return items, texts.table(rows, [name.upper() for name in RUN_FIELDS]), 0


def show_run(api: Api, asked: argparse.Namespace) -> Done:
    """The plan in our words, a line per resource."""
    body = api("GET", f"stack-runs/{asked.id}")
    head = f"Run {body['id']} of {body['stack']}, revision {body['revision']}: {body['state']}. {body['message']}"
    parts = [texts.plain(head.strip())]
    for each in body["changes"]:
        parts.append(texts.plain(f"  {each['action']} {each['object'] or each['address']} ({each['address']})"))
        parts += [texts.plain(f"      {sentence}") for sentence in each["sentences"]]
    return body, "\n".join(parts), 0


def plan_stack(api: Api, asked: argparse.Namespace) -> Done:
    """A new plan of what is wanted."""
    return _begun(api("POST", f"stacks/{name_in_path(asked.stack)}/plan"))


def destroy_stack(api: Api, asked: argparse.Namespace) -> Done:
    """The plan waits for somebody's approval, as every other."""
    return _begun(api("POST", f"stacks/{name_in_path(asked.stack)}/destroy"))


def _begun(body: Any) -> Done:
    said = f"Run {body['id']} of {body['stack']} is {body['state']}." if body else "It is compiled first, then planned."
    return body, texts.plain(said), 0


def decide(api: Api, asked: argparse.Namespace) -> Done:
    """Approving lets exactly the plan be applied that is there now."""
    wanted = None
    if asked.action == "approve":
        wanted = {"plan_digest": api("GET", f"stack-runs/{asked.id}")["plan_digest"]}
    return _begun(api("POST", f"stack-runs/{asked.id}/{asked.action}", body=wanted))


def unlock_stack(api: Api, asked: argparse.Namespace) -> Done:
    """Whoever held it cannot write the state any more."""
    lock = api("GET", f"stacks/{name_in_path(asked.stack)}/lock")
    if not lock["held"]:
        raise Failure(f"{asked.stack} is not locked.")
    api("POST", f"stacks/{name_in_path(asked.stack)}/force-unlock", body={"id": lock["id"]})
    return lock, texts.plain(f"The lock of {lock['held_by']} was removed."), 0


def list_zones(api: Api, _asked: argparse.Namespace) -> Done:
    """A line per zone."""
    items = every(api, "zones", {})
    rows = [(each["id"], f"{each['account']}/{each['name']}", each["spec"]["domain"]) for each in items]
    return items, texts.table(rows, ("ID", "ZONE", "DOMAIN")), 0


def show_zone(api: Api, asked: argparse.Namespace) -> Done:
    """What is wanted of each record, and whether resolvers answer it."""
    body = api("GET", f"zones/{one(api, 'zones', asked.zone)['id']}/state")
    rows = [(each["name"], each["type"], " ".join(each["values"]), _served(each)) for each in body["records"]]
    head = texts.plain(f"Zone {body['zone']}: {body['status']}. {body['message']}".strip())
    return body, f"{head}\n{texts.table(rows, ('NAME', 'TYPE', 'WANTED', 'SERVED'))}", 0


def _served(record: Any) -> str:
    for word in ("refused", "drift", "in_the_way"):
        if record[word]:
            return {"refused": "refused", "drift": "changed on the server", "in_the_way": "conflict"}[word]
    if not record["served"]:
        return "pushed" if record["pushed"] else "not yet"
    wrong = [each["resolver"] for each in record["served"] if not each["as_wanted"]]
    return f"not at {' '.join(wrong)}" if wrong else "everywhere"


def repair_zone(api: Api, asked: argparse.Namespace) -> Done:
    """Customers repair their own records."""
    found = one(api, "zones", asked.zone)
    api("POST", f"zones/{found['id']}/repair")
    return {"zone": found["name"]}, texts.plain(f"Zone {found['name']} is being repaired."), 0


def show_portability(api: Api, asked: argparse.Namespace) -> Done:
    """A line per incompatibility, what is refused first."""
    query = {"target": asked.target} if asked.target else {}
    found = one(api, "load-balancers", asked.load_balancer)
    body = api("GET", f"load-balancers/{found['id']}/portability", query=query)
    fields = ("target", "severity", "object", "message", "remedy")
    rows = [tuple(each[field] for field in fields) for each in body["incompatibilities"]]
    table = texts.table(rows, tuple(field.upper() for field in fields))
    return body, table if rows else "Every target supports it fully.", 0
