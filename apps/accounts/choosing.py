"""Tenants: for which account a signed-in person acts: what their session says, checked again at every request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from apps.accounts.actors import Actor, actor_among, memberships_of, viewer_of
from apps.accounts.models import Account, Membership, User
from apps.core import log_context
from apps.core.clock import now

# Keys of the session. CHOSEN is the id of an account, VIEWING is {"account": id, "until": Unix seconds}.
CHOSEN, VIEWING = "account", "viewing"
VIEWING_LASTS = timedelta(hours=1)
Session = Mapping[str, Any]


def actor_of_session(user: User, session: Session, memberships: Sequence[Membership] | None = None) -> Actor | None:
    """The actor of a request: of the account that the person chose, or the viewer that an operator looks as."""
    rows = memberships_of(user) if memberships is None else memberships
    own = actor_among(user, rows, session.get(CHOSEN))
    account = account_viewed(own, session) if own else None
    actor = viewer_of(own, account) if own and account else own
    if actor:
        log_context.note(account=actor.account.name)
    return actor


def account_viewed(actor: Actor, session: Session) -> Account | None:
    """The account that an operator looks at; None when nobody does, when the hour is over, or for anybody else."""
    viewing = session.get(VIEWING)
    if not viewing or not actor.is_operator or viewing["until"] <= now().timestamp():
        return None
    return Account.objects.filter(pk=viewing["account"], kind=Account.Kind.CUSTOMER).first()
