"""The console as an agent sees it once in its life: pinned by the digest in the token before anything is sent."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import ssl
import time
from dataclasses import dataclass
from typing import Any, Callable
from urllib.parse import urlsplit

from apps.agent import VERSION

TOKEN = re.compile(r"sne_([A-Za-z0-9_-]{43})_([A-Za-z0-9_-]{43})")
PEM = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
# Trust what was pinned itself, be it an authority, one below another, or the console's own certificate. Python 3.9 has
# no name for OpenSSL's flag yet.
PARTIAL_CHAIN = 0x80000
SECONDS = 60.0
LARGEST_ANSWER = 256 * 1024
PATIENCE_S = 300.0
AGAIN = (429, 502, 503, 504)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0


class Failed(Exception):
    """The node is not enrolled, for a reason that another try would not change; a sentence."""


class Away(Exception):
    """The console does not answer now, or asks for patience."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


@dataclass(frozen=True)
class Pin:
    """The SHA-256 of the only certificate through which the console is believed."""

    digest: bytes

    def chosen(self, offered: str) -> str:
        """The pinned one (PEM) of the certificates that somebody offers. Raises Failed where it is not among them."""
        for found in PEM.findall(offered):
            if hashlib.sha256(ssl.PEM_cert_to_DER_cert(found)).digest() == self.digest:
                return str(found)
        raise Failed(
            "Whoever answers there is not the console that made this token: its certificate is another one. "
            "Nothing was sent to it. Check the address, and who stands between."
        )


def read_token(text: str) -> Pin:
    """The pin in a token. Raises Failed."""
    found = TOKEN.fullmatch(text)
    if found is None:
        raise Failed("That is not an enrolment token: it begins with sne_ and has 91 characters. Copy it whole.")
    return Pin(base64.urlsafe_b64decode(found[1] + "="))


class Console:
    """The console at `https://host[:port]`, believed by its pin alone."""

    def __init__(self, url: str, pin: Pin) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
            raise Failed(f"Write the console's address as https://console.example or with a port; {url!r} is not.")
        self._host, self._port, self._pin = parts.hostname, parts.port or 443, pin

    def ask(self, body: dict[str, Any], sleep: Callable[[float], object] = time.sleep) -> dict[str, Any]:
        """The answer to a POST of `body` to /enrol; a console that is away or busy is asked again, ever more slowly.

        Raises Failed with the console's own sentence.
        """
        ends, pause = time.monotonic() + PATIENCE_S, FIRST_PAUSE_S
        while isinstance(answer := self._tried(body), Away):
            wait = max(pause, answer.wait_s)
            if time.monotonic() + wait > ends:
                raise Failed(f"{answer} Try again with the same token while it is valid.")
            sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE_S)
        return answer

    def _tried(self, body: dict[str, Any]) -> dict[str, Any] | Away:
        try:
            return self._post(self.context(), json.dumps(body).encode())
        except Away as away:
            return away

    def context(self) -> ssl.SSLContext:
        """How to reach the console and nobody else.

        Its authority is asked for first, over a connection on which nothing is told and nothing believed but the one
        certificate with the right digest. Raises Failed and Away.
        """
        blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        blind.check_hostname = False
        blind.verify_mode = ssl.CERT_NONE
        status, _, content = self._exchange(blind, "GET", "/enrol/ca", None)
        if status in AGAIN:
            raise Away(f"The console answers {status}.")
        pinned = self._pin.chosen(content.decode("ascii", errors="replace"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(cadata=pinned)
        context.verify_flags |= PARTIAL_CHAIN
        return context

    def _post(self, context: ssl.SSLContext, body: bytes) -> dict[str, Any]:
        status, headers, content = self._exchange(context, "POST", "/enrol", body)
        try:
            answer = json.loads(content)
        except ValueError:
            answer = {}
        answer = answer if isinstance(answer, dict) else {}
        if status == 200:
            return answer
        said = str(answer.get("detail") or f"The console answers {status}.")
        if status in AGAIN:
            wait = headers.get("retry-after", "")
            raise Away(said, float(wait) if wait.isdigit() else 0.0)
        raise Failed(said)

    def _exchange(
        self, context: ssl.SSLContext, method: str, path: str, body: bytes | None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=SECONDS, context=context)
        try:
            headers = {"content-type": "application/json", "user-agent": f"spillway-agent/{VERSION}"}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read(LARGEST_ANSWER)
        except ssl.SSLCertVerificationError as error:
            raise Failed(
                f"The console at {self._host} has a certificate of the pinned authority that does not fit "
                f"({error.verify_message}). Nothing was sent to it."
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise Away(f"The console at {self._host}:{self._port} does not answer: {error}.") from None
        finally:
            connection.close()
