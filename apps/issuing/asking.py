"""Speaks ACME with one authority, by the library `acme` and over the calls that reach no private address.

Nothing here touches the database, so a slow authority holds no transaction open. Whatever goes wrong is a `Refusal`
with a sentence for the owner of the certificate.
"""

from __future__ import annotations

import io
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import josepy
import requests
from acme import challenges, client, errors, messages
from acme.crypto_util import make_csr
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from josepy.jwa import ES256
from josepy.jwk import JWKEC
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from apps.core.called_urls import Refused
from apps.core.clock import now
from apps.core.concurrency.backoff import retry_after
from apps.core.outbound import Unreachable, fetch

SECONDS, MOST_BYTES = 20.0, 512 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,256}")
VALID, INVALID, READY, PENDING, PROCESSING = "valid", "invalid", "ready", "pending", "processing"
# An authority may refuse a nonce at any time; the next request has another one.
_NONCES = 5
_PASSING = ("badNonce", "serverInternal")
# What the library falls over where an answer is JSON of another shape.
_NONSENSE = (ValueError, KeyError, TypeError, AttributeError)


class Refusal(Exception):
    """The authority, or the way to it, says no; the text is a sentence.

    `wish` is how long it asks us to wait, `asked_too_often` that it means all our orders. After a `passing` one an
    order under way simply goes on later; `lost_account` says that our account there is gone.
    """

    def __init__(
        self,
        sentence: str,
        *,
        wish: timedelta | None = None,
        asked_too_often: bool = False,
        passing: bool = False,
        lost_account: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.wish, self.asked_too_often, self.passing, self.lost_account = wish, asked_too_often, passing, lost_account


@dataclass(frozen=True, slots=True)
class Challenge:
    """One way to prove a hostname: `answer` is what the authority wants to find (of dns-01 the TXT value)."""

    kind: str
    token: str
    answer: str
    url: str


@dataclass(frozen=True, slots=True)
class Authorization:
    """A hostname (without `*.`, then `wildcard`) of an order, how it stands, and how it can be proved."""

    url: str
    hostname: str
    wildcard: bool
    status: str
    challenges: tuple[Challenge, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """An order as it stands at the authority."""

    url: str
    status: str
    finalize: str
    certificate: str = ""
    authorizations: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """What is needed to be known at an authority: our key (PEM), our URL there (blank: none yet), and the terms."""

    directory_url: str
    key: bytes
    url: str = ""
    trusted_ca: str = ""
    terms_agreed: bool = False
    contacts: tuple[str, ...] = ()
    external_key_id: str = ""
    external_hmac_key: str = field(default="", repr=False)
    profile: str = ""


def new_key() -> bytes:
    """A private key on P-256, as PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class _Calls(HTTPAdapter):
    """Lets every request of the library go out by core/outbound.py; `wish` is the last Retry-After."""

    def __init__(self, trusted_ca: str) -> None:
        super().__init__()
        self.wish: timedelta | None = None
        self._context = ssl.create_default_context(cadata=trusted_ca) if trusted_ca else None

    def send(self, request: Any, *_: Any, **__: Any) -> requests.Response:
        """One request, one answer. Raises Refused, Unreachable."""
        body = request.body.encode() if isinstance(request.body, str) else request.body
        headers = {name: value for name, value in request.headers.items() if name.lower() != "connection"}
        answer = fetch(
            str(request.url),
            method=str(request.method),
            headers=headers,
            body=body,
            timeout=SECONDS,
            limit=MOST_BYTES,
            context=self._context,
        )
        self.wish = retry_after(answer.headers, now())
        raw = HTTPResponse(io.BytesIO(answer.body), answer.headers, answer.status, preload_content=False)
        return self.build_response(request, raw)


class _Network(client.ClientNetwork):
    """The library's, which asks for one other nonce only."""

    def post(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As the library's. Raises messages.Error."""
        for _ in range(_NONCES):
            try:
                return super().post(*args, **kwargs)
            except messages.Error as error:
                if error.code != "badNonce":
                    raise
        return super().post(*args, **kwargs)


class Conversation:
    """With one authority, as one account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._key = JWKEC(key=load_pem_private_key(account.key, None))
        self._net = _Network(self._key, alg=ES256, user_agent="Spillway")
        self._calls = _Calls(account.trusted_ca)
        self._net.session.trust_env = False
        self._net.session.headers["Accept-Encoding"] = "identity"
        for scheme in ("https://", "http://"):
            self._net.session.mount(scheme, self._calls)
        self._client: client.ClientV2 | None = None
        if account.url:
            self._net.account = messages.RegistrationResource(uri=account.url, body=messages.Registration())

    def register(self) -> str:
        """Our URL there; the same key has the same account, however often it is asked. Raises Refusal."""
        account = self._account
        with self._in_words():
            known = self._acme.directory
            terms = getattr(known.meta, "terms_of_service", None) if hasattr(known, "meta") else None
            if terms and not account.terms_agreed:
                raise Refusal(f"The authority asks you to agree to its terms ({terms}): set terms_agreed.")
            if self._acme.external_account_required() and not account.external_key_id:
                raise Refusal("The authority takes only accounts that it knows: set external_key_id and its HMAC key.")
            try:
                made = self._acme.new_account(self._registration())
            except errors.ConflictError as known_already:
                return str(known_already.location)
            return str(made.uri)

    def order(self, hostnames: Sequence[str], key: bytes) -> tuple[Order, tuple[Authorization, ...]]:
        """Make an order for the hostnames. Raises Refusal."""
        with self._in_words():
            made = self._acme.new_order(_request(hostnames, key), self._account.profile or None)
            authorizations = tuple(self._authorization(each) for each in made.authorizations)
            return _order(made.uri, made.body), authorizations

    def order_at(self, url: str) -> Order:
        """How an order stands. Raises Refusal."""
        with self._in_words():
            return _order(url, messages.Order.from_json(self._post(url, None).json()))

    def authorization_at(self, url: str) -> Authorization:
        """How an authorization stands. Raises Refusal."""
        with self._in_words():
            body = messages.Authorization.from_json(self._post(url, None).json())
            return self._authorization(messages.AuthorizationResource(uri=url, body=body))

    def look(self, challenge_url: str) -> None:
        """Let the authority look for the answer of a challenge. Raises Refusal."""
        with self._in_words():
            self._post(challenge_url, challenges.HTTP01Response())

    def finalize(self, order: Order, hostnames: Sequence[str], key: bytes) -> None:
        """Ask for the certificate of an order that is ready. Raises Refusal."""
        with self._in_words():
            body = messages.Order.from_json({"finalize": order.finalize, "status": READY})
            wanted = messages.OrderResource(body=body, uri=order.url, csr_pem=_request(hostnames, key))
            self._acme.begin_finalization(wanted)

    def download(self, url: str) -> str:
        """The chain, as PEM. Raises Refusal."""
        with self._in_words():
            found: str = self._post(url, None).text
            return found

    def suggested_renewal(self, chain: str) -> tuple[datetime | None, datetime]:
        """When the authority suggests to renew (RFC 9773), None without a word of it; and when to ask again."""
        with self._in_words():
            at, again = self._acme.renewal_time(chain.encode())
            return at, again.astimezone(UTC)  # the library says that one in the time of the machine

    @property
    def _acme(self) -> client.ClientV2:
        if self._client is None:
            self._client = client.ClientV2(
                client.ClientV2.get_directory(self._account.directory_url, self._net), self._net
            )
        return self._client

    def _post(self, url: str, body: Any) -> requests.Response:
        return self._net.post(url, body, new_nonce_url=self._acme.directory["newNonce"])

    def _registration(self) -> messages.NewRegistration:
        account, binding = self._account, None
        if account.external_key_id:
            binding = messages.ExternalAccountBinding.from_data(
                self._key.public_key(), account.external_key_id, account.external_hmac_key, self._acme.directory
            )
        fields: dict[str, Any] = {"contact": tuple(f"mailto:{each}" for each in account.contacts)}
        fields |= {"external_account_binding": binding} if binding else {}
        fields |= {"terms_of_service_agreed": True} if account.terms_agreed else {}
        return messages.NewRegistration(**fields)

    def _authorization(self, found: messages.AuthorizationResource) -> Authorization:
        body, offered, error = found.body, [], ""
        for each in body.challenges:
            error = error or (_words(each.error) if each.error else "")
            if isinstance(each.chall, challenges.HTTP01 | challenges.DNS01):
                token = each.chall.encode("token")
                if not _TOKEN.fullmatch(token):
                    raise Refusal("The authority gave a token that is none.")
                answer = each.chall.validation(self._key)
                offered.append(Challenge(each.chall.typ, token, answer, each.uri))
        name = str(body.identifier.value).lower()
        wildcard = bool(getattr(body, "wildcard", False))
        return Authorization(str(found.uri), name, wildcard, _status(body), tuple(offered), error)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        self._calls.wish = None
        try:
            yield
        except messages.Error as error:
            code = error.code or ""
            raise Refusal(
                _words(error),
                wish=self._calls.wish,
                asked_too_often=code == "rateLimited",
                passing=code in _PASSING,
                lost_account=code == "accountDoesNotExist",
            ) from error
        except (Refused, Unreachable) as error:
            raise Refusal(f"The authority was not reached. {error}", passing=True) from error
        except errors.ClientError as error:
            answer = error.args[0] if error.args else None
            status = answer.status_code if isinstance(answer, requests.Response) else 0
            raise Refusal(
                f"The authority answers otherwise than ACME does{f' ({status})' if status else ''}.",
                wish=self._calls.wish,
                asked_too_often=status == 429,
                passing=status >= 500,
            ) from error
        except (errors.Error, requests.RequestException, josepy.errors.Error, *_NONSENSE) as error:
            raise Refusal("The authority answers otherwise than ACME does.", wish=self._calls.wish) from error


def _request(hostnames: Sequence[str], key: bytes) -> bytes:
    request: bytes = make_csr(key, sorted(hostnames))
    return request


def _order(url: str, body: messages.Order) -> Order:
    return Order(
        url=url,
        status=_status(body),
        finalize=str(body.finalize or ""),
        certificate=str(body.certificate or ""),
        authorizations=tuple(body.authorizations or ()),
        error=_words(body.error) if body.error else "",
    )


def _status(body: Any) -> str:
    return str(body.status.name) if body.status is not None else ""


def _words(error: messages.Error) -> str:
    """What the authority says, in one line that pages may show."""
    parts = [error, *(error.subproblems or ())]
    said = [
        f"{each.identifier.value}: {each.detail}" if each.identifier else str(each.detail or each.code)
        for each in parts
    ]
    text = " ".join(" ".join(said).split())
    return f"The authority says: {''.join(sign for sign in text if sign.isprintable())[:480]}"
