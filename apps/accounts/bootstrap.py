"""The beginning: the operator account, its first person, and the first tokens; run again it repairs them."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from apps.accounts.models import Account, ApiToken, Membership, User
from apps.accounts.tokens import create_token
from apps.core.clock import now

OPERATOR = "operator"


@transaction.atomic
def found_operator(*, username: str, password: str) -> Account:
    """Make the operator account and a person who may do everything; raises ValidationError for a weak password."""
    account = Account.objects.filter(kind=Account.Kind.OPERATOR).order_by("id").first()
    if account is None:
        account = Account.objects.create(name=OPERATOR, title="Platform", kind=Account.Kind.OPERATOR)
    user = User.objects.filter(username__iexact=username).first() or User(username=username)
    validate_password(password, user)
    user.set_password(password)
    user.is_active = True
    user.save()
    Membership.objects.update_or_create(account=account, user=user, defaults={"role": Membership.Role.ADMIN})
    return account


@transaction.atomic
def found_customer(*, name: str) -> Account:
    """Make a customer account where there is none of that name."""
    account, _ = Account.objects.get_or_create(
        name=name, defaults={"title": name.capitalize(), "kind": Account.Kind.CUSTOMER}
    )
    return account


@transaction.atomic
def replace_token(*, account: Account, name: str) -> str:
    """A new token of this name with the admin role, returned this once; earlier ones of the name are revoked."""
    ApiToken.objects.filter(account=account, name=name, revoked_at=None).update(revoked_at=now())
    return create_token(account=account, name=name, role=Membership.Role.ADMIN)
