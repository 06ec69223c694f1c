"""For which account a signed-in person acts: what their session says, checked again at every request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from apps.accounts.actors import Actor, actor_among, impersonator_of, memberships_of
from apps.accounts.models import Account, Membership, User
from apps.core import log_context
from apps.core.clock import now

# Keys of the session. CHOSEN is the id of an account, IMPERSONATION is {"account": id, "until": Unix seconds}.
CHOSEN, IMPERSONATION = "account", "impersonation"
IMPERSONATION_LASTS = timedelta(hours=1)
Session = Mapping[str, Any]


def actor_of_session(user: User, session: Session, memberships: Sequence[Membership] | None = None) -> Actor | None:
    """The actor of a request: of the account that the person chose, or the customer that an operator impersonates."""
    rows = memberships_of(user) if memberships is None else memberships
    own = actor_among(user, rows, session.get(CHOSEN))
    account = account_impersonated(own, session) if own else None
    actor = impersonator_of(own, account) if own and account else own
    if actor:
        log_context.note(account=actor.account.name)
    return actor


def account_impersonated(actor: Actor, session: Session) -> Account | None:
    """The account that an operator impersonates; None when nobody does, when the hour is over, or for anybody else."""
    found = session.get(IMPERSONATION)
    if not found or not actor.is_operator or found["until"] <= now().timestamp():
        return None
    return Account.objects.filter(pk=found["account"], kind=Account.Kind.CUSTOMER).first()
