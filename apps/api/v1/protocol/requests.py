"""What the headers and query parameters of a request ask for, each read in one place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rest_framework.request import Request

from apps.accounts.actors import Actor
from apps.core.errors import FieldError, Invalid, SpillwayError, Stale
from apps.core.requests import ChangeOrigin

MAX_LIMIT = 500
HIGHEST = 999_999_999  # as many digits as `number` reads
MAX_WAIT_S = 60
MAX_PIPELINE = 400
# A proxy that compresses an answer makes the tag weak; versions are versions all the same.
_ETAG = re.compile(r'(?:W/)?"rev-([1-9][0-9]{0,8})"')

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_PIPELINE = re.compile(r"https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9._~:/?#@!$&()*+,;=%-]*)?")


class PreconditionRequired(SpillwayError):
    """A change of an existing object must say which version it saw."""

    status = 428
    title = "Precondition required"


def actor_of(request: Request) -> Actor:
    """Who calls."""
    caller: Any = request.user
    actor: Actor = caller.actor
    return actor


def number(request: Request, name: str, default: int, lowest: int, highest: int) -> int:
    """A whole number of the query. Raises Invalid."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not lowest <= int(text) <= highest:
        raise Invalid([FieldError(f"/{name}", "out_of_range", f"Use a number from {lowest} to {highest} for {name}.")])
    return int(text)


def flag(request: Request, name: str) -> bool:
    """`true` or `false` of the query, false where it is absent. Raises Invalid."""
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise Invalid([FieldError(f"/{name}", "not_boolean", f"Use {name}=true or {name}=false.")])
    return text == "true"


def wait(request: Request) -> int:
    """Seconds that the caller wants to wait until the change is live; `true` stands for 30. Raises Invalid."""
    if request.query_params.get("wait") == "true":
        return 30
    return number(request, "wait", 0, 0, MAX_WAIT_S)


def reason(request: Request) -> str:
    """`X-Change-Reason`, for the audit log. Raises Invalid."""
    text = _as_utf8(request.headers.get("X-Change-Reason", ""))
    if len(text) > 400 or not text.isprintable():
        raise Invalid(
            [FieldError("/X-Change-Reason", "reason", "Use at most 400 printable characters for the reason.")]
        )
    return text


@contextmanager
def required_reason(request: Request) -> Iterator[str]:
    """`reason` for what is not done without one: what a service misses, the header misses, since no body has it."""
    try:
        yield reason(request)
    except Invalid as error:
        said = "Send it in the header X-Change-Reason."
        raise Invalid(
            replace(each, pointer="/X-Change-Reason", detail=f"{each.detail} {said}")
            if each.pointer == "/reason"
            else each
            for each in error.field_errors
        ) from None


def _as_utf8(text: str) -> str:
    """What the caller wrote: servers hand headers on as Latin-1, and who writes more than ASCII writes UTF-8."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def origin(request: Request) -> ChangeOrigin:
    """`X-Change-Commit` and `X-Change-Pipeline`, for the audit log. Raises Invalid."""
    commit, pipeline = (request.headers.get(f"X-Change-{name}") for name in ("Commit", "Pipeline"))
    field_errors = []
    if commit is not None and not _COMMIT.fullmatch(commit):
        field_errors.append(
            FieldError("/X-Change-Commit", "commit", "Use 7 to 64 lowercase hexadecimal digits for the commit.")
        )
    if pipeline is not None and not (_PIPELINE.fullmatch(pipeline) and len(pipeline) <= MAX_PIPELINE):
        detail = f"Give the https URL of the pipeline's run, at most {MAX_PIPELINE} characters, without a user."
        field_errors.append(FieldError("/X-Change-Pipeline", "pipeline", detail))
    if field_errors:
        raise Invalid(field_errors)
    return ChangeOrigin(commit or "", pipeline or "")


def dry_run(request: Request) -> bool:
    """Whether nothing may be stored; any other word than true, plan and false is refused, never ignored."""
    text = request.query_params.get("dry_run", "false")
    if text not in ("true", "plan", "false"):
        raise Invalid([FieldError("/dry_run", "choice", "Use dry_run=plan.")])
    return text != "false"


def expected_version(request: Request, *, present: int) -> int:
    """The version that `If-Match` names; `*` is whichever is there. Raises PreconditionRequired, Stale."""
    text = request.headers.get("If-Match")
    if text is None:
        raise PreconditionRequired('Send If-Match: "rev-…" with the ETag of the version that you read.')
    if text.strip() == "*":
        return present
    versions = [int(found[1]) for part in text.split(",") if (found := _ETAG.fullmatch(part.strip()))]
    if present not in versions:
        raise Stale("The object has changed since you read it; read it again before you change it.", present)
    return present


def create_only(request: Request) -> bool:
    """Whether nothing that is there may be touched (`If-None-Match: *`)."""
    return request.headers.get("If-None-Match", "").strip() == "*"


def etag(version: int) -> str:
    """The strong tag of a version."""
    return f'"rev-{version}"'


def unchanged(request: Request, version: int) -> bool:
    """Whether the caller already has this version (`If-None-Match`)."""
    tags = [part.strip().removeprefix("W/") for part in request.headers.get("If-None-Match", "").split(",")]
    return etag(version) in tags or "*" in tags


def only(request: Request, fields: tuple[str, ...]) -> dict[str, Any]:
    """The body as an object with these fields and no others. Raises Invalid."""
    data = request.data
    if not isinstance(data, dict):
        raise Invalid([FieldError("", "not_object", f"Send one object with {', '.join(fields)}.")])
    unknown = [field for field in sorted(map(str, data)) if field not in fields]
    if unknown:
        detail = f"There is no such field here; known are {', '.join(fields)}."
        raise Invalid(FieldError(f"/{field[:63]}", "unknown_field", detail) for field in unknown)
    return dict(data)


def envelope(request: Request, **known: Any) -> dict[str, Any]:
    """The body as an object. Raises Invalid; `known` are fields that the URL already says and the body may repeat."""
    data = request.data
    if not isinstance(data, dict):
        raise Invalid([FieldError("", "not_object", "Send one object: {name, account?, spec}.")])
    for field, value in known.items():
        if field in data and data[field] != value:
            raise Invalid(
                [FieldError(f"/{field}", "read_only", f"The {field} of an object cannot change; it is {value}.")]
            )
    return {**data, **known}
