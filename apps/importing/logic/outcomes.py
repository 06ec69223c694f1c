"""What a decision is in a route: its action, its rules, and the prefix that it rewrites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.matching import patterns
from apps.importing.logic.decisions import Decision, Effect
from apps.importing.logic.paths import EXACT, PREFIX, Key
from apps.importing.logic.regexes import literal
from apps.importing.logic.targets import HOST, Target


class Unsayable(Exception):
    """A decision that no route with this key can have."""


@dataclass(slots=True)
class Outcome:
    """Parts of a route's specification."""

    action: dict[str, Any]
    rules: dict[str, Any] = field(default_factory=dict)
    prefix_rewrite: str | None = None

    def spec(self) -> dict[str, Any]:
        """As they stand in a document, without rules."""
        rewrite = {} if self.prefix_rewrite is None else {"prefix_rewrite": self.prefix_rewrite}
        return {"action": self.action, **rewrite}


def outcome_of(decision: Decision, key: Key, hostname: str, pool_of: Callable[[str], str | None]) -> Outcome:
    """The parts of a route. Raises Unsayable with the reason."""
    outcome = Outcome(_action(decision.final, key, hostname, pool_of))
    for change in decision.changes:
        block, name, value = str(change.data[0]), str(change.data[1]), change.data[2]
        if block == "path":
            _rewrite(outcome, key, name, str(value))
        else:
            _change(outcome.rules, block, name, value)
    rewrite = outcome.rules.get("rewrite", {})
    if "path" in rewrite and "path_regex" in rewrite:
        pattern, replacement = rewrite.pop("path_regex"), rewrite.pop("path_replacement")
        rewrite["path"] = patterns.replaced(pattern, replacement, rewrite["path"])
    if "pools" not in outcome.action:
        outcome.prefix_rewrite = None
        for block in ("rewrite", "timeouts", "body"):
            outcome.rules.pop(block, None)
    return outcome


def _change(rules: dict[str, Any], block: str, name: str, value: object) -> None:
    said = rules.setdefault(block, {})
    if block == "basic_auth" and isinstance(value, tuple):
        users, realm = value
        said["users"] = {**said.get("users", {}), **dict(users)}
        said |= {"realm": realm} if realm else {}
    elif isinstance(value, tuple) and len(value) == 2 and name in ("set", "add", "set_if_absent"):
        header, text = value
        _forget(said, str(header)) if name == "set" else None
        said.setdefault(name, {})[header] = text
    elif name == "remove":
        _forget(said, str(value))
        said.setdefault(name, []).append(value)
    elif name == "query_set" and isinstance(value, tuple):
        said[name] = dict(value)
    elif name == "types" and isinstance(value, tuple):
        said[name] = list(value)
    elif name in ("allow", "deny", "exempt"):
        said[name] = list(dict.fromkeys([*said.get(name, []), value]))
    else:
        said[name] = value


def _forget(said: dict[str, Any], header: str) -> None:
    """What was said of the header before."""
    for part in ("set", "add"):
        said[part] = {name: text for name, text in said.get(part, {}).items() if name.lower() != header.lower()}
        if not said[part]:
            del said[part]
    if "remove" in said:
        said["remove"] = [name for name in said["remove"] if name.lower() != header.lower()]
        if not said["remove"]:
            del said["remove"]


def _rewrite(outcome: Outcome, key: Key, old: str, new: str) -> None:
    """`old` at the beginning of the path, as it is by then, becomes `new`."""
    so_far = outcome.rules.get("rewrite", {})
    if key.kind == PREFIX and not so_far.keys() & {"path", "path_replacement"}:
        path = outcome.prefix_rewrite or key.text
        outcome.prefix_rewrite = _moved("" if path == "/" else path, old, new).rstrip("/") or "/"
        return
    if "path_replacement" in so_far:
        said = {"path_replacement": _moved(so_far["path_replacement"], old, new)}
    elif "path" in so_far or key.kind == EXACT:
        said = {"path": _moved(so_far.get("path", key.text), old, new)}
    else:
        said = _of_pattern(key, old, new)
    outcome.rules["rewrite"] = so_far | said


def _of_pattern(key: Key, old: str, new: str) -> dict[str, str]:
    """What asks for paths below a prefix leaves the prefix itself as it is."""
    beginning = literal(old.rstrip("/"))
    if beginning and not key.text.startswith((f"{beginning}/", f"{beginning}(/")):
        raise Unsayable("The path is rewritten behind a pattern; use a prefix.")
    pattern = f"{beginning}/(.*)" if old.endswith("/") else f"{beginning}/?(.*)"
    return {"path_regex": pattern, "path_replacement": f"{new.rstrip('/')}/\\1"}


def _moved(path: str, old: str, new: str) -> str:
    if not f"{path}/".startswith(f"{old.rstrip('/')}/"):
        raise Unsayable("The path is rewritten behind a pattern; use a prefix.")
    found = new.rstrip("/") + path[len(old.rstrip("/")) :] or "/"
    try:
        grammar.path(found.replace("\\", ""))
    except GrammarError as error:
        raise Unsayable(error.message) from error
    return found


def _action(final: Effect, key: Key, hostname: str, pool_of: Callable[[str], str | None]) -> dict[str, Any]:
    if final.kind == "backend":
        pool = pool_of(str(final.data[0]))
        if pool is None:
            return {"fixed_response": {"status": 503, "body": "No server is there for this request.\n"}}
        return {"pools": [{"pool": pool}]}
    if final.kind == "redirect":
        code, target = final.data
        if isinstance(target, Target):
            return {"redirect": {"code": code, **_redirect(target, key, hostname)}}
    status, content_type, body = final.data
    return {"fixed_response": {"status": status, "content_type": content_type, "body": body}}


def _redirect(target: Target, key: Key, hostname: str) -> dict[str, Any]:
    found: dict[str, Any] = {"keep_query": target.keep_query}
    if target.scheme:
        found["scheme"] = target.scheme
    host = _host(target, hostname)
    if host:
        found["host"] = host
    if target.port:
        found["port"] = target.port
    found |= _path(target, key)
    if target.query:
        found["query"] = target.query
    if not found.keys() & {"scheme", "host", "port", "path", "prefix"}:
        raise Unsayable("The redirect leads to where it came from.")
    return found


def _host(target: Target, hostname: str) -> str:
    if HOST not in target.host:
        return target.host
    if target.host == HOST and not target.drop_from_host:
        return ""
    if hostname.startswith("*"):
        raise Unsayable("The target is made of the host, so each host that is redirected must be named.")
    return target.host.replace(HOST, hostname.removeprefix(target.drop_from_host))


def _path(target: Target, key: Key) -> dict[str, str]:
    if not target.keeps_path:
        return {"path": target.path or "/"}
    if target.slash and not key.text.endswith("/"):
        if key.kind != EXACT or target.strip or target.before.strip("/"):
            raise Unsayable("A slash is put behind whole paths alone.")
        return {"path": f"{key.text}/"}
    below = f"{key.text}/".startswith(f"{target.strip}/")
    if target.strip and key.kind not in (EXACT, PREFIX):
        raise Unsayable("The redirect changes the beginning of paths of a pattern; use a prefix.")
    if target.strip and not below and key.text != "/":
        return {}
    if (not target.before or target.before == "/") and not target.strip:
        return {}
    if key.kind not in (EXACT, PREFIX) or not below:
        raise Unsayable("The redirect changes the beginning of paths of a pattern; use a prefix.")
    path = target.before.rstrip("/") + key.text.removeprefix(target.strip)
    return {"path": path or "/"} if key.kind == EXACT else {"prefix": path.rstrip("/") or "/"}
