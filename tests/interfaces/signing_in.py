"""People who sign in by hand, for tests: a person with a password, codes of an authenticator app, the steps."""

from __future__ import annotations

import base64
import hmac
import re
import struct
import time
from hashlib import sha1
from typing import Any

from django.test import Client

from apps.accounts.models import Account, Membership, User
from tests.conftest import actor_of

PASSWORD = "correct horse battery"


def person(name: str = "ada", account: str = "operator", kind: str = Account.Kind.OPERATOR) -> User:
    """Somebody with a password and a membership."""
    user = User.objects.create_user(name, password=PASSWORD)
    Membership.objects.create(user=user, account=actor_of(account, kind).account, role=Membership.Role.ADMIN)
    return user


def signed_in(name: str = "ada", **client: Any) -> Client:
    """A browser in which the person typed name and password."""
    browser = Client(**client)
    answer = browser.post("/sign-in", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302, answer.content.decode()
    return browser


def code(secret: str, steps: int = 0) -> str:
    """The six digits of RFC 6238 that an app shows now, or `steps` times 30 seconds later."""
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", int(time.time()) // 30 + steps), sha1).digest()
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start : start + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


def prove_again(browser: Client) -> None:
    """Type the password before a change of second factors."""
    assert browser.post("/sign-in/again", {"password": PASSWORD}).status_code == 302


def with_app(name: str = "ada") -> tuple[Client, str, list[str]]:
    """A signed-in browser of somebody who just set up an authenticator app; its secret and the recovery codes."""
    browser = signed_in(name)
    prove_again(browser)
    page = browser.get("/account/security/app").content.decode()
    found = re.search(r"<code>((?:[A-Z2-7]{4} ?){8})</code>", page)
    assert found is not None
    secret = found[1].replace(" ", "")
    answer = browser.post("/account/security/app", {"code": code(secret)})
    assert answer.headers["Location"] == "/account/security/recovery-codes"
    codes = re.findall(r"\b\d{8}\b", browser.get("/account/security/recovery-codes").content.decode())
    assert len(codes) == 10
    return browser, secret, codes
