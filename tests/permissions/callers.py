"""Who asks: people and programs of three accounts, and everybody who should not come in at all."""

from __future__ import annotations

from dataclasses import dataclass

from tests.permissions.kind_rows import ANSWERED_ALIKE
from tests.permissions.rows import Open, Row

ROLES = ("viewer", "editor", "admin")


@dataclass(frozen=True, slots=True)
class Caller:
    """A kind of caller: `account` and `role` where they have one, else `oddity` says what is wrong with them."""

    account: str = ""
    role: str = ""
    oddity: str = ""

    def __str__(self) -> str:
        return self.oddity or f"{self.account} {self.role}"


ACCOUNTS = ("other", "own", "operators")
MEMBERS = tuple(Caller(account, role) for account in ACCOUNTS for role in ROLES)
# What is wrong with a caller of the API, and what that is answered with; each would else be the account's owner.
WITH_TOKENS = {
    "nobody": 401,
    "session": 401,
    "suspended": 403,
    "expired": 401,
    "revoked": 401,
    "narrow": 403,
    "elsewhere": 401,
}
NOBODY = Caller(oddity="nobody")
OWNER, FOREIGN_OWNER, ADMIN = (Caller(account, "admin") for account in ("own", "other", "operators"))
REFUSALS = (401, 403, 404)
READ_ONLY, NARROW = Caller(oddity="read only"), Caller(oddity="narrow")
# The same for pages: who is not signed in is sent to the sign-in, and a token is no session.
WITH_SESSIONS = {"nobody": 302, "token": 302, "suspended": 403}
WITHOUT_FORM_TOKEN = Caller(oddity="no form token")


def callers_of(row: Row) -> dict[Caller, int]:
    """Everybody whom the row is asked as, with the answer that they get."""
    if isinstance(row.codes, Open):
        return _of_open(row, row.codes)
    found = dict(zip(MEMBERS, (*row.codes.other, *row.codes.own, *row.codes.operators), strict=True))
    odd = WITH_TOKENS if row.is_api else WITH_SESSIONS
    found |= {Caller(oddity=name): code for name, code in odd.items()}
    if row.is_api and row.writes and not row.only_asks:
        found[READ_ONLY] = 403
        if not row.by_viewers:  # asked before anything is looked up or read, so viewers of every account learn the same
            found |= dict.fromkeys((Caller(account, "viewer") for account in ACCOUNTS), 403)
    if not row.is_api and row.writes:
        found[WITHOUT_FORM_TOKEN] = 403
    return found | {Caller(oddity=name): code for name, code in row.odd.items()}


def _of_open(row: Row, codes: Open) -> dict[Caller, int]:
    found = dict.fromkeys(MEMBERS, codes.signed_in)
    found |= {Caller(oddity="suspended"): codes.signed_in}
    return found | {Caller(oddity=name): codes.anonymous for name in ("nobody", "token")}


def main_callers_of(row: Row) -> dict[Caller, int]:
    """Those whom no mistake of a row gets past: nobody, a foreign owner, a viewer and the owner of what is asked for.

    An editor as well where an editor may not what the owner may; where the thing is the operator's, the owner of the
    own account if that is told something else than strangers are; and those whom a view could let in by a word of its
    own: a token without its scope, a form without its token. The others are refused before any view is reached. An
    owner who reads what a viewer reads as well is not asked: test_query_words.py asks each URL as an admin. Nobody is
    where a view answers as it answers for pools.
    """
    if str(row) in ANSWERED_ALIKE:
        return {}
    full = callers_of(row)
    home = "operators" if full[OWNER] in REFUSALS else "own"
    viewer, editor, owner = (Caller(home, role) for role in ROLES)
    asked = {NOBODY, FOREIGN_OWNER, viewer, owner, WITHOUT_FORM_TOKEN, READ_ONLY if READ_ONLY in full else NARROW}
    if full[editor] != full[owner]:
        asked.add(editor)
    if full[OWNER] != full[FOREIGN_OWNER]:
        asked.add(OWNER)
    if not row.writes and full[viewer] == full[owner]:
        asked.remove(owner)
    return {caller: code for caller, code in full.items() if caller in asked}


def sees_nothing(row: Row, caller: Caller, code: int) -> bool:
    """Whether what the row speaks of must be for this caller as if it were not there."""
    if not row.holds or not caller.account:
        return False
    return caller.account == "other" or code == 404


def changes_nothing(row: Row, caller: Caller, code: int) -> bool:
    """Whether nothing that the caller can reach may be different after the request.

    That is so for whoever is refused, for viewers whatever they are told, and for another account's people as far as
    the own account goes.
    """
    if not row.writes:
        return False
    return code >= 400 or caller.account == "other" or (caller.role == "viewer" and not row.by_viewers)
