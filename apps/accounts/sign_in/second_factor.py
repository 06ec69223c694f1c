"""Second factors as rows: a code works once in every process, and who has one at all."""

from __future__ import annotations

from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.core.exceptions import ValidationError
from django.db import transaction

from apps.accounts.models import User
from apps.accounts.sign_in.allauth_adapter import SecondFactorAdapter

STEP = "last_step"


def has_second_factor(user: User) -> bool:
    """Whether the person has an authenticator app or a passkey."""
    own = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
    return Authenticator.objects.filter(user_id=user.pk, type__in=own).exists()


@transaction.atomic
def use_once(*, authenticator_id: int, code: str) -> bool:
    """Use up the time step of a right code of an authenticator app; False when it, or a later one, was used before."""
    row = Authenticator.objects.select_for_update().get(pk=authenticator_id)
    secret = SecondFactorAdapter().decrypt(row.data["secret"])
    given = normalize_user_code(code)
    steps = [step for step in yield_hotp_counters_from_time() if format_hotp_value(hotp_value(secret, step)) == given]
    if not steps or steps[-1] <= row.data.get(STEP, 0):
        return False
    row.data[STEP] = steps[-1]
    row.save(update_fields=["data"])
    return True


def reset_mfa(*, user: User) -> int:
    """Take away every second factor and the recovery codes of somebody who lost them; how many there were."""
    count, _ = Authenticator.objects.filter(user_id=user.pk).delete()
    return count


def plain_name(text: str) -> None:
    """Raise ValidationError for a name that would not stand well in a list: control characters, markup."""
    if not text.isprintable() or any(sign in text for sign in "<>&\"'`"):
        raise ValidationError("Use letters, digits, spaces and simple signs.", code="grammar")
