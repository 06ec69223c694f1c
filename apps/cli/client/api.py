"""Calls of the API: one request with its token, sent again under the same key until an answer is there."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from . import __version__

ATTEMPTS = 6
LONGEST_PAUSE_S = 60
TIMEOUT_S = 100  # longer than the server keeps a request that waits until a change is live
AGAIN = frozenset({429, 502, 503, 504})
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


class Failure(Exception):
    """Something that ends the command with exit code 1; its text is for people."""


@dataclass
class Problem(Failure):
    """A refusal of the server (RFC 9457)."""

    status: int
    body: Mapping[str, Any]

    @property
    def request_id(self) -> str:
        """What leads operators to the request."""
        return str(self.body.get("request_id", ""))

    @property
    def field_errors(self) -> list[Mapping[str, Any]]:
        """One entry per error: pointer, code, detail."""
        return [field_error for field_error in self.body.get("errors", ()) if isinstance(field_error, dict)]

    def __str__(self) -> str:
        return str(self.body.get("detail") or self.body.get("title") or f"HTTP {self.status}")


class _Stay(urllib.request.HTTPRedirectHandler):
    """A token goes to the server that it was meant for and nowhere else."""

    def redirect_request(
        self, _req: urllib.request.Request, _fp: IO[bytes], code: int, _msg: str, _headers: HTTPMessage, newurl: str
    ) -> None:
        raise Failure(f"The server redirects to {newurl} ({code}). Set SPILLWAY_URL to that address.")


@dataclass(frozen=True)
class Api:
    """A server and a token; `origin` are the headers that say why a change is made and where it comes from.

    `said` stands in the query of every write (words.py).
    """

    url: str
    token: str = field(repr=False)
    origin: Mapping[str, str] = field(default_factory=dict)
    plain_http: bool = False
    said: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Failure("Set SPILLWAY_URL to the address of the console, such as https://spillway.example.com.")
        if parts.scheme == "http" and parts.hostname not in LOCAL and not self.plain_http:
            raise Failure(
                "Over http:// anyone on the network path can read the token: use https://, or pass --plain-http."
            )
        if not self.token:
            raise Failure("Set SPILLWAY_TOKEN to a token of your account (Console, Tokens), or pass --token-file.")

    def __call__(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        text: bytes | None = None,
    ) -> Any:
        """The answer's JSON, None where it is empty. `body` is sent as JSON, `text` as YAML. Raises Failure."""
        url = self._url(path, {**(query or {}), **(self.said if method != "GET" else {})})
        headers = self._headers()
        data = text
        if text is not None:
            headers["Content-Type"] = "application/yaml"
        elif body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        if method != "GET":
            headers |= {"Idempotency-Key": str(uuid.uuid4()), **self.origin}
        return _patiently(urllib.request.Request(url, data, headers, method=method), _json)  # noqa: S310 - judged above

    def file(self, path: str, query: Mapping[str, str]) -> bytes:
        """What is read as a file. Raises Failure."""
        request = urllib.request.Request(self._url(path, query), headers=self._headers())  # noqa: S310 - judged above
        return bytes(_patiently(request, lambda content, _: content))

    def _url(self, path: str, query: Mapping[str, str]) -> str:
        url = f"{self.url.rstrip('/')}/api/v1/{quote(path, safe='/:')}"
        return f"{url}?{urlencode(query)}" if query else url

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json",
            "Authorization": f"Bearer {self.token}",
            "User-Agent": f"spillway-cli/{__version__}",
        }


def _patiently(request: urllib.request.Request, read: Callable[[bytes, int], Any]) -> Any:
    """Send until the server has answered for good; the key lets it do the work once. Raises Failure."""
    opener = urllib.request.build_opener(_Stay)
    lost = ""
    for attempt in range(ATTEMPTS):
        try:
            with opener.open(request, timeout=TIMEOUT_S) as response:
                return read(response.read(), response.status)
        except urllib.error.HTTPError as error:
            problem, pause = Problem(error.code, _problem(error)), _asked_pause(error)
            # A conflict that says when it is over: an earlier attempt of ours, or another change, is being worked on.
            if error.code not in AGAIN and (error.code != 409 or pause is None):
                raise problem from None
            lost = str(problem)
        except (urllib.error.URLError, HTTPException, OSError) as error:
            lost, pause = f"The server cannot be reached: {getattr(error, 'reason', None) or error}.", None
        if attempt + 1 < ATTEMPTS:
            time.sleep(min(0.5 * 2**attempt if pause is None else pause, LONGEST_PAUSE_S))
    raise Failure(f"{lost} Stopped after {ATTEMPTS} attempts.")


def _asked_pause(error: urllib.error.HTTPError) -> float | None:
    text = error.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdecimal() else None


def _problem(error: urllib.error.HTTPError) -> Mapping[str, Any]:
    try:
        body = json.loads(error.read())
    except (ValueError, HTTPException, OSError):
        body = None
    return body if isinstance(body, dict) else {"detail": f"The server answered {error.code} {error.reason}."}


def _json(content: bytes, status: int) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        raise Failure(
            f"The response ({status}) is not JSON: is SPILLWAY_URL the address of a Spillway console?"
        ) from None
