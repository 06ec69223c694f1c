"""Speaks ClickHouse's HTTP interface: one statement, its parameters and its ceilings, the whole answer or an error."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import urllib3

from apps.drivers.logs.ceilings import MOST_BYTES, Ceilings
from apps.drivers.logs.contract import Busy, LogStoreError, Rejected, TooLarge, Unavailable

CONNECT_S = 5.0
# Until ClickHouse has said itself that the time is over.
PATIENCE_S = 5.0
PIECE = 2**20
_TIME, _TOO_SLOW = 159, 160
_MEMORY = frozenset({241, 173})
_SIZE = frozenset({158, 306, 307, 396, 394, 131, 191})
_BUSY = frozenset({202})
_NOISE = re.compile(r"^(Code: \d+\. )?(DB::Exception: )?|\(version [^)]*\)\s*$")
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as ClickHouse knows them."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where ClickHouse answers; `reader` asks what people write in SQL, None where nobody may."""

    url: str
    database: str
    owner: User
    reader: User | None = None


class Values:
    """Parameters of a statement: each is named where it stands, and never becomes text of it."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def put(self, kind: str, value: str | int | Sequence[int]) -> str:
        """What stands in the statement for this value."""
        name = f"p{len(self.given)}"
        if isinstance(value, str):
            text = value.translate(_ESCAPED).encode("utf-8", "replace").decode()
        else:
            text = json.dumps(value if isinstance(value, int) else list(value))
        self.given[name] = text
        return f"{{{name}:{kind}}}"


class Client:
    """Statements for one endpoint; threads and forks may share it."""

    def __init__(self, endpoint: Endpoint, ceilings: Ceilings) -> None:
        self.endpoint = endpoint
        self.ceilings = ceilings
        self._pools: dict[int, urllib3.PoolManager] = {}

    def rows(self, text: str, values: Values | None = None, *, settings: Mapping[str, object] | None = None) -> Any:
        """The rows of the answer, each a list of values of JSON."""
        found = self.ask(f"{text} FORMAT JSONCompactEachRow", values, settings=settings)
        return [json.loads(line) for line in found.splitlines()]

    def ask(
        self,
        text: str,
        values: Values | None = None,
        *,
        content: bytes | None = None,
        settings: Mapping[str, object] | None = None,
        user: User | None = None,
    ) -> bytes:
        """The answer as it comes. With `content`, those are the rows that the statement inserts. Raises LogStoreError.

        What goes wrong is said of the question where another `user` asks, and of the store elsewhere.
        """
        seconds = self.ceilings.seconds
        response = self._answered(text, values, seconds, content=content, settings=settings, user=user)
        try:
            found: list[bytes] = []
            size = 0
            for piece in response.stream(PIECE):
                found.append(piece)
                size += len(piece)
                if size > MOST_BYTES:
                    raise TooLarge(f"The answer is longer than {MOST_BYTES // 2**20} MB: ask for less.")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unavailable(f"ClickHouse ended its answer too early: {type(error).__name__}.") from error
        finally:
            response.close()
        return b"".join(found)

    def save(self, text: str, values: Values, target: Any) -> None:
        """Write the answer into an open file. Raises LogStoreError."""
        response = self._answered(text, values, self.ceilings.export_seconds)
        try:
            for piece in response.stream(PIECE):
                target.write(piece)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unavailable(f"The archive could not be written: {type(error).__name__}.") from error
        finally:
            response.close()

    def _answered(
        self,
        text: str,
        values: Values | None,
        seconds: float,
        *,
        content: bytes | None = None,
        settings: Mapping[str, object] | None = None,
        user: User | None = None,
    ) -> Any:
        """The answer before it is read; whether it is an error is known then."""
        who = user or self.endpoint.owner
        fields = {"database": self.endpoint.database, **self._ceilings(seconds), **(settings or {})}
        fields |= {f"param_{name}": value for name, value in (values.given if values else {}).items()}
        if content is not None:
            fields["query"] = text
        try:
            response = self._pool().request(
                "POST",
                f"{self.endpoint.url}?{urlencode(fields)}",
                body=text.encode() if content is None else content,
                headers={"X-ClickHouse-User": who.name, "X-ClickHouse-Key": who.password},
                timeout=urllib3.Timeout(connect=CONNECT_S, read=seconds + PATIENCE_S),
                preload_content=False,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unavailable(f"ClickHouse cannot be reached: {type(error).__name__}.") from error
        if response.status != 200:
            raise self._error(response, seconds, of_a_person=user is not None)
        return response

    def _pool(self) -> urllib3.PoolManager:
        """The connections of this process: a fork must not speak on those of who started it."""
        process = os.getpid()
        if process not in self._pools:
            self._pools = {process: urllib3.PoolManager(maxsize=self.ceilings.at_once, retries=False)}
        return self._pools[process]

    def _ceilings(self, seconds: float) -> dict[str, object]:
        return {
            "max_execution_time": seconds,
            "timeout_before_checking_execution_speed": 0,
            "max_memory_usage": self.ceilings.memory_mb * 2**20,
            "max_threads": self.ceilings.threads,
            "cancel_http_readonly_queries_on_client_close": 1,
            # The whole answer is there before its status is: an error is never amid rows.
            "wait_end_of_query": 1,
            "output_format_json_quote_64bit_integers": 0,
            "output_format_json_quote_denormals": 1,
        }

    def _error(self, response: Any, seconds: float, *, of_a_person: bool) -> LogStoreError:
        try:
            said = response.read().decode("utf-8", "replace")
        except (urllib3.exceptions.HTTPError, OSError):
            said = ""
        finally:
            response.close()
        number = response.headers.get("X-ClickHouse-Exception-Code", "")
        code = int(number) if number.isdecimal() else 0
        if code in (_TIME, _TOO_SLOW):
            return TooLarge(f"The question took longer than {seconds:g} seconds: take a shorter time.")
        if code in _MEMORY:
            return TooLarge("The question needs more memory than one may use: take a shorter time.")
        if code in _SIZE:
            return TooLarge("The question took more than one may use and was ended: take a shorter time.")
        if code in _BUSY:
            return Busy("ClickHouse answers too many questions now: ask again in a moment.")
        message = _NOISE.sub("", said.strip().partition(": In scope ")[0])[:1000] or f"status {response.status}"
        return Rejected(message) if of_a_person and code else Unavailable(f"ClickHouse said: {message}")
